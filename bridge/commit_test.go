package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/storetest"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/worker"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A countedStore counts commits, and fails from one on.
type countedStore struct {
	storetest.Journaled
	mu       sync.Mutex
	commits  int
	fails    int // the first commit that fails; 0 is none
	recovers int // the first that is made again; 0 is none
}

func (c *countedStore) commit(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commits++; c.fails > 0 && c.commits >= c.fails && (c.recovers == 0 || c.commits < c.recovers) {
		return fmt.Errorf("%w: the disk is full", ledger.ErrUnavailable)
	}
	return do()
}

func (c *countedStore) Record(ctx context.Context, all ...ledger.Record) error {
	return c.commit(func() error { return c.Journaled.Record(ctx, all...) })
}

func (c *countedStore) Append(ctx context.Context, entries ...ledger.JournalEntry) error {
	return c.commit(func() error { return c.Journaled.Append(ctx, entries...) })
}

func (c *countedStore) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.commits
}

// has counts the rows of an event.
func (c *countedStore) has(t *testing.T, event ledger.Event) (n int) {
	t.Helper()
	for _, err := range c.Rows(context.Background(), ledger.Query{Events: []ledger.Event{event}}) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	return n
}

// counting is a bridge in a bubble, with its store.
func counting(t *testing.T, spec profiles.Spec, fails int) (*bench, *fleet, *countedStore) {
	f := newFleet()
	store := &countedStore{Journaled: f.records, fails: fails}
	pool, err := sandbox.NewPool(sandbox.Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	b := f.bridge(t, "one", spec, func(o *Options) {
		o.Pool = pool
		o.Gate = gate.New(o.Gate.View(), gate.Options{
			Caller: o.Upstreams.(*upstreams), Reader: o.Upstreams.(*upstreams), Recorder: store, Approvers: func() bool { return true },
			Broker: f.broker(f.requests, "one", ""),
		})
		o.Journal = store
	})
	t.Cleanup(func() { b.Close(0); pool.Close() })
	return b, f, store
}

// A run without calls is one commit, and each call is one more.
func TestCommitsOfARun(t *testing.T) {
	for _, calls := range []int{0, 1, 2, 100} {
		synctest.Test(t, func(t *testing.T) {
			b, _, store := counting(t, queued(), 0)
			code := fmt.Sprintf("let last = -1; for (let i = 0; i < %d; i++) last = await codemode.b__echo({n: i}); return last", calls)
			if got := eval(t, b.connect(t, nil), code); store.count() != calls+1 {
				t.Errorf("%d calls, %s: %d commits", calls, got, store.count())
			}
			if got := store.has(t, ledger.Outcome); got != calls {
				t.Errorf("%d calls have %d outcomes", calls, got)
			}
		})
	}
}

// Parallel calls share commits. At most there are the run's first entry, its start, what
// announces each call, and the end.
func TestCommitsOfParallelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, store := counting(t, queued(), 0)
		id, err := b.Start(t.Context(), "", "await Promise.all(Array.from({length: 50}, (_, n) => codemode.b__echo({n})))", nil, "ci")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st, _ := b.Run(t.Context(), id); st.State != lifecycle.RunDone || store.count() > 53 || store.has(t, ledger.Outcome) != 50 {
			t.Errorf("%s after %d commits, with %d outcomes", st.State, store.count(), store.has(t, ledger.Outcome))
		}
	})
}

