package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"codemode-bridge/profiles"
)

// A run that waits for people may be suspended, or its process may end, and it
// may then be resumed in another process. Its requests stay open meanwhile.

// Extend gives people until that time to answer the open requests of a run, if
// they had less and policy sets no time of its own.
func (b *Broker) Extend(run string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, o := range b.questions.open {
		if o.request.Run != run || o.request.Decision.TimeoutExplicit || !o.request.Until.Before(until) {
			continue
		}
		_, err := b.store.Update(background(), id, func(e *StoredRequest) error {
			if e.Verdict != nil {
				return &SettledError{*e.Verdict}
			}
			e.Until = until
			return e.under(o.request.Lease)
		})
		if err == nil {
			o.request.Until = until
			b.questions.watchers.wake(run)
		}
	}
}

// Suspend forgets a run that is suspended, and leaves its requests open: whoever
// resumes the run finds them by setting Request.Again. Calls about which people were
// yet to be asked are put to them first, as far as there is room: only an answer moves
// the run on. Calls that wait for people get no answer; their contexts must end.
func (b *Broker) Suspend(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions.putWaiting(run)
	for id, o := range b.questions.open {
		if o.request.Run != run {
			continue
		}
		// A request that stays in this bridge's name ends with it: no harm.
		_, err := b.store.Update(background(), id, func(e *StoredRequest) error { e.Bridge = ""; return e.under(o.request.Lease) })
		if err != nil && !errors.Is(err, ErrNotOwner) {
			b.o.Logger.Warn("leaving the request of a suspended run to other bridges", "request", id, "err", err)
		}
		delete(b.questions.open, id)
	}
	b.questions.queue = slices.DeleteFunc(b.questions.queue, func(w *waitingCall) bool { return w.request.Run == run })
	b.questions.forgetRun(run)
	b.questions.admit()
}

// Drop forgets a run that another bridge goes on with. Its requests and grants stay as
// they are stored, since they are that bridge's now. Calls that wait for people get no
// answer; their contexts must end.
func (b *Broker) Drop(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.questions.open, func(_ string, q *openQuestion) bool { return q.request.Run == run })
	b.questions.queue = slices.DeleteFunc(b.questions.queue, func(w *waitingCall) bool { return w.request.Run == run })
	b.questions.forgetRun(run)
	delete(b.questions.plans, run)
	delete(b.questions.grants.runs, run)
	b.questions.admit()
}

// putWaiting puts the waiting calls of a run to people, whether or not further ones
// may come, as far as there is room.
func (qs *questions) putWaiting(run string) {
	for i := 0; i < len(qs.queue); {
		w := qs.queue[i]
		_, refused := qs.limiter.coolingDown(w.request)
		if w.request.Run != run || refused || qs.full(w.request) {
			i++
			continue
		}
		qs.put(qs.form(w))
		i = 0
	}
}

