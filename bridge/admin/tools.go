package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"codemode-bridge/bridge/canon"
)

// An UnreviewedTool is a tool that waits for review, or that was blocked.
type UnreviewedTool struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`  // the raw name, as Accept and Block take it
	State  string `json:"state"` // new, changed or blocked
	Then   string `json:"then"`  // how its calls are treated meanwhile: ask or quarantine
	// Since is when its present definition was first seen, and Digest is of that.
	Since  time.Time `json:"since"`
	Digest string    `json:"digest"`
	// Was is the digest of what was accepted; empty if nothing was. AcceptedBy
	// is empty for what was let in as it was found.
	Was        string     `json:"was,omitempty"`
	AcceptedBy string     `json:"accepted_by,omitempty"`
	AcceptedAt time.Time  `json:"accepted_at,omitzero"`
	BlockedBy  string     `json:"blocked_by,omitempty"`
	BlockedAt  time.Time  `json:"blocked_at,omitzero"`
	Notices    []string   `json:"notices,omitempty"`
	Difference []ToolPart `json:"difference"`
}

// A ToolPart is one part of a definition that differs. Its lines begin with
// "-" for what was, "+" for what is, " " for what stayed, and "!" for a remark.
type ToolPart struct {
	What  string   `json:"what"`
	Lines []string `json:"lines"`
}

// Name is the tool as policy matches it.
func (t UnreviewedTool) Name() string { return t.Server + "__" + canon.Escape(t.Tool) }

// Words says why it waits.
func (t UnreviewedTool) Words() string {
	switch {
	case t.State == "blocked":
		return fmt.Sprintf("Blocked by %s on %s", canon.Escape(t.BlockedBy), t.BlockedAt.UTC().Format(time.DateOnly))
	case t.State == "new":
		return "New since " + t.Since.UTC().Format(time.DateOnly)
	case t.AcceptedBy == "":
		return "Changed since it was first seen on " + t.AcceptedAt.UTC().Format(time.DateOnly)
	}
	return fmt.Sprintf("Changed since %s accepted it on %s", canon.Escape(t.AcceptedBy), t.AcceptedAt.UTC().Format(time.DateOnly))
}

// ThenWords says how its calls are treated meanwhile.
func (t UnreviewedTool) ThenWords() string {
	if t.Then == "ask" {
		return "Each call asks"
	}
	return "Hidden from scripts"
}

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
