package approval

import (
	"reflect"
	"slices"
	"time"
)

// An openQuestion is an unsettled request with the calls that wait for it.
type openQuestion struct {
	request Request
	turn    chan struct{} // closed when it is put to people; until then it waits its turn
	asked   bool          // turn is closed, and the store has the request
	seen    bool          // a person may have seen it: no call may join it
	settled chan struct{} // closed when verdict is set
	verdict Verdict
	waits   int // calls that wait for this request
}

// questions are the open questions of one process's runs, with what is remembered
// of earlier ones. All methods are called with the broker's lock held, so none may
// wait for a person.
type questions struct {
	o        *Options
	store    Store
	limiter  limiter
	grants   sessionGrants
	judging  judging
	watchers watchers

	open      map[string]*openQuestion      // by request ID
	queue     []*openQuestion               // waiting their turn, in order
	admitting bool                          // admit is running
	synced    <-chan struct{}               // closed when the store may have news
	resumed   map[string]map[string]Verdict // by run and request: verdicts that existed when the run was resumed
	// reportLater has outcomes of verdicts reported once the lock is released.
	reportLater func(judged)
}

func newQuestions(o *Options, reportLater func(judged)) questions {
	news := make(chan struct{})
	close(news) // nobody has looked yet
	return questions{
		o: o, store: o.Store, limiter: newLimiter(o.Limits), grants: sessionGrants{o}, judging: judging{o}, watchers: watchers{},
		open: map[string]*openQuestion{}, synced: news, resumed: map[string]map[string]Verdict{}, reportLater: reportLater,
	}
}

// add opens a question, or queues it when too many are open.
func (qs *questions) add(r Request) *openQuestion {
	r.ID = newID("q")
	q := &openQuestion{request: r, turn: make(chan struct{}), settled: make(chan struct{})}
	qs.open[r.ID] = q
	qs.limiter.asked[r.session()] = append(qs.limiter.asked[r.session()], time.Now())
	if qs.full(r) {
		qs.enqueue(q)
	} else {
		qs.put(q)
	}
	return q
}

// full reports whether so many requests are open that r must wait its turn.
func (qs *questions) full(r Request) bool {
	var open load
	for _, q := range qs.open {
		if !q.asked {
			continue
		}
		open.all++
		if q.request.Run == r.Run {
			open.run++
		}
		if q.request.session() == r.session() {
			open.session++
		}
	}
	return qs.limiter.full(r, open)
}

// enqueue lets a question wait its turn, after those that came before it. Calls
// of one run are ordered as they were made, in whatever order they arrive here.
func (qs *questions) enqueue(q *openQuestion) {
	at := slices.IndexFunc(qs.queue, func(w *openQuestion) bool {
		return w.request.Run == q.request.Run && w.request.Items[0].Call > q.request.Items[0].Call
	})
	if at < 0 {
		at = len(qs.queue)
	}
	qs.queue = slices.Insert(qs.queue, at, q)
}

// put puts a question to people.
func (qs *questions) put(q *openQuestion) {
	q.request.Separate = qs.o.Separate()
	q.request.Asked = time.Now()
	q.request.Grown = q.request.Asked
	q.request.Until = q.request.Asked.Add(q.request.Decision.Timeout)
	q.request.Summary = qs.summarise(q.request)
	if err := qs.store.Put(background(), StoredRequest{Request: q.request, Bridge: qs.o.Bridge}); err != nil {
		qs.finish(q, Verdict{Reason: AuditUnavailable, Channel: "limit", Text: err.Error()})
		return
	}
	q.asked = true
	close(q.turn)
	qs.o.Asked(q.request)
	qs.watchers.wake(q.request.Run)
}

// maxItems bounds the calls of one request to as many as a prompt can show.
const maxItems = 10

// joinable finds the question that a call belongs to.
func (qs *questions) joinable(r Request) *openQuestion {
	same := func(i Item) bool { return i.Key == r.Items[0].Key }
	for _, q := range qs.open {
		if q.request.Run != r.Run || q.seen || len(q.request.Items) >= maxItems || !reflect.DeepEqual(q.request.Decision, r.Decision) {
			continue
		}
		if q.request.sameLoop(r) || slices.ContainsFunc(q.request.Items, same) {
			return q
		}
	}
	return nil
}

