package approval

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Options are what a broker works with. The zero value is good for one
// process whose questions end with it.
type Options struct {
	Limits Limits
	Store  Store  // nil means a Memory of its own
	Bridge string // names this process in the entries of a shared store
	// Configuration is the id of the configuration whose calls this process asks
	// about, and whose approvers Approvers are.
	Configuration string
	// Gone reports whether the process of a name has ended; nil means that none
	// ever has.
	Gone func(bridge string) bool
	// Separate reports whether a requester's own yes counts for nothing; nil
	// means that it counts.
	Separate func() bool
	// Approvers are those of this moment: a verdict counts if its author is one
	// of them and may give it, and of several yeses each as long as that is so.
	// Where it is nil, or there are none to go by, verdicts stand as they were
	// signed in this process, and others bring none that counts.
	Approvers func() *Approvers
	// Summarise, if not nil, writes the one line about a request that lists
	// and dialogs show in place of [Summary]. It sees what people may see.
	Summarise func(Request) string
	// Asked, if not nil, hears of each request when it is put to people. It
	// must neither block nor call the broker.
	Asked func(Request)
}

// A Broker holds what the runs of one process ask, and waits for the
// verdicts. What it puts to people stands in its store, where any channel of
// any process answers it. Its methods may be called by any number of
// goroutines. It keeps none of its own running.
type Broker struct {
	o      Options
	limits Limits
	store  Store

	// mu is held while the store puts, joins and ends what this process asks:
	// what is open here and what the store has must change together, in one
	// order, or a call could join a question that others see without it. It
	// costs the other calls that ask, in this process alone, a write each; a
	// person takes a thousand times as long. Verdicts, which come from outside,
	// are written without it, and are told of without it.
	mu        reporter
	open      map[string]*open              // by request ID
	waiting   []*open                       // for their turn, in order
	admitting bool                          // admitLocked is at work
	synced    <-chan struct{}               // closed when the store may have news
	asked     map[string][]time.Time        // by session: when questions came up
	denied    map[string]map[Key]Verdict    // by run: calls that were refused
	refusals  map[string]int                // by run: refused questions
	resumed   map[string]map[string]Verdict // by run and request: verdicts that were there when the run was taken up
	cooldowns map[string]cooldown           // by run
	watchers  map[string][]chan struct{}
}

// An open is a request that is not settled, and those who wait for it.
type open struct {
	request Request
	turn    chan struct{} // closed when it is put to people: until then it waits its turn
	asked   bool          // turn is closed, and the store has the request
	seen    bool          // a person may have seen it: nothing is added to it any more
	settled chan struct{} // closed when verdict is set
	verdict Verdict
	waits   int // calls that wait for this request
}

// New makes a broker.
func New(o Options) *Broker {
	if o.Store == nil {
		o.Store = new(Memory)
	}
	if o.Separate == nil {
		o.Separate = func() bool { return false }
	}
	if o.Approvers == nil {
		o.Approvers = func() *Approvers { return nil }
	}
	if o.Asked == nil {
		o.Asked = func(Request) {}
	}
	if o.Gone == nil {
		o.Gone = func(string) bool { return false }
	}
	news := make(chan struct{})
	close(news) // nobody has looked yet
	return &Broker{
		o: o, synced: news, limits: o.Limits.orDefaults(), store: o.Store, open: map[string]*open{}, asked: map[string][]time.Time{},
		denied: map[string]map[Key]Verdict{}, refusals: map[string]int{}, resumed: map[string]map[string]Verdict{}, cooldowns: map[string]cooldown{}, watchers: map[string][]chan struct{}{},
		mu: reporter{onJudged: func(Entry, Verdict, error) {}},
	}
}

// Known answers a call that nobody is to be asked about: a grant covers it,
// its run was refused the same call before, or its session has used up its
// questions. The second result reports whether it did; errors are those of Ask.
func (b *Broker) Known(ctx context.Context, r Request) (Verdict, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.precheckLocked(ctx, r)
}

func (b *Broker) precheckLocked(ctx context.Context, r Request) (Verdict, bool, error) {
	if r.Again {
		switch o, v, err := b.resumeLocked(ctx, r); {
		case err != nil:
			return Verdict{Reason: AuditUnavailable, Channel: "limit", Text: err.Error()}, true, err
		case v != nil:
			return *v, true, nil
		case o != nil:
			return Verdict{}, false, nil
		}
	}
	if v, ok, err := b.grantLocked(ctx, r); ok || err != nil {
		return v, true, err
	}
	v, err, ok := b.refuseLocked(r)
	return v, ok, err
}

