package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/builtin"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/roots"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles/known"
)

// roots finds the workspaces of runs.
func (p *parts) roots(con *console) *roots.Finder {
	return roots.New(roots.Options{
		Configured: func() []string { return p.config().Evaluation.Workspace },
		Here:       p.here,
		Own:        p.ownFiles(con),
		Log:        p.log,
	})
}

// ownFiles returns the files of the bridge with the configuration that is in force,
// which are found once for each configuration.
func (p *parts) ownFiles(con *console) func() []string {
	type found struct {
		cfg   *config.Config
		files []string
	}
	var last atomic.Pointer[found]
	return func() []string {
		cfg := p.config()
		if of := last.Load(); of != nil && of.cfg == cfg {
			return of.files
		}
		of := &found{cfg, ownFiles(con, cfg)}
		last.Store(of)
		return of.files
	}
}

// startFolder returns a function that finds, once, the folder that the bridge was
// started in.
func startFolder(log *slog.Logger) func() string {
	return sync.OnceValue(func() string {
		here, err := os.Getwd()
		if err != nil {
			log.Error("finding the folder that the bridge was started in", "err", err)
		}
		return here
	})
}

// ownFiles returns the files of a bridge, which are in no workspace.
func ownFiles(con *console, cfg *config.Config) []string {
	own := con.policy(cfg.File).OwnFiles
	for _, path := range []string{cfg.Audit.Path, cfg.Audit.Requests(), cfg.Audit.Checkpoint} {
		if path != "" {
			own = append(own, path)
		}
	}
	return own
}

// meanings returns what is known of the servers of a configuration.
func meanings(cfg *config.Config) map[string]gate.Meant {
	all := map[string]gate.Meant{}
	for _, name := range serverNames(cfg) {
		s := cfg.Servers[name]
		if s.Type == config.KindBuiltin {
			if is, ok := builtin.Known(s.Builtin); ok {
				all[name] = gate.Meant{Server: is, Accepted: true, Labels: s.LabelsOf} // nobody but us wrote it
			}
			continue
		}
		is := s.Recognize()
		if is.Server.Name == "" {
			if s.Labels != nil || s.Tools.Labels != nil {
				all[name] = gate.Meant{Labels: s.LabelsOf}
			}
			continue
		}
		meant := gate.Meant{Server: is.Server, Accepted: is.Accepted, Labels: s.LabelsOf, Folder: s.Cwd.Reveal(),
			Remote: is.Remote || s.Type != config.KindStdio, Confined: is.Confined, PerSession: s.PerSession}
		if meant.Folder == "" {
			meant.Folder, _ = os.Getwd() // without one, relative paths are doubtful
		}
		for _, path := range is.Paths {
			if !filepath.IsAbs(path) {
				path = filepath.Join(meant.Folder, path)
			}
			meant.Starts = append(meant.Starts, path)
		}
		all[name] = meant
	}
	return all
}

// box says what the system keeps the program of a server to now.
func (p *parts) box(server string) gate.Box {
	if s := p.config().Servers[server]; s == nil || s.Type != config.KindStdio {
		return gate.Box{}
	}
	in := p.boxed(server)
	if in == nil {
		return gate.Box{Says: upstream.NotConfined}
	}
	box := gate.Box{Says: in.Sentence(), Steps: in.On(), Files: in.Held.Writes && in.Held.Reads, Write: in.Box.Write, Read: in.Box.Read, Net: in.Held.Net,
		Beyond: func(text string) string { return p.upstreams.Beyond(server, text) }}
	for _, host := range in.Box.Net.Hosts {
		box.Hosts = append(box.Hosts, host.Name)
	}
	return box
}

// meaningOf returns what is known of a tool, as far as policy may go by it.
func meaningOf(cfg *config.Config, server, tool string) audit.Meaning {
	is := meanings(cfg)[server]
	known, ok := is.Server.Tools[tool]
	if !ok || !is.Accepted {
		return audit.Meaning{}
	}
	m := audit.Meaning{Where: string(known.Where)}
	for _, e := range known.Effects {
		m.Effects = append(m.Effects, string(e))
	}
	m.Stateful, m.Args = known.Stateful, make(map[string]audit.Role, len(known.Args))
	for name, role := range known.Args {
		m.Args[name] = roleOf(role, onlyLooks(known))
	}
	return m
}

// roleOf says what an argument may be in further calls.
func roleOf(role known.Role, looks bool) audit.Role {
	switch role {
	case known.Content:
		return audit.Text
	case known.Path, known.Host, known.PathOrHost, known.Recipient, known.Member, known.Store:
		return audit.Meant
	case known.Plain:
		if looks { // at something else, or more of it
			return audit.Text
		}
	}
	return audit.Bound
}

// onlyLooks reports whether a tool only reads, and on this machine.
func onlyLooks(t known.Tool) bool {
	return !slices.ContainsFunc(t.Effects, func(e known.Effect) bool { return e != known.Read }) && t.Where != known.Remote && t.Net != known.NetFixed && t.Net != known.NetChosen
}
