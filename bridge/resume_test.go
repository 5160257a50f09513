package bridge

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/profiles"
)

// A fleet is bridges that share their stores and servers.
type fleet struct {
	records  *memstore.Store
	requests *approval.Memory

	mu   sync.Mutex
	gone map[string]bool
}

func newFleet() *fleet {
	return &fleet{records: memstore.New(nil), requests: new(approval.Memory), gone: map[string]bool{}}
}

// bridge adds a bridge to the fleet.
func (f *fleet) bridge(t *testing.T, name string, spec profiles.Spec, change ...func(*Options)) *bench {
	t.Helper()
	return newBench(t, spec, append([]func(*Options){func(o *Options) {
		o.Gate = gate.New(o.Gate.View(), gate.Options{
			Caller: o.Upstreams.(*upstreams), Reader: o.Upstreams.(*upstreams), Recorder: f.records, Approvers: func() bool { return true },
			Broker: approval.New(approval.Options{Store: f.requests, Bridge: name}),
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
	return asks(func(p *profiles.ProfileSpec) { queue := "queue"; p.ElicitationFallback = &queue })
}

// open waits for so many open requests and returns them.
func (f *fleet) open(t *testing.T, n int) []approval.Entry {
	t.Helper()
	for {
		changed := f.requests.Requested()
		all, err := f.requests.Entries(t.Context(), approval.Filter{Open: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == n {
			return all
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d requests are open, not %d", len(all), n)
		}
	}
}

// answer settles a request as an approver does at any process.
func (f *fleet) answer(t *testing.T, e approval.Entry, v approval.Verdict) {
	t.Helper()
	v.By, v.Channel, v.Strong = "ann", "page", true
	desk := approval.New(approval.Options{Store: f.requests})
	if _, err := desk.Settle(t.Context(), e.ID, e.Digest(), v); err != nil {
		t.Fatal(err)
	}
}

var yes = approval.Verdict{Approve: true}

const pauses = `const a = await codemode.b__echo({n: 1, at: Date.now(), by: Math.random()});
const all = await Promise.all([codemode.a__echo({n: 2}), codemode.b__echo({n: 3}), codemode.a__echo({n: 4})]);
return [a, ...all, Math.random() < 1, await codemode.b__echo({n: 5})];`

// startPaused starts a script at a bridge and returns its run once it waits for
// n people.
func (f *fleet) startPaused(t *testing.T, b *bench, code string, n int) string {
	t.Helper()
	id, err := b.Start(t.Context(), "", code, nil, "ci")
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool {
		st, _ := b.Run(id)
		if st.Over() {
			t.Fatalf("it ended: %s", st.Result)
		}
		return st.State == RunWaiting
	})
	f.open(t, n)
	return id
}

func TestARunGoesOnElsewhere(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	id := f.startPaused(t, first, pauses, 2)
	waitUntil(t, func() bool { r, ok := first.lookup(id); return ok && r.quiet(first.o.Gate.Broker()) })
	first.Close(0)
	if made := first.up.made(); len(made) != 2 {
		t.Fatalf("made %q before", made)
	}
	for _, e := range f.open(t, 2) {
		f.answer(t, e, yes)
	}
	second := f.bridge(t, "two", queued())
	if st, ok := second.Run(id); !ok || st.State != RunPaused || st.Requester != "ci" {
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
	if _, err := second.takeUp(t.Context(), id, claim{anyone: true}); err == nil {
		if r, ok := second.lookup(id); !ok || r.session == nil {
			t.Error("the run can be taken up again")
		}
	}
}

// waitUntil returns when what a test waits for has come.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}
