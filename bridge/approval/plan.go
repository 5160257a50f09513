package approval

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"codemode-bridge/profiles"
)

// Where it is known beforehand which calls a script will make after the one that
// people are asked about, the request has them, too, as planned items: see
// Request.Plan. A yes to one of them is for the first call of the run that is exactly
// that one, once, within PlanFor; the calls must come in the order in which they were
// shown. What differs in anything is asked about as any call is, but for what policy
// asks of it: that may have become less. Where else the bytes of its arguments stand by
// then makes no difference: people saw them before that was read, so they are not from
// there.

// PlanFor is how long a yes to a planned call holds.
const PlanFor = 5 * time.Minute

// A plan are the planned items of a question.
type plan struct {
	question *openQuestion
	approved time.Time // when a person said yes; zero before that
	again    bool      // it was made before the run was suspended
}

// number is the call's number in its run; 0 for a planned call that was not made.
func (i Item) number() int {
	if i.Planned {
		return i.Taken
	}
	return i.Call
}

// itemOf returns the item that a call of the run is about.
func (r Request) itemOf(call int) (Item, bool) {
	for _, i := range r.Calls() {
		if i.number() == call {
			return i, true
		}
	}
	return Item{}, false
}

// answers returns a verdict on the request as that on its call of that number. One that was only planned forgets nothing: it
// came after what people saw.
func (r Request) answers(v Verdict, row int) Verdict {
	v = v.About(row)
	v.Forget = v.Forget && !slices.ContainsFunc(r.Items, func(i Item) bool { return i.Call == row && i.Planned })
	return v
}

// hasPlan reports whether the request has planned items.
func (r Request) hasPlan() bool {
	return slices.ContainsFunc(r.Items, func(i Item) bool { return i.Planned })
}

// addPlan adds to a question the calls that are planned besides those that wait.
func (qs *questions) addPlan(ctx context.Context, q *openQuestion, planned []Item) {
	r := &q.request
	if r.alone() || qs.plans[r.Run] != nil {
		return
	}
	waiting, all := r.Calls(), r.Calls()
	for _, i := range planned {
		one := Request{Run: r.Run, Decision: i.Decision, Items: []Item{i}}
		if at := slices.IndexFunc(waiting, func(w Item) bool { return w.Key == i.Key }); at >= 0 {
			waiting = slices.Delete(waiting, at, at+1) // it has been made
			continue
		}
		_, denied := qs.limiter.refused(r.Run, i.Key)
		_, refused := qs.limiter.coolingDown(one)
		if denied || refused || one.alone() || i.Decision.Fallback != r.Decision.Fallback || !r.hasRoom(all, i, MaxPlaces) || qs.grants.waives(ctx, one) && !i.mayCarry(all) {
			continue
		}
		i.Call, i.Planned = all[len(all)-1].Call+1, true
		all = append(all, i)
		r.Decision = strictest(r.Decision, i.Decision)
	}
	if r.Items = all; r.hasPlan() {
		qs.plans[r.Run] = &plan{question: q}
	}
}

// mayCarry reports whether a call that a grant covers may have to be asked about after
// all, since one of those before it may answer with what it has. People see it with them,
// so that they are not asked once more.
func (i Item) mayCarry(before []Item) bool {
	return i.Cover.leaves() && slices.ContainsFunc(before, func(b Item) bool {
		return b.Server != i.Server && (len(b.About.Effects) == 0 || slices.Contains(b.About.Effects, "read"))
	})
}

// replan takes up the plan of a question that was asked before its run was suspended.
func (qs *questions) replan(q *openQuestion) {
	if q.request.hasPlan() {
		qs.plans[q.request.Run] = &plan{question: q, again: true}
	}
}

// claim finds the planned item that a call is, and takes it: that is written down, so
// that no other call gets it, whatever becomes of this process. While nobody has
// answered, the call waits for the plan's question, and said is the zero verdict.
func (qs *questions) claim(r Request) (q *openQuestion, row int, said Verdict, ok bool) {
	p := qs.plans[r.Run]
	if p == nil || len(r.Items) != 1 {
		return nil, 0, Verdict{}, false
	}
	q, call := p.question, r.Calls()[0]
	if no, refused := qs.refusedPlan(r.Run, call.Key); refused {
		return nil, 0, no, true
	}
	open := qs.open[q.request.ID] == q
	if !open && (p.approved.IsZero() || time.Since(p.approved) >= PlanFor) {
		return nil, 0, Verdict{}, false
	}
	at := slices.IndexFunc(q.request.Items, func(i Item) bool {
		return i.Planned && i.Taken == 0 && p.names(i.Key, call.Key) && agreed(call.Decision, i.Decision) && i.About.leadsLike(call.About)
	})
	if at < 0 {
		return nil, 0, Verdict{}, false
	}
	row = q.request.Items[at].Call
	v := q.request.answers(q.verdict, row)
	inOrder := func(i Item) bool { return i.number() == 0 || (i.number() < call.Call) == (i.Call < row) }
	if !open && !v.Approve || slices.ContainsFunc(q.request.Items, func(i Item) bool { return !inOrder(i) }) {
		return nil, 0, Verdict{}, false
	}
	_, err := qs.store.Update(background(), q.request.ID, func(e *StoredRequest) error {
		if open && e.Verdict != nil {
			return &SettledError{*e.Verdict}
		}
		e.Items = slices.Clone(e.Items)
		e.Items[at].Taken = call.Call
		return nil
	})
	if late := (*SettledError)(nil); errors.As(err, &late) { // somebody has answered in this moment
		qs.finish(q, late.Verdict)
		return qs.claim(r)
	}
	if err != nil {
		return nil, 0, Verdict{}, false // people are asked about the call itself
	}
	q.request.Items = slices.Clone(q.request.Items)
	q.request.Items[at].Taken = call.Call
	if open {
		return q, row, Verdict{}, true
	}
	v.Scope = Once
	return nil, row, v, true
}

// names reports whether a planned item is about the call of a key. In a run that goes on
// from its journal, the policy is what it was and has another revision; the decisions say
// whether the same is asked.
func (p *plan) names(item, call Key) bool {
	if p.again {
		item.Revision, call.Revision = "", ""
	}
	return item == call
}

// agreed reports whether a yes to a planned call with a decision is one to the same call
// with the present one: it is the same or milder, as when the calls before it have made
// a host known.
func agreed(now, planned profiles.Decision) bool {
	return sameDecision(planned, now) || planned.Disposition == profiles.Ask && !now.Exceeds(planned) && maps.Equal(now.Hidden, planned.Hidden)
}

// Lapse forgets a run's plan, and returns the calls that people allowed and that were
// not made. If the run is suspended and resumed, what is stored of the plan holds again.
func (b *Broker) Lapse(run string) (unused []Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.questions.plans[run]
	delete(b.questions.plans, run)
	if p == nil || p.approved.IsZero() {
		return nil
	}
	for _, i := range p.question.request.Calls() {
		if i.Planned && i.Taken == 0 && p.question.verdict.About(i.Call).Approve {
			unused = append(unused, i)
		}
	}
	return unused
}
