package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"codemode-bridge/bridge/canon"
)

// Name is the tool as policy matches it.
func (t UnreviewedTool) Name() string { return t.Server + "__" + canon.Escape(t.Tool) }

// Words says why it waits.
func (t UnreviewedTool) Words() string { return capitalized(t.Why(time.UTC)) }

// ThenWords says how its calls are treated meanwhile.
func (t UnreviewedTool) ThenWords() string { return capitalized(t.Meanwhile()) }

func (s *Site) tools(ctx context.Context) ([]UnreviewedTool, error) {
	if s.o.Tools == nil {
		return nil, missing("tools to look at")
	}
	all, err := s.o.Tools.Unreviewed(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading which tools wait: %w", err)
	}
	return append([]UnreviewedTool{}, all...), nil
}

func (s *Site) listTools(_ *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.tools(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"tools": all})
}

func (s pages) toolsPage(who *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.tools(r.Context())
	if err != nil {
		return err
	}
	return s.tab(who, w, r, "tools", "Tools", all)
}

func (s *Site) acceptTool(who *caller, w http.ResponseWriter, r *http.Request) error {
	return s.decideTool(who, w, r, "accepted", Tools.Accept)
}

func (s *Site) blockTool(who *caller, w http.ResponseWriter, r *http.Request) error {
	return s.decideTool(who, w, r, "blocked", Tools.Block)
}

func (s *Site) decideTool(who *caller, w http.ResponseWriter, r *http.Request, done string, decide func(t Tools, ctx context.Context, server, tool, digest, by, channel string) error) error {
	if s.o.Tools == nil {
		return missing("tools to look at")
	}
	var server, tool, digest string
	if err := s.read(w, r, fields{"server": &server, "tool": &tool, "digest": &digest}); err != nil {
		return err
	}
	if server == "" || digest == "" {
		return invalid("server, tool and digest are needed", "send what GET /api/tools gave of the tool that you decide on")
	}
	if err := decide(s.o.Tools, r.Context(), server, tool, digest, who.Name, who.channel); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"server": server, "tool": tool, done: true})
}
