package bridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/entries"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/storetest"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A fleet is bridges that share their stores and servers.
type fleet struct {
	records  storetest.Journaled
	requests *approval.Memory
	people   *approval.Approvers // of all of them

	mu   sync.Mutex
	gone map[string]bool
}

func newFleet() *fleet {
	people, err := approval.NewApprovers(approval.Realm{}, []approval.Approver{{Name: "ann", Role: approval.Admin, Token: sha256.Sum256([]byte("ann"))}}, nil)
	if err != nil {
		panic(err)
	}
	return &fleet{records: memstore.New(nil), requests: new(approval.Memory), people: people, gone: map[string]bool{}}
}

// broker makes the broker of one of them, which is of a configuration; without a
// name, of another program that answers.
func (f *fleet) broker(store approval.Store, name, configuration string) *approval.Broker {
	return approval.New(approval.Options{Store: store, Bridge: name, Configuration: configuration, Gather: time.Minute, Gone: f.isGone, Approvers: func() *approval.Approvers { return f.people }})
}

// bridge adds a bridge to the fleet.
func (f *fleet) bridge(t testing.TB, name string, spec profiles.Spec, change ...func(*Options)) *bench {
	t.Helper()
	return newBench(t, spec, append([]func(*Options){func(o *Options) {
		o.Gate = gate.New(o.Gate.View(), gate.Options{
			Caller: o.Upstreams.(*upstreams), Reader: o.Upstreams.(*upstreams), Recorder: f.records, Approvers: func() bool { return true },
			Broker: f.broker(f.requests, name, ""),
		})
		o.Journal, o.Bridge, o.Gone, o.Seal = f.records, name, f.isGone, []byte("0123456789abcdef0123456789abcdef")
	}}, change...)...)
}

func (f *fleet) isGone(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone[name]
}

// queued is a policy under which all calls of server a wait for an approver.
func queued() profiles.Spec {
	return asks(func(p *profiles.ProfileSpec) {
		queue := "queue"
		p.ElicitationFallback = &queue
		// A call that needs a reason makes a request of its own.
		p.Rules = []profiles.RuleSpec{{Tools: []string{"a__*"}, When: &profiles.When{Expr: "has(args.n) && args.n == 4.0"}, RequireReason: new(true)}}
	})
}

