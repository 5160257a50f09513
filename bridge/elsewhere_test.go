package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/surface"
)

// noHandles is a shared store that keeps nothing.
type noHandles struct{}

func (noHandles) KeepHandle(context.Context, string, handles.Kept, time.Duration, int64) error {
	return nil
}

func (noHandles) Handle(context.Context, string, string) (handles.Kept, time.Duration, error) {
	return handles.Kept{}, 0, handles.ErrNoHandle
}

func sharing(o *Options) { o.Handles = noHandles{} }

// The answer of a run that ended in one bridge is fetched from another, by whoever may.
func TestAnAnswerFromAnotherBridge(t *testing.T) {
	f := newFleet()
	first, second := f.bridge(t, "one", queued(), sharing), f.bridge(t, "two", queued(), sharing)
	for _, code := range []string{pauses, `await codemode.a__echo({n: 2}); await codemode.a__echo({n: 4}); throw new RangeError("too far")`} {
		id, err := first.Start(t.Context(), "", code, nil, "ci")
		if err != nil {
			t.Fatal(err)
		}
		for r, _ := first.roster.lookup(id); !r.isDone(); {
			changed := f.requests.Changed()
			open, err := f.requests.Requests(t.Context(), approval.Filter{Open: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range open {
				f.answer(t, e, yes)
			}
			select {
			case <-r.done:
			case <-changed:
			case <-time.After(3 * time.Minute):
				t.Fatal("it does not end")
			}
		}
		state, _ := first.Run(t.Context(), id)
		var over *overError
		if _, err := second.runner.resume(t.Context(), id, claimant{principal: "ci"}); !errors.As(err, &over) || !errors.Is(err, ErrNoRun) {
			t.Fatalf("its own: %v", err)
		}
		res, err := surface.ReadAnswer(over.answer)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(res.StructuredContent.(json.RawMessage)); got != string(state.Result) || len(res.Content) == 0 || res.IsError != strings.Contains(code, "throw") {
			t.Errorf("it is %s, an error: %t; want %s", got, res.IsError, state.Result)
		}
		for _, who := range []string{"bob", ""} {
			if _, err := second.runner.resume(t.Context(), id, claimant{principal: who}); errors.As(err, new(*overError)) || !errors.Is(err, ErrNoRun) {
				t.Errorf("%q fetches it: %v", who, err)
			}
		}
	}
}

// What people answer at a bridge while another one is busy with the run waits until that
// one hands it over, however long: nobody is asked twice, and no call is made twice.
func TestAnAnswerWaitsForABusyBridge(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", asks(), sharing)
	var seconds atomic.Int64
	second := f.bridge(t, "two", asks(), sharing, func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(seconds.Add(1)) * time.Second) }
	})
	sent, answer := make(chan struct{}), make(chan struct{})
	first.up.tools["b__echo"] = func(_ context.Context, args json.RawMessage) (string, error) {
		close(sent)
		<-answer
		return text(string(args)), nil
	}
	const code = `return await Promise.all([codemode.b__echo({n: 1}), codemode.a__echo({n: 2})])`
	at := []string{serveHTTP(t, first, mcphttp.Options{}).URL, serveHTTP(t, second, mcphttp.Options{}).URL}
	state, says := askedBy(t, rawEval(t, at[0], code, ""))
	<-sent
	done := make(chan string)
	go func() { done <- rawEval(t, at[1], code, says+fmt.Sprintf(`"requestState":%q,`, state)) }()
	for before := seconds.Load(); seconds.Load() < before+int64(4*askFor/time.Second); { // it has given up asking more than once
		select {
		case got := <-done:
			t.Fatalf("it is answered at once: %s", got)
		case <-time.After(time.Millisecond):
		}
	}
	close(answer)
	if got := <-done; !strings.Contains(got, `\"n\":2`) || !strings.Contains(got, `\"n\":1`) {
		t.Errorf("the answer is %s", got)
	}
	if a, b := first.up.made(), second.up.made(); len(a) != 1 || len(b) != 1 {
		t.Errorf("the first bridge made %q, the second %q", a, b)
	}
}

// withoutApprovers makes a bridge of a fleet at which only people at clients are asked.
func (f *fleet) withoutApprovers(name string) func(*Options) {
	return func(o *Options) {
		o.Gate = gate.New(o.Gate.View(), gate.Options{Caller: o.Upstreams.(*upstreams), Reader: o.Upstreams.(*upstreams), Recorder: f.records, Broker: f.broker(f.requests, name, "")})
	}
}

