package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// An openQuestion is an unsettled request with the calls that wait for it.
type openQuestion struct {
	request Request
	seen    bool          // a person may have seen it: no call may join it
	settled chan struct{} // closed when verdict is set
	verdict Verdict
	waits   int // calls that wait for this request
}

// A waitingCall is a call about which people are yet to be asked.
type waitingCall struct {
	request Request // about this call alone
	// ready says that whatever its script could do before it gets an answer is
	// done: the calls that wait with it are there.
	ready bool
	since time.Time
	// turn is closed once question is set, or row: the call's number in it.
	turn     chan struct{}
	question *openQuestion
	row      int
}

// belongs has the call wait for a question from now on, as its row of that number.
func (w *waitingCall) belongs(q *openQuestion, row int) {
	w.question, w.row = q, row
	q.waits++
	close(w.turn)
}

// questions are the open questions of one process's runs, with what is remembered
// of earlier ones. All methods are called with the broker's lock held, so none may
// wait for a person.
type questions struct {
	o        *Options
	store    Store
	limiter  limiter
	grants   grantBook
	judging  judging
	watchers watchers
	plans    map[string]*plan // by run

	open      map[string]*openQuestion      // put to people, by request ID
	queue     []*waitingCall                // waiting their turn, in order
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
		o: o, store: o.Store, limiter: newLimiter(o.Limits), grants: grantBook{o, map[string]int{}, map[string]bool{}}, judging: judging{o}, watchers: watchers{}, plans: map[string]*plan{},
		open: map[string]*openQuestion{}, synced: news, resumed: map[string]map[string]Verdict{}, reportLater: reportLater,
	}
}

