package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/toolscmd"
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

// toolCommands gives the commands of package toolscmd access to the program.
func toolCommands(con *console) *toolscmd.Bridge {
	return &toolscmd.Bridge{
		Console: &con.Console, Load: con.load,
		Pins: func(cfg *config.Config) *pins.Store { return pins.Open(pinFolder(con, cfg.File)) },
		Secrets: func(cfg *config.Config) *recorder.Secrets {
			var secrets recorder.Secrets
			secrets.Learn(given(specs(cfg, con.Env)), con.Env)
			return &secrets
		},
		Typed: func(command string) string { return typed(con, command) },
		Catalog: func(ctx context.Context, server string, look func(*catalog.Catalog, *catalog.View) error) error {
			return withCatalog(ctx, con, server, look)
		},
		Admin: func(ctx context.Context, cfg *config.Config, fromStdin bool) (string, error) {
			return whoReviews(ctx, con, cfg, fromStdin)
		},
		Record: func(ctx context.Context, cfg *config.Config, do func(pins.Recorder) error) error {
			return recordReview(ctx, con, cfg, do)
		},
	}
}

// recordReview calls do with the audit log, as those commands open it that run no bridge.
func recordReview(ctx context.Context, con *console, cfg *config.Config, do func(pins.Recorder) error) (err error) {
	l, err := openQuietLogs(con, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	rec, err := con.openLog(ctx, cfg.Audit, l.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	return do(rec)
}

// whoReviews identifies the person at the terminal: an approver with the right to
// edit, by their token. If there are no approvers, whoever can change the
// configuration may review tools too.
func whoReviews(ctx context.Context, con *console, cfg *config.Config, fromStdin bool) (string, error) {
	cfg, err := inForce(ctx, con, cfg)
	if err != nil {
		return "", err
	}
	if len(cfg.Approvals.Approvers) > 0 {
		_, who, _, err := authenticate(con, cfg, fromStdin)
		if err != nil {
			return "", err
		}
		if !who.May(approval.Edit) {
			return "", fmt.Errorf("%s may not accept or block tools: that takes the role admin", who.Name)
		}
		return who.Name, nil
	}
	return thisUser(), nil
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
		all = append(all, admin.UnreviewedTool{Server: w.Server, Tool: w.Tool, Row: pins.NewRow(w, toolscmd.Then(w, cfg), secrets.Hide)})
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
