package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	who "codemode-bridge/bridge/principal"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A run that waits for people can be suspended: its worker ends, and what is left
// of it is its journal. Whoever resumes it acquires its lease (lease.go) and runs
// its script again, up to where it was (package replay).

// engineDiffers ends a run that began in another release: the same script
// might do something else in this one.
func engineDiffers(p past) *replay.DivergedError {
	return &replay.DivergedError{Message: fmt.Sprintf("this release runs scripts in engine %s, it began in engine %s", sandbox.Engine, p.Engine)}
}

// resume goes on with a run that is suspended, or whose bridge has ended, or that
// another bridge hands over. A run that is live here is returned as it is.
// ErrNoRun is a run that nobody knows, or that is another's.
func (rn *runner) resume(ctx context.Context, id string, c claimant) (*run, error) {
	defer rn.leases.acquiring.Lock(id)() // a run that is asked for twice is resumed once
	if r, ok := rn.roster.lookup(id); ok {
		if !c.may(r.ownership()) {
			return nil, ErrNoRun
		}
		r.join(c)
		return r, nil
	}
	if rn.o.Journal == nil {
		return nil, ErrNoRun
	}
	kept, entries, err := rn.o.Journal.Read(ctx, id)
	if errors.Is(err, ledger.ErrNoJournal) {
		return nil, ErrNoRun
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", id, err)
	}
	p, err := readPast(entries)
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", id, err)
	}
	if err := ours(rn.o.Gate.Configuration(), kept, p.beginning); err != nil && c.anyone {
		return nil, err
	} else if err != nil || !c.may(p.ownership()) { // a client learns nothing of what others run
		return nil, ErrNoRun
	}
	if kept.State == ledger.Finished {
		return nil, &overError{p.answer}
	}
	if here := rn.o.Folder(); p.Folder != "" && here != "" && p.Folder != here {
		return nil, &lifecycle.FolderError{Run: id, Folder: canon.Escape(p.Folder)}
	}
	lease, stop, err := rn.leases.acquire(ctx, id, !c.left)
	if errors.Is(err, ErrNoRun) { // it has ended since it was read
		if _, entries, lost := rn.o.Journal.Read(ctx, id); lost == nil {
			p, _ = p.further(entries)
		}
		err = &overError{p.answer}
	}
	if err != nil {
		return nil, err
	}
	if stop != nil {
		if err := rn.leases.discard(ctx, id, lease, p.beginning, stop); err != nil {
			return nil, errors.Join(fmt.Errorf("ending run %s, which %s stopped: %w", id, stop.By, err), rn.leases.release(ctx, id))
		}
		return nil, ErrNoRun
	}
	// What was written before this bridge owned it may not have been seen above.
	if kept, entries, err = rn.o.Journal.Read(ctx, id); err == nil {
		p, err = p.further(entries)
	}
	p.bytes = kept.Bytes
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the journal of run %s: %w", id, err), rn.leases.release(ctx, id))
	}
	if p.policy == nil {
		return nil, errors.Join(errNoPolicy, rn.leases.release(ctx, id))
	}
	if p.Engine != sandbox.Engine {
		err := engineDiffers(p)
		return nil, errors.Join(err, rn.leases.discard(ctx, id, lease, p.beginning, err))
	}
	r, err := rn.runAgain(ctx, id, lease, p, c)
	if err != nil {
		return nil, errors.Join(err, rn.leases.release(ctx, id))
	}
	return r, nil
}

