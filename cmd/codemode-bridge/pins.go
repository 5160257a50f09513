package main

import (
	"context"
	"errors"
	"path/filepath"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pins"
)

// pinFolder is where the pins of a configuration file are kept; empty, so that they
// are kept in memory, if the environment names no folder.
func pinFolder(con *console, file string) string {
	places, err := config.Paths(con.Env)
	if err != nil {
		return ""
	}
	return filepath.Join(places.StateDir, "pins-"+fileKey(file))
}

// pinRules returns the reactions to new and changed tools that a server is configured
// with.
func pinRules(s *config.Server) pins.Rules {
	return pins.Rules{New: pins.Reaction(s.NewTools), Changed: pins.Reaction(s.ChangedTools)}
}

// toolsOf gives the page the unreviewed tools, and applies what is decided there.
type toolsOf struct{ *parts }

func (o toolsOf) Unreviewed(context.Context) ([]admin.UnreviewedTool, error) {
	cfg, secrets := o.config(), o.recorder.Secrets()
	waiting, err := o.pins.Unreviewed(cfg.ServerNames())
	if err != nil {
		return nil, err
	}
	var all []admin.UnreviewedTool
	for _, w := range waiting {
		all = append(all, admin.UnreviewedTool{Server: w.Server, Tool: w.Tool, Row: pins.NewRow(w, thenOf(w, cfg), secrets.Hide)})
	}
	return all, nil
}

func (o toolsOf) Changed() <-chan struct{} { return o.views.Changed() }

func (o toolsOf) Accept(ctx context.Context, server, tool, digest, by, channel string) error {
	return o.decide(ctx, pins.Reviewer.Accept, server, tool, digest, by, channel)
}

func (o toolsOf) Block(ctx context.Context, server, tool, digest, by, channel string) error {
	return o.decide(ctx, pins.Reviewer.Block, server, tool, digest, by, channel)
}

func (o toolsOf) decide(ctx context.Context, do func(pins.Reviewer, context.Context, pins.UnreviewedTool, string, string) error, server, tool, digest, by, channel string) error {
	if o.config().Servers[server] == nil {
		return admin.ErrUnknown
	}
	w, ok, err := o.pins.Find(server, tool)
	switch {
	case err != nil:
		return err
	case !ok:
		return admin.ErrUnknown
	}
	w.Digest = digest
	switch err := do(pins.Reviewer{Store: o.pins, Recorder: o.recorder}, ctx, w, by, channel); {
	case errors.Is(err, pins.ErrChanged):
		return admin.ErrChanged
	case errors.Is(err, pins.ErrUnknown):
		return admin.ErrUnknown
	case err != nil:
		return err
	}
	o.views.Refresh()
	return nil
}
