package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/storetest"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"

	"pgregory.net/rapid"
)

// A bridge's life ends at some commit of its stores: from then on nothing that
// it does is seen outside. If that commit is not kept, the bridge was killed between it
// and the one before.
type life struct {
	mu      sync.Mutex
	dead    bool
	commits int
	last    int  // the life ends with this commit
	kept    bool // which is kept
	ended   chan struct{}
}

var errDead = errors.New("the process was killed")

func newLife(last int, kept bool) *life {
	return &life{last: last, kept: kept, ended: make(chan struct{})}
}

// enter makes a commit, if it may be.
func (l *life) enter(keep func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	if l.commits++; l.commits < l.last || l.last == 0 {
		return keep()
	}
	if l.kept {
		if err := keep(); err != nil {
			return err
		}
	}
	l.dead = true
	close(l.ended)
	return errDead
}

func (l *life) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dead
}

// mortalStore, mortalRequests and mortalServers are what a living bridge sees.
type mortalStore struct {
	storetest.Journaled
	life *life
}

func (m mortalStore) Record(ctx context.Context, all ...ledger.Record) error {
	return m.life.enter(func() error { return m.Journaled.Record(ctx, all...) })
}

func (m mortalStore) Append(ctx context.Context, entries ...ledger.JournalEntry) error {
	return m.life.enter(func() error { return m.Journaled.Append(ctx, entries...) })
}

func (m mortalStore) ChangeRun(ctx context.Context, run string, change func(*ledger.JournaledRun) error) (k ledger.JournaledRun, err error) {
	err = m.life.enter(func() error { k, err = m.Journaled.ChangeRun(ctx, run, change); return err })
	return k, err
}

type mortalRequests struct {
	*approval.Memory
	life *life
}

func (m mortalRequests) Put(ctx context.Context, e approval.StoredRequest) error {
	return m.life.enter(func() error { return m.Memory.Put(ctx, e) })
}

func (m mortalRequests) Update(ctx context.Context, id string, change func(*approval.StoredRequest) error) (e approval.StoredRequest, err error) {
	err = m.life.enter(func() error { e, err = m.Memory.Update(ctx, id, change); return err })
	return e, err
}

type mortalServers struct {
	*upstreams
	life *life
}

func (m mortalServers) Call(ctx context.Context, server, identity, tool string, args json.RawMessage) (json.RawMessage, error) {
	if !m.life.alive() {
		return nil, errDead
	}
	return m.upstreams.Call(ctx, server, identity, tool, args)
}

