// Package takeover takes over what a bridge leaves behind that ended without a word.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// Options say for which bridge what is taken over.
type Options struct {
	Journal  ledger.Journal
	Requests approval.Store
	Bridge   string // this one
	// Configuration is whose runs it may go on with. Those of others are left to bridges
	// of theirs.
	Configuration string
	Gone          func(bridge string) bool
	// Cancel ends a run that somebody wanted to end and that its bridge did not end.
	Cancel func(ctx context.Context, run, by string) error
}

// errTaken ends a change because there is nothing left to take over.
var errTaken = errors.New("another bridge has taken it over")

// Runs acquires the runs of bridges that have ended, and leaves them paused: their
// questions stay open, whoever answers. Nothing goes on by it. Of several bridges that do
// so at once each run has one that does, and what the old bridge still writes of it is
// refused from then on.
func Runs(ctx context.Context, o Options) error {
	all, err := o.Journal.Runs(ctx)
	if err != nil {
		return fmt.Errorf("looking for runs of bridges that have ended: %w", err)
	}
	errs := []error{}
	for _, k := range all {
		if k.State != ledger.Live || k.Owner == "" || k.Owner == o.Bridge || k.Configuration != o.Configuration || !o.Gone(k.Owner) {
			continue
		}
		if err := o.take(ctx, k); err != nil && !errors.Is(err, errTaken) && !errors.Is(err, ledger.ErrNoJournal) && !errors.Is(err, ledger.ErrOwnerAlive) {
			errs = append(errs, fmt.Errorf("taking over run %s from %s: %w", k.Run, k.Owner, err))
		}
	}
	return errors.Join(errs...)
}

// take takes one run over.
func (o *Options) take(ctx context.Context, was ledger.JournaledRun) error {
	if was.CancelRequestedBy != "" {
		return o.Cancel(ctx, was.Run, was.CancelRequestedBy)
	}
	_, err := o.Journal.ChangeRun(ctx, was.Run, func(k *ledger.JournaledRun) error {
		if k.Owner != was.Owner || k.Lease != was.Lease || k.State != ledger.Live {
			return errTaken
		}
		k.Acquire(o.Bridge) // under a new number: what the old owner writes is refused
		k.Release()
		return nil
	})
	if err != nil {
		return err
	}
	return o.orphan(ctx, was.Run, was.Owner)
}

// orphan leaves the open requests of a run to whichever bridge judges or resumes it.
func (o *Options) orphan(ctx context.Context, run, bridge string) error {
	all, err := o.Requests.Requests(ctx, approval.Filter{Run: run, Open: time.Now()})
	errs := []error{err}
	for _, e := range all {
		if e.Bridge != bridge {
			continue
		}
		_, err := o.Requests.Update(ctx, e.ID, func(e *approval.StoredRequest) error {
			if e.Bridge == bridge {
				e.Bridge = ""
			}
			return nil
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
