package approval

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Limits bound how much people are asked. Zero fields mean the defaults.
type Limits struct {
	PerRun     int           // open requests of a run; 5. More wait their turn
	PerSession int           // open requests of a session; 20
	PerBridge  int           // open requests in all; 200
	Budget     int           // new questions of a session in BudgetTime; 20. After that low and medium risk is refused
	BudgetTime time.Duration // 10 minutes
	Flood      int           // refused questions of one run, after which it is stopped; 50
	// BackOff is how long a session's next question waits after a person's
	// no; 1 s. It doubles with every no, up to MaxBackOff, and a yes ends it.
	BackOff    time.Duration
	MaxBackOff time.Duration // 1 minute
}

func (l Limits) orDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.PerRun, 5}, {&l.PerSession, 20}, {&l.PerBridge, 200}, {&l.Budget, 20}, {&l.Flood, 50}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.BudgetTime, 10 * time.Minute}, {&l.BackOff, time.Second}, {&l.MaxBackOff, time.Minute}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return l
}

// Errors of Settle. None of them changes anything.
var (
	ErrUnknown = errors.New("there is no such request, or it was settled long before")
	ErrDigest  = errors.New("the verdict is about other calls than the request")
)

// A SettledError is what Settle returns when another verdict came first, with
// that verdict.
type SettledError struct{ Verdict Verdict }

func (e *SettledError) Error() string {
	answer := "no"
	if e.Verdict.Approve {
		answer = "yes"
	}
	by := e.Verdict.By
	if by == "" {
		by = "nobody (" + e.Verdict.Channel + ")"
	}
	return fmt.Sprintf("it was settled before: %s said %s at %s", by, answer, e.Verdict.Time.Format("15:04:05"))
}

// ErrFlood is what Ask returns when a run has asked in vain so often that it
// must be stopped.
var ErrFlood = errors.New("the run was stopped: it asked for too many calls that were refused")

// A Broker holds the open requests of a bridge. Its methods may be called by
// any number of goroutines. It keeps none of its own running.
type Broker struct {
	limits Limits

	mu       sync.Mutex
	open     map[string]*open // by request ID
	waiting  []*open          // for their turn, in order
	grants   []Grant
	asked    map[string][]time.Time     // by session: when questions came up
	refused  map[string]map[Key]Verdict // by run: calls that were refused
	vain     map[string]int             // by run: refused questions
	spared   map[string]pause           // by session: whose person said no lately
	over     []outcome                  // of the last requests, the oldest first
	watchers map[string][]chan struct{}
	last     int
}

// A pause is what a person's no earns them: the session's next question waits.
type pause struct {
	until time.Time
	next  time.Duration // how long the one after the next no is
}

// An outcome is how a request ended, kept a while for whoever comes too late.
type outcome struct {
	id      string
	about   canon.Digest
	verdict Verdict
}

// keepOutcomes bounds how many are kept.
const keepOutcomes = 1000

// An open is a request that nobody has settled, and those who wait for it.
type open struct {
	request Request
	turn    chan struct{} // closed when it is put to people: until then it waits its turn
	asked   bool          // turn is closed
	seen    bool          // a person may have seen it: nothing is added to it any more
	settled chan struct{} // closed when verdict is set
	verdict Verdict
	waits   int // calls that wait for this request
}

// New makes a broker.
func New(l Limits) *Broker {
	return &Broker{
		limits: l.orDefaults(), open: map[string]*open{}, asked: map[string][]time.Time{},
		refused: map[string]map[Key]Verdict{}, vain: map[string]int{}, spared: map[string]pause{}, watchers: map[string][]chan struct{}{},
	}
}

// Ask puts a call to people and waits for the verdict. The request has one
// item. Ask returns at once when a grant covers the call, when the run was
// refused the same call before, or when the session has used up its questions.
// Otherwise it waits: for its turn, then at most Decision.Timeout for an answer.
// When ctx ends first, the call is withdrawn and the error is ctx's cause.
//
// A call that is the same as one that nobody has seen yet, or stands at the
// same place in the script, joins that request if both are asked for the same
// reasons; it has the time that is left of it. A yes covers what was shown, so
// nothing joins a request that somebody may have seen.
func (b *Broker) Ask(ctx context.Context, r Request) (Verdict, error) {
	if ctx.Err() != nil {
		return withdrawn(ctx)
	}
	b.mu.Lock()
	if v, ok := b.grantLocked(r); ok {
		b.mu.Unlock()
		return v, nil
	}
	if v, err, ok := b.refuseLocked(r); ok {
		b.mu.Unlock()
		return v, err
	}
	o := b.joinLocked(r)
	if o == nil {
		o = b.addLocked(r)
	}
	o.waits++
	b.mu.Unlock()

	var timeout <-chan time.Time
	for turn := o.turn; ; {
		select {
		case <-turn: // from now on the time runs
			t := time.NewTimer(time.Until(o.request.Until))
			defer t.Stop()
			turn, timeout = nil, t.C
		case <-timeout:
			b.expire(o)
		case <-o.settled:
			return o.verdict, b.flooded(r.Run, o.verdict)
		case <-ctx.Done():
			b.withdraw(o)
			return withdrawn(ctx)
		}
	}
}