// Abandon settles the open requests that are over: no call waits for them or ever
// will. Why says what ended their runs; nil means that their processes ended.
func (b *Broker) Abandon(ctx context.Context, why error, over func(StoredRequest) bool) error {
	all, err := b.store.Requests(ctx, Filter{Open: time.Now()})
	for _, e := range all {
		if !over(e) {
			continue
		}
		_, failed := b.store.Update(ctx, e.ID, func(e *StoredRequest) error {
			if e.Verdict == nil {
				e.settle(unanswered(why), time.Now())
			}
			return nil
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		return fmt.Errorf("ending the questions of bridges that are gone: %w", err)
	}
	return nil
}

// resume finds the request that r's run made about the same call before it was
// suspended: the open request, or the verdict if it is settled. It finds none if
// the tool or the policy's decision has changed meanwhile: then people are asked
// anew.
func (qs *questions) resume(ctx context.Context, r Request) (*openQuestion, *Verdict, error) {
	call := r.Items[0].Call
	entries, err := qs.answers(ctx, r.Run)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range slices.Backward(entries) {
		item, about := e.itemOf(call)
		if !about {
			continue
		}
		if !e.sameQuestion(r) || qs.o.Separate() && !e.Separate { // somebody else must approve now
			no, err := qs.endStale(ctx, e, item.Call, r.Lease)
			return nil, no, err
		}
		if q := qs.open[e.ID]; q != nil { // another call of the request has reopened it
			return q, nil, nil
		}
		if v, ok := qs.resumed[r.Run][e.ID]; ok {
			v = e.answers(v, item.Call)
			return nil, &v, nil
		}
		if e, err = qs.takeUp(ctx, e, r.Lease); err != nil {
			return nil, nil, fmt.Errorf("taking up a question: %w", err)
		}
		q := &openQuestion{request: e.Request, seen: true, settled: make(chan struct{})}
		q.request.Lease = r.Lease
		if e.Verdict != nil {
			if !qs.counts(e) {
				return nil, nil, nil // ask anew
			}
			qs.replan(q)
			qs.finish(q, *e.Verdict)
			if qs.resumed[r.Run] == nil {
				qs.resumed[r.Run] = map[string]Verdict{}
			}
			qs.resumed[r.Run][e.ID] = q.verdict
			v := e.answers(q.verdict, item.Call)
			return nil, &v, nil
		}
		qs.open[e.ID] = q
		qs.replan(q)
		qs.watchers.wake(r.Run)
		return q, nil, nil
	}
	return nil, nil, nil
}

// takeUp makes a stored question one of this process's run. It may have got a verdict
// meanwhile.
func (qs *questions) takeUp(ctx context.Context, e StoredRequest, lease int64) (StoredRequest, error) {
	if err := e.under(lease); err != nil || e.Verdict != nil {
		return e, err
	}
	return qs.store.Update(ctx, e.ID, func(e *StoredRequest) error {
		err := e.under(lease)
		e.Bridge, e.Lease = qs.o.Bridge, lease
		return err
	})
}

// counts reports whether the verdict on a stored request counts in a later part of its
// run.
func (qs *questions) counts(e StoredRequest) bool {
	switch v := e.Verdict; {
	case v.Edited && v.Args == nil || !v.Approve && (v.Reason == NoApprover || v.Channel == "run"):
		return false // nobody's answer, or part of it is gone
	case v.Channel == "grant": // which counts each call that it answers
		return false
	}
	return e.stands(qs.o.Approvers(), time.Now()) == nil // else its author may no longer give it
}

// Approved reports whether people have said yes to a call that r's run asked about before
// it was suspended, so that nobody need be asked: [Broker.Ask] has their answer.
func Approved(ctx context.Context, b *Broker, r Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	entries, err := b.questions.answers(ctx, r.Run)
	if err != nil {
		return false
	}
	for _, e := range slices.Backward(entries) {
		if _, about := e.itemOf(r.Items[0].Call); about {
			return e.Verdict != nil && e.Verdict.About(r.Items[0].Call).Approve && b.questions.counts(e) && e.sameQuestion(r) && (e.Separate || !b.questions.o.Separate())
		}
	}
	return false
}

// earlier returns the open question that r's run asked about the same call before
// it was suspended; nil if there is none.
func (qs *questions) earlier(r Request) *openQuestion {
	if !r.Again {
		return nil
	}
	for _, q := range qs.open {
		if q.request.Run == r.Run && (StoredRequest{Request: q.request}).sameQuestion(r) {
			return q
		}
	}
	return nil
}

// endStale ends a request whose question would be a different one now. A no that came
// before counts all the same: it returns the one to the row.
func (qs *questions) endStale(ctx context.Context, e StoredRequest, row int, lease int64) (no *Verdict, err error) {
	now, outcomes, err := qs.judging.update(ctx, e.ID, func(e *StoredRequest) error {
		if e.Verdict != nil {
			return &SettledError{*e.Verdict}
		}
		e.settle(Verdict{Reason: Stale, Channel: "run"}, time.Now())
		return e.under(lease)
	})
	qs.reportLater(judged{now, outcomes})
	late := (*SettledError)(nil)
	if err != nil && !errors.As(err, &late) {
		return nil, fmt.Errorf("ending a stale request: %w", err)
	}
	if late == nil {
		return nil, nil
	}
	qs.limiter.settled(e.Request, late.Verdict)
	if v := late.Verdict.About(row); v.stays() {
		return &v, nil
	}
	return nil, nil
}

// sameQuestion reports whether the stored request asks the same as r, which has
// one item: about the same call of the same tool, for the same reasons, and it leads
// where it led.
func (e StoredRequest) sameQuestion(r Request) bool {
	item := r.Calls()[0]
	for _, i := range e.Calls() {
		had, has := i.Key, item.Key
		had.Revision, has.Revision = "", ""
		if i.number() == item.Call && had == has {
			return sameDecision(i.Decision, item.Decision) && i.About.leadsLike(item.About)
		}
	}
	return false
}

// sameDecision reports whether two decisions ask for the same, for the same
// reasons.
func sameDecision(a, b profiles.Decision) bool {
	text := func(d profiles.Decision) []byte {
		d.Revision, d.Grounds, d.Timeout, d.TimeoutExplicit = "", "", 0, false
		d.ReadOnly, d.Repeatable, d.Context, d.Would, d.Observed = false, false, false, 0, nil // not part of the question
		t, err := json.Marshal(d)
		if err != nil {
			return nil
		}
		return t
	}
	x := text(a)
	return x != nil && bytes.Equal(x, text(b))
}

// EndStale ends the open questions of a run about a call that has changed, if the run is
// this process's under a lease.
func (b *Broker) EndStale(ctx context.Context, run string, call int, lease int64) error {
	entries, err := b.store.Requests(ctx, Filter{Run: run, Open: time.Now()})
	if err != nil {
		return fmt.Errorf("looking for stale requests: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		if slices.ContainsFunc(e.Items, func(i Item) bool { return i.number() == call }) {
			_, open := b.questions.endStale(ctx, e, call, lease)
			err = errors.Join(err, open)
		}
	}
	return err
}

// EndAllStale ends this process's open questions whose tool, policy or server has
// changed, as outdated tells.
func (b *Broker) EndAllStale(outdated func(Key) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stale := Verdict{Reason: Stale, Channel: "run", Text: "the server became another one"}
	about := func(r Request) bool {
		return slices.ContainsFunc(r.Items, func(i Item) bool { return outdated(i.Key) })
	}
	for _, o := range b.questions.open {
		if about(o.request) {
			b.questions.end(o, stale)
		}
	}
	b.questions.unask(stale, func(w *waitingCall) bool { return about(w.request) })
}