// A person's yes that comes in the moment in which its bridge ends counts at the bridge
// that goes on with the run by it, before their client comes there; and what the script
// asks next is put to that person.
func TestAYesWhileItsBridgeEnds(t *testing.T) {
	for _, code := range []string{
		`return [await codemode.a__echo({n: 1})].length`,
		`const a = await codemode.a__echo({n: 1}); return [a, await codemode.a__echo({of: a})].length`,
	} {
		f := newFleet()
		first, second := f.bridge(t, "one", asks(), sharing, f.withoutApprovers("one")), f.bridge(t, "two", asks(), sharing, f.withoutApprovers("two"))
		state, says := askedBy(t, rawEval(t, serveHTTP(t, first, mcphttp.Options{}).URL, code, ""))
		asked := f.open(t, 1)[0]
		r, _ := first.roster.lookup(asked.Run)
		waitUntil(t, r.evict)
		<-r.done
		said := approval.Verdict{Approve: true, Scope: approval.Once, By: "the person at the client raw", Channel: "elicitation"}
		if _, err := first.o.Gate.Settle(t.Context(), asked.ID, asked.Digest(), said); err != nil {
			t.Fatal(err)
		}
		if err := second.ResumeInBackground(t.Context(), asked.Run, said.By+" answered"); err != nil {
			t.Fatal(err)
		}
		at := serveHTTP(t, second, mcphttp.Options{}).URL
		more := says + fmt.Sprintf(`"requestState":%q,`, state)
		got := rawEval(t, at, code, more)
		if strings.Contains(code, "of: a") {
			if made := second.up.made(); len(made) != 1 {
				t.Errorf("before the second answer it made %q", made)
			}
			state, says = askedBy(t, got)
			got = rawEval(t, at, code, says+fmt.Sprintf(`"requestState":%q,`, state))
		}
		if n := strings.Count(code, "a__echo"); !strings.Contains(got, fmt.Sprintf(`"result":%d`, n)) || len(second.up.made()) != n || len(first.up.made()) > 0 {
			t.Errorf("%s: the answer is %s, after %q", code, got, second.up.made())
		}
	}
}

// What the person at a client allowed counts also where somebody goes on with the run who
// has nobody to ask.
func TestAYesCountsWhereNobodyIsAsked(t *testing.T) {
	for _, also := range []string{"", ", await codemode.a__echo({n: Math.random()})"} {
		f := newFleet()
		first, second := f.bridge(t, "one", asks(), f.withoutApprovers("one")), f.bridge(t, "two", asks(), f.withoutApprovers("two"))
		askedBy(t, rawEval(t, serveHTTP(t, first, mcphttp.Options{}).URL, `return [await codemode.a__echo({n: 1})`+also+`]`, ""))
		asked := f.open(t, 1)[0]
		first.Close(0)
		said := approval.Verdict{Approve: true, Scope: approval.Once, By: "the person at the client raw", Channel: "elicitation"}
		if _, err := second.o.Gate.Settle(t.Context(), asked.ID, asked.Digest(), said); err != nil {
			t.Fatal(err)
		}
		var unasked []string
		res, err := second.Resume(t.Context(), asked.Run, "the test", func(denied *approval.DeniedError) { unasked = append(unasked, denied.Error()) })
		if err != nil {
			t.Fatal(err)
		}
		if made := second.up.made(); len(made) != 1 || res.IsError != (also != "") || len(unasked) != strings.Count(also, "await") {
			t.Errorf("made %q, denied %q, answered %s", made, unasked, res.StructuredContent)
		}
	}
}

// A lateJournal has something happen before the first change of a run.
type lateJournal struct {
	ledger.Journal
	first *sync.Once
	then  func()
}

func (j lateJournal) ChangeRun(ctx context.Context, run string, change func(*ledger.JournaledRun) error) (ledger.JournaledRun, error) {
	j.first.Do(j.then)
	return j.Journal.ChangeRun(ctx, run, change)
}

// Who asks for a run that ends elsewhere in this moment gets its answer.
func TestARunThatEndsWhileItIsAskedFor(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued(), sharing)
	id := f.startPaused(t, first, `return await codemode.a__echo({n: 2})`, 1)
	r, _ := first.roster.lookup(id)
	second := f.bridge(t, "two", queued(), sharing, func(o *Options) {
		o.Journal = lateJournal{o.Journal, new(sync.Once), func() {
			f.answer(t, f.open(t, 1)[0], yes)
			<-r.done
		}}
	})
	var over *overError
	if _, err := second.runner.resume(t.Context(), id, claimant{anyone: true}); !errors.As(err, &over) || !strings.Contains(string(over.answer), `{\\\"n\\\":2}`) {
		t.Fatalf("it gets %v, %+v", err, over)
	}
}