// withdrawn is what Ask returns when ctx ended first.
func withdrawn(ctx context.Context) (Verdict, error) {
	return Verdict{Reason: Expired, Channel: "run"}, context.Cause(ctx)
}

// addLocked opens a request, or queues it when too many are open.
func (b *Broker) addLocked(r Request) *open {
	b.last++
	r.ID = fmt.Sprintf("q%d", b.last)
	o := &open{request: r, turn: make(chan struct{}), settled: make(chan struct{})}
	b.open[r.ID] = o
	b.asked[r.session()] = append(b.asked[r.session()], time.Now())
	if b.roomLocked(r) {
		b.openLocked(o)
	} else {
		b.waiting = append(b.waiting, o)
	}
	return o
}

// openLocked puts a request to people.
func (b *Broker) openLocked(o *open) {
	o.asked = true
	o.request.Asked = time.Now()
	o.request.Until = o.request.Asked.Add(o.request.Decision.Timeout)
	close(o.turn)
	b.wakeLocked(o.request.Run)
}

// joinLocked finds the open request that a call belongs to, and adds it.
func (b *Broker) joinLocked(r Request) *open {
	item := r.Items[0]
	for _, o := range b.open {
		same := func(i Item) bool { return i.Key == item.Key }
		if o.request.Run != r.Run || o.seen || len(o.request.Items) >= maxItems || !reflect.DeepEqual(o.request.Decision, r.Decision) {
			continue
		}
		if o.request.sameLoop(r) || slices.ContainsFunc(o.request.Items, same) {
			o.request.Items = append(o.request.Items, item)
			slices.SortFunc(o.request.Items, func(x, y Item) int { return x.Call - y.Call })
			b.wakeLocked(r.Run)
			return o
		}
	}
	return nil
}

// maxItems bounds the calls of one request: as many as a prompt shows.
const maxItems = 10

// session is the session that the request comes from.
func (r Request) session() string { return r.Items[0].Key.Session }

// sameLoop reports whether two requests are about calls of the same tool,
// asked for the same reasons, at the same place in the script.
func (r Request) sameLoop(s Request) bool {
	x, y := r.Items[0], s.Items[0]
	a, b := x.Key, y.Key
	a.Args, b.Args = canon.Digest{}, canon.Digest{}
	return x.Position == y.Position && x.Position.Line > 0 && a == b
}

// Take returns a run's requests that have been put to people, in the order of
// their calls, for showing them: from now on nothing is added to them.
func (b *Broker) Take(run string) []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Request
	for _, o := range b.open {
		if o.asked && o.request.Run == run {
			o.seen = true
			r := o.request
			r.Items = slices.Clone(r.Items)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y Request) int { return x.Items[0].Call - y.Items[0].Call })
	return all
}

// Waiting reports how many calls of a run wait for a person, whether put to
// people or not.
func (b *Broker) Waiting(run string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, o := range b.open {
		if o.request.Run == run {
			n += o.waits
		}
	}
	return n
}

// expire answers a request no because nobody did in time.
func (b *Broker) expire(o *open) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[o.request.ID] == o {
		b.expireLocked(o)
	}
}

func (b *Broker) expireLocked(o *open) {
	b.settleLocked(o, Verdict{Reason: Timeout, Channel: "timeout"})
}

// roomLocked reports whether one more request may be open.
func (b *Broker) roomLocked(r Request) bool {
	if time.Now().Before(b.spared[r.session()].until) {
		return false
	}
	run, session, all := 0, 0, 0
	for _, o := range b.open {
		if !o.asked {
			continue
		}
		all++
		if o.request.Run == r.Run {
			run++
		}
		if o.request.session() == r.session() {
			session++
		}
	}
	return run < b.limits.PerRun && session < b.limits.PerSession && all < b.limits.PerBridge
}

// refuseLocked answers without asking: a run is not asked the same twice
// after a no, a session has a budget, and a flood stops the run.
func (b *Broker) refuseLocked(r Request) (Verdict, error, bool) {
	v, ok := b.refused[r.Run][r.Items[0].Key]
	if !ok && r.Decision.Risk <= profiles.Medium && b.overBudgetLocked(r.session()) {
		v = Verdict{Reason: RateLimited, Channel: "limit", Time: time.Now(),
			Text: fmt.Sprintf("%d questions in %v are enough", b.limits.Budget, b.limits.BudgetTime)}
		ok = true
	}
	if !ok {
		return Verdict{}, nil, false
	}
	b.vain[r.Run]++
	return v, b.floodedLocked(r.Run), true
}

