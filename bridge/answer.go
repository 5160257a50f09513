package bridge

import (
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/surface"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answer is what the client gets. The run is over. Handles in it are good at every bridge
// with the same store.
func (r *run) answer() *mcp.CallToolResult {
	made := r.failure
	if r.end.err == nil {
		made = r.success
	}
	res := made()
	if text, ok := res.Content[0].(*mcp.TextContent); ok {
		if err := r.session.handles.Publish([]byte(text.Text)); err != nil {
			r.runner.o.Logger.Warn("other bridges do not know a handle", "run", r.id, "err", err)
		}
	}
	return res
}

// success answers for a run whose script returned.
func (r *run) success() *mcp.CallToolResult {
	ok := surface.Success{Result: r.fit(r.end.result.Value), Logs: logLines(r.end.result.Logs, r.end.result.LogsDropped), Notes: r.notes(), Run: r.id}
	text, err := canon.JSON(ok)
	if err != nil {
		return failure(fmt.Sprintf("writing the result of run %s: %v", r.id, err))
	}
	content := append([]mcp.Content{&mcp.TextContent{Text: string(text)}}, r.emitted.Content()...)
	return &mcp.CallToolResult{StructuredContent: text, Content: content}
}

// failure answers for a run whose script did not return: the error, the place, the
// logs, and what its calls have done.
func (r *run) failure() *mcp.CallToolResult {
	effects := append([]gate.Effect{}, r.gate.Effects()...)
	f := surface.Failed{Effects: effects, Did: effectsText(effects), Run: r.id}
	var script *sandbox.ScriptError
	var limit *sandbox.LimitError
	var diverged *replay.DivergedError
	switch {
	case errors.As(r.end.err, &diverged):
		f.Error = surface.ScriptError{Name: "DivergedError", Message: diverged.Error(),
			Hint: "the run is over. Write a script for what is left; what the effects list was done before"}
	case errors.As(r.end.err, &script):
		// A server's words may be in it: they are written so that all of them are seen.
		f.Error = surface.ScriptError{Name: script.Name, Message: canon.EscapeLines(script.Message), Line: script.Position.Line, Column: script.Position.Column,
			Frame: script.Frame, Hint: script.Hint, Stack: script.Stack, Fields: script.Fields}
	case errors.As(r.end.err, &limit):
		f.Error = surface.ScriptError{Name: "LimitError", Message: limit.Error(), Line: limit.Position.Line, Column: limit.Position.Column,
			Frame: limit.Frame, Hint: limit.Hint(), Stack: limit.Stack}
	case errors.Is(r.end.err, errClientGone):
		f.Error = surface.ScriptError{Name: "CancelledError", Message: r.end.err.Error()}
	default:
		f.Error = surface.ScriptError{Name: "RunError", Message: r.end.err.Error()}
	}
	f.Logs = logLines(r.end.result.Logs, r.end.result.LogsDropped)
	f.Notes = r.notes()
	if len(effects) > 0 {
		f.Next = f.Did
	}
	structured, err := canon.JSON(f)
	if err != nil {
		return failure(r.end.err.Error())
	}
	content := append([]mcp.Content{&mcp.TextContent{Text: f.Text()}}, r.emitted.Content()...)
	return &mcp.CallToolResult{IsError: true, StructuredContent: structured, Content: content}
}

// failure is an answer that says what went wrong where there is no run to
// speak of.
func failure(text string) *mcp.CallToolResult { return surface.Failure(text) }

// notes are what the model should know of the run besides its result. What a
// person changed comes first: it must not believe that its own words were sent.
func (r *run) notes() []string {
	const most = 20
	var notes []string
	for _, e := range r.gate.Effects() {
		switch {
		case e.Edited == nil:
		case len(notes) == most:
			return append(append(notes, "people edited more calls"), r.end.result.Notes...)
		case e.State == ledger.Refused:
			notes = append(notes, fmt.Sprintf("%s (call %d): %s edited the arguments, and the call was refused. The script wrote %s; refused was %s",
				e.Tool, e.Number, e.Edited.By, e.Edited.From, e.Edited.To))
		default:
			notes = append(notes, fmt.Sprintf("%s (call %d): %s edited the arguments before the call was sent. The script wrote %s; sent was %s",
				e.Tool, e.Number, e.Edited.By, e.Edited.From, e.Edited.To))
		}
	}
	if how := r.emitted.Note(r.end.result.Value, r.lasts()); how != "" {
		notes = append(notes, how)
	}
	notes = append(notes, r.gate.Remarks()...)
	notes = append(notes, r.names.Notes(r.runner.o.Gate.View().Within(r.profile, (*gateHost)(r).Scope()))...)
	return append(notes, r.end.result.Notes...)
}

// effectsText says in a sentence or two what has been done, and what must not
// be done again.
func effectsText(effects []gate.Effect) string {
	counts := map[string]int{}
	var repeat, unknown, never []string
	changed := false
	for _, e := range effects {
		counts[e.State]++
		name := fmt.Sprintf("%s (call %d)", e.Tool, e.Number)
		switch {
		case e.State == ledger.Unknown && !e.Repeatable:
			unknown = append(unknown, name)
		case e.State == ledger.Done && !e.Repeatable:
			repeat = append(repeat, name)
		case e.State == ledger.Refused && e.Retry == gate.RetryNever:
			never = append(never, name)
		case e.State == ledger.Refused && e.Retry == gate.RetryChanged:
			changed = true
		}
	}
	var parts []string
	for _, state := range []string{ledger.Done, ledger.Failed, ledger.Refused, ledger.Unknown} {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(parts) == 0 {
		return "no calls were made. Safe to run again."
	}
	text := "calls: " + strings.Join(parts, ", ") + "."
	if len(repeat) > 0 {
		text += " Done, and not known to be repeatable, so don't repeat: " + surface.Listed(repeat) + "."
	}
	if len(unknown) > 0 {
		text += " Sent with no answer, check before repeating: " + surface.Listed(unknown) + "."
	}
	if len(never) > 0 {
		text += " Refused, so don't make it again: " + surface.Listed(never) + "."
	}
	switch {
	case len(repeat)+len(unknown)+len(never) > 0:
	case changed:
		text += " Safe to run again once the call that was refused is corrected."
	default:
		text += " Safe to run again."
	}
	return text
}

// logLines are the script's logs as lines, each with its level unless that is log.
func logLines(logs []sandbox.Log, dropped int) []string {
	var lines []string
	for _, l := range logs {
		if l.Level == "log" {
			lines = append(lines, l.Text)
		} else {
			lines = append(lines, "["+l.Level+"] "+l.Text)
		}
	}
	if dropped > 0 {
		lines = append(lines, fmt.Sprintf("[%s more of logs were dropped]", canon.Size(dropped)))
	}
	return lines
}
