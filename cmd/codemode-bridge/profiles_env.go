package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/include"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/policycmd"
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
	if err != nil {
		return nil, err
	}
	cfg, err := con.loader(path).File(context.Background(), con.shown(path), overlay)
	var missing *fs.PathError
	if errors.As(err, &missing) && missing.Path == overlay && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w for the environment %s at %s", errNoOverlay, con.environment, overlay)
	}
	return cfg, err
}

// loader reads the configuration at path with what it includes.
func (con *console) loader(path string) *policycmd.Loader {
	l := policycmd.Open(con.Env, con.policy(path))
	l.Got = func(d include.Document) {
		if d.Problem != nil {
			con.Told("%s: the last good copy holds, serial %d: %v", d.Include.URL, d.Envelope.Serial, d.Problem)
		}
	}
	return l
}

// parseFile is loadFile with text in the place of what the file at path says.
func (con *console) parseFile(path string, text []byte) (*config.Config, error) {
	overlay, err := con.overlay(con.shown(path))
	if err != nil {
		return nil, err
	}
	return con.loader(path).Text(context.Background(), con.shown(path), text, overlay)
}

// watchFiles follows the configuration that was loaded first, with its overlay and what it includes, until
// ctx ends. It calls changed after each change, and wrong if it cannot be
// read or has mistakes; never two calls at the same time.
func watchFiles(ctx context.Context, con *console, first *config.Config, changed func(cfg *config.Config, looked []string), wrong func(error)) {
	load := func(now bool) (*config.Config, []string, error) {
		again := *con // a copy: rememberLookups changes Env, which others use meanwhile
		looked := rememberLookups(&again)
		overlay, err := again.overlay(again.shown(first.File))
		if err != nil {
			return nil, nil, err
		}
		loader := again.loader(first.File)
		loader.Now = now
		cfg, err := loader.File(ctx, again.shown(first.File), overlay)
		return cfg, looked(), err
	}
	policycmd.Watch{Load: load, Changed: changed, Wrong: wrong}.Run(ctx, first)
}
