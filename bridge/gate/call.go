package gate

import (
	"encoding/json"
	"maps"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

// A Call is a call as the script made it.
type Call struct {
	Number   int    // within its run, from 1
	Name     string // as the script wrote it: see catalog.Resolve
	Args     json.RawMessage
	Position analysis.Position
	Journal  Journal // of this call; nil is none
	// Reply, if not nil, turns what Call is about to return into what the script
	// gets, before the outcome is recorded, so that the journal has it.
	Reply func(Answer, error) Reply
	// Written, if not nil, is told once whether the outcome of a call that was sent is
	// written: by nil, or why it is not. It must not use the run.
	Written func(lost error)
	// Kept, if not nil, is told of the answer once its outcome is written, if it is no
	// error. It must not use the run.
	Kept func(Answer)
	// Again says that the run is being replayed and that this is the first time it
	// makes the call since: a question asked about it before still counts.
	Again bool
	// Lost says that an earlier part of the run sent the call and its answer is not
	// known: it is sent again only if it is repeatable.
	Lost bool
}

func (c Call) reply(a Answer, err error) Reply {
	if c.Reply == nil {
		return nil
	}
	return c.Reply(a, err)
}

func (c Call) journal() Journal {
	if c.Journal == nil {
		return noJournal{}
	}
	return c.Journal
}

// A call is a call with all that the gate knows about it.
type call struct {
	Call
	gate     *Gate
	tool     *catalog.Tool
	identity string // of the tool's server, as the call is meant for it
	args     canon.Args
	meaning  *profiles.Meaning // nil if nobody knows
	flow     *profiles.FlowFacts
	began    *profiles.Meaning // what it was when these arguments were judged first
	met      []string          // who is not new any more because a person approved the call
	landed   func(ok bool)     // is told whether it succeeded, once it was sent
	decision profiles.Decision
	verdict  *approval.Verdict // of a person, if one was asked
	shown    *canon.Digest     // of the arguments that the person was asked about, if they edited them
	edited   *Edited           // how, nil if nobody did
	notes    []string          // on its arguments, for the record
	reads    []approval.Read   // of its arguments, once it is asked about
	sources  []string          // what else there is to say of where they come from
	looked   string            // how its arguments were searched for what the run has read: a word of ledger
	found    provenance.Found  // what that found
	named    []provenance.Run  // and which names
	read     time.Time         // when it was answered
	seen     time.Time         // when flow looked what was read before; zero: it does not say
	cleared  time.Time         // up to when a person has what was read before forgotten
	counted  bool              // among the run's facts, with so many bytes:
	bytes    int64
}

// record begins a record about c.
func (c *call) record(event ledger.Event) ledger.Record {
	rec := ledger.Record{Event: event, Call: c.Number, Server: c.tool.Server, Tool: c.tool.Name, Identity: c.identity, Line: c.Position.Line, Column: c.Position.Column,
		Durable: event == ledger.Asked || event == ledger.Verdict}
	if c.decision.Disposition == 0 {
		return rec // refused before anything was decided
	}
	if rec.Digest = c.args.Digest().String(); event != ledger.Outcome { // the record of its intent has them
		rec.Args = c.recorded(c.args, nil)
		c.searched(&rec)
	}
	if c.edited != nil {
		rec.EditedBy = c.edited.By
	}
	rec.Notify, rec.Repeatable = c.decision.Notify, c.decision.Repeatable
	rec.Disposition, rec.Risk, rec.Revision = c.decision.Disposition.String(), c.decision.Risk.String(), c.decision.Revision
	for _, reason := range c.decision.Reasons {
		rec.Reasons = append(rec.Reasons, reason.String())
	}
	if c.decision.Would != 0 {
		rec.Would = c.decision.Would.String()
		rec.Reasons = append(rec.Reasons, c.decision.WouldSay()...)
	}
	rec.Reasons = append(rec.Reasons, c.notes...)
	return rec
}

// recorded returns arguments of the call as records show them. Hides is as in
// displayOptions.
func (c *call) recorded(args canon.Args, hides map[string]string) json.RawMessage {
	o := c.displayOptions(hides)
	o.MaxBytes, o.MaxDepth, o.FingerprintKey = recordBytes, min(o.MaxDepth, recordDepth), c.gate.prints
	return canon.Display(args, o).JSON
}

// Bounds on arguments in a record, whatever rules say about their display: with this
// depth they fit into the bytes.
const (
	recordBytes = ledger.MaxText
	recordDepth = 10
)

// displayOptions returns how policy wants the arguments to be shown. Hides are names
// that are hidden besides those of the decision.
func (c *call) displayOptions(hides map[string]string) canon.DisplayOptions {
	d, hidden := c.decision.Display, c.decision.Hidden
	if len(hides) > 0 {
		hidden = maps.Clone(hides)
		maps.Copy(hidden, c.decision.Hidden)
	}
	return canon.DisplayOptions{Hidden: hidden,
		MaxString: d.MaxString, MaxArray: d.MaxArray, MaxObject: d.MaxObject, MaxDepth: d.MaxDepth}
}

// effect returns the effect of c with the given state.
func (c *call) effect(state string) Effect {
	return Effect{Number: c.Number, Tool: c.tool.Script, State: state, Repeatable: c.decision.Repeatable, Edited: c.edited}
}

// past returns what c leaves when it is over.
func (c *call) past(state string, received int) Past {
	p := Past{Effect: c.effect(state), Received: received, Met: c.met, Cleared: c.cleared}
	if c.counted {
		p.Path, p.Server, p.Name, p.Sent = c.tool.Path(), c.tool.Server, c.tool.Name, c.bytes
		if c.flow != nil {
			p.Labels, p.Unlabelled = c.flow.Labels.Has, c.flow.Labels.Unknown
			p.Read = c.read
		}
	}
	return p
}

// allowed reports whether c is allowed, by policy or by a person.
func (c *call) allowed() bool {
	return c.decision.Disposition == profiles.Allow || c.decision.Disposition == profiles.Ask && c.verdict != nil && c.verdict.Approve
}