// What a run has done is in the log before it is seen anywhere.
func TestNothingIsSeenUnwritten(t *testing.T) {
	const answers = `await codemode.b__echo({n: 1}); `
	waits := answers + `await new Promise(f => setTimeout(f, 60000))`
	for name, test := range map[string]struct {
		code string
		exit func(t *testing.T, b *bench, f *fleet, id string)
	}{
		"the list of runs": {waits, func(t *testing.T, b *bench, _ *fleet, _ string) { b.Runs(t.Context()) }},
		"the state of it":  {waits, func(t *testing.T, b *bench, _ *fleet, id string) { b.Run(t.Context(), id) }},
		"a question":       {answers + `await codemode.a__echo({n: 2})`, func(t *testing.T, _ *bench, f *fleet, _ string) { f.open(t, 1) }},
		"another call":     {answers + `await codemode.b__echo({n: 2})`, func(t *testing.T, _ *bench, _ *fleet, _ string) {}},
		"a refusal":        {answers + `try { await codemode.b__nothing({}) } catch {}; await new Promise(f => setTimeout(f, 60000))`, func(*testing.T, *bench, *fleet, string) {}},
		"the answer":       {answers, func(*testing.T, *bench, *fleet, string) {}},
		"its cancellation": {waits, func(t *testing.T, b *bench, _ *fleet, id string) {
			b.CancelRun(t.Context(), id, "bob")
			synctest.Wait()
		}},
		"its suspension": {answers + `await codemode.a__echo({n: 2})`, func(t *testing.T, b *bench, f *fleet, id string) {
			r, _ := b.roster.lookup(id)
			r.suspend()
			synctest.Wait()
		}},
		"after 20 ms":       {waits, func(*testing.T, *bench, *fleet, string) { time.Sleep(ledger.MaxDelay) }},
		"an orderly ending": {waits, func(_ *testing.T, b *bench, _ *fleet, _ string) { b.Close(0) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, f, store := counting(t, queued(), 0)
				b.up.tools["b__echo"] = func(ctx context.Context, args json.RawMessage) (string, error) {
					if string(args) == `{"n":2}` {
						<-ctx.Done()
					}
					return text(string(args)), ctx.Err()
				}
				id, err := b.Start(t.Context(), "", test.code, nil, "ci")
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if test.code == waits && store.has(t, ledger.Outcome) != 0 {
					t.Fatal("the outcome is written at once, so that this shows nothing")
				}
				test.exit(t, b, f, id)
				if store.has(t, ledger.RunStarted) != 1 || store.has(t, ledger.Preview) != 1 || store.has(t, ledger.Outcome) != 1 {
					t.Errorf("%d starts, %d previews and %d outcomes are written", store.has(t, ledger.RunStarted), store.has(t, ledger.Preview), store.has(t, ledger.Outcome))
				}
			})
		})
	}
}

// The same of what a client is told while it waits, and of what another script of the
// session reads.
func TestNothingIsToldUnwritten(t *testing.T) {
	soon := 5 * time.Millisecond // less than a record may wait
	slow := func(d time.Duration) func(context.Context, json.RawMessage) (string, error) {
		return func(ctx context.Context, args json.RawMessage) (string, error) {
			time.Sleep(d)
			return text(string(args)), nil
		}
	}
	t.Run("progress", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _, store := counting(t, queued(), 0)
			b.up.tools["b__echo"] = slow(elicit.ProgressEvery - soon)
			told := make(chan string, 1)
			client := b.connect(t, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				told <- fmt.Sprint(req.Params.Message, ", ", store.has(t, ledger.Outcome), " written")
			}})
			params := &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": `await codemode.b__echo({n: 1}); await new Promise(f => setTimeout(f, 1000))`}}
			params.SetProgressToken("t")
			var wait sync.WaitGroup
			wait.Go(func() { client.CallTool(t.Context(), params) })
			if got, want := <-told, "1 calls done, 0 under way, 1 written"; got != want {
				t.Errorf("the client is told %q, want %q", got, want)
			}
			wait.Wait()
		})
	})
	t.Run("a handle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _, store := counting(t, profiles.Spec{}, 0)
			client, outcomes := b.connect(t, nil), store.has
			var wait sync.WaitGroup
			wait.Go(func() {
				eval(t, client, `await codemode.a__image({}); await new Promise(f => setTimeout(f, 1000))`)
			})
			synctest.Wait()
			if outcomes(t, ledger.Outcome) != 0 {
				t.Fatal("the outcome is written at once, so that this shows nothing")
			}
			const guess = `const of = f => f.then(() => "has it", e => e.message.includes("no handle") ? "none" : e.message);
				return [await of(codemode.read("h1")), await of(emit("h1"))]`
			if got := eval(t, client, guess); got != `["none","none"]` || outcomes(t, ledger.Outcome) != 0 {
				t.Errorf("a guess at what is not written: %s, with %d outcomes", got, outcomes(t, ledger.Outcome))
			}
			time.Sleep(soon)
			wait.Wait()
			if got := eval(t, client, guess); got != `["has it","has it"]` {
				t.Errorf("a guess at what is written: %s", got)
			}
		})
	})
}

