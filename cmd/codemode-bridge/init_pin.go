package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles"
)

// pinTime is how long servers may take to list their tools for pinning.
const pinTime = 30 * time.Second

// pinTools connects to the servers of a new configuration, whose text is given, and
// accepts the tools that they list in the person's name, because they are in use
// already. Each server that is pinned is recorded. One that cannot be reached stays
// unpinned, with the reason in Unpinned.
func pinTools(ctx context.Context, con *console, path string, text []byte, taking []*setup.Server) error {
	cfg, err := config.Parse(con.shown(path), text, con.Env, con.policy(path))
	if err != nil {
		return err
	}
	on := setup.Pinnable(taking)
	if len(on) == 0 {
		return nil
	}
	if cfg, err = con.withSecrets(ctx, cfg); err != nil {
		return err
	}
	fmt.Fprintf(con.Err, "connecting to %s, to see which tools you use already\n", cli.Count(len(on), "server"))
	logins := logins(con)
	asked := make([]string, len(on)) // the bridge's own answer at once
	for i, s := range on {
		asked[i] = s.As
	}
	said := con.Wait(asked)
	listed := doctor.TryAll(ctx, specsWithLogins(cfg, logins, con.Env), version, pinTime, said.Answered)
	said.Close()
	logins.Close()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	rec, err := con.openLog(ctx, cfg.Audit, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return fmt.Errorf("recording which tools are pinned (--pin=false does without): %w", err)
	}
	store, by := pins.Open(pinFolder(con, cfg.File)), thisUser()
	for _, s := range on {
		r := listed[s.As]
		if s.Unpinned = r.NoTools(pinTime); s.Unpinned != "" {
			continue
		}
		accepted := pins.Imported(s.As, len(r.Listed), by, time.Now())
		err := rec.Record(ctx, accepted)
		if err == nil {
			err = store.Pin(s.As, definitions(r.Listed), by, accepted.Time)
		}
		if err != nil {
			return errors.Join(err, rec.Close())
		}
		s.Pinned = len(r.Listed)
		for _, d := range definitions(r.Listed) {
			s.Listed = append(s.Listed, profiles.Call{Server: s.As, Tool: d.Name, Title: d.Title, Description: d.Description, Annotations: d.Annotations})
		}
	}
	return rec.Close()
}

// thisUser names the person at the terminal where no approver's token identifies
// them.
func thisUser() string {
	if who, err := user.Current(); err == nil && who.Username != "" {
		return who.Username
	}
	return "the user of this machine"
}
