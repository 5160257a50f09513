package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/cmd/codemode-bridge/running"
	"codemode-bridge/cmd/codemode-bridge/statuscmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
)

// statusOf gives the command of package statuscmd access to the program.
func statusOf(con *console) *statuscmd.Bridge {
	return &statuscmd.Bridge{
		Console: &con.Console, File: con.file,
		Serving: func() (string, error) { return servingFolder(con) },
		Folders: func() (instance.Folders, error) {
			f, err := instanceFolders(con)
			if err != nil {
				err = &configError{err, "set XDG_STATE_HOME, or HOME"}
			}
			return f, err
		},
		OnDisk: func() (wrong, do string) {
			cfg, err := con.load()
			if err != nil {
				return err.Error(), typed(con, "check")
			}
			change, err := judge(con, cfg, nil)
			if err != nil {
				return err.Error(), typed(con, "config pending")
			}
			if change != nil {
				return "it waits for an approver: " + strings.Join(change.Why, "; "), change.WayOn()
			}
			return "", ""
		},
		Replicas: func(ctx context.Context) ([]replica.Replica, error) {
			cfg, err := con.load()
			if err != nil || !cfg.Audit.Enabled || !storecmd.InDatabase(cfg.Audit) {
				return nil, nil // OnDisk says what is wrong
			}
			if cfg, err = con.withSecrets(ctx, cfg, storecmd.Pointers...); err != nil {
				return nil, err
			}
			return storecmd.Replicas(ctx, cfg.Audit)
		},
	}
}

// servingFolder is where each `serve` of this user announces itself.
func servingFolder(con *console) (string, error) {
	places, err := config.Paths(con.Env)
	if err != nil {
		return "", &configError{err, "set XDG_STATE_HOME, or HOME"}
	}
	return filepath.Join(places.StateDir, "serving"), nil
}

// announceServing makes a `serve` known to `status`, until end is called. One that cannot
// be announced serves all the same.
func (p *parts) announceServing(con *console, endpoint string, pg *page) (end func()) {
	s := statuscmd.Serving{PID: os.Getpid(), Version: version, Since: time.Now(), File: p.config().File, Endpoint: endpoint}
	if pg != nil {
		s.Page = pg.base
	}
	p.desk.members.At(s.Endpoint)
	answers := p.answerCommands(con, s.Endpoint)
	dir, err := servingFolder(con)
	var a *statuscmd.Announcement
	if err == nil {
		a, err = statuscmd.Announce(dir, s)
	}
	if err != nil {
		p.log.Warn("status does not know of this bridge", "err", err)
		return answers
	}
	p.reloads.serving.Store(a)
	p.reloads.announce() // what was refused before
	return func() {
		answers()
		if err := a.Close(); err != nil {
			p.log.Warn("status may show this bridge a while longer", "err", err)
		}
	}
}

// answerCommands lets commands ask a `serve` for the state of its servers, until end is
// called. One that cannot be asked serves all the same.
func (p *parts) answerCommands(con *console, endpoint string) (end func()) {
	f, err := instanceFolders(con)
	if err == nil {
		end, err = running.Answer(f, p.config().File, instance.Options{Version: version, Commit: built().Revision(), Endpoint: endpoint}, p.shared())
	}
	if err != nil {
		p.log.Warn("commands cannot ask this bridge for its servers", "err", err)
		return func() {}
	}
	return end
}