// full reports whether so many requests are open that r must wait its turn.
func (qs *questions) full(r Request) bool {
	var open load
	for _, q := range qs.open {
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

// crowded refuses a request whose requester has as many open questions as they may have,
// at all bridges that share the store.
func (qs *questions) crowded(ctx context.Context, r Request) (Verdict, bool, error) {
	if r.MostOpen == 0 || qs.joinable(r) != nil {
		return Verdict{}, false, nil
	}
	all, err := qs.store.Requests(ctx, Filter{Open: time.Now()})
	if err != nil {
		err = fmt.Errorf("counting the questions of %s: %w", r.Requester, err)
		return Verdict{Reason: AuditUnavailable, Channel: "limit", Text: err.Error()}, true, err
	}
	open := 0
	for _, e := range all { // those of runs that are paused belong to no bridge
		if e.Bridge != "" && e.Bridge != qs.o.Bridge && !qs.o.Gone(e.Bridge) && e.Requester == r.Requester && e.ConfigurationID() == r.ConfigurationID() {
			open++
		}
	}
	for _, q := range qs.open {
		if q.request.Requester == r.Requester {
			open++
		}
	}
	for _, w := range qs.queue {
		if w.request.Requester == r.Requester {
			open++
		}
	}
	if open < r.MostOpen {
		return Verdict{}, false, nil
	}
	return Verdict{Reason: RateLimited, Channel: "limit", Time: time.Now(),
		Text: fmt.Sprintf("as many questions are open as access allows (limits.questions: %d); it can be made again once one of them is answered", r.MostOpen)}, true, nil
}

// wait has a call wait for a question: for one that nobody has seen yet and that it
// may join, or for its turn. Calls of one run are ordered as they were made, in
// whatever order they arrive here.
func (qs *questions) wait(r Request) *waitingCall {
	w := &waitingCall{request: r, since: time.Now(), turn: make(chan struct{})}
	if q := qs.earlier(r); q != nil {
		item, _ := q.request.itemOf(r.Items[0].Call)
		w.belongs(q, item.Call)
		return w
	}
	if q, row, said, ok := qs.claim(r); ok {
		if q == nil { // it has just been answered
			q = &openQuestion{request: r, settled: make(chan struct{}), verdict: said}
			close(q.settled)
		}
		w.belongs(q, row)
		return w
	}
	if q := qs.join(r); q != nil {
		w.belongs(q, r.Items[0].Call)
		return w
	}
	at := slices.IndexFunc(qs.queue, func(other *waitingCall) bool {
		return other.request.Run == r.Run && other.request.Items[0].Call > r.Items[0].Call
	})
	if at < 0 {
		at = len(qs.queue)
	}
	qs.queue = slices.Insert(qs.queue, at, w)
	return w
}

// gathered lets people be asked about w and the calls of its run that wait with it,
// if the script can do nothing more until so many of its calls have an answer, all of
// which wait for people; 0 stands for a script that still moves, less for one of which
// that is not known. Otherwise it returns how long to wait for further calls at most.
func (qs *questions) gathered(w *waitingCall, calls int) time.Duration {
	if w.ready || w.question != nil {
		return 0
	}
	run, now := w.request.Run, time.Now()
	first, last := w.since, w.since
	for _, other := range qs.queue {
		if other.request.Run == run && !other.ready {
			first = earliest(first, other.since)
			if other.since.After(last) {
				last = other.since
			}
		}
	}
	left := min(last.Add(qs.o.Gather).Sub(now), first.Add(gatherMost*qs.o.Gather).Sub(now))
	if calls >= 0 && left > 0 && (calls == 0 || qs.waiting(run) < calls) {
		return left
	}
	for _, other := range qs.queue {
		other.ready = other.ready || other.request.Run == run
	}
	qs.admit()
	return 0
}

// How long people are not asked because further calls of the same script may come:
// see [Options.Gather].
const (
	gather     = 500 * time.Millisecond
	gatherMost = 6
)

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// waiting counts the calls of a run that wait for people, asked or not.
func (qs *questions) waiting(run string) int {
	n := 0
	for _, q := range qs.open {
		if q.request.Run == run {
			n += q.waits
		}
	}
	for _, w := range qs.queue {
		if w.request.Run == run {
			n++
		}
	}
	return n
}

// form takes a call from the queue, with those that wait together with it, and makes
// their question.
func (qs *questions) form(first *waitingCall) *openQuestion {
	q := &openQuestion{request: first.request, settled: make(chan struct{})}
	q.request.ID = newID("q")
	qs.queue = slices.DeleteFunc(qs.queue, func(w *waitingCall) bool {
		if w != first {
			_, refused := qs.limiter.coolingDown(w.request)
			if w.request.Run != first.request.Run || refused || !q.request.takes(w.request, qs.limiter.places(w.request.session())) {
				return false
			}
			q.request = q.request.with(w.request)
		}
		w.belongs(q, w.request.Items[0].Call)
		return true
	})
	planned := first.request.Plan
	q.request.Plan = nil
	qs.addPlan(background(), q, planned)
	return q
}

// put puts a question to people.
func (qs *questions) put(q *openQuestion) {
	q.request.Separate = qs.o.Separate()
	q.request.Asked = time.Now()
	q.request.Grown = q.request.Asked
	q.request.Until = q.request.Asked.Add(q.request.Decision.Timeout)
	qs.limiter.number(&q.request)
	q.request.Summary = qs.summarise(q.request)
	if err := qs.store.Put(background(), StoredRequest{Request: q.request, Bridge: qs.o.Bridge, Lease: q.request.Lease}); err != nil {
		qs.finish(q, Verdict{Reason: AuditUnavailable, Channel: "limit", Text: err.Error()})
		return
	}
	qs.open[q.request.ID] = q
	qs.limiter.put(q.request)
	qs.o.Asked(q.request)
	qs.watchers.wake(q.request.Run)
}

// joinable finds the question that a call may join: one of its run that nobody has
// seen.
func (qs *questions) joinable(r Request) *openQuestion {
	for _, q := range qs.open {
		if q.request.Run == r.Run && !q.seen && q.request.takes(r, qs.limiter.places(r.session())) {
			return q
		}
	}
	return nil
}

// join finds the question that a call may join, and adds the call to it.
func (qs *questions) join(r Request) *openQuestion {
	q := qs.joinable(r)
	if q == nil {
		return nil
	}
	more := q.request.with(r)
	more.Grown = time.Now()
	more.Until = earliest(more.Until, more.Grown.Add(r.Decision.Timeout))
	more.Summary = qs.summarise(more)
	_, err := qs.store.Update(background(), q.request.ID, func(e *StoredRequest) error {
		if e.Verdict != nil {
			return &SettledError{*e.Verdict}
		}
		e.Request = more
		return e.under(more.Lease)
	})
	if err != nil {
		return nil // it has been answered meanwhile, or the run is another bridge's
	}
	q.request = more
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
		all, err := qs.store.Requests(background(), Filter{ID: id})
		if err != nil {
			qs.synced = closedAfter(rereadAfter)
		}
		if err != nil || len(all) != 1 || all[0].under(q.request.Lease) != nil {
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
	qs.limiter.goesOn(r, v)
	wider := v.Approve && (v.Scope == SessionScope || v.Scope == RunScope)
	if wider && qs.grants.add(r, v) != nil {
		v.Scope, v.Count, wider = Once, 0, false // a grant that cannot be stored does not hold: the next call asks again
	}
	q.verdict = v
	if p := qs.plans[r.Run]; p != nil && p.question == q && v.Approve {
		p.approved = v.Time
	}
	delete(qs.open, r.ID)
	close(q.settled)
	qs.watchers.wake(r.Run)
	if v.Args != nil { // the call has them now; they may contain what nobody else should read
		_, err := qs.store.Update(background(), r.ID, func(e *StoredRequest) error { e.Verdict.Args = nil; return nil })
		if err != nil { // the verdict counts all the same
			qs.o.Logger.Error("dropping the edited arguments of a settled request", "request", r.ID, "err", err)
		}
	}
	if wider {
		qs.cover()
	}
	qs.admit()
}

// cover ends the open questions that a new grant answers.
func (qs *questions) cover() {
	for _, q := range slices.SortedFunc(maps.Values(qs.open), func(x, y *openQuestion) int { return x.request.Items[0].Call - y.request.Items[0].Call }) {
		if qs.open[q.request.ID] != q || q.request.hasPlan() { // whose calls may not come
			continue
		}
		v, ok, err := qs.grants.use(background(), q.request)
		if err != nil || !ok {
			continue
		}
		unused := len(q.request.Items) - q.waits  // whose calls do not wait any more
		if qs.end(q, v); q.verdict.Use != v.Use { // somebody else answered first
			unused = len(q.request.Items)
		}
		qs.grants.release(v.Use.Grant, unused)
	}
}

// end ends a question with v, or with a verdict that came first. A yes that cannot be
// written down is none. What another bridge has taken up ends here and not there.
func (qs *questions) end(q *openQuestion, v Verdict) {
	e, outcomes, err := qs.judging.update(background(), q.request.ID, func(e *StoredRequest) error {
		if e.Verdict == nil {
			e.settle(v, time.Now())
		}
		return e.under(q.request.Lease)
	})
	switch {
	case err == nil && e.Verdict != nil:
		v = *e.Verdict
	case v.Approve:
		v = Verdict{Reason: AuditUnavailable, Channel: "limit", Text: fmt.Sprint(err)}
	}
	qs.reportLater(judged{e, outcomes})
	qs.finish(q, v)
}

// unask takes calls from the queue with an answer that nobody was asked for.
func (qs *questions) unask(v Verdict, which func(*waitingCall) bool) {
	var out []*waitingCall
	qs.queue = slices.DeleteFunc(qs.queue, func(w *waitingCall) bool {
		if which(w) {
			out = append(out, w)
			return true
		}
		return false
	})
	for _, w := range out {
		q := &openQuestion{request: w.request, settled: make(chan struct{})}
		w.belongs(q, w.request.Items[0].Call)
		qs.finish(q, v)
	}
}

// admit asks people about the calls that wait, in order, as long as there is room. It
// answers those about which nobody needs to be asked any more.
func (qs *questions) admit() {
	if qs.admitting { // a question that could not be put has ended: the outer admit continues
		return
	}
	qs.admitting = true
	defer func() { qs.admitting = false }()
	for i := 0; i < len(qs.queue); {
		w := qs.queue[i]
		v, known := qs.limiter.denial(w.request)
		if !known {
			v, known = qs.limiter.coolingDown(w.request)
		}
		if !known && w.ready {
			var err error
			if v, known, err = qs.grants.use(background(), w.request); err != nil {
				known = true // v refuses the call
			}
		}
		switch {
		case known:
			qs.unask(v, func(other *waitingCall) bool { return other == w })
		case !w.ready || qs.full(w.request):
			i++
			continue
		default:
			qs.put(qs.form(w))
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
