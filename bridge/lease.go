package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
)

// Of all bridges that share a journal one has a run's lease at a time, and runs it.
// One that wants to acquire the lease of another requests that it be handed over,
// which happens as soon as no request waits at the run there.

// Bounds on asking another bridge for a run.
const (
	askFor   = 5 * time.Second
	askEvery = 50 * time.Millisecond
)

// cancelRequested is the error with which a run is to end, if somebody requested
// that of the bridge that has it.
func cancelRequested(k *ledger.JournaledRun) *approval.StoppedError {
	if k.CancelRequestedBy == "" {
		return nil
	}
	return &approval.StoppedError{By: k.CancelRequestedBy}
}

// acquire makes this bridge the owner of a run. A bridge that has it is asked to
// hand it over, or not. With stop the run is to be ended and nothing else: somebody
// requested that of a bridge that did not come to it.
func (s *Server) acquire(ctx context.Context, id string, ask bool) (lease int64, stop *approval.StoppedError, err error) {
	deadline := s.o.Now().Add(askFor)
	for {
		kept, err := s.o.Journal.ChangeRun(ctx, id, func(k *ledger.JournaledRun) error {
			switch {
			case k.State == ledger.Finished: // since it was read
				return ErrNoRun
			case k.Owner == "" || k.Owner == s.o.Bridge || s.o.Gone(k.Owner):
				stop = cancelRequested(k)
				k.Acquire(s.o.Bridge)
			case k.HandoverRequestedBy == "" && k.CancelRequestedBy == "" && ask:
				k.HandoverRequestedBy = s.o.Bridge
			}
			if k.Owner != s.o.Bridge && s.o.Now().After(deadline) {
				k.HandoverRequestedBy = ""
			}
			return nil
		})
		if errors.Is(err, ledger.ErrNoJournal) || errors.Is(err, ErrNoRun) {
			return 0, nil, ErrNoRun
		}
		if err != nil {
			return 0, nil, fmt.Errorf("acquiring run %s: %w", id, err)
		}
		switch {
		case kept.Owner == s.o.Bridge:
			return kept.Lease, stop, nil
		case kept.HandoverRequestedBy == "" || !ask:
			return 0, nil, errBusyElsewhere
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

// release gives up the lease of a run that was acquired and is not run.
func (s *Server) release(ctx context.Context, id string) error {
	_, err := s.o.Journal.ChangeRun(context.WithoutCancel(ctx), id, func(k *ledger.JournaledRun) error {
		if k.Owner == s.o.Bridge {
			k.Release()
		}
		return nil
	})
	return err
}

// errOthers is a run of another configuration.
var errOthers = errors.New("the run belongs to another configuration")

// beginningOf is how a run began, as far as its journal can be read.
func (s *Server) beginningOf(ctx context.Context, id string) beginning {
	if _, entries, err := s.o.Journal.Read(ctx, id); err == nil {
		if p, err := readPast(entries); err == nil {
			return p.beginning
		}
	}
	return beginning{Started: s.o.Now()}
}

// CancelRun ends a run, wherever it is: here, in another bridge, or nowhere.
// The name is whose wish it is.
func (s *Server) CancelRun(ctx context.Context, id, by string) error {
	if s.StopRun(id, by) {
		return nil
	}
	if s.o.Journal == nil {
		return ErrNoRun
	}
	defer s.acquiring.lock(id)()
	if s.StopRun(id, by) { // it was being resumed
		return nil
	}
	mine := false
	kept, err := s.o.Journal.ChangeRun(ctx, id, func(k *ledger.JournaledRun) error {
		switch mine = false; {
		case k.State == ledger.Finished:
			return ErrNoRun
		case k.Configuration != "" && k.Configuration != s.configuration().ID:
			return errOthers
		case k.Owner == "" || k.Owner == s.o.Bridge || s.o.Gone(k.Owner):
			mine, k.CancelRequestedBy = true, ""
			k.Acquire(s.o.Bridge)
		default:
			k.CancelRequestedBy = by
		}
		return nil
	})
	switch {
	case errors.Is(err, ledger.ErrNoJournal):
		return ErrNoRun
	case errors.Is(err, errOthers):
		return &ElsewhereError{id, s.beginningOf(ctx, id).Configuration}
	case err != nil || !mine:
		return err
	}
	return s.discard(ctx, id, kept.Lease, s.beginningOf(ctx, id), &approval.StoppedError{By: by})
}

// keepLeases looks after the runs that have journals, until ctx ends: it does what
// other bridges request, and ends what has waited too long.
func (s *Server) keepLeases(ctx context.Context) {
	const often, seldom = 250 * time.Millisecond, time.Minute
	tick := time.NewTicker(often)
	defer tick.Stop()
	var last time.Time
	for {
		if s.Running() > 0 {
			s.serveRequests(ctx)
		}
		if now := time.Now(); now.Sub(last) >= seldom {
			last = now
			if err := s.expire(ctx); err != nil && ctx.Err() == nil {
				s.o.Logger.Warn("looking for runs that have expired", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// serveRequests does what others request of this bridge's runs.
func (s *Server) serveRequests(ctx context.Context) {
	requests, err := s.o.Journal.LeaseRequests(ctx, s.o.Bridge)
	if err != nil {
		return // it is tried again
	}
	for _, k := range requests {
		s.mu.Lock()
		r := s.live[k.Run]
		s.mu.Unlock()
		if k.CancelRequestedBy != "" {
			if err := s.CancelRun(ctx, k.Run, k.CancelRequestedBy); err != nil && !errors.Is(err, ErrNoRun) {
				s.o.Logger.Error("ending a run", "run", k.Run, "err", err)
			}
		} else if r != nil {
			r.handOver()
		}
	}
}

// expire ends the runs that nobody resumed in time, and drops the journals
// whose time has come.
func (s *Server) expire(ctx context.Context) error {
	all, err := s.o.Journal.Runs(ctx)
	if err == nil {
		s.forgetGone(all)
	}
	for _, k := range all {
		if err != nil || ctx.Err() != nil {
			break
		}
		if _, here := s.lookup(k.Run); here || !k.Until.Before(s.o.Now()) {
			continue
		}
		if k.State == ledger.Finished {
			err = s.o.Journal.Drop(ctx, k.Run)
			continue
		}
		err = s.expireRun(ctx, k.Run)
	}
	return err
}

// forgetGone forgets what is known of suspended runs that have no journal any
// more.
func (s *Server) forgetGone(all []ledger.JournaledRun) {
	left := make(map[string]bool, len(all))
	for _, k := range all {
		left[k.Run] = true
	}
	s.begun.Range(func(id, _ any) bool {
		if !left[id.(string)] {
			s.begun.Delete(id)
		}
		return true
	})
	s.suspended.Range(func(key, id any) bool {
		if !left[id.(string)] {
			s.suspended.Delete(key)
		}
		return true
	})
}

func (s *Server) expireRun(ctx context.Context, id string) error {
	defer s.acquiring.lock(id)()
	if _, here := s.lookup(id); here {
		return nil
	}
	var skip = errors.New("not this one")
	kept, err := s.o.Journal.ChangeRun(ctx, id, func(k *ledger.JournaledRun) error {
		if k.State == ledger.Finished || k.Owner != "" && k.Owner != s.o.Bridge && !s.o.Gone(k.Owner) || !k.Until.Before(s.o.Now()) {
			return skip
		}
		k.CancelRequestedBy = ""
		k.Acquire(s.o.Bridge)
		return nil
	})
	if err != nil {
		if errors.Is(err, skip) || errors.Is(err, ledger.ErrNoJournal) {
			return nil
		}
		return err
	}
	return s.discard(ctx, id, kept.Lease, s.beginningOf(ctx, id), errExpired)
}

// discard ends a run that this bridge owns and that does not go on.
func (s *Server) discard(ctx context.Context, id string, lease int64, b beginning, why error) error {
	g := s.o.Gate.Leftover(gate.Origin{ID: id, Session: b.Session, Client: b.Client, Profile: b.Profile, Requester: b.Principal, Configuration: b.Configuration}, b.Started)
	err := g.End(ctx, ledger.Stopped, why.Error(), gate.Entries{All: []ledger.JournalEntry{{Run: id, Owner: s.o.Bridge, Lease: lease, Kind: ledger.Ended}}})
	return errors.Join(err, s.o.Gate.Broker().Abandon(ctx, why, func(e approval.StoredRequest) bool { return e.Run == id }))
}
