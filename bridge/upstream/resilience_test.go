//go:build unix

package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// is waits until the server is in a state, and returns its status.
func is(t *testing.T, s *Set, want State) (st Status) {
	t.Helper()
	eventually(t, "was "+string(want), func() bool {
		st = s.Status()[0]
		return st.State == want
	})
	return st
}

// requests is how many times a fake was asked for something, over all its
// processes.
func requests(log, method string) int {
	data, _ := os.ReadFile(log)
	return strings.Count(string(data), method)
}

func TestIdleServerStopsAndACallStartsIt(t *testing.T) {
	spec := script{}.stdio(t)
	spec.IdleStop = 10 * time.Millisecond
	s := open(t, Options{}, spec)
	ready(t, s)
	for range 3 {
		before := is(t, s, Idle)
		want := Status{Name: "fake", Kind: Stdio, State: Idle, Tools: len(s.Tools()["fake"])}
		if diff := cmp.Diff(want, before, cmpopts.IgnoreFields(Status{}, "Since", "Answered", "Protocol", "Program", "Version")); diff != "" || before.Tools == 0 {
			t.Errorf("status of %d tools (-want +got):\n%s", before.Tools, diff)
		}
		if got := call(t, s, "exact", ""); got != exact {
			t.Errorf("got %s", got)
		}
	}
	st := is(t, s, Idle)
	s.Reconnect("fake")
	eventually(t, "started again", func() bool { return s.Status()[0].Since.After(st.Since) })
}

func TestIdleMeansThatNoCallIsUnderWay(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	spec := script{Call: []string{"hang"}, Log: log}.stdio(t)
	spec.IdleStop = time.Hour // this test says when
	s := open(t, Options{}, spec)
	connected(t, s)
	one := s.servers["fake"]
	later := func() { // it was used long ago
		one.mu.Lock()
		defer one.mu.Unlock()
		one.use.last = time.Now().Add(-2 * time.Hour)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = s.Call(ctx, "fake", "", "exact", nil)
	}()
	eventually(t, "called", func() bool { return requests(log, "tools/call") == 1 })
	later()
	if _, ok := one.fallAsleep(); ok {
		t.Error("it fell asleep in the middle of a call")
	}
	cancel()
	<-over
	later()
	if _, ok := one.fallAsleep(); !ok {
		t.Error("it did not fall asleep after the call")
	}
	one.mu.Lock()
	one.session = nil // as if watch had ended it
	one.mu.Unlock()
}

func TestAProcessThatFailsAgainAndAgainIsParked(t *testing.T) {
	spec := script{Start: "exit"}.stdio(t)
	s := open(t, Options{RetryMin: time.Millisecond, RetryMax: time.Hour, MaxRestarts: 1}, spec)
	ready(t, s)
	st := is(t, s, Parked)
	for _, want := range []string{"failed 1 times in a row", "not started again by itself", "a call after " + clock(st.Until), "exit status 3"} {
		if !strings.Contains(st.Err, want) {
			t.Errorf("%q is not in %s", want, st.Err)
		}
	}
	e := failure(t, s, "exact", "")
	if e.Kind != Unavailable || e.Sent || !strings.Contains(e.Error(), "the server is parked: it failed 1 times in a row") {
		t.Errorf("got %s, sent %v: %v", e.Kind, e.Sent, e)
	}
	if s.Status()[0].Failures != 1 {
		t.Error("a call before its time started it")
	}
	s.Reconnect("fake")
	eventually(t, "tried again", func() bool { st := s.Status()[0]; return st.State == Parked && st.Failures == 2 })
	edited := spec
	edited.Limits.Timeout++
	s.Apply([]Spec{edited})
	eventually(t, "tried anew", func() bool { st := s.Status()[0]; return st.State == Parked && st.Failures == 1 })
}

// The same failure again and again is one line of the log, and being given up
// another.
func TestTheLogIsToldOnceWhyAServerFails(t *testing.T) {
	var text lockedText
	log := slog.New(slog.NewTextHandler(&text, nil))
	s := open(t, Options{RetryMin: time.Millisecond, RetryMax: time.Millisecond, MaxRestarts: 5, Logger: log}, script{Start: "exit"}.stdio(t))
	is(t, s, Parked)
	eventually(t, "logged", func() bool { return strings.Contains(text.String(), "server parked") })
	if n := strings.Count(text.String(), "server failed"); n != 1 {
		t.Errorf("the log has %d lines of it:\n%s", n, text.String())
	}
}