// open waits for so many open requests and returns them.
func (f *fleet) open(t testing.TB, n int) []approval.StoredRequest {
	t.Helper()
	for {
		changed := f.requests.Changed()
		all, err := f.requests.Requests(t.Context(), approval.Filter{Open: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == n {
			return all
		}
		select {
		case <-changed:
		case <-time.After(3 * time.Minute):
			t.Fatalf("%d requests are open, not %d", len(all), n)
		}
	}
}

// answer settles a request as an approver does at any process.
func (f *fleet) answer(t testing.TB, e approval.StoredRequest, v approval.Verdict) {
	t.Helper()
	desk := f.broker(f.requests, "", e.ConfigurationID())
	_, err := desk.Settle(t.Context(), e.ID, e.Digest(), f.signed(t, e, v))
	if brought := (*approval.RelayedError)(nil); errors.As(err, &brought) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		_, err = desk.Outcome(ctx, e.ID, brought.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// signed is a verdict of ann, who has come in.
func (f *fleet) signed(t testing.TB, e approval.StoredRequest, v approval.Verdict) approval.Verdict {
	ann, _ := f.people.Authenticate("ann")
	v, err := f.people.Sign(ann, e.Request, v, "page", time.Now())
	if err != nil {
		t.Error(err)
	}
	return v
}

var yes = approval.Verdict{Approve: true, Text: "it must be"}

const pauses = `const a = await codemode.b__echo({n: 1, at: Date.now(), by: Math.random()});
const all = await Promise.all([codemode.a__echo({n: 2}), codemode.b__echo({n: 3}), codemode.a__echo({n: 4})]);
return [a, ...all, Math.random() < 1, await codemode.b__echo({n: 5})];`

// startPaused starts a script at a bridge and returns its run once it waits for
// n people.
func (f *fleet) startPaused(t testing.TB, b *bench, code string, n int) string {
	t.Helper()
	id, err := b.Start(t.Context(), "", code, nil, "ci")
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool {
		st, _ := b.Run(t.Context(), id)
		if st.Over() {
			t.Fatalf("it ended: %s", st.Result)
		}
		return st.State == lifecycle.RunWaiting
	})
	f.open(t, n)
	return id
}

func TestARunGoesOnElsewhere(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	id := f.startPaused(t, first, pauses, 2)
	waitUntil(t, func() bool { r, ok := first.roster.lookup(id); return ok && r.quiet() })
	first.Close(0)
	if made := first.up.made(); len(made) != 2 {
		t.Fatalf("made %q before", made)
	}
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	second := f.bridge(t, "two", queued())
	if st, ok := second.Run(t.Context(), id); !ok || st.State != lifecycle.RunPaused || st.Requester != "ci" {
		t.Errorf("before: %+v", st)
	}
	res, err := second.Resume(t.Context(), id, "the test", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.StructuredContent.(json.RawMessage))
	for _, n := range []string{`\"n\":1`, `\"n\":2`, `\"n\":3`, `\"n\":4`, `\"n\":5`} {
		if !strings.Contains(out, n) {
			t.Errorf("the answer has no %s: %s", n, out)
		}
	}
	if made := second.up.made(); len(made) != 3 || !strings.Contains(made[2], `"n":5`) {
		t.Errorf("made %q after", made)
	}
	var events []string
	for row, err := range f.records.Rows(t.Context(), ledger.Query{Runs: []string{id}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := row.Record.Event; e == ledger.RunStarted || e == ledger.RunPaused || e == ledger.RunResumed || e == ledger.RunEnded {
			events = append(events, string(e))
		}
	}
	if want := "run_started run_paused run_resumed run_ended"; strings.Join(events, " ") != want {
		t.Errorf("events %q", events)
	}
	if left, err := f.records.Runs(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("journals are left: %v, %v", left, err)
	}
	if _, err := second.runner.resume(t.Context(), id, claimant{anyone: true}); err == nil {
		if r, ok := second.roster.lookup(id); !ok || r.session == nil {
			t.Error("the run can be resumed again")
		}
	}
}

// endsAsking has a bridge end while a run of it asks so many questions.
func (f *fleet) endsAsking(t testing.TB, code string, questions int) (id string) {
	t.Helper()
	b := f.bridge(t, "one", queued())
	id = f.startPaused(t, b, code, questions)
	waitUntil(t, func() bool { r, ok := b.roster.lookup(id); return ok && r.quiet() })
	b.Close(0)
	return id
}

// A question says in which folder its run works, also when the run goes on in a
// bridge that works nowhere in particular.
func TestQuestionsSayWhereTheRunWorks(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued(), func(o *Options) { o.Folder = func() string { return "/home/ann/shop" } })
	code := `await codemode.a__echo({n: 1}); return codemode.a__echo({n: Math.max(1, 2)})` // the second cannot be told beforehand
	id := f.startPaused(t, first, code, 1)
	if e := f.open(t, 1)[0]; e.Folder != "/home/ann/shop" {
		t.Errorf("asked is for %q", e.Folder)
	}
	waitUntil(t, func() bool { r, ok := first.roster.lookup(id); return ok && r.quiet() })
	first.Close(0)
	second := f.bridge(t, "two", queued())
	if err := second.ResumeInBackground(t.Context(), id, "the test"); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { return second.o.Gate.Broker().Waiting(id) == 1 })
	e := f.open(t, 1)[0]
	f.answer(t, e, yes)
	waitUntil(t, func() bool {
		all, err := f.requests.Requests(t.Context(), approval.Filter{Run: id})
		return err == nil && len(all) == 2
	})
	if e := f.open(t, 1)[0]; e.Items[0].Call != 2 || e.Folder != "/home/ann/shop" {
		t.Errorf("the second is of call %d, for %q", e.Items[0].Call, e.Folder)
	}
}

// A run whose bridge was killed is interrupted, not paused, until it goes on; one
// that has ended does not go on, and nobody is told that it does.
func TestInterruptedAndEndedRuns(t *testing.T) {
	f := newFleet()
	id := f.endsAsking(t, `return await codemode.a__echo({n: 1})`, 1)
	b := f.bridge(t, "two", queued())
	for kept, want := range map[ledger.JournaledRun]string{{State: ledger.Paused}: lifecycle.RunPaused, {State: ledger.Live, Owner: "dead"}: lifecycle.RunInterrupted} {
		f.gone["dead"] = true
		if _, err := f.records.ChangeRun(t.Context(), id, func(k *ledger.JournaledRun) error { k.State, k.Owner = kept.State, kept.Owner; return nil }); err != nil {
			t.Fatal(err)
		}
		type seen struct {
			State string
			Over  bool
		}
		var got []seen
		one, _ := b.Run(t.Context(), id)
		for _, st := range append(b.Runs(t.Context()), one) {
			got = append(got, seen{st.State, st.Over()})
		}
		if diff := cmp.Diff([]seen{{want, false}, {want, false}}, got); diff != "" {
			t.Errorf("in the list and by itself (-want +got):\n%s", diff)
		}
	}
	if err := b.ResumeInBackground(t.Context(), id, "the test"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is once
		if err := b.ResumeInBackground(t.Context(), id, "the test"); err != nil {
			t.Errorf("while it goes on: %v", err)
		}
	}
	waitUntil(t, func() bool { return b.o.Gate.Broker().Waiting(id) == 1 })
	f.answer(t, f.open(t, 1)[0], yes)
	waitUntil(t, func() bool { st, ok := b.Run(t.Context(), id); return ok && st.Over() })
	if err := b.ResumeInBackground(t.Context(), id, "the test"); !errors.Is(err, ErrEnded) {
		t.Errorf("once it has ended: %v", err)
	}
}

// waitUntil returns when what a test waits for has come.
func waitUntil(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

// A client whose retry reaches another bridge goes on there.
func TestAStatelessRetryReachesAnotherBridge(t *testing.T) {
	f := newFleet()
	first, second := f.bridge(t, "one", asks()), f.bridge(t, "two", asks())
	const code = `const free = await codemode.b__echo({n: 1}); return [free, await codemode.a__echo({n: 2}), await codemode.a__echo({n: free ? 3 : 0})]`
	at := []string{serveHTTP(t, first, mcphttp.Options{}).URL, serveHTTP(t, second, mcphttp.Options{}).URL}
	state, yes := askedBy(t, rawEval(t, at[0], code, ""))
	state, yes = askedBy(t, rawEval(t, at[1], code, yes+fmt.Sprintf(`"requestState":%q,`, state)))
	for range 3 { // the same, again and again, at either
		if got := rawEval(t, at[1], code, yes+fmt.Sprintf(`"requestState":%q,`, state)); !strings.Contains(got, `\"n\":3`) {
			t.Errorf("the last answer is %.2000s", got)
		}
	}
	if a, b := first.up.made(), second.up.made(); len(a) != 1 || len(b) != 2 {
		t.Errorf("the first bridge made %q, the second %q", a, b)
	}
}

// A call that was sent, and of which no answer is kept, is unknown, and is made
// again only if it may be.
func TestACallThatIsLost(t *testing.T) {
	for tool, again := range map[string]bool{
		"free__once":     false,
		"free__low":      false, // as a rule says of the risk
		"free__again":    true,
		"free__ruled":    true,
		"strange__again": false, // nobody trusts the server
	} {
		want := `"result":["UnknownOutcomeError","` + tool + `","` + tool + ` was sent and its answer did not arrive`
		if again {
			want = `"result":["{\"n\":1}"]`
		}
		t.Run(tool, func(t *testing.T) {
			w, l := newWorld(t), newLife(0, true)
			first, name := w.born(t, l)
			w.up.tools[tool] = func(context.Context, json.RawMessage) (string, error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				if !l.dead { // in the middle of the call
					l.dead = true
					close(l.ended)
				}
				return text(`{"n":1}`), nil
			}
			id, err := first.Start(t.Context(), "", `try { return [await codemode.`+tool+`({n: 1})] } catch (e) { return [e.name, e.tool, e.message] }`, nil, "ci")
			if err != nil {
				t.Fatal(err)
			}
			<-l.ended
			w.mu.Lock()
			w.gone[name] = true
			w.mu.Unlock()
			first.Close(0)
			second, _ := w.born(t, newLife(0, true))
			res, err := second.Resume(t.Context(), id, "the test", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(res.StructuredContent.(json.RawMessage)); !strings.Contains(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if n := len(w.up.made()); n != 1 && !again || n != 2 && again {
				t.Errorf("made %d times", n)
			}
		})
	}
}

// What changes while a run is suspended counts when it is resumed.
func TestWhatChangesMeanwhile(t *testing.T) {
	const code = `await codemode.b__echo({n: 1}); try { return await codemode.a__echo({n: 2}) } catch (e) { return e.name + " " + e.reason }`
	for name, row := range map[string]struct {
		view func(*gate.View) *gate.View
		then func(*Options)
		asks bool // anew: what was answered is another question
		want string
	}{
		"nothing": {want: `"result":"{\"n\":2}"`},
		"the policy": {view: func(*gate.View) *gate.View {
			return newView(t, profiles.Spec{DefaultProfile: ptr("p"), Profiles: map[string]*profiles.ProfileSpec{"p": {Denylist: []string{"a__*"}}}})
		}, want: `"result":"ToolCallDeniedError denied"`},
		"the tool": {view: func(v *gate.View) *gate.View {
			any := json.RawMessage(`{"type":"object"}`)
			return &gate.View{Profiles: v.Profiles, Catalog: catalog.Build([]catalog.Server{{Name: "a", Tools: []catalog.Definition{{Name: "echo", Description: "Sends all it hears to everybody", Input: any}}},
				{Name: "b", Tools: []catalog.Definition{{Name: "echo", Input: any}}}})}
		}, asks: true, want: `"result":"{\"n\":2}"`},
		"another release": {then: otherRelease, want: "it began in engine 0"},
		"the arguments":   {then: reads(func(s *entry) { s.Digest = entries.Digest([]byte(`{"n":9}`)) }), want: "call 1 of b__echo has other arguments"},
		"the call":        {then: reads(func(s *entry) { s.Name = "b__other" }), want: `was tool \"b__other\", and is tool \"b__echo\" now`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			id := f.endsAsking(t, code, 1)
			f.answer(t, f.open(t, 1)[0], yes)
			second := f.bridge(t, "two", queued(), func(o *Options) {
				if row.then != nil {
					row.then(o)
				}
			})
			if row.view != nil {
				second.Replace(row.view(second.o.Gate.View()))
			}
			var wait sync.WaitGroup
			if row.asks {
				wait.Go(func() { f.answer(t, f.open(t, 1)[0], yes) })
			}
			res, err := second.Resume(t.Context(), id, "the test", nil)
			wait.Wait()
			got := fmt.Sprint(err)
			if err == nil {
				got = string(res.StructuredContent.(json.RawMessage))
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if left, err := f.records.Runs(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("journals are left: %v, %v", left, err)
			}
		})
	}
}

// An altered journal is read as it was not written.
type altered struct {
	ledger.Journal
	change func([]ledger.JournalEntry)
}

func (j altered) Read(ctx context.Context, run string) (ledger.JournaledRun, []ledger.JournalEntry, error) {
	kept, entries, err := j.Journal.Read(ctx, run)
	j.change(entries)
	return kept, entries, err
}

// reads makes a bridge read the entry of the first call otherwise.
func reads(change func(*entry)) func(*Options) {
	return func(o *Options) {
		o.Journal = altered{o.Journal, func(all []ledger.JournalEntry) {
			for i, e := range all {
				if e.Kind != ledger.Replied || e.Call != 1 {
					continue
				}
				s, err := decodeEntry(e.Body)
				if err != nil {
					panic(err)
				}
				change(s)
				if all[i].Body, err = s.Encode(); err != nil {
					panic(err)
				}
			}
		}}
	}
}

// otherRelease makes runs begin in another engine.
func otherRelease(o *Options) {
	o.Journal = altered{o.Journal, func(entries []ledger.JournalEntry) {
		entries[0].Body = bytes.Replace(entries[0].Body, []byte(`"engine":"`+sandbox.Engine+`"`), []byte(`"engine":"0"`), 1)
	}}
}

// A run that nobody takes up in time ends, and its record says why; the clock
// may jump meanwhile.
func TestAPausedRunExpires(t *testing.T) {
	f := newFleet()
	id := f.endsAsking(t, pauses, 2)
	for _, jump := range []time.Duration{-1000 * time.Hour, 167 * time.Hour} {
		b := f.bridge(t, fmt.Sprint("after ", jump), queued(), func(o *Options) { o.Now = func() time.Time { return time.Now().Add(jump) } })
		if err := b.leases.expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, ok := b.Run(t.Context(), id); !ok || st.State != lifecycle.RunPaused {
			t.Fatalf("%v later: %+v", jump, st)
		}
	}
	b := f.bridge(t, "late", queued(), func(o *Options) { o.Now = func() time.Time { return time.Now().Add(169 * time.Hour) } })
	if err := b.leases.expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Resume(t.Context(), id, "the test", nil); !errors.Is(err, ErrNoRun) {
		t.Errorf("resumed: %v", err)
	}
	f.open(t, 0)
	why := ""
	for row, err := range f.records.Rows(t.Context(), ledger.Query{Runs: []string{id}, Events: []ledger.Event{ledger.RunEnded}}) {
		if err != nil {
			t.Fatal(err)
		}
		why += row.Record.Outcome + ": " + row.Record.Error
	}
	if want := "stopped: " + errExpired.Error(); why != want {
		t.Errorf("the records say %q, not %q", why, want)
	}
}

// The verdict moves a run on that no bridge has; a restart alone does not.
func TestTheVerdictMovesAPausedRunOn(t *testing.T) {
	f := newFleet()
	id := f.endsAsking(t, pauses, 2)
	second := f.bridge(t, "two", queued())
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); second.ResumeAnswered(ctx) }()
	defer func() { stop(); <-over }()
	began := time.Now()
	f.answer(t, f.open(t, 2)[0], yes)
	if answered, err := second.leases.answeredUnowned(t.Context(), began); err != nil || len(answered) > 0 {
		t.Errorf("after one of two answers: %v, %v", answered, err)
	}
	f.answer(t, f.open(t, 1)[0], yes)
	waitUntil(t, func() bool { st, ok := second.Run(t.Context(), id); return ok && st.Over() })
	if made := second.up.made(); len(made) != 3 {
		t.Errorf("made %q", made)
	}
}

func TestARestartMakesNoCalls(t *testing.T) {
	f := newFleet()
	f.endsAsking(t, pauses, 2)
	before := time.Now()
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	second := f.bridge(t, "two", queued())
	if answered, err := second.leases.answeredUnowned(t.Context(), before); err != nil || len(answered) != 1 {
		t.Errorf("a bridge that was there: %v, %v", answered, err)
	}
	if answered, err := second.leases.answeredUnowned(t.Context(), time.Now()); err != nil || len(answered) > 0 {
		t.Errorf("one that begins afterwards: %v, %v", answered, err)
	}
}

// What bound a run's session binds it after a pause, and what binds the session
// by then does too.
func TestAPauseLoosensNothing(t *testing.T) {
	spec := queued()
	spec.Profiles["strict"] = &profiles.ProfileSpec{Denylist: []string{"b__*"}}
	const code = `const a = await codemode.a__echo({n: 1}); try { return [a, await codemode.b__echo({n: 2})] } catch (e) { return [a, e.reason] }`
	f := newFleet()
	first := f.bridge(t, "one", spec)
	id := f.startPaused(t, first, code, 1)
	r, _ := first.roster.lookup(id)
	first.roster.mu.Lock()
	r.session.addedProfile = "strict"
	first.roster.mu.Unlock()
	waitUntil(t, func() bool { return r.quiet() })
	first.Close(0)
	f.answer(t, f.open(t, 1)[0], yes)
	second := f.bridge(t, "two", spec)
	var wait sync.WaitGroup
	wait.Go(func() { f.answer(t, f.open(t, 1)[0], yes) }) // under the stricter policy it is another question
	defer wait.Wait()
	res, err := second.Resume(t.Context(), id, "the test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.StructuredContent.(json.RawMessage)); !strings.Contains(got, `"denied"`) {
		t.Errorf("after the pause it answers %s", got)
	}
}

const leftScript = `return [await codemode.b__echo({n: 1}), await codemode.a__echo({n: 2})]`

// leftBy has a client send leftScript and leave while it asks, and the run put
// away, as when there is no room for it.
func (f *fleet) leftBy(t *testing.T, b *bench, c *mcp.ClientSession) (id string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": leftScript}})
	}()
	f.open(t, 1)
	var r *run
	waitUntil(t, func() bool {
		b.roster.mu.Lock()
		defer b.roster.mu.Unlock()
		for _, r = range b.roster.live {
		}
		return r != nil
	})
	waitUntil(t, r.suspend)
	<-r.done
	leave()
	<-gone
	return r.id
}

// A client that sends its script again goes on with its run that was suspended.
func TestTheSameScriptFindsItsPausedRun(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued())
	c := b.connect(t, nil)
	f.leftBy(t, b, c)
	f.answer(t, f.open(t, 1)[0], yes)
	if got := eval(t, c, leftScript); !strings.Contains(got, `{\"n\":2}`) {
		t.Errorf("got %s", got)
	}
	if made := b.up.made(); len(made) != 2 {
		t.Errorf("made %q", made)
	}
}

// Once a client has the answer of its run, the same script is another run, also
// where the first was suspended meanwhile.
func TestTheSameScriptAgainIsAnotherRun(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued())
	c := b.connect(t, nil)
	id := f.leftBy(t, b, c)
	f.answer(t, f.open(t, 1)[0], yes)
	if err := b.ResumeInBackground(t.Context(), id, "ann answered"); err != nil { // as the answer brings it about
		t.Fatal(err)
	}
	waitUntil(t, func() bool { st, ok := b.Run(t.Context(), id); return ok && st.Over() })
	if got := eval(t, c, leftScript); !strings.Contains(got, `{\"n\":2}`) || len(b.up.made()) != 2 {
		t.Errorf("got %s after %q", got, b.up.made())
	}
	var wait sync.WaitGroup
	wait.Go(func() { f.answer(t, f.open(t, 1)[0], yes) })
	defer wait.Wait()
	if got := eval(t, c, leftScript); !strings.Contains(got, `{\"n\":2}`) || len(b.up.made()) != 4 {
		t.Errorf("the second time it got %s after %q", got, b.up.made())
	}
}