// flooded returns ErrFlood if a verdict is one refusal too many for its run.
func (b *Broker) flooded(run string, v Verdict) error {
	if v.Approve {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.floodedLocked(run)
}

func (b *Broker) floodedLocked(run string) error {
	if b.vain[run] > b.limits.Flood {
		return ErrFlood
	}
	return nil
}

// overBudgetLocked reports whether a session has used up its questions.
func (b *Broker) overBudgetLocked(session string) bool {
	since := time.Now().Add(-b.limits.BudgetTime)
	recent := slices.DeleteFunc(b.asked[session], func(t time.Time) bool { return !t.After(since) })
	if len(recent) == 0 {
		delete(b.asked, session)
		return false
	}
	b.asked[session] = recent
	return len(recent) >= b.limits.Budget
}

// Settle answers a request. The digest is of the request that the person saw:
// a verdict about anything else settles nothing. Of several verdicts the first
// wins.
func (b *Broker) Settle(id string, about canon.Digest, v Verdict) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.open[id]
	if !ok {
		return b.lateLocked(id, about)
	}
	if !o.asked {
		return ErrUnknown
	}
	if !time.Now().Before(o.request.Until) {
		b.expireLocked(o)
		return b.lateLocked(id, about)
	}
	if o.request.Digest() != about {
		return ErrDigest
	}
	if err := v.Valid(o.request); err != nil {
		return err
	}
	b.settleLocked(o, v)
	return nil
}

// lateLocked says who was first, to those who know what it was about.
func (b *Broker) lateLocked(id string, about canon.Digest) error {
	for _, o := range b.over {
		if o.id == id && o.about == about {
			return &SettledError{o.verdict}
		}
	}
	return ErrUnknown
}

func (b *Broker) settleLocked(o *open, v Verdict) {
	if v.Time.IsZero() {
		v.Time = time.Now()
	}
	o.verdict = v
	r := o.request
	if b.over = append(b.over, outcome{r.ID, r.Digest(), v}); len(b.over) > keepOutcomes {
		b.over = slices.Delete(b.over, 0, len(b.over)-keepOutcomes)
	}
	b.spareLocked(r.session(), v)
	if !v.Approve {
		b.vain[r.Run]++
	}
	switch {
	case v.Approve && (v.Scope == Same || v.Scope == AnyArgs):
		b.addGrantsLocked(r, v)
	case !v.Approve && v.Reason != NoApprover: // nobody said no: the next call may be asked again
		if b.refused[r.Run] == nil {
			b.refused[r.Run] = map[Key]Verdict{}
		}
		for _, i := range r.Items {
			b.refused[r.Run][i.Key] = v
		}
	}
	b.closeLocked(o)
}

// closeLocked ends a request and lets the next have its turn.
func (b *Broker) closeLocked(o *open) {
	delete(b.open, o.request.ID)
	close(o.settled)
	b.admitLocked()
	b.wakeLocked(o.request.Run)
}

// spareLocked lets a person who said no wait for the session's next question:
// the longer, the more often they say it.
func (b *Broker) spareLocked(session string, v Verdict) {
	switch p := b.spared[session]; {
	case v.Approve:
		delete(b.spared, session)
	case v.Reason == ElicitationDeclined:
		p.next = min(max(p.next, b.limits.BackOff), b.limits.MaxBackOff)
		b.spared[session] = pause{until: time.Now().Add(p.next), next: 2 * p.next}
		time.AfterFunc(p.next, b.admit)
	}
}

// admit opens what waits and may now be asked.
func (b *Broker) admit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admitLocked()
}

// admitLocked opens what waits, in order, as far as there is room.
func (b *Broker) admitLocked() {
	b.waiting = slices.DeleteFunc(b.waiting, func(o *open) bool {
		if _, still := b.open[o.request.ID]; !still {
			return true
		}
		if !b.roomLocked(o.request) {
			return false
		}
		b.openLocked(o)
		return true
	})
}

// withdraw takes back one call's interest in a request; the last one to leave
// closes it.
func (b *Broker) withdraw(o *open) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.waits--; o.waits == 0 && b.open[o.request.ID] == o {
		b.closeLocked(o)
	}
}

// Watch returns a channel that is told when a run's requests change. The
// second result ends it.
func (b *Broker) Watch(run string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[run] = append(b.watchers[run], c)
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watchers[run] = slices.DeleteFunc(b.watchers[run], func(w chan struct{}) bool { return w == c })
		if len(b.watchers[run]) == 0 {
			delete(b.watchers, run)
		}
	}
}

func (b *Broker) wakeLocked(run string) {
	for _, c := range b.watchers[run] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// EndRun forgets a run. What it still asks is withdrawn; no call of it may be
// asked about any more.
func (b *Broker) EndRun(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.open {
		if o.request.Run == run {
			o.verdict = Verdict{Reason: Expired, Channel: "run", Time: time.Now()}
			b.closeLocked(o)
		}
	}
	delete(b.refused, run)
	delete(b.vain, run)
}

// EndSession forgets a session, its grants included. Its runs have ended.
func (b *Broker) EndSession(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.asked, session)
	delete(b.spared, session)
	b.grants = slices.DeleteFunc(b.grants, func(g Grant) bool { return g.Key.Session == session })
}
