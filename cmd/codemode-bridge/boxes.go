package main

import (
	"os"
	"path/filepath"
	"slices"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox/confine"
)

// boxOf converts the box of a server for package upstream: the workspace is that of the
// configuration, or the folder that this bridge was started in. It is nil without a box.
// A box that can't be made keeps its server from starting.
func boxOf(cfg *config.Config, s *config.Server, env config.Env) *upstream.Box {
	if s.Confine == nil {
		return nil
	}
	here, err := os.Getwd()
	if err != nil {
		here = "" // then "workspace" needs evaluation.workspace, and says so
	}
	asked, err := cfg.Box(s, here)
	if err != nil {
		return &upstream.Box{Wrong: err.Error()}
	}
	b := &upstream.Box{Box: confine.Box{Write: asked.Write, Read: asked.Read, Run: asked.Run, Require: asked.Require}}
	b.Net.Any = asked.Net.Any
	for _, h := range asked.Net.Hosts {
		b.Net.Hosts = append(b.Net.Hosts, confine.Host{Name: h.Name, Port: h.Port})
	}
	if b.Launcher, err = worker(); err != nil {
		b.Wrong = err.Error()
	}
	if places, err := config.Paths(env); err == nil {
		b.Store = filepath.Join(places.StateDir, "boxes-"+fileKey(cfg.File), s.Name)
	}
	return b
}

// boxedHere reports whether a box depends on the folder that the bridge was started in.
func boxedHere(cfg *config.Config, s *config.Server) bool {
	return s.Confine != nil && len(cfg.Evaluation.Workspace) == 0 && slices.Contains(slices.Concat(s.Confine.Write, s.Confine.Read), config.WorkspaceWord)
}
