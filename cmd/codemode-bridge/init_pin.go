package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"slices"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/upstream"
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
	on := setup.Pinnable(taking)
	cfg, tools, err := listTools(ctx, con, path, text, on)
	if err != nil || len(on) == 0 {
		return err
	}
	rec, err := con.openLog(ctx, cfg.Audit, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return fmt.Errorf("recording which tools are pinned (--pin=false does without): %w", err)
	}
	store, by := con.shared.Pins(cfg, pinFolder(con, cfg.File)), thisUser()
	for _, s := range on {
		if s.Unpinned != "" {
			continue
		}
		listed := tools[s.As]
		accepted := pins.Imported(s.As, len(listed), by, time.Now())
		err := rec.Record(ctx, accepted)
		if err == nil {
			err = store.Pin(s.As, listed, by, accepted.Time)
		}
		if err != nil {
			return errors.Join(err, rec.Close())
		}
		s.Pinned = len(listed)
	}
	return rec.Close()
}

// listTools connects to servers of a configuration that is about to be written, whose text
// is given, and returns the definitions of their tools by the servers' names. Each server
// gets what it Listed, or why it stays Unpinned.
func listTools(ctx context.Context, con *console, path string, text []byte, on []*setup.Server) (*config.Config, map[string][]catalog.Definition, error) {
	cfg, err := con.loader(path).Text(ctx, con.shown(path), text, "")
	if err != nil || len(on) == 0 {
		return cfg, nil, err
	}
	var asked, named []string
	for _, s := range on {
		asked, named = append(asked, s.As), append(named, ofServer(s.As)...)
	}
	if cfg, err = con.withSecrets(ctx, cfg, named...); err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(con.Err, "connecting to %s, to see which tools you use already\n", cli.Count(len(on), "server"))
	logins := logins(con)
	specs := slices.DeleteFunc(specsWithLogins(cfg, logins, con.Env), func(s upstream.Spec) bool { return !slices.Contains(asked, s.Name) })
	said := con.Wait(slices.Clone(asked))
	listed := doctor.TryAll(ctx, specs, version, pinTime, said.Answered)
	said.Close()
	logins.Close()
	tools := make(map[string][]catalog.Definition)
	for _, s := range on {
		r := listed[s.As]
		if s.Unpinned = r.NoTools(pinTime); s.Unpinned != "" {
			continue
		}
		tools[s.As] = definitions(r.Listed)
		for _, d := range tools[s.As] {
			s.Listed = append(s.Listed, profiles.Call{Server: s.As, Tool: d.Name, Title: d.Title, Description: d.Description, Annotations: d.Annotations})
		}
	}
	return cfg, tools, context.Cause(ctx)
}

// thisUser names the person at the terminal where no approver's token identifies
// them.
func thisUser() string {
	if who, err := user.Current(); err == nil && who.Username != "" {
		return who.Username
	}
	return "the user of this machine"
}
