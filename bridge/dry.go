package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	who "codemode-bridge/bridge/principal"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Replay runs the script of a run again against its journal and returns what
// the run's eval tool answered. Nothing is called and nothing written: each
// call gets the answer that it got then, in the same turn, and step is told of
// it. A run that has not ended is followed to where it is. It starts at once:
// the servers are not needed.
func (s *Server) Replay(ctx context.Context, id string, step func(replay.Step)) (*mcp.CallToolResult, error) {
	if s.o.Journal == nil {
		return nil, errNoJournal
	}
	kept, entries, err := s.o.Journal.Read(ctx, id)
	if errors.Is(err, ledger.ErrNoJournal) {
		return nil, errNoJournal
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", id, err)
	}
	p, err := readPast(entries)
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", id, err)
	}
	if err := ours(s.o.Gate.Configuration(), kept, p.beginning); err != nil {
		return nil, err
	}
	if p.Engine != sandbox.Engine {
		return nil, engineDiffers(p)
	}
	sess := s.runner.loose(p.Client)
	defer sess.sandbox.Close()
	r := s.runner.newRun(id, sess, who.Principal{Name: p.Principal, Groups: p.Groups}, p.Profile, true)
	defer r.stop(nil)
	defer close(r.done)
	r.gate = s.o.Gate.Leftover(gate.Origin{ID: id, Session: p.Session, Profile: p.Profile, Policy: p.policy, Surroundings: p.Surroundings}, p.Started)
	r.replay = newReplay(r, p)
	script := s.runner.script(r, evalArgs{Code: p.Code, Input: p.Input}, p.names)
	script.Seed, script.Start = p.Seed, p.Start

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })() // a divergence
	r.end.result, r.end.err = sess.sandbox.Run(ctx, script, &onlooker{(*workerHost)(r), step, kept.State == ledger.Finished})
	r.conclude(ctx)
	return r.answer(), nil
}

var errNoJournal = errors.New("no journal of this run is kept: journals go with their runs unless runs.keep is set")

// An onlooker serves the script of a run that is looked at again.
type onlooker struct {
	*workerHost
	step  func(replay.Step)
	ended bool // the run has ended: its script may need no more answers than are kept
}

// Preview is not recorded a second time.
func (*onlooker) Preview(analysis.Report) {}

// Call gives the answer that is kept.
func (o *onlooker) Call(ctx context.Context, c sandbox.Call, settle func(sandbox.Reply)) {
	o.count(1, 0)
	known := o.replay.call(ctx, c, func(reply sandbox.Reply) {
		o.step(stepOf(c, o.replay.past.calls[c.Number], reply))
		settle(reply)
	})
	if known.Live {
		o.lacks(c)
	}
}

// lacks ends the run at a call that has no answer: at once, or, if the script
// may end without it, when it does nothing else for a while.
func (o *onlooker) lacks(c sandbox.Call) {
	if !o.ended {
		(*run)(o.workerHost).stop(&replay.NoAnswerError{Call: c.Number, Name: c.Name})
		return
	}
	time.AfterFunc(replay.Patience, func() {
		waits := (*run)(o.workerHost).now().Idle > 0
		switch {
		case o.ctx.Err() != nil: // it is over
		case waits:
			(*run)(o.workerHost).stop(&replay.NoAnswerError{Call: c.Number, Name: c.Name})
		default:
			o.lacks(c)
		}
	})
}

func (o *onlooker) count(made, settled int64) { (*run)(o.workerHost).count(made, settled) }

// stepOf describes an answered call.
func stepOf(c sandbox.Call, kept *pastCall, reply sandbox.Reply) replay.Step {
	st := replay.Step{Call: c.Number, Name: c.Name, Args: c.Args, Line: c.Position.Line, Time: reply.Time, State: "answered", Value: reply.Value}
	if kept.Past != nil {
		st.State = kept.Past.Effect.State
	}
	switch {
	case reply.Err != nil:
		st.Thrown = reply.Err.Name + ": " + reply.Err.Message
	case reply.Text != nil:
		st.Value, _ = json.Marshal(*reply.Text) // a text has a JSON form
	}
	return st
}