// Ask puts a call to people and waits for the verdict. The request has one
// item. Where the answer is known by then (see [Broker.Known]), Ask gives it
// at once. Otherwise it waits: for its turn, then at most Decision.Timeout for an answer.
// When ctx ends first, the call is withdrawn and the error is ctx's cause.
// Any other error but [ErrFlood] says that the question could not be kept;
// then the verdict is a no.
//
// A call that is the same as one that nobody has seen yet, or stands at the
// same place in the script, joins that request if both are asked for the same
// reasons; it has the time that is left of it. A yes covers what was shown, so
// nothing joins a request that somebody may have seen.
func (b *Broker) Ask(ctx context.Context, r Request) (Verdict, error) {
	if ctx.Err() != nil {
		return withdrawn(ctx)
	}
	call := r.Items[0].Call
	o, v, err := b.enter(ctx, r)
	if o == nil {
		return v, err
	}
	var timeout <-chan time.Time
	for turn := o.turn; ; {
		select {
		case <-turn: // from now on the time runs
			turn, timeout = nil, time.After(b.left(o))
		case <-timeout:
			if left := b.left(o); left > 0 { // it was extended
				timeout = time.After(left)
				continue
			}
			b.expire(o)
		case <-b.news(o):
			b.sync()
		case <-o.settled:
			v := o.verdict.About(call)
			return v, b.flooded(r.Run, v)
		case <-ctx.Done():
			b.withdraw(o, context.Cause(ctx))
			return withdrawn(ctx)
		}
	}
}

// enter returns the open request that a call waits for from now on, or the
// verdict that is there already.
func (b *Broker) enter(ctx context.Context, r Request) (*open, Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok, err := b.precheckLocked(ctx, r)
	if ok {
		return nil, v, err
	}
	o := b.earlierLocked(r)
	if o == nil {
		o = b.joinLocked(r)
	}
	if o == nil {
		o = b.addLocked(r)
	}
	o.waits++
	return o, Verdict{}, nil
}

// left is how long people still have for a request.
func (b *Broker) left(o *open) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(o.request.Until)
}

// withdrawn is what Ask returns when ctx ended first.
func withdrawn(ctx context.Context) (Verdict, error) {
	return unanswered(context.Cause(ctx)), context.Cause(ctx)
}

// news is closed when somebody else may have settled o; nil as long as nobody
// can.
func (b *Broker) news(o *open) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !o.asked {
		return nil
	}
	return b.synced
}

// sync takes over what other processes have settled, and judges what they have
// brought.
func (b *Broker) sync() {
	for _, id := range b.look() {
		_, _ = b.judge(context.Background(), id) // what the store fails to keep is judged after its next change
	}
}

// look takes over what others have settled, unless another call did, and
// returns the open requests with verdicts that nobody has judged.
func (b *Broker) look() (unjudged []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.synced:
		return b.syncLocked()
	default:
		return nil
	}
}

func (b *Broker) syncLocked() (unjudged []string) {
	b.synced = b.store.Requested() // before looking: nothing is missed
	for id, o := range b.open {
		if !o.asked {
			continue
		}
		all, err := b.store.Entries(context.Background(), Filter{ID: id})
		if err != nil {
			b.synced = closedAfter(rereadAfter)
		}
		if err != nil || len(all) != 1 {
			continue
		}
		if all[0].Verdict != nil {
			b.finishLocked(o, *all[0].Verdict)
		}
		if all[0].unjudged() {
			unjudged = append(unjudged, id)
		}
	}
	return unjudged
}

// addLocked opens a request, or queues it when too many are open.
func (b *Broker) addLocked(r Request) *open {
	r.ID = newID()
	o := &open{request: r, turn: make(chan struct{}), settled: make(chan struct{})}
	b.open[r.ID] = o
	b.asked[r.session()] = append(b.asked[r.session()], time.Now())
	if b.fullLocked(r) {
		b.queueLocked(o)
	} else {
		b.openLocked(o)
	}
	return o
}

// queueLocked lets a request wait for its turn: after those that came before,
// but calls of one run in the order in which they were made, however they
// came here.
func (b *Broker) queueLocked(o *open) {
	at := slices.IndexFunc(b.waiting, func(w *open) bool {
		return w.request.Run == o.request.Run && w.request.Items[0].Call > o.request.Items[0].Call
	})
	if at < 0 {
		at = len(b.waiting)
	}
	b.waiting = slices.Insert(b.waiting, at, o)
}

// newID names a request: short, since people type it, and not to be guessed.
func newID() string { return "q" + strings.ToLower(rand.Text()[:10]) }

