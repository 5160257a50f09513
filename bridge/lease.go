package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
)

// leases looks after the runs that have journals: it acquires and releases their
// leases, does what other bridges request, and ends the runs that nobody resumed
// in time. Of all bridges that share a store one has a run's lease at a time, and runs
// it. One that wants to acquire the lease of another requests that it be handed
// over, which happens as soon as no request waits at the run there.
type leases struct {
	o      *Options
	roster *roster

	acquiring lifecycle.Locks    // held while a run is resumed, or ended where it is suspended
	begun     sync.Map           // run ID -> beginning, without its script, of runs that no bridge has
	suspended sync.Map           // suspendedKey -> run ID, of runs that were suspended here
	stop      context.CancelFunc // of keepLeases
	ended     chan struct{}      // closed when keepLeases has ended
}

// newLeases also starts keepLeases, where there are journals; close ends it.
func newLeases(o *Options, ro *roster) *leases {
	ctx, stop := context.WithCancel(context.Background()) // ends with close
	l := &leases{o: o, roster: ro, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		if o.Journal != nil {
			l.keepLeases(ctx)
		}
	}()
	return l
}

func (l *leases) close() {
	l.stop()
	<-l.ended
}

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

// errOthers is a run of another configuration.
var errOthers = errors.New("the run belongs to another configuration")

