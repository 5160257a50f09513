package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/lockfile"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
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

// marksFolder is where a configuration without a shared store keeps what principals have read; empty for nowhere.
func marksFolder(con *console, file string) string {
	if pins := pinFolder(con, file); pins != "" {
		return filepath.Join(filepath.Dir(pins), "marks-"+fileKey(file))
	}
	return ""
}

// openPins opens the pins of a configuration, which its lock file adds to.
func openPins(con *console, cfg *config.Config) *pins.Store {
	store := con.shared.Pins(cfg, pinFolder(con, cfg.File))
	store.CompareWith(lockfile.Path(cfg.File), storecmd.Portable(cfg, con.Env))
	return store
}

// sharedPlace returns the store that a configuration shares documents in: that of what was
// last confirmed here, if an edit waits for an approver.
func sharedPlace(ctx context.Context, con *console, cfg *config.Config) (config.Audit, error) {
	change, err := historyHere(con).Judge(cfg, nil)
	if err == nil && change != nil {
		if cfg = change.Old; cfg == nil {
			err = refusal(change, "")
		}
	}
	if err == nil {
		cfg, err = con.withSecretsInForce(ctx, cfg, storecmd.Pointers...)
	}
	if err != nil {
		return config.Audit{}, err
	}
	return cfg.Audit, nil
}

// lockProblem says why the lock file of a configuration cannot be read.
func lockProblem(con *console, cfg *config.Config) error {
	if _, _, err := openPins(con, cfg).Lock(); err != nil {
		return fmt.Errorf("what is accepted by the lock file alone is unreviewed: %w", err)
	}
	return nil
}

// toolCommands gives the commands of package toolscmd access to the program.
func toolCommands(con *console) *toolscmd.Bridge {
	return &toolscmd.Bridge{
		Console: &con.Console, Load: func() (*config.Config, error) {
			con.asked = new(secrets.Memory)
			return con.load()
		},
		Pins: func(cfg *config.Config) *pins.Store { return openPins(con, cfg) },
		Secrets: func(ctx context.Context, cfg *config.Config) (*recorder.Secrets, error) {
			cfg, err := con.withSecrets(ctx, cfg)
			if err != nil {
				return nil, err
			}
			known := new(recorder.Secrets)
			known.Learn(hidden(cfg, con.Env), con.Env)
			return known, nil
		},
		Typed: func(command string) string { return typed(con, command) },
		Catalog: func(ctx context.Context, server string, look func(*catalog.Catalog, *catalog.View) error) error {
			return withCatalog(ctx, con, server, look)
		},
		Owners: func(ctx context.Context, names []string, look func(*catalog.View) error) error {
			return withOwners(ctx, con, names, look)
		},
		List: func(ctx context.Context, cfg *config.Config) (map[string]toolscmd.Listing, error) {
			return listAll(ctx, con, cfg)
		},
		Identities: func(cfg *config.Config) map[string]string { return storecmd.Portable(cfg, con.Env) },
		Admin: func(ctx context.Context, cfg *config.Config, fromStdin bool) (string, error) {
			return whoReviews(ctx, con, cfg, fromStdin)
		},
		Record: func(ctx context.Context, cfg *config.Config, do func(pins.Recorder) error) error {
			return recordReview(ctx, con, cfg, do)
		},
	}
}

// listAll asks the servers of a configuration for their tools.
func listAll(ctx context.Context, con *console, cfg *config.Config) (map[string]toolscmd.Listing, error) {
	cfg, err := con.withSecrets(ctx, cfg)
	if err != nil {
		return nil, err
	}
	logins := logins(con)
	said := con.Wait(slices.DeleteFunc(cfg.ServerNames(), func(name string) bool { return cfg.Servers[name].Disabled }))
	tried := doctor.TryAll(ctx, specsWithLogins(cfg, logins, con.Env), version, pinTime, said.Answered)
	said.Close()
	logins.Close()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	all := make(map[string]toolscmd.Listing, len(tried))
	for name, t := range tried {
		l := toolscmd.Listing{Tools: definitions(t.Listed)}
		if !t.OK {
			l.Failed = t.NoTools(pinTime)
		}
		all[name] = l
	}
	return all, nil
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
	return o.decide(ctx, true, server, tool, digest, by, channel)
}

func (o toolsOf) Block(ctx context.Context, server, tool, digest, by, channel string) error {
	return o.decide(ctx, false, server, tool, digest, by, channel)
}

func (o toolsOf) decide(ctx context.Context, accept bool, server, tool, digest, by, channel string) error {
	if o.config().Servers[server] == nil {
		return admin.ErrUnknown
	}
	err := pins.Reviewer{Store: o.pins, Recorder: o.recorder}.Decide(ctx, accept, server, tool, digest, by, channel)
	switch objection := (*pins.ObjectionError)(nil); {
	case errors.Is(err, pins.ErrChanged):
		return admin.ErrChanged
	case errors.Is(err, pins.ErrUnknown):
		return admin.ErrUnknown
	case errors.As(err, &objection):
		return &approval.RefusedError{Err: err}
	case err != nil:
		return err
	}
	o.views.Refresh()
	return nil
}