// openLocked puts a request to people.
func (b *Broker) openLocked(o *open) {
	o.request.Separate = b.o.Separate()
	o.request.Asked = time.Now()
	o.request.Grown = o.request.Asked
	o.request.Until = o.request.Asked.Add(o.request.Decision.Timeout)
	o.request.Summary = b.summarise(o.request)
	if err := b.store.Put(context.Background(), Entry{Request: o.request, Bridge: b.o.Bridge}); err != nil {
		b.finishLocked(o, Verdict{Reason: AuditUnavailable, Channel: "limit", Text: err.Error()})
		return
	}
	o.asked = true
	close(o.turn)
	b.o.Asked(o.request)
	b.wakeLocked(o.request.Run)
}

// joinableLocked finds the open request that a call belongs to.
func (b *Broker) joinableLocked(r Request) *open {
	same := func(i Item) bool { return i.Key == r.Items[0].Key }
	for _, o := range b.open {
		if o.request.Run == r.Run && !o.seen && len(o.request.Items) < maxItems && reflect.DeepEqual(o.request.Decision, r.Decision) &&
			(o.request.sameLoop(r) || slices.ContainsFunc(o.request.Items, same)) {
			return o
		}
	}
	return nil
}

// joinLocked finds the open request that a call belongs to, and adds it.
func (b *Broker) joinLocked(r Request) *open {
	if o := b.joinableLocked(r); o != nil {
		more := o.request
		more.Items = append(slices.Clone(o.request.Items), r.Items[0])
		slices.SortFunc(more.Items, func(x, y Item) int { return x.Call - y.Call })
		more.Summary, more.Grown = b.summarise(more), time.Now()
		if o.asked {
			_, err := b.store.Update(context.Background(), o.request.ID, func(e *Entry) error {
				if e.Verdict != nil {
					return &SettledError{*e.Verdict}
				}
				e.Items, e.Summary, e.Grown = more.Items, more.Summary, more.Grown
				return nil
			})
			if err != nil {
				return nil // it has an answer by now
			}
		}
		o.request.Items, o.request.Summary, o.request.Grown = more.Items, more.Summary, more.Grown // Ask reads the others
		b.wakeLocked(r.Run)
		return o
	}
	return nil
}

// summarise is the line about a request that replaces ours; empty if none does.
func (b *Broker) summarise(r Request) string {
	if b.o.Summarise == nil {
		return ""
	}
	return b.o.Summarise(r)
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

// Counts are how much is asked at this moment, by the runs of this process.
type Counts struct {
	Open   int `json:"open"`   // put to people
	Queued int `json:"queued"` // waiting their turn
}

// Counts returns how much a session asks; the empty name means all sessions.
func (b *Broker) Counts(session string) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	var c Counts
	for _, o := range b.open {
		switch {
		case session != "" && o.request.session() != session:
		case o.asked:
			c.Open++
		default:
			c.Queued++
		}
	}
	return c
}

// Entries returns requests of every process that shares the store.
func (b *Broker) Entries(ctx context.Context, f Filter) ([]Entry, error) {
	return b.store.Entries(ctx, f)
}

// Requested is closed after the next change of a request or grant by anyone.
func (b *Broker) Requested() <-chan struct{} { return b.store.Requested() }

// expire answers a request no because nobody did in time.
func (b *Broker) expire(o *open) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[o.request.ID] == o {
		b.endLocked(o, Verdict{Reason: Timeout, Channel: "timeout"})
	}
}

// Settle answers a request, of this process or of another that shares the
// store. The digest is of the request that the person saw: a verdict about
// anything else settles nothing. Of several verdicts the first wins; the
// others are told so by a [SettledError]. Where more than one yes is needed,
// a yes that counts is no error; the entry says what is still missing.
//
// Where another process judges what counts (see relay.go), the verdict is
// brought to it: that is a [BroughtError], and [Broker.Outcome] waits for what
// becomes of it.
func (b *Broker) Settle(ctx context.Context, id string, about canon.Digest, v Verdict) (Entry, error) {
	v.Time = time.Now()
	var said error // though the entry is changed
	e, err := b.change(ctx, id, func(e *Entry) error {
		said = nil
		if !b.judges(e) {
			brought, err := e.relay(about, v)
			if err == nil {
				said = &BroughtError{brought}
			}
			return err
		}
		open := e.Verdict == nil
		err := e.answer(about, v, time.Now(), b.o.Approvers())
		if open && e.Verdict != nil { // it may have run out
			said, err = err, nil
		}
		return err
	})
	if err == nil {
		err = said
	}
	return e, err
}

// change changes an entry, with what was brought to it judged first. The store
// has it then, for every process. Whoever comes in between, such as the
// time-out, finds the verdict there and goes by it.
func (b *Broker) change(ctx context.Context, id string, change func(*Entry) error) (Entry, error) {
	e, outcomes, err := b.update(ctx, id, change)
	if (err == nil || len(outcomes) > 0) && e.Verdict != nil {
		b.mu.Lock()
		if o := b.open[id]; o != nil {
			b.finishLocked(o, *e.Verdict)
		}
		b.mu.Unlock()
	}
	b.mu.report(judged{e, outcomes})
	return e, err
}

