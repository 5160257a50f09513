package gate

import (
	"context"
	"encoding/json"
	"errors"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
)

// A Journal makes the journal entries of one call. The gate writes each of them in
// one transaction with the record that it belongs to.
type Journal interface {
	// Asking returns the entry for a call that a person is asked about.
	Asking() Entries
	// Sending returns the entry for a call that is about to be sent.
	Sending() Entries
	// Ended returns the entry for a call that was answered or refused, with what
	// the script gets.
	Ended(reply Reply, past Past) Entries
}

// Entries are written together with a record. Done, if not nil, is told whether
// they were kept.
type Entries struct {
	All  []ledger.JournalEntry
	Done func(error)
}

// noJournal is the journal of a call that has none.
type noJournal struct{}

func (noJournal) Asking() Entries           { return Entries{} }
func (noJournal) Sending() Entries          { return Entries{} }
func (noJournal) Ended(Reply, Past) Entries { return Entries{} }

// A Past is what a finished call leaves in its run.
type Past struct {
	Effect Effect `json:"effect"`
	// Path is the tool's, under which rules count it; empty if the call was not counted.
	Path     string `json:"path,omitempty"`
	Server   string `json:"server,omitempty"`
	Name     string `json:"name,omitempty"` // of the tool, at its server
	Sent     int64  `json:"sent,omitempty"`
	Received int    `json:"received,omitempty"`
}

// past returns what c leaves when it is over.
func (c *call) past(state string, received int) Past {
	p := Past{Effect: c.effect(state), Received: received}
	if c.counted {
		p.Path, p.Server, p.Name, p.Sent = c.tool.Path(), c.tool.Server, c.tool.Name, c.bytes
	}
	return p
}

// keep writes a record together with its journal entries.
func (r *Run) keep(ctx context.Context, rec ledger.Record, e Entries) error {
	rec.Journal = e.All
	err := r.record(ctx, rec)
	if e.Done != nil {
		e.Done(err)
	}
	return err
}

// Recall restores what a call of an earlier part of the run has left, so that later
// calls are judged, and failures reported, as if the run had never paused. Nothing
// is recorded, since that was done at the time. The reply is what the script got.
func (r *Run) Recall(p Past, reply json.RawMessage) {
	r.mu.Lock()
	r.effects = append(r.effects, p.Effect)
	if p.Path != "" {
		r.tallyLocked(p.Path, p.Sent)
		r.facts.Bytes += int64(p.Received)
	}
	r.mu.Unlock()
	if p.Server != "" && len(reply) > 0 {
		r.read.Read(provenance.Source{Call: p.Effect.Number, Server: p.Server, Tool: p.Name}, reply)
	}
}

// ErrSuspended is returned by the calls of a suspended run: they are neither made
// nor refused, and nothing is recorded about them.
var ErrSuspended = errors.New("the run is suspended while it waits")

// Paused records that the run was suspended, with the last entries of its
// journal.
func (r *Run) Paused(ctx context.Context, e Entries) error {
	return r.keep(context.WithoutCancel(ctx), ledger.Record{Event: ledger.RunPaused, Durable: true}, e)
}

// errLost is the cause when an earlier part of the run sent a call and nobody can
// tell what it did.
var errLost = errors.New("it was sent before the bridge ended, and no answer was written down")

// outcomeUnknown ends a call that an earlier part of the run sent: its answer is
// lost, and it is not known to be repeatable.
func (r *Run) outcomeUnknown(ctx context.Context, c Call) (Answer, error) {
	view := r.gate.View()
	made := &call{Call: c, gate: r.gate}
	rec := ledger.Record{Event: ledger.Outcome, Call: c.Number, Tool: canon.Escape(r.redact(c.Name)), Line: c.Position.Line, Column: c.Position.Column}
	err := &UnknownOutcomeError{Tool: rec.Tool, Err: errLost}
	past := Past{Effect: Effect{Number: c.Number, Tool: rec.Tool, State: ledger.Unknown}}
	if tool, ok := view.Catalog.Lookup(c.Name); ok {
		made.tool = tool
		made.args, _ = canon.Parse(c.Args)
		r.mu.Lock()
		r.countLocked(made)
		r.mu.Unlock()
		rec.Server, rec.Tool = tool.Server, tool.Name
		err.Tool, err.Server = tool.Script, tool.Server
		past = made.past(ledger.Unknown, 0)
	}
	rec.Outcome, rec.Error, rec.Durable = ledger.Unknown, errLost.Error(), true
	r.mu.Lock()
	r.effects = append(r.effects, past.Effect)
	r.mu.Unlock()
	return r.conclude(ctx, c, rec, past, err)
}

// conclude records what became of a call that has no answer, with what the script
// gets for it. If that cannot be recorded, the script is told so, too.
func (r *Run) conclude(ctx context.Context, c Call, rec ledger.Record, past Past, why error) (Answer, error) {
	reply := c.reply(Answer{}, why)
	if lost := r.keep(context.WithoutCancel(ctx), rec, c.journal().Ended(reply, past)); lost != nil {
		why = errors.Join(why, lost)
		reply = c.reply(Answer{}, why)
	}
	return Answer{Reply: reply}, why
}

// repeatable reports whether a call is repeatable, by both the policy that its run
// began with and today's.
func (g *Gate) repeatable(ctx context.Context, r *Run, c Call) bool {
	view, tool, err := g.lookup(ctx, r, c.Name)
	if err != nil {
		return false
	}
	args, err := canon.Parse(c.Args)
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decideLocked(view, &call{Call: c, gate: g, tool: tool, args: args}).Repeatable
}
