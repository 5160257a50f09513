//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestBreaker(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	b := newBreaker(Options{MaxFailures: 3, Suspend: 10 * time.Second, RetryMax: 15 * time.Second})
	admit := func(second int, wantTry, wantOK bool) {
		t.Helper()
		if try, ok := b.admit(at(second)); try != wantTry || ok != wantOK {
			t.Errorf("at %d: a call is admitted: %v, to try: %v", second, ok, try)
		}
	}
	state := func(second int, want State) {
		t.Helper()
		if got := b.state(at(second)); got != want {
			t.Errorf("at %d: the state is %q, want %q", second, got, want)
		}
	}
	report := func(second int, v sign, try bool, of occasion, want bool) {
		t.Helper()
		if got := b.report(v, try, of, "why", at(second)); got != want {
			t.Errorf("at %d: it changed: %v", second, got)
		}
	}
	own := occasion{}

	// Failures in a row count, and those of one occasion once.
	report(0, faulty, false, own, false)
	report(0, faulty, false, own, false)
	report(0, healthy, false, own, false)
	lost := occasion{ended: new(session)}
	for range 10 {
		report(0, faulty, false, lost, false)
	}
	report(0, noSign, false, own, false)
	report(0, faulty, false, occasion{tries: 1}, false)
	admit(0, false, true)
	state(0, "")
	report(0, faulty, false, occasion{tries: 2}, true)

	// Open, no call is sent, and those that were under way change nothing.
	state(1, Suspended)
	admit(9, false, false)
	report(9, healthy, false, own, false)
	report(9, faulty, false, own, false)
	if got := b.why(at(1)); got != "no call is sent since 12:00:00 until 12:00:10, 9s from now: 4 calls in a row failed, the last one with: why" {
		t.Errorf("it says %s", got)
	}

	// Half-open, one call tries.
	state(10, Trying)
	admit(10, true, true)
	admit(11, false, false)
	state(11, Trying)
	report(12, noSign, true, own, false) // its caller went away
	admit(12, true, true)
	report(13, faulty, true, own, true)
	state(27, Suspended) // 15 s, the longest, and not 20
	state(28, Trying)
	admit(28, true, true)
	report(29, healthy, true, own, true)
	state(29, "")
	admit(29, false, true)

	// Another time begins with the first pause, and a new session shortens it.
	for n := range 3 {
		report(40, faulty, false, own, n == 2)
	}
	state(49, Suspended)
	b.renewed(at(49))
	state(49, Trying)
}

// inner is a server in this process with one tool.
func inner(tool func(context.Context) error) Spec {
	return Spec{Name: "fake", Kind: InProcess, InProcess: func(context.Context, *slog.Logger) (*mcp.Server, error) {
		server := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "3"}, nil)
		server.AddTool(&mcp.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{}}, tool(ctx)
			})
		return server, nil
	}}
}

// bubble runs a test in a bubble, with a Set that ends with it.
func bubble(t *testing.T, o Options, spec Spec, test func(t *testing.T, s *Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(o)
		defer s.Close()
		s.Apply([]Spec{spec})
		connected(t, s)
		test(t, s)
	})
}

func TestAServerThatFailsEveryCallIsSuspended(t *testing.T) {
	var ill atomic.Bool
	ill.Store(true)
	spec := inner(func(ctx context.Context) error {
		if ill.Load() {
			<-ctx.Done()
		}
		return nil
	})
	spec.Limits.Timeout = time.Second
	var changes atomic.Int64
	bubble(t, Options{Changed: func() { changes.Add(1) }}, spec, func(t *testing.T, s *Set) {
		status := func() Status { return s.Status()[0] }
		for n := range 5 {
			if st := status(); st.State != Connected || st.Failures != n || st.Err != "" {
				t.Errorf("after %d calls: %+v", n, st)
			}
			if e := failure(t, s, "exact", ""); e.Kind != Timeout || !e.Sent || !strings.Contains(e.Error(), "no answer within 1s") {
				t.Errorf("got %v", e)
			}
		}
		before := changes.Load()
		st := status()
		if st.State != Suspended || !st.Since.Equal(time.Now()) || time.Until(st.Until) != 10*time.Second || st.Tools != 1 {
			t.Errorf("status is %+v", st)
		}
		began := time.Now()
		e := failure(t, s, "exact", "")
		if e.Kind != Unavailable || e.Sent || !time.Now().Equal(began) {
			t.Errorf("got %s, sent %v, after %v", e.Kind, e.Sent, time.Since(began))
		}
		for _, want := range []string{"no call is sent since " + clock(st.Since), "until " + clock(st.Until), "10s from now", "5 calls in a row failed", "no answer within 1s"} {
			if !strings.Contains(e.Error(), want) || !strings.Contains(st.Err, want) {
				t.Errorf("%q is not in %v and %s", want, e, st.Err)
			}
		}
		time.Sleep(10 * time.Second)
		if got := status().State; got != Trying {
			t.Errorf("it is %s", got)
		}
		failure(t, s, "exact", "")
		if st := status(); st.State != Suspended || time.Until(st.Until) != 20*time.Second {
			t.Errorf("status is %+v", st)
		}
		time.Sleep(20 * time.Second)
		ill.Store(false)
		call(t, s, "exact", "")
		if st := status(); st.State != Connected || st.Failures != 0 || st.Err != "" || !st.Answered.Equal(time.Now()) {
			t.Errorf("status is %+v", st)
		}
		if changes.Load() == before {
			t.Error("nobody was told")
		}
	})
}