// A world is a fleet whose bridges die, with somebody who answers, and servers
// that remember what they were asked to do.
type world struct {
	*fleet
	up   *upstreams
	view *gate.View
	pool *sandbox.Pool // nil is one of processes for each bridge
	n    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	queue, low, yes := "queue", "low", true
	set, problems := profiles.Parse(profiles.Spec{DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {Asklist: []string{"asks__*"}, ElicitationFallback: &queue,
		Rules: []profiles.RuleSpec{{Tools: []string{"free__ruled"}, Repeatable: &yes}, {Tools: []string{"free__low"}, Risk: &low}}}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	again := profiles.Annotations{Idempotent: &yes}
	any := json.RawMessage(`{"type":"object"}`)
	w := &world{fleet: newFleet(), up: new(upstreams)}
	w.view = &gate.View{Profiles: set, Trusted: map[string]bool{"asks": true, "free": true}, Catalog: catalog.Build([]catalog.Server{
		{Name: "asks", Tools: []catalog.Definition{{Name: "again", Input: any, Annotations: again}, {Name: "once", Input: any}}},
		{Name: "free", Tools: []catalog.Definition{{Name: "again", Input: any, Annotations: again}, {Name: "once", Input: any}, {Name: "ruled", Input: any}, {Name: "low", Input: any}}},
		{Name: "strange", Tools: []catalog.Definition{{Name: "again", Input: any, Annotations: again}}}})}
	echo := func(_ context.Context, args json.RawMessage) (string, error) { return text(string(args)), nil }
	w.up.tools = map[string]func(context.Context, json.RawMessage) (string, error){
		"asks__again": echo, "asks__once": echo, "free__again": echo, "free__once": echo}
	return w
}

// born adds a bridge to the world. All have the same seed and a clock that
// stands still, so that runs can be compared.
func (w *world) born(t *testing.T, l *life) (*bench, string) {
	t.Helper()
	w.n++
	name := fmt.Sprint("bridge-", w.n)
	noon := time.Now().Truncate(time.Hour)
	b := newBench(t, profiles.Spec{}, func(o *Options) {
		store := mortalStore{w.records, l}
		servers := mortalServers{w.up, l}
		o.Gate = gate.New(w.view, gate.Options{
			Caller: servers, Reader: servers, Recorder: store, Approvers: func() bool { return true },
			Broker: w.broker(mortalRequests{w.requests, l}, name, ""),
		})
		o.Upstreams, o.Journal, o.Bridge, o.Gone, o.KeepJournals = servers, store, name, w.isGone, 100*time.Hour
		o.Now = func() time.Time { return noon }
		if w.pool != nil {
			o.Pool = w.pool
		}
	})
	b.runner.seed = func(seed *[32]byte) { *seed = [32]byte{1, 2, 3} }
	return b, name
}

// answerAll answers every request that is open, until the test ends: of four
// numbers, one is denied.
func (w *world) answerAll(ctx context.Context, t *testing.T) {
	desk := w.broker(w.requests, "", "")
	for ctx.Err() == nil {
		changed := w.requests.Changed()
		all, err := w.requests.Requests(ctx, approval.Filter{Open: time.Now()})
		if err != nil {
			return
		}
		for _, e := range all {
			var args struct{ N int }
			if err := json.Unmarshal(e.Items[0].Shown.JSON, &args); err != nil {
				t.Errorf("reading %s: %v", e.Items[0].Shown.JSON, err)
			}
			if len(e.Relayed) > 0 {
				continue // the bridge that asks judges it, or the one that takes the run up
			}
			v := w.signed(t, e, approval.Verdict{Approve: args.N%4 != 0})
			var late *approval.SettledError
			var brought *approval.RelayedError
			if _, err := desk.Settle(ctx, e.ID, e.Digest(), v); err != nil && !errors.As(err, &late) && !errors.As(err, &brought) && !errors.Is(err, approval.ErrUnknown) {
				t.Errorf("answering: %v", err)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// answerOf is an answer without what differs from run to run.
func answerOf(t *testing.T, structured any) string {
	t.Helper()
	var answer map[string]any
	if err := json.Unmarshal(structured.(json.RawMessage), &answer); err != nil {
		t.Fatal(err)
	}
	delete(answer, "run")
	delete(answer, "notes") // of calls that nobody awaited: when they end is nobody's concern
	out, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return timeless(string(out))
}

var moment = regexp.MustCompile(`(\\*"at\\*":)\d+`)

// timeless is a text without the times of clocks.
func timeless(s string) string { return moment.ReplaceAllString(s, "${1}0") }

// made are the calls that the servers were sent, without times, sorted.
func (w *world) made() []string {
	all := w.up.made()
	for i := range all {
		all[i] = timeless(all[i])
	}
	slices.Sort(all)
	return all
}

// orderly and racy scripts are random: sequences, branches, loops, calls at
// once, timers, clocks and dice in the arguments, and errors that are caught.
// What an orderly one does is independent of which of two answers comes first.
func orderly(t *rapid.T) string { return randomScript(t, 6) }
func racy(t *rapid.T) string    { return randomScript(t, 8) }

func randomScript(t *rapid.T, kinds int) string {
	n := 0
	call := func() string {
		n++
		tool := rapid.SampledFrom([]string{"free__again", "free__again", "asks__again"}).Draw(t, "tool")
		extra := rapid.SampledFrom([]string{"", ", at: Date.now()", ", by: Math.random()", ", last: r.length"}).Draw(t, "extra")
		return fmt.Sprintf("codemode.%s({n: %d%s})", tool, n, extra)
	}
	caught := func(c string) string { return c + ".catch(e => e.name + ' ' + e.reason)" }
	var block func(depth int) string
	block = func(depth int) string {
		var b strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "statements") {
			kind := rapid.IntRange(0, kinds).Draw(t, "kind")
			if depth > 1 && (kind == 4 || kind == 5) {
				kind -= 4
			}
			switch kind {
			case 0:
				fmt.Fprintf(&b, "try { r.push(await %s) } catch (e) { r.push(e.name) }\n", call())
			case 1:
				all := []string{caught(call()), caught(call())}
				for range rapid.IntRange(0, 3).Draw(t, "more") {
					all = append(all, caught(call()))
				}
				fmt.Fprintf(&b, "r.push(await Promise.all([%s]))\n", strings.Join(all, ", "))
			case 2:
				fmt.Fprintf(&b, "await new Promise(f => setTimeout(f, %d)); r.push(await %s)\n", rapid.IntRange(0, 3).Draw(t, "ms"), caught(call()))
			case 3:
				fmt.Fprintf(&b, "{ const later = %s; r.push(await %s); r.push(await later) }\n", caught(call()), caught(call()))
			case 4:
				fmt.Fprintf(&b, "if (Math.random() < 0.5) {\n%s} else {\n%s}\n", block(depth+1), block(depth+1))
			case 5:
				fmt.Fprintf(&b, "for (let i = 0; i < %d; i++) {\n%s}\n", rapid.IntRange(1, 2).Draw(t, "times"), block(depth+1))
			case 6:
				b.WriteString("r.push((await codemode.search_tools({query: 'again'})).length, Math.random())\n")
			case 7:
				fmt.Fprintf(&b, "await Promise.all([%s, %s, %s].map((p, i) => p.then(() => r.push(i)))); r.push(await codemode.free__again({n: 1, order: r.join()}))\n",
					caught(call()), caught(call()), caught(call()))
			case 8:
				fmt.Fprintf(&b, "r.push(await Promise.race([%s, %s, new Promise(f => setTimeout(() => f('late'), %d))])); r.push(await codemode.free__again({n: 2, first: r.at(-1)}))\n",
					caught(call()), caught(call()), rapid.IntRange(0, 5).Draw(t, "ms"))
			}
		}
		return b.String()
	}
	return "const r = []\n" + block(0) + "return r"
}

// undisturbed runs a script in one bridge, and returns its answer, its calls,
// how many commits it took, and how many of its calls were denied.
func undisturbed(t *testing.T, code string) (answer string, calls []string, commits, denied int) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go w.answerAll(ctx, t)
	l := newLife(0, true)
	b, _ := w.born(t, l)
	id, err := b.Start(t.Context(), "", code, nil, "ci")
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { st, _ := b.Run(t.Context(), id); return st.Over() })
	st, _ := b.Run(t.Context(), id)
	answer = answerOf(t, st.Result)
	w.replayed(t, b, id, answer)
	asked, err := w.requests.Requests(t.Context(), approval.Filter{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range asked {
		if e.Verdict != nil && !e.Verdict.Approve {
			denied++
		}
	}
	return answer, w.made(), l.commits, denied
}

// replayed looks at a finished run again.
func (w *world) replayed(t *testing.T, b *bench, id, answer string) {
	t.Helper()
	before := len(w.up.made())
	res, err := b.Replay(t.Context(), id, func(replay.Step) {})
	if errors.Is(err, errNoJournal) {
		return // it made no calls
	}
	if err != nil {
		t.Fatalf("replaying: %v", err)
	}
	if again := answerOf(t, res.StructuredContent); again != answer {
		t.Errorf("replayed, the run answers %s, not %s", again, answer)
	}
	if after := len(w.up.made()); after != before {
		t.Errorf("a replay has made %d calls", after-before)
	}
}

// outlives checks that a script ends the same when its bridge dies at commits
// of its stores, at most so many, and when it is suspended at each question.
// One that races ends somehow, but goes the same way from each commit on; and so does
// one that is denied so often that the rest is refused unasked: which calls these
// are is a matter of time.
func outlives(t *testing.T, code string, most int, races bool) {
	const cooldown = 3 // denials of one tool
	want, calls, commits, denied := undisturbed(t, code)
	if races || denied >= cooldown {
		want, calls = "", nil
	}
	all := rand.Perm(commits)
	for _, at := range all[:min(most, commits)] {
		at++
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("killed-%d-%v", at, kept), func(t *testing.T) {
				t.Parallel()
				killedAt(t, code, at, kept, want, calls)
			})
		}
	}
	pausedEverywhere(t, code, want, calls)
}

func killedAt(t *testing.T, code string, at int, kept bool, want string, calls []string) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go w.answerAll(ctx, t)
	l := newLife(at, kept)
	first, name := w.born(t, l)
	id, err := first.Start(t.Context(), "", code, nil, "ci")
	if err != nil && isClosed(l.ended) {
		return // nobody has heard of the run
	}
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { st, ok := first.lookupState(id); return isClosed(l.ended) || ok && st.Over() })
	if !isClosed(l.ended) { // which calls share a commit is a matter of time
		return
	}
	w.mu.Lock()
	w.gone[name] = true
	w.mu.Unlock()
	first.Close(0)

	b, _ := w.born(t, newLife(0, true))
	res, err := b.Resume(t.Context(), id, "the test", nil)
	made := w.made()
	if errors.Is(err, ErrNoRun) { // it had ended
		if calls == nil {
			return
		}
		if entries, err := w.records.Runs(t.Context()); err != nil || len(entries) == 0 && repeated(made, calls) == nil {
			t.Errorf("killed at commit %d (kept %v): no run is left, and %q were made; %v", at, kept, made, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("killed at commit %d (kept %v): %v\n%s", at, kept, err, code)
	}
	got := answerOf(t, res.StructuredContent)
	if want != "" && got != want || strings.Contains(got, `"error"`) {
		t.Errorf("killed at commit %d (kept %v), the run answers\n%s\nnot\n%s\n%s", at, kept, got, want, code)
	}
	if twice := repeated(made, calls); calls != nil && (twice == nil || len(twice) > 8) {
		t.Errorf("killed at commit %d (kept %v): made\n%q\nnot\n%q\n%s", at, kept, made, calls, code)
	}
	w.replayed(t, b, id, got)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lookupState is the state of a run of this very bridge.
func (b *bench) lookupState(id string) (RunState, bool) {
	r, ok := b.roster.lookup(id)
	if !ok {
		return RunState{}, false
	}
	return r.state(), true
}

// repeated are the calls that were made more often than they should; nil if
// one was made less often, or is another.
func repeated(made, calls []string) []string {
	twice := []string{}
	count := make(map[string]int)
	for _, c := range calls {
		count[c]++
	}
	need := len(calls)
	for _, c := range made {
		if want, known := count[c]; !known {
			return nil
		} else if want == 0 {
			twice = append(twice, c)
			continue
		}
		count[c]--
		need--
	}
	if need > 0 {
		return nil
	}
	return twice
}

func pausedEverywhere(t *testing.T, code, want string, calls []string) {
	w := newWorld(t)
	b, _ := w.born(t, newLife(0, true))
	id, err := b.Start(t.Context(), "", code, nil, "ci")
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		r, ok := b.roster.lookup(id)
		if !ok {
			t.Fatal("the run is gone")
		}
		waitUntil(t, func() bool { return isClosed(r.done) || r.suspend() })
		<-r.done
		if r.now().Phase != lifecycle.Suspended {
			text, _ := r.answer().StructuredContent.(json.RawMessage)
			got := answerOf(t, text)
			if want != "" && got != want || strings.Contains(got, `"error"`) {
				t.Errorf("suspended at each question, the run answers\n%s\nnot\n%s\n%s", got, want, code)
			}
			if made := w.made(); calls != nil && !slices.Equal(made, calls) {
				t.Errorf("suspended at each question: made\n%q\nnot\n%q\n%s", made, calls, code)
			}
			w.replayed(t, b, id, got)
			return
		}
		ctx, stop := context.WithCancel(t.Context())
		answered := make(chan struct{})
		go func() { defer close(answered); w.answerAll(ctx, t) }()
		waitUntil(t, func() bool {
			all, err := w.requests.Requests(ctx, approval.Filter{Open: time.Now()})
			return err == nil && len(all) == 0
		})
		stop()
		<-answered
		b, _ = w.born(t, newLife(0, true))
		if err := b.ResumeInBackground(t.Context(), id, "the test"); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the run does not end")
}

// A run ends the same wherever its bridge is killed or it is suspended.
func TestRunsOutliveTheirBridges(t *testing.T) {
	outliveAll(t, 1, 3)
}

func outliveAll(t *testing.T, scripts, most int) {
	for i := range scripts {
		for name, kind := range map[string]func(*rapid.T) string{"orderly": orderly, "racy": racy} {
			t.Run(fmt.Sprintf("%s-%d", name, i), func(t *testing.T) {
				seed := rand.Int()
				t.Logf("seed %d", seed)
				outlives(t, rapid.Custom(kind).Example(seed), most, name == "racy")
			})
		}
	}
}