// A lockedText is a log that is written while it is read.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAParkedProcessIsTriedByALaterCall(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	spec := script{Initialize: []string{"crash", "crash", ""}, Log: log}.stdio(t)
	spec.Protocol = Legacy
	s := open(t, Options{RetryMin: time.Millisecond, RetryMax: time.Millisecond, MaxRestarts: 2}, spec)
	ready(t, s)
	is(t, s, Parked)
	eventually(t, "free to be tried", func() bool { return time.Now().After(s.Status()[0].Until) })
	if got := requests(log, "initialize"); got != 2 {
		t.Errorf("started %d times without a call", got)
	}
	if got := call(t, s, "exact", ""); got != exact {
		t.Errorf("got %s", got)
	}
	if st := s.Status()[0]; st.State != Connected || !st.Until.IsZero() {
		t.Errorf("status is %+v", st)
	}
}

// A server whose tools are not known any more keeps those that it had, and says
// that something is wrong.
func TestFailedListing(t *testing.T) {
	wires(t, script{List: []string{"", "error", "notobject", "error", ""}}, func(t *testing.T, spec Spec) {
		states := make(chan State, 1000)
		var s *Set
		s = New(Options{Poll: 20 * time.Millisecond, RetryMin: time.Millisecond, Changed: func() {
			for _, st := range s.Status() {
				states <- st.State
				if st.State == Unhealthy && (st.Tools == 0 || st.Tools != len(s.Tools()["fake"]) || !strings.Contains(st.Err, "its tools are those that it listed before")) {
					t.Errorf("status is %+v", st)
				}
			}
		}})
		defer s.Close()
		s.Apply([]Spec{spec})
		var seen []State
		for want := range slices.Values([]State{Connected, Unhealthy, Connected}) {
			for state := range states {
				if state == want {
					break
				}
			}
			seen = append(seen, want)
		}
		if got := call(t, s, "exact", ""); got != exact || len(seen) != 3 {
			t.Errorf("got %s after %v", got, seen)
		}
	})
	t.Run("at first", func(t *testing.T) {
		wires(t, script{List: []string{"error"}}, func(t *testing.T, spec Spec) {
			s := open(t, Options{}, spec)
			ready(t, s)
			st := s.Status()[0]
			if st.State != Unhealthy || st.Tools != 0 || st.Err != "the server says that it has tools, and does not know the request that lists them" {
				t.Errorf("status is %+v", st)
			}
			e := failure(t, s, "exact", "")
			if e.Kind != UnknownTool || !strings.Contains(e.Error(), "its last listing failed: the server says that it has tools") {
				t.Errorf("got %v", e)
			}
		})
	})
}

// The stream of announcements is missed when it ends, and opened again.
func TestLostListenStream(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	spec := script{Modern: true, Listen: []string{"drop", "refuse", ""}, List: []string{"change"}, Log: log}.http(t)
	s := open(t, Options{Poll: time.Hour}, spec)
	connected(t, s)
	first := s.Tools()["fake"][0].Name
	eventually(t, "listed again", func() bool { return s.Tools()["fake"][0].Name != first })
	eventually(t, "listened again", func() bool { return requests(log, "subscriptions/listen") == 3 })
	if st := s.Status()[0]; st.State != Connected {
		t.Errorf("status is %+v", st)
	}
}

func TestRefusedListenCostsNothingElse(t *testing.T) {
	s := open(t, Options{}, script{Modern: true, Listen: []string{"refuse"}}.http(t))
	connected(t, s)
	if got := call(t, s, "exact", ""); got != exact {
		t.Errorf("got %s", got)
	}
	if st := s.Status()[0]; st.Protocol != firstModern {
		t.Errorf("status is %+v", st)
	}
}

