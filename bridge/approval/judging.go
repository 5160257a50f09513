package approval

import (
	"context"
	"errors"
	"sync"
	"time"
)

// judging is the part of a broker that judges what other processes relay.
type judging struct{ o *Options }

// judges reports whether this process judges verdicts on a request.
func (j judging) judges(e *StoredRequest) bool {
	ours := e.Bridge == j.o.Bridge || e.Bridge == "" || j.o.Gone(e.Bridge)
	return ours && e.ConfigurationID() == j.o.Configuration
}

// update changes a stored request. Verdicts relayed to it are judged first, if
// this process is the one to judge them, and remain judged even if change then
// comes too late: outcomes next to a [SettledError] tell that the request has
// changed.
func (j judging) update(ctx context.Context, id string, change func(*StoredRequest) error) (e StoredRequest, outcomes []outcome, err error) {
	var late *SettledError
	e, err = j.o.Store.Update(ctx, id, func(e *StoredRequest) error {
		outcomes, late = nil, nil
		if j.judges(e) {
			outcomes = e.judgeRelayed(j.o.Approvers(), time.Now())
		}
		err := change(e)
		if len(outcomes) > 0 && errors.As(err, &late) {
			return nil
		}
		return err
	})
	switch {
	case err != nil: // the request is unchanged
		outcomes = nil
	case late != nil:
		err = late
	}
	return e, outcomes, err
}

// A judged is a stored request with the outcomes of the verdicts relayed to it.
type judged struct {
	entry    StoredRequest
	outcomes []outcome
}

// A reporter is a mutex that reports what became of verdicts. What its holder
// finds out is reported right after the unlock: the hearer may write to a disk,
// and nobody who only wants the lock should wait for that.
type reporter struct {
	sync.Mutex
	onJudged   func(StoredRequest, Verdict, error) // see OnJudged; set before the broker is used
	unreported []judged
}

// reportLater has j reported by Unlock. The lock is held.
func (t *reporter) reportLater(j judged) { t.unreported = append(t.unreported, j) }

// Unlock unlocks t, then reports what has not been reported.
func (t *reporter) Unlock() {
	untold := t.unreported
	t.unreported = nil
	t.Mutex.Unlock()
	for _, j := range untold {
		t.report(j)
	}
}

// report reports what became of verdicts. The lock is not held.
func (t *reporter) report(j judged) {
	for _, o := range j.outcomes {
		t.onJudged(j.entry, o.verdict, o.err)
	}
}
