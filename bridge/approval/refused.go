package approval

import (
	"context"
	"fmt"
	"slices"
)

// A no stays a no. What a run was refused is refused for as long as the run lasts, in
// whatever process it goes on and whatever policy becomes: the calls that waited for the
// answer, those that were planned with them, and any that would be asked about and are
// the same.

// act is what a call does: its key, whatever policy and the tool's definition become.
func (k Key) act() Key {
	k.Definition, k.Revision = "", ""
	return k
}

// stays reports whether a denial is an answer to its question: from a person, or because
// nobody gave one in time.
func (v Verdict) stays() bool {
	return !v.Approve && v.Channel != "run" && v.Reason != NoApprover && v.Reason != AuditUnavailable
}

// refuses returns the denial that a verdict on the request is for a call of its run, if it
// is one: the call of that number, or one that was planned and has not come.
func (r Request) refuses(said Verdict, call int, key Key) (no Verdict, is bool) {
	for _, i := range r.Items {
		v := said.About(i.Call)
		switch coming := i.Planned && i.Taken == 0; {
		case !coming && i.number() == call && i.Key.Args == key.Args:
			return v, v.stays()
		case coming && i.Key.act() == key.act() && v.stays():
			no, is = v, true
		}
	}
	return no, is
}

// Refused returns the denial that a run got for a call before it made it, if there is
// one: in an earlier part of the run, or because the call was planned. It stays a denial
// even if policy has changed since. Resumed says that the run has earlier parts, in which
// the call may have been made. The error is [ErrFlood] if the run must be stopped.
func (b *Broker) Refused(ctx context.Context, run string, call int, key Key, resumed bool) (no Verdict, is bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	qs := &b.questions
	if no, is = qs.refusedPlan(run, key); is {
		return no, true, qs.refuseUnasked(run)
	}
	if !resumed {
		return Verdict{}, false, nil
	}
	entries, err := qs.answers(ctx, run)
	if err != nil {
		return Verdict{}, false, err
	}
	for _, e := range slices.Backward(entries) {
		if e.Verdict == nil {
			continue
		}
		if no, is = e.refuses(*e.Verdict, call, key); !is {
			continue
		}
		if _, asked := e.itemOf(call); asked {
			return no, true, nil
		}
		return no, true, qs.refuseUnasked(run)
	}
	return Verdict{}, false, nil
}

// refuseUnasked counts a call that is refused without asking.
func (qs *questions) refuseUnasked(run string) error {
	qs.limiter.refusals[run]++
	return qs.limiter.flood(run)
}

// refusedPlan returns the denial of a call that was planned, if its plan was refused while
// the run was here.
func (qs *questions) refusedPlan(run string, key Key) (no Verdict, is bool) {
	p := qs.plans[run]
	if p == nil || p.question.verdict.Time.IsZero() { // nobody has answered
		return Verdict{}, false
	}
	return p.question.request.refuses(p.question.verdict, 0, key)
}

// answers returns the requests of a run in the store, the oldest first, and has the
// limits count how they were answered.
func (qs *questions) answers(ctx context.Context, run string) ([]StoredRequest, error) {
	entries, err := qs.store.Requests(ctx, Filter{Run: run})
	if err != nil {
		return nil, fmt.Errorf("looking for what was asked and answered: %w", err)
	}
	for _, e := range entries {
		if e.Verdict != nil {
			qs.limiter.settled(e.Request, *e.Verdict)
		}
	}
	return entries, nil
}