// Say keeps what a model made of the arguments of a request, for every channel
// to show beside them and marked as a model's. It changes nothing of what is
// asked, and nothing at all once the request is settled or another one.
func (b *Broker) Say(ctx context.Context, id string, about canon.Digest, says string) error {
	_, err := b.store.Update(ctx, id, func(e *Entry) error {
		switch {
		case e.Verdict != nil:
			return &SettledError{*e.Verdict}
		case e.Digest() != about:
			return ErrDigest
		}
		e.Says = says
		return nil
	})
	if err != nil {
		return fmt.Errorf("keeping what a model says of request %s: %w", id, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.open[id]; o != nil {
		o.request.Says = says
	}
	return nil
}

// finishLocked ends an open request with a verdict that its store has, and
// does everything that a verdict brings with it: grants, calls that are not
// asked again, and the turn of the next.
func (b *Broker) finishLocked(o *open, v Verdict) {
	if v.Time.IsZero() {
		v.Time = time.Now()
	}
	r := o.request
	b.countDenialLocked(r, v)
	if !v.Approve {
		b.refusals[r.Run]++
	}
	if v.Approve && (v.Scope == Same || v.Scope == AnyArgs) && b.addGrants(r, v) != nil {
		v.Scope = Once // what is not kept is not granted: the next call is asked again
	}
	for _, i := range r.Items { // nobody said no: the next call may be asked again
		if said := v.About(i.Call); !said.Approve && said.Reason != NoApprover && said.Reason != AuditUnavailable {
			if b.denied[r.Run] == nil {
				b.denied[r.Run] = map[Key]Verdict{}
			}
			b.denied[r.Run][i.Key] = said
		}
	}
	o.verdict = v
	delete(b.open, r.ID)
	close(o.settled)
	b.wakeLocked(r.Run)
	if v.Args != nil { // its call has them now; they may hold what nobody else should read
		_, _ = b.store.Update(context.Background(), r.ID, func(e *Entry) error { e.Verdict.Args = nil; return nil })
	}
	b.admitLocked()
}

// endLocked ends an open request that nobody may answer any more, unless a
// verdict has come first: then with that.
func (b *Broker) endLocked(o *open, v Verdict) {
	if o.asked {
		e, outcomes, err := b.update(context.Background(), o.request.ID, func(e *Entry) error {
			if e.Verdict == nil {
				e.settle(v, time.Now())
			}
			return nil
		})
		if err == nil && e.Verdict != nil { // if the store fails, it is a no all the same
			v = *e.Verdict
		}
		b.mu.reportLaterLocked(judged{e, outcomes})
	}
	b.finishLocked(o, v)
}

// admitLocked opens what waits, in order, as far as there is room, and refuses
// what would come after too many noes.
func (b *Broker) admitLocked() {
	if b.admitting { // one that could not be opened has ended: go on where it was opened
		return
	}
	b.admitting = true
	defer func() { b.admitting = false }()
	for i := 0; i < len(b.waiting); {
		o := b.waiting[i]
		withdrawn := b.open[o.request.ID] != o
		enough, refused := b.cooldownLocked(o.request)
		if !withdrawn && !refused && b.fullLocked(o.request) {
			i++
			continue
		}
		b.waiting = slices.Delete(b.waiting, i, i+1)
		switch {
		case withdrawn:
			continue
		case refused:
			b.finishLocked(o, enough)
		default:
			b.openLocked(o) // which may end it, and come here again
		}
		i = 0
	}
}

// withdraw takes back one call's interest in a request; the last one to leave
// closes it, with why it did.
func (b *Broker) withdraw(o *open, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.waits--; o.waits == 0 && b.open[o.request.ID] == o {
		b.endLocked(o, unanswered(why))
	}
}

// NeedsApprover reports that only somebody who proves who they are may say yes
// to a call that was decided so.
func (b *Broker) NeedsApprover(d profiles.Decision) bool {
	return Request{Decision: d, Separate: b.o.Separate()}.NeedsApprover()
}

// Tidy forgets requests that ended before a time, and grants that are over.
func (b *Broker) Tidy(ctx context.Context, before time.Time) error {
	now := time.Now()
	return errors.Join(b.store.Forget(ctx, before), b.store.DropGrants(ctx, func(g Grant) bool { return !now.Before(g.Until) || b.orphaned(g) }))
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

// EndRun forgets a run, whose calls have all been answered or are on their way
// back. What it still asks is withdrawn.
func (b *Broker) EndRun(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.open {
		if o.request.Run == run {
			b.endLocked(o, unanswered(nil))
		}
	}
	b.forgetLocked(run)
}
