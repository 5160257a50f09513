package surface

import (
	"encoding/json"
	"fmt"

	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Paused is the answer for a run that waits for people. Empty members are left out.
type Paused struct {
	Run, Why  string
	Resume    string // the run's secret, for a client without a principal
	ApproveAt string // where approvers answer
	OpenUntil string // when the dialog that is open at the client ends
	NoAt      string // when silence is a no; of a run without such a dialog
	Whole     bool   // the run outlives the bridge
}

// Answer is what the client gets: how the run goes on.
func (p Paused) Answer() *mcp.CallToolResult {
	body := map[string]any{"status": "paused", "run": p.Run, "why": p.Why}
	names := fmt.Sprintf("run %q", p.Run)
	if p.Resume != "" {
		body["resume"] = p.Resume
		names = "the run and resume of this answer"
	}
	if p.ApproveAt != "" {
		body["approve_at"] = p.ApproveAt
	}
	next := "tell the user that their answer is needed, and stop; when they are ready, call eval_resume with " + names + ", which asks them again"
	switch {
	case p.OpenUntil != "":
		next = "tell the user that the question is still open at this client, until " + p.OpenUntil
		if p.ApproveAt != "" {
			next += ", and at approve_at"
		}
		next += ", and stop; when they have answered it, the run goes on by itself: then call eval_resume with " + names + " for its result"
	case p.ApproveAt != "":
		next = "give the user approve_at and stop; call eval_resume with " + names + " only after they say that it is done"
	}
	if p.NoAt != "" {
		next += "; without an answer it is a no at " + p.NoAt
	}
	body["next"] = next
	if !p.Whole {
		body["lasts"] = "until the bridge ends, not longer: more was answered than runs.journal keeps, or there is no audit log to keep it in"
	}
	text, err := canon.JSON(body)
	if err != nil {
		return Failure(err.Error())
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}
