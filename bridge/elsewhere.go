package bridge

import (
	"context"
	"errors"
	"time"

	"codemode-bridge/bridge/surface"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A request may come to another bridge than the one that has its run. Where they share a
// store, it is served all the same: this bridge acquires the run as soon as it only waits
// for people, and answers with what the journal has once it is over.

// goOn has a request wait at a run that a claimant names, live or resumed. An answer of
// people (c.sealed) is not lost: the request waits until the bridge that has the run hands
// it over. The error says why the run does not go on here.
func (s *Server) goOn(ctx context.Context, req *mcp.CallToolRequest, id string, c claimant, resumed bool) (*mcp.CallToolResult, error) {
	name := ""
	if info := req.ClientInfo(); info != nil {
		name = info.Name
	}
	until := time.Now().Add(s.o.Gate.View().Profiles.ClientPatience(name))
	for {
		r, err := s.runner.resume(ctx, id, c)
		var over *overError
		switch {
		case err == nil:
			return s.attach(ctx, s.newAttachment(req, r, resumed))
		case errors.As(err, &over) && over.answer != nil:
			return surface.ReadAnswer(over.answer)
		case !errors.Is(err, errBusyElsewhere) || ctx.Err() != nil || !c.sealed && time.Now().After(until):
			return nil, err
		}
	}
}

// An overError is a run that is over, with its answer if that is kept.
type overError struct{ answer []byte }

func (*overError) Error() string { return ErrNoRun.Error() }
func (*overError) Unwrap() error { return ErrNoRun }

// unfetched is the answer of a run that is over, for its journal, if a client may fetch it
// from another bridge: no request waits for it here, or it waited for people. Nil if not.
func (r *run) unfetched() []byte {
	if at := r.now(); r.runner.o.Handles == nil || at.Attached > 0 && at.Left.IsZero() && !at.Resumed {
		return nil
	}
	text, err := surface.WriteAnswer(r.answer())
	if err != nil {
		r.runner.o.Logger.Error("keeping the answer of a run", "run", r.id, "err", err)
	}
	return text
}

// wake is closed when a bridge may have requested a run of this one that no request waits
// at; nil if that is only looked for now and then.
func (l *leases) wake() <-chan struct{} {
	store, tells := l.o.Journal.(interface{ Changed() <-chan struct{} })
	if !tells || l.o.Handles == nil || len(l.roster.left(nil)) == 0 {
		return nil
	}
	return store.Changed()
}