// Over HTTP a server may hang up on each call and keep the session: each is a
// failure of its own.
func TestAServerThatHangsUpOnEveryCallIsSuspended(t *testing.T) {
	for _, spec := range []Spec{script{Call: []string{"crash"}}.http(t), script{Call: []string{"half"}}.http(t), script{Call: []string{"half"}, JSON: true}.http(t)} {
		s := open(t, Options{Suspend: time.Hour}, spec)
		connected(t, s)
		for range 5 {
			if e := failure(t, s, "exact", ""); e.Kind != Unavailable || !e.Sent {
				t.Errorf("got %v", e)
			}
		}
		if e := failure(t, s, "exact", ""); e.Sent || !strings.Contains(e.Error(), "no call is sent since") {
			t.Errorf("after five failures: %v", e)
		}
	}
}

func TestWhatIsNotTheServersFaultSuspendsNothing(t *testing.T) {
	spec := inner(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	spec.Limits.Timeout, spec.Limits.Concurrency = time.Hour, 1
	bubble(t, Options{MaxFailures: 1}, spec, func(t *testing.T, s *Set) {
		fails := func(timeout time.Duration, tool string, kind ErrorKind, text string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := s.Call(ctx, "fake", "", tool, nil)
			var e *Error
			if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v", err)
			}
		}
		fails(time.Second, "exact", Timeout, "the caller's own time was up; outcome unknown")
		fails(time.Second, "nothing", UnknownTool, "no tool of this name")
		ctx, cancel := context.WithCancel(t.Context())
		var first sync.WaitGroup
		first.Go(func() { _, _ = s.Call(ctx, "fake", "", "exact", nil) })
		synctest.Wait()
		fails(time.Second, "exact", Timeout, "1 other calls of the server were under way all the time")
		cancel()
		first.Wait()
		if st := s.Status()[0]; st.State != Connected || st.Failures != 0 {
			t.Errorf("status is %+v", st)
		}
	})
}

func TestCallsWaitForTheRateInOrder(t *testing.T) {
	spec := inner(func(context.Context) error { return nil })
	spec.Limits.Rate, spec.Limits.Timeout = Rate{Calls: 60, Per: time.Minute}, 20*time.Second
	bubble(t, Options{MaxFailures: 1}, spec, func(t *testing.T, s *Set) {
		began := time.Now()
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		var calls sync.WaitGroup
		for n := range 16 {
			calls.Go(func() {
				call(t, s, "exact", "")
				mu.Lock()
				defer mu.Unlock()
				order, at = append(order, n), append(at, time.Since(began))
			})
			synctest.Wait()
		}
		e := failure(t, s, "exact", "") // the seventeenth would wait for 11 s
		if e.Kind != OverRate || e.Sent || !strings.Contains(e.Error(), "more calls than its rate of 60/m lets through; the next place is free in 11s, and a call waits 10s at most") {
			t.Errorf("got %s: %v", e.Kind, e)
		}
		calls.Wait()
		// Six at once, then one each second.
		if !slices.IsSorted(order) || at[5] != 0 || at[6] != time.Second || at[15] != 10*time.Second {
			t.Errorf("they ended in the order %v after %v", order, at)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		gone.Go(func() {
			if _, err := s.Call(ctx, "fake", "", "exact", nil); err == nil || !strings.Contains(err.Error(), "waiting for its turn at the rate of 60/m") {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		gone.Wait()
		if st := s.Status()[0]; st.State != Connected {
			t.Errorf("it is %s", st.State)
		}
	})
}

func TestRateText(t *testing.T) {
	for _, row := range []struct {
		rate Rate
		want string
	}{{Rate{10, time.Second}, "10/s"}, {Rate{60, time.Minute}, "60/m"}, {Rate{1, time.Hour}, "1/h"}, {Rate{3, 15 * time.Second}, "3/15s"}} {
		if got := row.rate.String(); got != row.want {
			t.Errorf("%d in %v is %s", row.rate.Calls, row.rate.Per, got)
		}
	}
}

// A server that announces changes without end is listed ever less often; what
// it says last is seen all the same.
func TestAStormOfAnnouncementsIsWeathered(t *testing.T) {
	var listings atomic.Int64
	var server *mcp.Server
	spec := inner(nil)
	plain := spec.InProcess
	spec.InProcess = func(ctx context.Context, _ *slog.Logger) (*mcp.Server, error) {
		var err error
		server, err = plain(ctx, nil)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					listings.Add(1)
				}
				return next(ctx, method, req)
			}
		})
		return server, err
	}
	bubble(t, Options{Poll: 24 * time.Hour}, spec, func(t *testing.T, s *Set) {
		add := func(name string) {
			server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(s.Tools()["fake"], func(tool Tool) bool { return tool.Name == name })
		}
		add("first")
		time.Sleep(2 * time.Second)
		if !has("first") {
			t.Error("a single change was not seen within 2 s")
		}
		before := listings.Load()
		for n := range 3000 { // ten a second for five minutes
			add(fmt.Sprintf("t%d", n%7))
			server.RemoveTools(fmt.Sprintf("t%d", (n+3)%7))
			time.Sleep(100 * time.Millisecond)
		}
		add("last")
		if got := listings.Load() - before; got < 5 || got > 20 {
			t.Errorf("%d listings in five minutes", got)
		}
		time.Sleep(longestListGap)
		if !has("last") {
			t.Error("the last change was not seen")
		}
		time.Sleep(2 * longestListGap)
		add("later")
		time.Sleep(2 * time.Second)
		if !has("later") {
			t.Error("after the storm a change was not seen within 2 s")
		}
	})
}