// Who breaks off a run that has only just been resumed leaves it as it was.
func TestARunOnItsWayIsPutOff(t *testing.T) {
	f := newFleet()
	id := f.endsAsking(t, pauses, 2)
	pool, err := sandbox.NewPool(sandbox.Options{MaxWorkers: 1, Command: func() *exec.Cmd {
		c := exec.Command(racing.Program())
		c.Env = []string{workerVariable + "=1"}
		return c
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	second := f.bridge(t, "two", queued(), func(o *Options) { o.Pool = pool })
	other := f.startPaused(t, second, `return await codemode.a__echo({n: 9})`, 3) // has the only worker
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("left")
	over := make(chan error, 1)
	go func() {
		_, err := second.Resume(ctx, id, "the test", nil)
		over <- err
	}()
	waitUntil(t, func() bool { _, live := second.roster.lookup(id); return live })
	cancel(left)
	if err := <-over; !errors.Is(err, left) {
		t.Errorf("it ends with %v", err)
	}
	if st, ok := second.Run(t.Context(), id); !ok || st.State != lifecycle.RunPaused {
		t.Errorf("it is %+v (%v)", st, ok)
	}
	second.roster.stop(other, "the test")
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	if res, err := second.Resume(t.Context(), id, "the test", nil); err != nil || !strings.Contains(string(res.StructuredContent.(json.RawMessage)), `\"n\":5`) {
		t.Errorf("going on: %+v, %v", res, err)
	}
	if made := second.up.made(); len(made) != 3 {
		t.Errorf("made %q", made)
	}
}