// runAgain runs the script of a run again whose lease this bridge has acquired.
func (rn *runner) runAgain(ctx context.Context, id string, lease int64, p past, c claimant) (*run, error) {
	sess := rn.loose(p.Client)
	sess.id, sess.owner, sess.conn, sess.started, sess.closed, sess.boundBefore = p.Session, p.Principal, c.conn, p.Started, true, p.profiles
	if from := rn.roster.sessionOf(c.conn); from != nil {
		sess.reflex = from.reflex
	}
	sess.handles = rn.handles.Of(p.Principal)
	r := rn.newRun(id, sess, who.Principal{Name: p.Principal, Groups: p.Groups}, p.Profile, p.Fetched)
	r.started = p.Started
	r.join(c) // before it runs
	r.names.Restore(p.taken)
	if c.left {
		r.update(lifecycle.Event{Kind: lifecycle.Leaves, At: time.Now()})
	}
	if r.secret.Hash = p.Secret; c.knows(p.Secret) {
		r.secret.Text = c.secret
	}
	rn.keepJournal(r, p.beginning, p.names)
	r.journal.lease, r.journal.open, r.journal.bytes = lease, true, p.bytes
	r.replay, r.life.State.Resumed = newReplay(r, p), true
	o := gate.Origin{Profile: p.Profile, Policy: p.policy, Surroundings: p.Surroundings, Reach: r.reach(c.reach)}
	switch {
	case c.reach == gate.Nobody && p.Fetched:
		o.Reach = gate.ByApprovers
	case c.left && p.Reach == gate.ByElicitation: // the client comes back, and then its person is asked
		o.Reach = r.reach(p.Reach)
	}
	r.unasked = c.unasked
	r.identify(ctx, &o, evalArgs{Code: p.Code, Input: p.Input}, p.Trace)
	var err error
	if r.gate, err = rn.o.Gate.Resume(ctx, o, (*gateHost)(r), p.Started, c.by); err != nil {
		r.trace.End(ledger.Stopped)
		sess.sandbox.Close()
		return nil, err
	}
	script := rn.script(r, evalArgs{Code: p.Code, Input: p.Input}, p.names)
	script.Seed, script.Start = p.Seed, p.Start
	if err := rn.launch(r, script); err != nil {
		sess.sandbox.Close()
		return nil, err
	}
	return r, nil
}

// Resume goes on with a run that is suspended, or whose bridge has ended, for
// the person who runs the bridge, and returns what its eval tool would answer.
// When ctx ends while the run waits for people, it is suspended again, and the
// error is ctx's cause.
func (s *Server) Resume(ctx context.Context, id, by string, unasked func(*approval.DeniedError)) (*mcp.CallToolResult, error) {
	r, err := s.runner.resume(ctx, id, claimant{by: by, anyone: true, reach: gate.ByApprovers, unasked: unasked})
	if err != nil {
		return nil, err
	}
	r.update(lifecycle.Event{Kind: lifecycle.Attaches}) // and it is not handed over
	defer r.update(lifecycle.Event{Kind: lifecycle.Detaches})
	select {
	case <-r.done:
	case <-ctx.Done():
		if !r.evict() {
			r.stop(context.Cause(ctx))
		}
		<-r.done
	}
	switch at := r.now(); {
	case at.Phase != lifecycle.Suspended:
		return r.answer(), nil
	case !at.LeaseLost && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, errLeaseLost
	}
}

// ResumeInBackground is Resume without waiting: the run goes on, and its answer is kept for a
// while, for the client that comes back. It is [ErrEnded] for a run that is over.
func (s *Server) ResumeInBackground(ctx context.Context, id, by string) error {
	if r, ok := s.roster.lookup(id); ok && r.isDone() {
		return ErrEnded
	}
	_, err := s.runner.resume(ctx, id, claimant{by: by, anyone: true, reach: gate.ByApprovers, left: true})
	if errors.Is(err, errBusyElsewhere) {
		return nil // it goes on there
	}
	return err
}

// ResumeAnswered goes on with the runs that no bridge has as soon as people have
// answered all that they asked, until ctx ends. What nobody answers in time
// expires. What was settled before this bridge began is left to whoever resumes
// it, and so is a run that asks nobody, because its bridge was killed: a restart
// makes no calls of its own. An answer that waited for a bridge to judge it is
// settled by this one, and moves its run on.
func (s *Server) ResumeAnswered(ctx context.Context) {
	if s.o.Journal == nil {
		return
	}
	tried := map[string]bool{}
	for ctx.Err() == nil {
		changed := s.o.Gate.Broker().Changed() // before looking: nothing is missed
		if err := s.o.Gate.Broker().Judge(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("looking for answers to paused runs", "err", err)
		}
		answered, err := s.leases.answeredUnowned(ctx, s.began)
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("looking for paused runs that were answered", "err", err)
		}
		for _, e := range answered {
			if tried[e.ID] {
				continue
			}
			tried[e.ID] = true
			if err := s.ResumeInBackground(ctx, e.Run, e.Verdict.By+" answered"); err != nil && !errors.Is(err, ErrNoRun) && !errors.As(err, new(*lifecycle.FolderError)) && ctx.Err() == nil {
				s.o.Logger.Error("going on with a run that was answered", "run", e.Run, "err", err)
				delete(tried, e.ID) // the next look tries again
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(10 * time.Second): // a bridge may have been killed
		}
	}
}
