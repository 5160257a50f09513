package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"codemode-bridge/bridge/catalog"
)

// discover answers a discovery function as a tool would: its result is structured
// content, its note a block of text beside it, and its complaints are the tool's own
// errors.
func discover(view *View, r *Run, c *call) (json.RawMessage, error) {
	found, note, err := catalog.Discover(seen(r, view), c.tool.Name, c.args.Bytes())
	block := func(text string) []map[string]string { return []map[string]string{{"type": "text", "text": text}} }
	reply := map[string]any{"content": []any{}, "structuredContent": found}
	switch {
	case err != nil:
		reply = map[string]any{"isError": true, "content": block(err.Error())}
	case note != "":
		reply["content"] = block(note)
		r.remark(note)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // a model reads this
	err = e.Encode(reply)
	return text.Bytes(), err
}

// InTurn does work of a run that needs only the processor, when it is its session's turn.
// The error is that of the work, or the end of ctx before the turn.
func (g *Gate) InTurn(ctx context.Context, r *Run, work func() error) (err error) {
	if ended := g.turn(ctx, r.Session, func() { err = work() }); ended != nil {
		return ended
	}
	return err
}

// inTurn does so although the run may have ended: the work must be done.
func (g *Gate) inTurn(ctx context.Context, r *Run, work func()) {
	_ = g.turn(context.WithoutCancel(ctx), r.Session, work) // there is no end to wait for
}

// maxRemarks bounds how many remarks a run keeps: it may search in a loop.
const maxRemarks = 5

// remark keeps what the model should know of a call's answer besides the answer.
func (r *Run) remark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.remarks) < maxRemarks && !slices.Contains(r.remarks, text) {
		r.remarks = append(r.remarks, text)
	}
}

// Remarks returns what the discovery functions that the run has called say besides their
// answers, at most five lines. A run that was resumed has those of its calls since.
func (r *Run) Remarks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.remarks)
}