// join finds the question that a call belongs to, and adds the call to it.
func (qs *questions) join(r Request) *openQuestion {
	q := qs.joinable(r)
	if q == nil {
		return nil
	}
	more := q.request
	more.Items = append(slices.Clone(q.request.Items), r.Items[0])
	slices.SortFunc(more.Items, func(x, y Item) int { return x.Call - y.Call })
	more.Summary, more.Grown = qs.summarise(more), time.Now()
	if q.asked {
		_, err := qs.store.Update(background(), q.request.ID, func(e *StoredRequest) error {
			if e.Verdict != nil {
				return &SettledError{*e.Verdict}
			}
			e.Items, e.Summary, e.Grown = more.Items, more.Summary, more.Grown
			return nil
		})
		if err != nil {
			return nil // it has been answered meanwhile
		}
	}
	q.request.Items, q.request.Summary, q.request.Grown = more.Items, more.Summary, more.Grown // Ask reads the others
	qs.watchers.wake(r.Run)
	return q
}

// summarise returns the line about a request that replaces ours; empty if none
// does.
func (qs *questions) summarise(r Request) string {
	if qs.o.Summarise == nil {
		return ""
	}
	return qs.o.Summarise(r)
}

// sync picks up what other processes have settled, and returns the open requests
// that have unjudged verdicts.
func (qs *questions) sync() (unjudged []string) {
	qs.synced = qs.store.Changed() // before looking: nothing is missed
	for id, q := range qs.open {
		if !q.asked {
			continue
		}
		all, err := qs.store.Requests(background(), Filter{ID: id})
		if err != nil {
			qs.synced = closedAfter(rereadAfter)
		}
		if err != nil || len(all) != 1 {
			continue
		}
		if all[0].Verdict != nil {
			qs.finish(q, *all[0].Verdict)
		}
		if all[0].unjudged() {
			unjudged = append(unjudged, id)
		}
	}
	return unjudged
}

// finish ends a question with a verdict that the store already has, and does
// everything that follows from one: it adds grants, remembers denied calls that
// are not asked again, and admits the next question.
func (qs *questions) finish(q *openQuestion, v Verdict) {
	if v.Time.IsZero() {
		v.Time = time.Now()
	}
	r := q.request
	qs.limiter.settled(r, v)
	if v.Approve && (v.Scope == SessionScope || v.Scope == AnyArgs) && qs.grants.add(r, v) != nil {
		v.Scope = Once // a grant that cannot be stored does not hold: the next call asks again
	}
	q.verdict = v
	delete(qs.open, r.ID)
	close(q.settled)
	qs.watchers.wake(r.Run)
	if v.Args != nil { // the call has them now; they may contain what nobody else should read
		_, err := qs.store.Update(background(), r.ID, func(e *StoredRequest) error { e.Verdict.Args = nil; return nil })
		if err != nil { // the verdict counts all the same
			qs.o.Logger.Error("dropping the edited arguments of a settled request", "request", r.ID, "err", err)
		}
	}
	qs.admit()
}

// end ends a question that can no longer be answered with v, or with a verdict
// that came first.
func (qs *questions) end(q *openQuestion, v Verdict) {
	if q.asked {
		e, outcomes, err := qs.judging.update(background(), q.request.ID, func(e *StoredRequest) error {
			if e.Verdict == nil {
				e.settle(v, time.Now())
			}
			return nil
		})
		if err == nil && e.Verdict != nil { // if the store fails, v stands: a denial
			v = *e.Verdict
		}
		qs.reportLater(judged{e, outcomes})
	}
	qs.finish(q, v)
}

// admit puts waiting questions to people, in order, as long as there is room, and
// refuses those whose run is in its cooldown.
func (qs *questions) admit() {
	if qs.admitting { // a question that could not be put has ended: the outer admit continues
		return
	}
	qs.admitting = true
	defer func() { qs.admitting = false }()
	for i := 0; i < len(qs.queue); {
		q := qs.queue[i]
		withdrawn := qs.open[q.request.ID] != q
		refusal, refused := qs.limiter.coolingDown(q.request)
		if !withdrawn && !refused && qs.full(q.request) {
			i++
			continue
		}
		qs.queue = slices.Delete(qs.queue, i, i+1)
		switch {
		case withdrawn:
			continue
		case refused:
			qs.finish(q, refusal)
		default:
			qs.put(q) // may end q and so call admit again
		}
		i = 0
	}
}

// forgetRun drops what is remembered of a run, apart from its requests.
func (qs *questions) forgetRun(run string) {
	qs.limiter.forgetRun(run)
	delete(qs.resumed, run)
}

// rereadAfter is how long to wait before reading a request again that could not be
// read: there may be no further change that would cause it to be read.
const rereadAfter = 250 * time.Millisecond

// closedAfter returns a channel that is closed after a duration.
func closedAfter(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// watchers are who is told when a run's requests change, by run.
type watchers map[string][]chan struct{}

// wake tells those who watch a run.
func (w watchers) wake(run string) {
	for _, c := range w[run] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
