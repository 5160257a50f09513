package main

import (
	"context"
	"errors"
	"slices"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/observed"
	"codemode-bridge/bridge/profileview"
	"codemode-bridge/bridge/scripts"
	"codemode-bridge/cmd/codemode-bridge/checkcmd"
	"codemode-bridge/sandbox"
)

// checks are the commands that check the configuration, and show its saved scripts.
func checks(con *console) *checkcmd.Bridge {
	return &checkcmd.Bridge{
		Console: &con.Console, Documents: documents(), Shown: con.shown, Load: con.load,
		From: func(file string) { con.configPath = file },
		Secrets: func(ctx context.Context, cfg *config.Config) (*config.Config, error) {
			return con.withSecrets(ctx, cfg)
		},
		Remarks: func(cfg *config.Config) (warnings, notes []string) { return remarks(con, cfg) },
		Idle:    func(ctx context.Context) (checkcmd.Idle, error) { return findIdle(ctx, con) },
		Parser: func(cfg *config.Config) (func(context.Context, scripts.Script) *scripts.Problem, func() error, error) {
			program, err := worker()
			if err != nil {
				return nil, nil, err
			}
			pool, err := sandbox.NewPool(sandbox.Options{Worker: program, Limits: limits(cfg.Sandbox), Warm: warm(0), MaxWorkers: 1})
			if err != nil {
				return nil, nil, err
			}
			return func(ctx context.Context, s scripts.Script) *scripts.Problem { return parsed(ctx, pool, s) }, pool.Close, nil
		},
	}
}

// findIdle connects to the servers, and finds list entries and rules of profiles that have
// no effect.
func findIdle(ctx context.Context, con *console) (idle checkcmd.Idle, err error) {
	err = once(ctx, con, func(_ context.Context, p *parts) error {
		complain(con, p)
		view := p.gate.View()
		warnings, tools := profileview.Check(view, p.config().Place)
		idle = checkcmd.Idle{Warnings: warnings, Profiles: len(view.Profiles.Names()), Tools: tools}
		for _, w := range warnings {
			idle.Lines = append(idle.Lines, w.String())
		}
		return nil
	})
	return idle, err
}

// parsed has a worker parse a script, and returns the error as a problem; nil if there
// is none.
func parsed(ctx context.Context, pool *sandbox.Pool, s scripts.Script) *scripts.Problem {
	err := pool.Check(ctx, s.Source)
	var wrong *sandbox.ScriptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &scripts.Problem{Line: wrong.Position.Line, Column: wrong.Position.Column, Message: wrong.Message}
	default:
		return &scripts.Problem{Message: err.Error()}
	}
}

// readSaved reads the saved scripts at the start. If that fails, the bridge works
// without them.
func (p *parts) readSaved(cfg *config.Config) {
	all, err := scripts.Read(cfg.Scripts.Dir, int64(cfg.Sandbox.Source))
	if err != nil {
		p.log.Warn("the saved scripts can't be read", "err", err)
	}
	p.views.SetScripts(catalogued(all))
}

// followSaved takes over changed scripts until ctx ends, and has each parsed.
func (p *parts) followSaved(ctx context.Context, cfg *config.Config) {
	if cfg.Scripts.Dir == "" {
		return
	}
	scripts.Watch(ctx, cfg.Scripts.Dir, func(all []scripts.Script) {
		p.views.SetScripts(catalogued(all))
		for _, s := range all {
			if s.Problem != nil {
				p.log.Warn("a saved script can't be run", "file", s.File, "err", s.Problem)
			}
		}
		p.views.Refresh()
	}, scripts.WatchOptions{
		Max:   int64(cfg.Sandbox.Source),
		Check: func(ctx context.Context, s scripts.Script) *scripts.Problem { return parsed(ctx, p.pool, s) },
		Lost:  func(err error) { p.log.Warn("the saved scripts can't be read; the last ones stay", "err", err) },
	})
}

// catalogued converts saved scripts for package catalog.
func catalogued(all []scripts.Script) []catalog.Script {
	var named []catalog.Script
	for _, s := range all {
		if s.Name == "" {
			continue // nothing could call it
		}
		saved := catalog.Script{Name: s.Name, Description: s.Description, Input: s.Input, Output: s.Output, Source: s.Source, Digest: s.Digest}
		if s.Problem != nil {
			saved.Problem = s.Problem.Error()
		}
		named = append(named, saved)
	}
	return named
}

// observe learns from an answer, unless it is of a person's own account: a name in it may
// be that of something they have, which nobody else is to be shown.
func (p *parts) observe(tool *catalog.Tool, answer gate.Answer) {
	if ownAccount(p, tool.Server) {
		return
	}
	media := slices.ContainsFunc(answer.Content, func(c gate.Content) bool { return c.Type != "text" })
	p.observed.Note(observedTool(tool), observed.Answer{Text: answer.Text(), Value: answer.Structured, Media: media})
}

// observation tells of past answers.
func (p *parts) observation(tool *catalog.Tool, limit int) catalog.Observation {
	if ownAccount(p, tool.Server) {
		return catalog.Observation{} // it may have been everybody's before
	}
	return catalog.Observation(p.observed.Type(observedTool(tool), limit))
}

// ownAccount reports whether each person has an account of their own at a server.
func ownAccount(p *parts, server string) bool {
	s := p.config().Servers[server]
	return s != nil && s.Auth.Per == config.AuthPrincipal
}

func observedTool(tool *catalog.Tool) observed.Tool {
	return observed.Tool{Server: tool.Server, Name: tool.Name, Digest: tool.Digest}
}
