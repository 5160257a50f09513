package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/doctor"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"
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
	on := pinnable(taking)
	if len(on) == 0 {
		return nil
	}
	fmt.Fprintf(con.Err, "connecting to %s, to see which tools you use already\n", cli.Count(len(on), "server"))
	listed := listTools(ctx, con, cfg)
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
	}
	return rec.Close()
}

// pinnable returns the servers that are switched on, which pinning starts.
func pinnable(taking []*setup.Server) []*setup.Server {
	return slices.DeleteFunc(slices.Clone(taking), (*setup.Server).Off)
}

// listTools tries all servers of a configuration at once, and returns the results by
// server name.
func listTools(ctx context.Context, con *console, cfg *config.Config) map[string]doctor.Trial {
	logins := logins(con)
	defer logins.Close()
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	all := map[string]doctor.Trial{}
	var mu sync.Mutex // guards all
	var trying sync.WaitGroup
	for _, spec := range specsWithLogins(cfg, logins) {
		if spec.Disabled || spec.Kind == upstream.InProcess {
			continue
		}
		trying.Go(func() {
			r := doctor.Try(ctx, spec, version, nil)
			mu.Lock()
			defer mu.Unlock()
			all[spec.Name] = r
		})
	}
	trying.Wait()
	return all
}

// sayPinned says how many tools were pinned, and which servers could not be.
func sayPinned(con *console, taking []*setup.Server) {
	tools, servers := 0, 0
	for _, s := range taking {
		if s.Pinned > 0 {
			tools, servers = tools+s.Pinned, servers+1
		}
	}
	if servers > 0 {
		con.Told("the %s of %s are accepted as they are; new and changed ones stay hidden until: %s", cli.Count(tools, "tool"), cli.Count(servers, "server"), typed(con, "tools review"))
	}
	var unpinned []*setup.Server
	for _, s := range taking {
		if s.Unpinned != "" {
			unpinned = append(unpinned, s)
		}
	}
	if len(unpinned) == 0 {
		return
	}
	con.Told("%s could not be asked for tools, which are accepted as they are when the bridge first sees them, and ask when they change:", cli.Count(len(unpinned), "server"))
	for _, s := range unpinned {
		con.Told("  %s: %s", s.As, s.WhyUnpinned())
	}
}

// thisUser names the person at the terminal where no approver's token identifies
// them.
func thisUser() string {
	if who, err := user.Current(); err == nil && who.Username != "" {
		return who.Username
	}
	return "the user of this machine"
}