// acquire makes this bridge the owner of a run. A bridge that has it is asked to hand
// it over, or not. With stop the run is to be ended and nothing else: somebody
// requested that of a bridge that ended before it could.
func (l *leases) acquire(ctx context.Context, id string, ask bool) (lease int64, stop *approval.StoppedError, err error) {
	deadline := l.o.Now().Add(askFor)
	for {
		kept, err := l.o.Journal.ChangeRun(ctx, id, func(k *ledger.JournaledRun) error {
			switch {
			case k.State == ledger.Finished: // since it was read
				return ErrNoRun
			case k.Owner == "" || k.Owner == l.o.Bridge || l.o.Gone(k.Owner):
				stop = cancelRequested(k)
				k.Acquire(l.o.Bridge)
			case k.HandoverRequestedBy == "" && k.CancelRequestedBy == "" && ask:
				k.HandoverRequestedBy = l.o.Bridge
			}
			if k.Owner != l.o.Bridge && l.o.Now().After(deadline) {
				k.HandoverRequestedBy = ""
			}
			return nil
		})
		switch {
		case errors.Is(err, ledger.ErrNoJournal), errors.Is(err, ErrNoRun):
			return 0, nil, ErrNoRun
		case errors.Is(err, ledger.ErrOwnerAlive): // it has just come back
			return 0, nil, errBusyElsewhere
		case err != nil:
			return 0, nil, fmt.Errorf("acquiring run %s: %w", id, err)
		}
		switch {
		case kept.Owner == l.o.Bridge:
			return kept.Lease, stop, nil
		case kept.HandoverRequestedBy == "" || !ask:
			return 0, nil, errBusyElsewhere
		}
		select {
		case <-time.After(askEvery):
		case <-l.ended:
			return 0, nil, ErrClosed
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

// reclaim ends the runs here that other bridges have acquired while this one could not say
// that it is alive.
func (l *leases) reclaim(ctx context.Context) error {
	if l.o.Journal == nil {
		return nil
	}
	live, _ := l.roster.runs()
	had := make(map[*run]int64) // before looking: what begins meanwhile is not missed
	for _, r := range live {
		if lease, open := r.journal.under(); open {
			had[r] = lease
		}
	}
	all, err := l.o.Journal.Runs(ctx)
	for r, lease := range had {
		if err == nil && !slices.ContainsFunc(all, func(k ledger.JournaledRun) bool { return k.Run == r.id && k.Owner == l.o.Bridge && k.Lease == lease }) {
			r.update(lifecycle.Event{Kind: lifecycle.LosesLease})
		}
	}
	return err
}

// release gives up the lease of a run that was acquired and is not run.
func (l *leases) release(ctx context.Context, id string) error {
	_, err := l.o.Journal.ChangeRun(context.WithoutCancel(ctx), id, func(k *ledger.JournaledRun) error {
		if k.Owner == l.o.Bridge {
			k.Release()
		}
		return nil
	})
	return err
}

// beginningOf is how a run began, as far as its journal can be read.
func (l *leases) beginningOf(ctx context.Context, id string) beginning {
	if _, entries, err := l.o.Journal.Read(ctx, id); err == nil {
		if p, err := readPast(entries); err == nil {
			return p.beginning
		}
	}
	return beginning{Started: l.o.Now()}
}

// cancel ends a run, wherever it is: here, in another bridge, or nowhere.
// The name is whose wish it is.
func (l *leases) cancel(ctx context.Context, id, by string) error {
	if l.roster.stop(id, by) {
		return nil
	}
	if l.o.Journal == nil {
		return ErrNoRun
	}
	defer l.acquiring.Lock(id)()
	if l.roster.stop(id, by) { // it was being resumed
		return nil
	}
	mine := false
	kept, err := l.o.Journal.ChangeRun(ctx, id, func(k *ledger.JournaledRun) error {
		switch mine = false; {
		case k.State == ledger.Finished:
			return ErrNoRun
		case k.Configuration != "" && k.Configuration != l.o.Gate.Configuration().ID:
			return errOthers
		case k.Owner == "" || k.Owner == l.o.Bridge || l.o.Gone(k.Owner):
			mine, k.CancelRequestedBy = true, ""
			k.Acquire(l.o.Bridge)
		default:
			k.CancelRequestedBy = by
		}
		return nil
	})
	switch {
	case errors.Is(err, ledger.ErrNoJournal):
		return ErrNoRun
	case errors.Is(err, errOthers):
		return &ElsewhereError{id, l.beginningOf(ctx, id).Configuration}
	case err != nil || !mine:
		return err
	}
	return l.discard(ctx, id, kept.Lease, l.beginningOf(ctx, id), &approval.StoppedError{By: by})
}

// keepLeases looks after the runs that have journals, until ctx ends: it does what
// other bridges request, and ends what has waited too long.
func (l *leases) keepLeases(ctx context.Context) {
	const often, seldom = 250 * time.Millisecond, time.Minute
	tick := time.NewTicker(often)
	defer tick.Stop()
	var last time.Time
	for {
		wake := l.wake() // before looking: nothing is missed
		if l.roster.running() > 0 {
			l.serveRequests(ctx)
		}
		if now := time.Now(); now.Sub(last) >= seldom {
			last = now
			if err := l.expire(ctx); err != nil && ctx.Err() == nil {
				l.o.Logger.Warn("looking for runs that have expired", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-wake:
			time.Sleep(wakeLess)
		}
	}
}

// wakeLess is the least time between two looks.
const wakeLess = 10 * time.Millisecond

// serveRequests does what others request of this bridge's runs.
func (l *leases) serveRequests(ctx context.Context) {
	requests, err := l.o.Journal.LeaseRequests(ctx, l.o.Bridge)
	if err != nil {
		return // it is tried again
	}
	for _, k := range requests {
		if k.CancelRequestedBy != "" {
			if err := l.cancel(ctx, k.Run, k.CancelRequestedBy); err != nil && !errors.Is(err, ErrNoRun) {
				l.o.Logger.Error("ending a run", "run", k.Run, "err", err)
			}
		} else if r, here := l.roster.lookup(k.Run); here {
			r.handOver()
		}
	}
}

// expire ends the runs that nobody resumed in time, and drops the journals
// whose time has come.
func (l *leases) expire(ctx context.Context) error {
	all, err := l.o.Journal.Runs(ctx)
	if err == nil {
		l.forgetGone(all)
	}
	for _, k := range all {
		if err != nil || ctx.Err() != nil {
			break
		}
		if _, here := l.roster.lookup(k.Run); here || !k.Until.Before(l.o.Now()) {
			continue
		}
		if k.State == ledger.Finished {
			err = l.o.Journal.Drop(ctx, k.Run)
			continue
		}
		err = l.expireRun(ctx, k.Run)
	}
	return err
}

// forgetGone forgets what is known of suspended runs that have no journal any
// more.
func (l *leases) forgetGone(all []ledger.JournaledRun) {
	left := make(map[string]bool, len(all))
	for _, k := range all {
		left[k.Run] = true
	}
	l.begun.Range(func(id, _ any) bool {
		if !left[id.(string)] {
			l.begun.Delete(id)
		}
		return true
	})
	l.suspended.Range(func(key, id any) bool {
		if !left[id.(string)] {
			l.suspended.Delete(key)
		}
		return true
	})
}

func (l *leases) expireRun(ctx context.Context, id string) error {
	defer l.acquiring.Lock(id)()
	if _, here := l.roster.lookup(id); here {
		return nil
	}
	var skip = errors.New("not this one")
	kept, err := l.o.Journal.ChangeRun(ctx, id, func(k *ledger.JournaledRun) error {
		if k.State == ledger.Finished || k.Owner != "" && k.Owner != l.o.Bridge && !l.o.Gone(k.Owner) || !k.Until.Before(l.o.Now()) {
			return skip
		}
		k.CancelRequestedBy = ""
		k.Acquire(l.o.Bridge)
		return nil
	})
	if err != nil {
		if errors.Is(err, skip) || errors.Is(err, ledger.ErrNoJournal) || errors.Is(err, ledger.ErrOwnerAlive) {
			return nil
		}
		return err
	}
	return l.discard(ctx, id, kept.Lease, l.beginningOf(ctx, id), errExpired)
}

// discard ends a run that this bridge owns and that does not go on.
func (l *leases) discard(ctx context.Context, id string, lease int64, b beginning, why error) error {
	g := l.o.Gate.Leftover(gate.Origin{ID: id, Session: b.Session, Client: b.Client, Profile: b.Profile, Requester: b.Principal, Configuration: b.Configuration}, b.Started)
	err := g.End(ctx, ledger.Stopped, why.Error(), gate.Entries{All: []ledger.JournalEntry{{Run: id, Owner: l.o.Bridge, Lease: lease, Kind: ledger.Ended}}})
	return errors.Join(err, l.o.Gate.Broker().Abandon(ctx, why, func(e approval.StoredRequest) bool { return e.Run == id }))
}