// What could not be written is answered to nobody, whichever commit fails: not its
// result, its logs, nor its media. No call is sent after that.
func TestUnwrittenIsNotAnswered(t *testing.T) {
	const code = `const all = []; for (let n = 0; n < 3; n++) { const got = await codemode.b__echo({n: "secret" + n}); console.log(got); all.push(got) } return all`
	for fails := 1; fails <= 5; fails++ {
		synctest.Test(t, func(t *testing.T) {
			b, _, store := counting(t, queued(), fails)
			client := b.connect(t, nil)
			res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}})
			if err != nil {
				t.Fatal(err)
			}
			answer := res.Content[0].(*mcp.TextContent).Text
			if structured, err := json.Marshal(res.StructuredContent); err == nil {
				answer += string(structured)
			}
			if whole := fails == 5; whole != !res.IsError || whole != strings.Contains(answer, "secret") || whole == strings.Contains(answer, "audit_unavailable") {
				t.Errorf("with commit %d failing, the answer is %s", fails, answer)
			}
			if sent := len(b.up.made()); sent != min(fails-1, 3) {
				t.Errorf("with commit %d failing, %d calls are sent", fails, sent)
			}
			for row, err := range store.Rows(t.Context(), ledger.Query{}) {
				if err != nil || row.Record.Event == ledger.RunEnded && fails < 5 {
					t.Errorf("with commit %d failing, there is %+v, %v", fails, row.Record, err)
				}
			}
			if n := strings.Count(answer, `"state":"unknown"`); fails < 5 && n != min(fails-1, 1) {
				t.Errorf("with commit %d failing, %d calls are unknown: %s", fails, n, answer)
			}
		})
	}
}

// A deferred outcome that fails while the script waits ends the run, not its next call.
func TestUnwrittenEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, store := counting(t, queued(), 3)
		began := time.Now()
		id, err := b.Start(t.Context(), "", `await codemode.b__echo({n: 1}); await new Promise(f => setTimeout(f, 60000)); return 1`, nil, "ci")
		if err != nil {
			t.Fatal(err)
		}
		r, _ := b.roster.lookup(id)
		<-r.done
		var denied *approval.DeniedError
		if took := time.Since(began); took > ledger.MaxDelay || !errors.As(r.end.err, &denied) || denied.Reason != approval.AuditUnavailable {
			t.Errorf("it ended after %v: %v", took, r.end.err)
		}
		if store.has(t, ledger.Outcome) != 0 {
			t.Error("the outcome is written")
		}
	})
}

// A run whose outcome was lost leaves nothing to later scripts of its session, and its
// end is recorded as soon as that works again.
func TestLostRunLeavesNoHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, store := counting(t, profiles.Spec{}, 2)
		store.recovers = 3
		client := b.connect(t, nil)
		if answer := eval(t, client, `await codemode.a__image({}); await new Promise(f => setTimeout(f, 60000))`); !strings.Contains(answer, "audit_unavailable") {
			t.Errorf("the answer is %s", answer)
		}
		for row, err := range store.Rows(t.Context(), ledger.Query{}) {
			if err != nil || row.Record.Run == "" {
				t.Errorf("there is %+v, %v", row.Record, err)
			}
		}
		if n := store.has(t, ledger.RunEnded); n != 1 {
			t.Errorf("%d ends are recorded", n)
		}
		if answer := eval(t, client, `try { return await codemode.read("h1") } catch { return "nothing" }`); answer != `"nothing"` {
			t.Errorf("a later script reads %s", answer)
		}
	})
}

// What is learned of an answer's type is learned from what is written.
func TestTypesAreLearnedFromWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, store := counting(t, queued(), 0)
		var learned []int
		b.o.Observed = func(*catalog.Tool, gate.Answer) { learned = append(learned, store.has(t, ledger.Outcome)) }
		if _, err := b.Start(t.Context(), "", `await codemode.b__echo({n: 1}); await codemode.b__echo({n: 2})`, nil, "ci"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(learned, []int{1, 2}) {
			t.Errorf("outcomes written when types are learned: %v", learned)
		}
	})
}
