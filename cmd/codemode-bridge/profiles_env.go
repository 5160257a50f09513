package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/watchfile"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// errNoOverlay says that --env names an environment without an overlay.
var errNoOverlay = errors.New("there is no overlay")

// overlay is the file that --env lays over the configuration at path, such as
// config.prod.json beside config.json; empty without --env.
func (con *console) overlay(path string) (string, error) {
	if con.environment == "" {
		return "", nil
	}
	overlay, err := config.OverlayName(path, con.environment)
	if err != nil {
		return "", &cli.UsageError{Err: err}
	}
	return overlay, nil
}

// loadFile reads the configuration at path, with its overlay if there is one.
func (con *console) loadFile(path string) (*config.Config, error) {
	overlay, err := con.overlay(con.shown(path))
	switch {
	case err != nil:
		return nil, err
	case overlay == "":
		return config.Load(con.shown(path), con.Env, con.policy(path))
	}
	cfg, err := config.LoadOverlaid(con.shown(path), overlay, con.Env, con.policy(path))
	var missing *fs.PathError
	if errors.As(err, &missing) && missing.Path == overlay && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w for the environment %s at %s", errNoOverlay, con.environment, overlay)
	}
	return cfg, err
}

// parseFile is loadFile with text in the place of what the file at path says.
func (con *console) parseFile(path string, text []byte) (*config.Config, error) {
	overlay, err := con.overlay(con.shown(path))
	switch {
	case err != nil:
		return nil, err
	case overlay == "":
		return config.Parse(con.shown(path), text, con.Env, con.policy(path))
	}
	data, err := os.ReadFile(overlay)
	if err != nil {
		return nil, fmt.Errorf("reading the overlay: %w", err)
	}
	return config.ParseOverlaid(con.shown(path), text, config.Overlay{Name: overlay, Data: data}, con.Env, con.policy(path))
}

// watchFiles follows the configuration that was loaded first, and its overlay, until
// ctx ends. It calls changed after each change of either, and wrong if one cannot be
// read or has mistakes; never two calls at the same time.
func watchFiles(ctx context.Context, con *console, first *config.Config, changed func(cfg *config.Config, looked []string), wrong func(error)) {
	var mu sync.Mutex
	again := func([]byte) {
		mu.Lock()
		defer mu.Unlock()
		again := *con // a copy: rememberLookups changes Env, which others use meanwhile
		looked := rememberLookups(&again)
		cfg, err := again.loadFile(first.File)
		if err != nil {
			wrong(err)
			return
		}
		changed(cfg, looked())
	}
	lost := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		wrong(err)
	}
	var watching sync.WaitGroup
	if first.Overlay != "" {
		watching.Go(func() {
			watchfile.Watch(ctx, first.Overlay, again, watchfile.Options{Loaded: first.OverlayDigest(), Lost: lost})
		})
	}
	watchfile.Watch(ctx, first.File, again, watchfile.Options{Loaded: first.Digest, Lost: lost})
	watching.Wait()
}
