//go:build unix

package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// silent is a server that never answers; whoever waited for it would wait for as long as
// the test may take.
func silentServer(t *testing.T) Spec {
	s := script{Discover: []string{"hang"}, Initialize: []string{"hang"}}.stdio(t)
	s.Name, s.Limits.ConnectTimeout = "silent", time.Hour
	return s
}

func TestAwaitWaitsForNoOther(t *testing.T) {
	broken := script{Start: "exit"}.stdio(t)
	broken.Name = "broken"
	s := open(t, Options{MaxRestarts: 1, RetryMax: time.Hour}, script{}.stdio(t), silentServer(t), broken) // broken is not tried again, whenever it is awaited
	s.Await(t.Context(), "fake")
	if len(s.Tools()["fake"]) == 0 {
		t.Error("it has listed no tools")
	}
	s.Await(t.Context(), "broken")
	s.Await(t.Context(), "unknown")
	for _, st := range s.Status() {
		if want := map[string]State{"fake": Connected, "silent": Connecting, "broken": Parked}[st.Name]; st.State != want {
			t.Errorf("%s is %s, want %s", st.Name, st.State, want)
		}
	}
	if diff := cmp.Diff([]string{"silent"}, s.Pending()); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Await(ctx, "silent")
	if err := s.WaitReady(t.Context(), "fake", "broken"); err != nil {
		t.Error(err)
	}
}

// Await has a server that failed before tried again, once.
func TestAwaitTriesAgain(t *testing.T) {
	s := open(t, Options{RetryMin: time.Millisecond, RetryMax: time.Millisecond}, script{Initialize: []string{"crash", "crash", ""}, Log: t.TempDir() + "/log"}.stdio(t))
	for range 10 {
		s.Await(t.Context(), "fake")
		if len(s.Tools()["fake"]) > 0 {
			return
		}
	}
	t.Errorf("it has not connected: %+v", s.Status())
}

// A server that is connected and cannot list its tools is not waited for either.
func TestAwaitOfToolsThatCannotBeListed(t *testing.T) {
	s := open(t, Options{RetryMin: time.Hour, RetryMax: time.Hour}, script{List: []string{"error", "error", "error"}}.stdio(t))
	for range 2 {
		s.Await(t.Context(), "fake")
		if st := s.Status()[0]; st.State != Unhealthy {
			t.Errorf("it is %s: %s", st.State, st.Err)
		}
	}
}

// What a program has written is said while it is waited for, without secrets.
func TestAServerThatIsWaitedForSaysWhy(t *testing.T) {
	spec := silentServer(t)
	spec.Name, spec.Env["SECRET"] = "fake", "canary-hunter2"
	spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"says"`, 1)
	s := open(t, Options{}, spec)
	eventually(t, "said", func() bool { return s.Status()[0].Said != "" })
	st := s.Status()[0]
	if want := "it has not answered yet; its stderr ends: loading with [hidden]"; st.Why() != want {
		t.Errorf("got %q, want %q", st.Why(), want)
	}
	if st.Err = "gone"; st.Why() != "gone" {
		t.Errorf("got %q", st.Why())
	}
}

// A server that never answered is not given time to end by itself: it has nothing to end.
// This one would take it all, since it does not end at the end of its stdin.
func TestWhatHasNotAnsweredEndsAtOnce(t *testing.T) {
	spec := silentServer(t)
	spec.Env[fakeVariable] = strings.Replace(spec.Env[fakeVariable], `"Start":""`, `"Start":"says"`, 1)
	s := open(t, Options{}, spec)
	eventually(t, "started", func() bool { return s.Status()[0].Said != "" })
	s.mu.Lock()
	one := s.servers["silent"]
	s.mu.Unlock()
	one.mu.Lock()
	child := one.child
	one.mu.Unlock()
	s.Close()
	if text := child.cmd.ProcessState.String(); !strings.Contains(text, "terminated") {
		t.Errorf("it ended otherwise than by a signal: %s", text)
	}
}

// The time to connect is that of all attempts together, and of the listing.
func TestConnectTimeoutIsForAllAttempts(t *testing.T) {
	type attempt struct {
		era   Protocol
		limit time.Duration
	}
	for _, row := range []struct {
		name  string
		takes []time.Duration // that attempts take; 0: all the time they have
		want  []attempt
		spent time.Duration
	}{
		{"both are silent", []time.Duration{0, 0}, []attempt{{Auto, 30 * time.Second}, {Legacy, 10 * time.Second}}, 40 * time.Second},
		{"the first ends at once", []time.Duration{time.Second, 0}, []attempt{{Auto, 30 * time.Second}, {Legacy, 39 * time.Second}}, 40 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := newServer(Spec{Name: "fake", Command: "none", Limits: Limits{ConnectTimeout: 40 * time.Second}}, Options{})
				defer one.stop()
				var made []attempt
				began := time.Now()
				_, err := one.makeSession(began.Add(one.spec.Limits.connectTimeout()), func(era Protocol, limit time.Duration) (*session, error) {
					took := row.takes[len(made)]
					if made = append(made, attempt{era, limit}); took == 0 {
						took = limit
					}
					time.Sleep(took)
					return nil, errors.New("silent")
				})
				if err == nil {
					t.Error("it is connected")
				}
				if !slices.Equal(made, row.want) || time.Since(began) != row.spent {
					t.Errorf("attempts %v in %v, want %v in %v", made, time.Since(began), row.want, row.spent)
				}
			})
		})
	}
}

func TestAMissingProgram(t *testing.T) {
	_, err := lookPath("npx", []string{"PATH=/nowhere:/no/more"})
	if err == nil {
		t.Fatal("it is found")
	}
	for _, want := range []string{"executable file not found", `"npx"`, "short PATH", "whole path", "/nowhere:/no/more"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if brief := Brief("starting the process: " + err.Error()); brief != `starting the process: executable file not found: no folder of the PATH has "npx"` {
		t.Errorf("a table has %q", brief)
	}
	if other := "the process ended: exit status 1"; Brief(other) != other {
		t.Errorf("a table has %q for %q", Brief(other), other)
	}
}