// Every way of not answering says what did not answer. All servers stand in one Set, which
// waits for them at the same time.
func TestHangsAreToldApart(t *testing.T) {
	leavesNothing(t)
	type hang struct {
		script script
		state  State
		text   string
	}
	var specs []Spec
	hangs := map[string]hang{}
	for i, row := range []hang{
		{script{Discover: []string{"hang"}, Initialize: []string{"hang"}}, Failed, "it did not answer the handshake within 600ms"},
		{script{List: []string{"hang"}}, Failed, "listing its tools: no answer within 12s"},
		{script{Call: []string{"hang", ""}}, Connected, "no answer within 300ms; outcome unknown"},
		{script{Call: []string{"slow-5", ""}}, Connected, "no answer within 300ms; outcome unknown"},
	} {
		for _, w := range row.script.wires() {
			spec := w.spec(t)
			spec.Name = fmt.Sprint(i, " ", w.name)
			spec.Limits.ConnectTimeout, spec.Limits.Timeout = 600*time.Millisecond, 300*time.Millisecond
			if row.state == Connected {
				spec.Limits.ConnectTimeout = 3 * time.Minute
			} else {
				spec.Protocol = Legacy
				if row.script.List != nil {
					spec.Limits.ConnectTimeout = 12 * time.Second // the handshake must be answered in it
				}
				if row.script.Discover == nil && spec.URL != "" {
					spec.Protocol = Auto
				}
			}
			specs, hangs[spec.Name] = append(specs, spec), row
		}
	}
	s := beside(t, Options{RetryMin: time.Hour, RetryMax: time.Hour, MaxFailures: 1000}, specs...)
	ready(t, s)
	var calls sync.WaitGroup
	defer calls.Wait()
	for _, st := range s.Status() {
		row := hangs[st.Name]
		switch {
		case st.State != row.state:
			t.Errorf("%s is %s: %s", st.Name, st.State, st.Err)
		case row.state != Connected:
			if !strings.Contains(st.Err, row.text) {
				t.Errorf("%s: %q is not in %s", st.Name, row.text, st.Err)
			}
		default:
			calls.Go(func() {
				if _, err := s.Call(t.Context(), st.Name, "", "exact", nil); err == nil || !strings.Contains(err.Error(), row.text) {
					t.Errorf("%s: %q is not in %v", st.Name, row.text, err)
				}
				for end := time.Now().Add(3 * time.Minute); ; {
					result, err := s.Call(t.Context(), st.Name, "", "exact", nil)
					if err == nil && string(result) == exact {
						return
					}
					if time.Now().After(end) {
						t.Errorf("%s never answered again: %s, %v", st.Name, result, err)
						return
					}
				}
			})
		}
	}
}

// An address where something takes connections and never says a word.
func TestNeverEndingConnect(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, kind := range []Kind{HTTP, SSE} {
		spec := Spec{Name: "fake", Kind: kind, URL: "http://" + silent.Addr().String(), Limits: Limits{ConnectTimeout: 300 * time.Millisecond}}
		s := open(t, Options{RetryMin: time.Hour, RetryMax: time.Hour}, spec)
		ready(t, s)
		if st := s.Status()[0]; st.State != Failed || !strings.Contains(st.Err, "it did not answer the handshake within 300ms") {
			t.Errorf("%s: status is %+v", kind, st)
		}
	}
}

// A standing stream that breaks takes the calls that wait for it along, and
// they say so.
func TestCrashesOverSSE(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for name, sc := range map[string]script{
		"initialize": {Initialize: []string{"crash", ""}},
		"list":       {List: []string{"crash", ""}},
		"call":       {Call: []string{"effect", ""}, Log: log},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{RetryMin: time.Millisecond}, sc.sse(t))
			ready(t, s)
			if name == "call" {
				e := failure(t, s, "exact", "")
				if e.Kind != Unavailable || !e.Sent || !strings.Contains(e.Error(), "outcome unknown") {
					t.Errorf("got %s, sent %v: %v", e.Kind, e.Sent, e)
				}
				if requests(log, "effect\n") != 1 {
					t.Error("the effect did not happen once")
				}
			}
			if got := call(t, s, "exact", ""); got != exact {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Half an answer is none, and not one that is wrong: the server may have done
// what it was asked.
func TestHalfAnAnswer(t *testing.T) {
	wires(t, script{Call: []string{"half", ""}}, func(t *testing.T, spec Spec) {
		s := open(t, Options{RetryMin: time.Millisecond, MaxFailures: 1000}, spec)
		connected(t, s)
		e := failure(t, s, "exact", "")
		if e.Kind != Unavailable || !e.Sent || !strings.Contains(e.Error(), "outcome unknown") {
			t.Errorf("got %s, sent %v: %v", e.Kind, e.Sent, e)
		}
	})
}

func TestSSEStatus(t *testing.T) {
	for status, want := range map[int]State{http.StatusUnauthorized: Parked, http.StatusInternalServerError: Failed} {
		s := open(t, Options{RetryMin: time.Hour, RetryMax: time.Hour}, script{Status: status}.sse(t))
		ready(t, s)
		if st := s.Status()[0]; st.State != want {
			t.Errorf("with %d it is %s: %s", status, st.State, st.Err)
		}
	}
}
