//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// open makes a Set that ends with the test and leaves nothing behind.
func open(t *testing.T, o Options, specs ...Spec) *Set {
	t.Helper()
	leavesNothing(t)
	return beside(t, o, specs...)
}

// beside makes a Set that ends with a test which runs in parallel to others:
// the test around them all calls leavesNothing.
func beside(t *testing.T, o Options, specs ...Spec) *Set {
	t.Helper()
	s := New(o)
	t.Cleanup(func() { s.Close() })
	s.Apply(specs)
	return s
}

// leavesNothing looks, after the test and its subtests, for goroutines that
// began in it.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func ready(t *testing.T, s *Set) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatalf("waiting for the servers: %v; they are %+v", err, s.Status())
	}
}

func connected(t *testing.T, s *Set) {
	t.Helper()
	ready(t, s)
	for _, one := range s.Status() {
		if one.State != Connected {
			t.Fatalf("server is %s: %s", one.State, one.Err)
		}
	}
}

// eventually waits until ok, or fails.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("never %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func call(t *testing.T, s *Set, tool, args string) string {
	t.Helper()
	result, err := s.Call(t.Context(), "fake", "", tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	return string(result)
}

// failure calls a tool that must fail and returns the error.
func failure(t *testing.T, s *Set, tool, args string) *Error {
	t.Helper()
	result, err := s.Call(t.Context(), "fake", "", tool, json.RawMessage(args))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("calling %s gave %.200s and error %v, want an *Error", tool, result, err)
	}
	return e
}

// An onWire is a fake on one transport, in one era.
type onWire struct {
	name string
	spec func(t *testing.T) Spec
}

// wires are the fakes that behave as a script says, on every transport and in both eras.
func (s script) wires() (all []onWire) {
	for _, modern := range []bool{false, true} {
		s.Modern = modern
		era := map[bool]string{false: "legacy", true: "modern"}[modern]
		json := s
		json.JSON = true
		plain := s
		all = append(all, onWire{"stdio/" + era, func(t *testing.T) Spec { return plain.stdio(t) }}, onWire{"http/" + era, plain.http})
		if !modern {
			all = append(all, onWire{"sse", plain.sse})
		}
		all = append(all, onWire{"http-json/" + era, json.http})
	}
	return all
}

// wires runs a test on every transport and in both eras.
func wires(t *testing.T, s script, test func(t *testing.T, spec Spec)) {
	for _, w := range s.wires() {
		t.Run(w.name, func(t *testing.T) { test(t, w.spec(t)) })
	}
}

func TestExactBytes(t *testing.T) {
	wires(t, script{}, func(t *testing.T, spec Spec) {
		s := open(t, Options{}, spec)
		if got := call(t, s, "exact", ""); got != exact {
			t.Errorf("result is not as it was sent:\n%s\n%s", got, exact)
		}
		args := `{"n":9007199254740993,"e":1E400,"f":1.10,"s":"<\u003c>","b":[],"a":null}`
		if got, want := call(t, s, "echo", args), `{"content":[],"structuredContent":`+args+`}`; got != want {
			t.Errorf("arguments are not as they were given:\n%s\n%s", got, want)
		}
	})
}

func TestInProcess(t *testing.T) {
	spec := Spec{Name: "fake", Kind: InProcess, InProcess: func(context.Context, *slog.Logger) (*mcp.Server, error) {
		server := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "3"}, nil)
		server.AddTool(&mcp.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{StructuredContent: q.Params.Arguments, Content: []mcp.Content{}}, nil
			})
		return server, nil
	}}
	s := open(t, Options{}, spec)
	connected(t, s)
	if got := call(t, s, "exact", `{"n":9007199254740993}`); !strings.Contains(got, `{"n":9007199254740993}`) {
		t.Errorf("got %s", got)
	}
	if st := s.Status()[0]; st.Program != "inner" || st.Version != "3" || st.Protocol == "" || st.Tools != 1 {
		t.Errorf("status is %+v", st)
	}
}

// A server that cannot be made fails with the reason, asked once, and its
// secrets are not in it. A changed source makes it anew.
func TestInProcessFails(t *testing.T) {
	var asked atomic.Int32
	spec := Spec{Name: "fake", Kind: InProcess, Source: "1", Secrets: []string{"canary-4711"}}
	spec.InProcess = func(context.Context, *slog.Logger) (*mcp.Server, error) {
		asked.Add(1)
		return nil, errors.New("reading the document: bad canary-4711")
	}
	s := open(t, Options{RetryMin: time.Hour, RetryMax: time.Hour}, spec)
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := s.Status()[0]; now.State != Failed || now.Err != "reading the document: bad [hidden]" {
		t.Errorf("got %+v", now)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	life := make(chan context.Context, 1)
	spec.Source = "2"
	spec.InProcess = func(ctx context.Context, _ *slog.Logger) (*mcp.Server, error) {
		life <- ctx
		return mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "3"}, nil), nil
	}
	s.Apply([]Spec{spec})
	connected(t, s)
	s.Apply(nil)
	<-(<-life).Done()
}

func TestListKeepsOddToolsAndDropsNameless(t *testing.T) {
	wires(t, script{Tools: 2500}, func(t *testing.T, spec Spec) {
		spec.Deny = []string{"hid*", "t1??"}
		s := open(t, Options{}, spec)
		connected(t, s)
		tools := s.Tools()["fake"]
		if len(tools) != 4+2500-100 {
			t.Errorf("%d tools", len(tools))
		}
		first := Tool{Name: "exact", Title: "T", Description: "d", Input: json.RawMessage(`{"type":"object","maximum":9007199254740993}`), ReadOnly: new(true)}
		if diff := cmp.Diff(first, tools[0]); diff != "" {
			t.Errorf("first tool (-want +got):\n%s", diff)
		}
		for i, want := range map[int]string{1: "true", 2: "", 3: `"odd"`} {
			if got := string(tools[i].Input); got != want {
				t.Errorf("schema of %s is %q, want %q", tools[i].Name, got, want)
			}
		}
		for _, name := range []string{"hidden", "t150", "nowhere"} {
			if e := failure(t, s, name, ""); e.Kind != UnknownTool || e.Sent {
				t.Errorf("calling %s: %+v", name, e)
			}
		}
	})
}

// What a server may do wrong without any harm to a call.
func TestHarmlessFaults(t *testing.T) {
	for _, fault := range []string{"slow", "garbage", "wrongid", "noid", "twice", "dup", "case", "batch", "notify-20", "ask-500"} {
		for _, split := range []bool{false, true} {
			if split && strings.Contains(fault, "-") {
				continue // floods by the byte add nothing but time
			}
			s := script{Call: []string{fault}, List: []string{fault}, Initialize: []string{fault}, Split: split}
			if fault == "slow" {
				s.List = nil
			}
			test := func(t *testing.T, spec Spec) {
				s := open(t, Options{}, spec)
				for range 2 {
					if got := call(t, s, "exact", ""); got != exact {
						t.Errorf("got %s", got)
					}
				}
			}
			name := fault + map[bool]string{true: "/split"}[split]
			t.Run(name+"/stdio", func(t *testing.T) { test(t, s.stdio(t)) })
			if fault != "slow" { // writes bytes that are no events
				t.Run(name+"/http", func(t *testing.T) { test(t, s.http(t)) })
			}
		}
	}
}

func TestBannerAndStderrFlood(t *testing.T) {
	for _, start := range []string{"banner", "flood:20000"} {
		t.Run(start, func(t *testing.T) {
			s := open(t, Options{}, script{Start: start}.stdio(t))
			if got := call(t, s, "exact", ""); got != exact {
				t.Errorf("got %s", got)
			}
		})
	}
}

// One call fails, with an error that says why, and the connection goes on.
func TestFaultsOfOneCall(t *testing.T) {
	for _, row := range []struct {
		fault string
		kind  ErrorKind
		text  string
	}{
		{"huge-3", TooLarge, "larger than the limit of 1 MB"},
		{"items-100", TooLarge, "larger than the limit of 1 MB"},
		{"deep-200", BadReply, "nested more than"},
		{"error", BadReply, "error -32601: method not found"},
		{"odderror", BadReply, "an error without a message"},
		{"notobject", BadReply, "not an object"},
	} {
		t.Run(row.fault, func(t *testing.T) {
			wires(t, script{Call: []string{row.fault, ""}}, func(t *testing.T, spec Spec) {
				spec.Limits.MaxReply = 1 << 20
				s := open(t, Options{}, spec)
				connected(t, s)
				since := s.Status()[0].Since
				e := failure(t, s, "exact", "")
				if e.Kind != row.kind || !e.Sent || !strings.Contains(e.Error(), row.text) || !strings.Contains(e.Error(), "server fake") {
					t.Errorf("got %s, sent %v: %v", e.Kind, e.Sent, e)
				}
				if got := call(t, s, "exact", ""); got != exact {
					t.Errorf("the next call gave %s", got)
				}
				if got := s.Status()[0].Since; got != since {
					t.Error("the connection did not survive")
				}
			})
		})
	}
}

func TestWireErrorIsInTheChain(t *testing.T) {
	s := open(t, Options{}, script{Call: []string{"error"}}.stdio(t))
	var wire *jsonrpc.Error
	if e := failure(t, s, "exact", ""); !errors.As(e, &wire) || wire.Code != -32601 {
		t.Errorf("got %v", e)
	}
}

func TestLargeReplyTakesLittleMemory(t *testing.T) {
	for _, transport := range []string{"stdio", "http", "http-json"} {
		for _, fault := range []string{"huge-20", "items-2000"} {
			t.Run(transport+"/"+fault, func(t *testing.T) {
				sc := script{Call: []string{fault}, JSON: transport == "http-json"}
				spec := sc.stdio(t)
				if transport != "stdio" {
					spec = sc.http(t)
				}
				spec.Limits.MaxReply, spec.Limits.Timeout = 2<<20, 2*time.Minute
				s := open(t, Options{}, spec)
				connected(t, s)
				runtime.GC()
				base := inUse()
				stop, peak := make(chan struct{}), make(chan uint64)
				go func() {
					var most uint64
					for {
						select {
						case <-stop:
							peak <- most
							return
						case <-time.After(2 * time.Millisecond):
							most = max(most, inUse())
						}
					}
				}()
				e := failure(t, s, "exact", "")
				close(stop)
				most := <-peak
				if e.Kind != TooLarge || !strings.Contains(e.Error(), "2 MB") {
					t.Errorf("got %v", e)
				}
				if most > base+16<<20 {
					t.Errorf("heap went from %d MB to %d MB", base>>20, most>>20)
				}
			})
		}
	}
}

// inUse is the heap in bytes, garbage included.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func TestLineWithoutEndEndsTheSession(t *testing.T) {
	spec := script{Call: []string{"endless"}}.stdio(t)
	spec.Limits.MaxReply = 1 << 20
	s := open(t, Options{}, spec)
	e := failure(t, s, "exact", "")
	if e.Kind != Unavailable || !strings.Contains(e.Error(), "a line of more than 64 MB has no end") {
		t.Errorf("got %v", e)
	}
}

func TestEndlessHTTPReply(t *testing.T) {
	spec := script{Call: []string{"endless", ""}, JSON: true}.http(t)
	s := open(t, Options{}, spec)
	if e := failure(t, s, "exact", ""); e.Kind != TooLarge {
		t.Errorf("got %v", e)
	}
	call(t, s, "exact", "")
}

func TestCrashInCall(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	s := open(t, Options{RetryMin: time.Millisecond}, script{Log: log}.stdio(t))
	connected(t, s)
	e := failure(t, s, "fail", `{"effect":""}`)
	for _, want := range []string{"ended while the call was under way", "exit status 7", "out of cheese", "outcome unknown"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q is not in: %v", want, e)
		}
	}
	if e.Kind != Unavailable || !e.Sent {
		t.Errorf("got %s, sent %v", e.Kind, e.Sent)
	}
	if got := call(t, s, "exact", ""); got != exact {
		t.Errorf("the next call gave %s", got)
	}
	if data, _ := os.ReadFile(log); strings.Count(string(data), "effect\n") != 1 {
		t.Errorf("the effect did not happen once: %s", data)
	}
}

func TestCrashInCallOverHTTP(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		s := open(t, Options{}, script{Call: []string{"effect", ""}, JSON: asJSON}.http(t))
		e := failure(t, s, "exact", "")
		if e.Kind != Unavailable || !e.Sent || !strings.Contains(e.Error(), "outcome unknown") {
			t.Errorf("got %s, sent %v: %v", e.Kind, e.Sent, e)
		}
		if got := call(t, s, "exact", ""); got != exact {
			t.Errorf("the next call gave %s", got)
		}
	}
}

func TestTimeoutAndCancelReachTheServer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	spec := script{Call: []string{"hang", "hang", ""}, Log: log}.stdio(t)
	spec.Limits.Timeout = 3 * time.Second
	s := open(t, Options{}, spec)
	connected(t, s)
	e := failure(t, s, "exact", "")
	if e.Kind != Timeout || !e.Sent || !strings.Contains(e.Error(), "no answer within 3s; outcome unknown") {
		t.Errorf("got %v", e)
	}
	said := func(what string) int {
		data, _ := os.ReadFile(log)
		return strings.Count(string(data), what)
	}
	ctx, cancel := context.WithCancel(t.Context())
	canceled := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, "fake", "", "exact", nil)
		canceled <- err
	}()
	eventually(t, "called again", func() bool { return said("tools/call") == 2 })
	cancel()
	err := <-canceled
	if !errors.As(err, &e) || e.Kind != Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	call(t, s, "exact", "")
	eventually(t, "told of both", func() bool { return said("notifications/cancelled") == 2 })
}

func TestTimeoutOverHTTP(t *testing.T) {
	for name, asJSON := range map[string]bool{"events": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			spec := script{Call: []string{"hang", ""}, JSON: asJSON}.http(t)
			spec.Limits.Timeout = 3 * time.Second
			s := open(t, Options{}, spec)
			if e := failure(t, s, "exact", ""); e.Kind != Timeout || !e.Sent {
				t.Errorf("got %v", e)
			}
			call(t, s, "exact", "")
		})
	}
}

func TestAServerAsksForInput(t *testing.T) {
	wires(t, script{}, func(t *testing.T, spec Spec) {
		s := open(t, Options{}, spec)
		if e := failure(t, s, "ask", ""); e.Kind != BadReply || !strings.Contains(e.Error(), "asked for input") {
			t.Errorf("got %v", e)
		}
	})
}

func TestProgressComesInOrderAndNotAfterTheCall(t *testing.T) {
	wires(t, script{Call: []string{"progress-50"}}, func(t *testing.T, spec Spec) {
		if strings.Contains(t.Name(), "json") {
			t.Skip("one JSON answer has no room for reports")
		}
		s := open(t, Options{}, spec)
		var mu sync.Mutex
		var got []float64
		returned := false
		ctx := WithClient(t.Context(), &fakeClient{progress: func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			if returned || p.Total != 50 || p.Message != "m" || p.Server != "fake" {
				t.Errorf("report %+v, call returned %v", p, returned)
			}
			got = append(got, p.Progress)
		}})
		if _, err := s.Call(ctx, "fake", "", "exact", nil); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		returned = true
		if len(got) != 50 || !slices.IsSorted(got) {
			t.Errorf("got %v", got)
		}
	})
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	leavesNothing(t)
	missing := Spec{Name: "fake", Command: "no-such-program-anywhere"}
	elsewhere := script{}.stdio(t)
	elsewhere.Dir = filepath.Join(t.TempDir(), "missing")
	exits := script{Start: "exit"}.stdio(t)
	exits.Env["SECRET"] = "canary-hunter2"
	garbage := script{Start: "yes"}.stdio(t)
	garbage.Protocol, garbage.Limits.ConnectTimeout = Legacy, 10*time.Second // it must have started by then
	silent := script{Discover: []string{"hang"}, Initialize: []string{"hang"}}.stdio(t)
	silent.Limits.ConnectTimeout = time.Second
	noList := script{List: []string{"crash"}}.stdio(t)
	endless := script{Start: "endless"}.stdio(t)
	endless.Limits.MaxReply = 1 << 16
	refused := Spec{Name: "fake", URL: "http://127.0.0.1:1/mcp?key=canary-hunter2"}
	for name, row := range map[string]struct {
		spec Spec
		want []string
	}{
		"missing":       {missing, []string{"no-such-program-anywhere", "not found"}},
		"no directory":  {elsewhere, []string{"no such file or directory"}},
		"exits":         {exits, []string{"exit status 3", "no API key in [hidden]"}},
		"garbage":       {garbage, []string{"did not answer the handshake within 10s", `such as "y"`}},
		"silent":        {silent, []string{"did not answer the handshake within 1s"}},
		"crash in list": {noList, []string{"listing its tools", "exit status 7", "out of cheese"}},
		"endless":       {endless, []string{"has no end"}},
		"refused":       {refused, []string{"connection refused"}},
		"no URL":        {Spec{Name: "fake", Kind: HTTP, URL: "ftp://x"}, []string{"not an http or https URL"}},
		"unknown kind":  {Spec{Name: "fake", Kind: "carrier pigeon"}, []string{"carrier pigeon"}},
		"not modern":    {func() Spec { s := script{}.stdio(t); s.Protocol = Modern; return s }(), []string{"speaks MCP 2025-11-25"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := beside(t, Options{RetryMin: time.Hour, RetryMax: time.Hour}, row.spec)
			ready(t, s)
			st := s.Status()[0]
			if st.State != Failed {
				t.Fatalf("state is %s", st.State)
			}
			for _, want := range row.want {
				if !strings.Contains(st.Err, want) {
					t.Errorf("%q is not in: %s", want, st.Err)
				}
			}
			if strings.Contains(st.Err, "canary") {
				t.Errorf("a secret is shown: %s", st.Err)
			}
			if _, ok := s.Tools()["fake"]; ok {
				t.Error("it has tools")
			}
		})
	}
}

func TestOneBadServerCostsOnlyItsOwn(t *testing.T) {
	good := script{}.stdio(t)
	bad := script{Start: "yes"}.stdio(t)
	bad.Name = "bad"
	s := open(t, Options{}, good, bad)
	if got := call(t, s, "exact", ""); got != exact {
		t.Errorf("got %s", got)
	}
}

func TestProbe(t *testing.T) {
	leavesNothing(t)
	for name, row := range map[string]struct {
		script   script
		protocol string
	}{
		"modern":              {script{Modern: true}, "2026-07-28"},
		"refuses":             {script{}, "2025-11-25"},
		"ends":                {script{Discover: []string{"crash"}}, "2025-11-25"},
		"is silent":           {script{Discover: []string{"hang"}}, "2025-11-25"},
		"is silent for ever":  {script{Discover: []string{"hang"}, Initialize: []string{"hang", ""}}, "2025-11-25"},
		"answers with a list": {script{Discover: []string{"notobject"}}, "2025-11-25"},
	} {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				row.script.Log = filepath.Join(t.TempDir(), "log")
				spec := row.script.stdio(t)
				if transport == "http" {
					spec = row.script.http(t)
				}
				t.Parallel() // from here on, since the rows share a script
				if row.script.Discover != nil && row.script.Discover[0] == "hang" {
					spec.Limits.ConnectTimeout = 24 * time.Second // a quarter of it must do for the handshake
				}
				s := beside(t, Options{}, spec)
				connected(t, s)
				if got := s.Status()[0].Protocol; got != row.protocol {
					t.Errorf("protocol is %s", got)
				}
				call(t, s, "exact", "")
			})
		}
	}
}

func TestCredentialsRefused(t *testing.T) {
	for _, status := range []int{401, 403} {
		changes := make(chan struct{}, 1000)
		s := open(t, Options{RetryMin: time.Millisecond, Changed: func() { changes <- struct{}{} }}, script{Status: status}.http(t))
		ready(t, s)
		st := s.Status()[0]
		if st.State != Parked || !strings.Contains(st.Err, strconv.Itoa(status)) {
			t.Errorf("status is %+v", st)
		}
		if e := failure(t, s, "exact", ""); e.Kind != Unavailable || e.Sent {
			t.Errorf("got %v", e)
		}
		since := s.Status()[0].Since
		if since != st.Since {
			t.Error("a call woke a parked server")
		}
		s.Reconnect("fake")
		eventually(t, "tried again", func() bool { return s.Status()[0].Since != st.Since && s.Status()[0].State == Parked })
	}
}

func TestListings(t *testing.T) {
	for _, row := range []struct {
		fault string
		tools int
	}{{"cursor", 1}, {"cursors", 0}} {
		t.Run(row.fault, func(t *testing.T) {
			wires(t, script{List: []string{row.fault}}, func(t *testing.T, spec Spec) {
				s := open(t, Options{}, spec)
				connected(t, s)
				if got := len(s.Tools()["fake"]); got != row.tools {
					t.Errorf("%d tools", got)
				}
			})
		})
	}
	t.Run("ten thousand", func(t *testing.T) {
		s := open(t, Options{}, script{Tools: 10_000}.stdio(t))
		connected(t, s)
		if got := len(s.Tools()["fake"]); got != 10_005 {
			t.Errorf("%d tools", got)
		}
	})
	t.Run("too many", func(t *testing.T) {
		s := open(t, Options{}, script{Tools: 120_000}.stdio(t))
		connected(t, s)
		if got := len(s.Tools()["fake"]); got != maxTools {
			t.Errorf("%d tools", got)
		}
	})
}

func TestChangesAreNoticed(t *testing.T) {
	for name, spec := range map[string]Spec{
		"announced": script{List: []string{"change"}}.stdio(t),
		"polled":    script{List: []string{"change"}, JSON: true}.http(t),
	} {
		t.Run(name, func(t *testing.T) {
			changed := make(chan struct{}, 1000)
			s := open(t, Options{Poll: 50 * time.Millisecond, Changed: func() { changed <- struct{}{} }}, spec)
			connected(t, s)
			first := s.Tools()["fake"][0].Name
			eventually(t, "changed", func() bool { return s.Tools()["fake"][0].Name != first })
			<-changed
		})
	}
}

func TestApplyTouchesOnlyWhatChanged(t *testing.T) {
	a, b := script{}.stdio(t), script{}.stdio(t)
	a.Name, b.Name = "a", "b"
	s := open(t, Options{}, a, b)
	connected(t, s)
	before := s.Status()
	b.Limits.Timeout++
	c := b
	c.Name, c.Disabled = "c", true
	s.Apply([]Spec{c, b, a})
	ready(t, s)
	eventually(t, "connected again", func() bool { return s.Status()[1].State == Connected })
	after := s.Status()
	if len(after) != 3 || after[0] != before[0] || after[1].PID == before[1].PID || after[2].State != Disabled {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	if alive(before[1].PID) {
		t.Error("the old process is still there")
	}
	s.Apply(nil)
	if len(s.Status()) != 0 {
		t.Error("servers are left")
	}
	if e := failure(t, s, "exact", ""); e.Kind != UnknownServer {
		t.Errorf("got %v", e)
	}
	eventually(t, "ended", func() bool { return !alive(after[0].PID) && !alive(after[1].PID) })
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ") // a zombie is dead
}

func TestChildSeesOnlyItsEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	spec := script{Start: "env:" + file}.stdio(t)
	spec.Env["MINE"] = "1"
	spec.PassEnv = []string{"PASSED"}
	other := script{}.stdio(t)
	other.Name = "other"
	other.Env["CANARY_OTHER"] = "canary"
	s := open(t, Options{Environ: []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_X=1", "PASSED=p", "CANARY_TOKEN=canary", "GITHUB_TOKEN=canary", "PATHOLOGY=canary"}}, spec, other)
	connected(t, s)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(string(data), "\n") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{marker, "HOME", "LC_ALL", "MINE", "PASSED", "PATH", fakeVariable, fakeRun, "XDG_X"}; !slices.Equal(names, want) {
		t.Errorf("the child sees %v, want %v", names, want)
	}
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	for _, start := range []string{"stubborn", "family", "orphans"} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			if start != "stubborn" && runtime.GOOS != "linux" {
				t.Skip("a daemon in a session of its own is found on Linux only")
			}
			file := filepath.Join(t.TempDir(), "pids")
			spec := script{Start: start + ":" + file}.stdio(t)
			s := New(Options{})
			s.Apply([]Spec{spec})
			connected(t, s)
			pids := []int{s.Status()[0].PID}
			data, _ := os.ReadFile(file)
			for _, line := range strings.Fields(string(data)) {
				pid, _ := strconv.Atoi(line)
				pids = append(pids, pid)
			}
			if want := map[string]int{"stubborn": 1}[start]; want == 0 && len(pids) != 3 {
				t.Fatalf("processes %v", pids)
			}
			s.Close()
			for _, pid := range pids {
				eventually(t, "ended", func() bool { return !alive(pid) })
			}
		})
	}
}

// Random faults at every stage, from a seed: whatever happens, each call ends
// with the exact result or an error of a known kind, and the set closes.
func TestRandomFaults(t *testing.T) {
	leavesNothing(t)
	faults := []string{"", "", "crash", "effect", "hang", "error", "odderror", "huge-2", "deep-20", "garbage", "wrongid", "noid", "twice", "dup", "case", "batch", "notobject", "notify-3", "ask-100", "progress-3"}
	kinds := []ErrorKind{Unavailable, Timeout, Canceled, BadReply, TooLarge, UnknownTool}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 0))
		pick := func() []string {
			words := make([]string, 1+r.IntN(4))
			for i := range words {
				words[i] = faults[r.IntN(len(faults))]
			}
			return words
		}
		sc := script{Initialize: pick(), List: pick(), Call: pick(), Modern: r.IntN(2) == 0, JSON: r.IntN(2) == 0, Split: r.IntN(4) == 0}
		if r.IntN(2) == 0 {
			sc.Discover = pick()
		}
		for _, transport := range []string{"stdio", "http"} {
			t.Run(strconv.FormatUint(seed, 10)+"/"+transport, func(t *testing.T) {
				t.Parallel()
				spec := sc.stdio(t)
				if transport == "http" {
					spec = sc.http(t)
				}
				spec.Limits.ConnectTimeout, spec.Limits.Timeout, spec.Limits.MaxReply = time.Second, 500*time.Millisecond, 1<<20
				s := beside(t, Options{RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond}, spec)
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() {
						for range 3 {
							result, err := s.Call(t.Context(), "fake", "", "exact", nil)
							var e *Error
							switch {
							case err == nil && string(result) != exact:
								t.Errorf("%+v gave the result %.200s", sc, result)
							case err != nil && (!errors.As(err, &e) || !slices.Contains(kinds, e.Kind)):
								t.Errorf("%+v gave the error %v", sc, err)
							}
						}
					})
				}
				calls.Wait()
			})
		}
	}
}

func TestSixtyRestarts(t *testing.T) {
	s := open(t, Options{
		RetryMin: time.Millisecond, RetryMax: 2 * time.Millisecond, MaxRestarts: 1000, MaxFailures: 1000,
	}, script{Call: []string{"crash"}}.stdio(t))
	connected(t, s)
	files := func() int { all, _ := os.ReadDir("/proc/self/fd"); return len(all) }
	failure(t, s, "exact", "")
	connectedAgain := func() {
		eventually(t, "connected", func() bool { return s.Status()[0].State == Connected })
	}
	connectedAgain()
	before, routines := files(), runtime.NumGoroutine()
	for range 60 {
		failure(t, s, "exact", "")
	}
	connectedAgain()
	// One that each restart leaves behind would make sixty; a few more or
	// less are how far the connection of this moment has come.
	eventually(t, fmt.Sprintf("back to about %d descriptors and %d goroutines", before, routines), func() bool {
		return files() <= before+20 && runtime.NumGoroutine() <= routines+20
	})
}

func TestHeadersStayAtTheirOrigin(t *testing.T) {
	var leaked sync.Map
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Get("X-Key"), r.Method)
	}))
	defer elsewhere.Close()
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Get("X-Key"))
		mu.Unlock()
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	for _, kind := range []Kind{HTTP, SSE} {
		s := open(t, Options{}, Spec{Name: "fake", Kind: kind, URL: server.URL, Headers: map[string]string{"X-Key": "canary"}})
		ready(t, s)
		if st := s.Status()[0]; st.State != Failed || !strings.Contains(st.Err, "another origin") {
			t.Errorf("status is %+v", st)
		}
		s.Close()
	}
	leaked.Range(func(key, value any) bool {
		t.Errorf("the other host got a %s with %q", value, key)
		return true
	})
	if len(got) == 0 || slices.Contains(got, "") {
		t.Errorf("the server itself got the headers %q", got)
	}
}

// The SDK's own servers, over the transports that the fake does not speak.
func TestSDKServers(t *testing.T) {
	newServer := func() *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
			func(_ context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{StructuredContent: q.Params.Arguments, Content: []mcp.Content{}}, nil
			})
		return server
	}
	for name, make := range map[string]func(*mcp.Server) http.Handler{
		"sse": func(m *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return m }, nil)
		},
		"stateful": func(m *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, nil)
		},
		"stateless": func(m *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, &mcp.StreamableHTTPOptions{Stateless: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServer()
			web := httptest.NewServer(make(m))
			defer web.Close()
			spec := Spec{Name: "fake", Kind: HTTP, URL: web.URL}
			if name == "sse" {
				spec.Kind = SSE
			}
			s := open(t, Options{}, spec)
			defer s.Close()
			connected(t, s)
			for range 3 {
				if got := call(t, s, "exact", `{"region":"eu","n":9007199254740993}`); !strings.Contains(got, `9007199254740993`) {
					t.Errorf("got %s", got)
				}
			}
			m.AddTool(&mcp.Tool{Name: "later", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
			eventually(t, "told of the new tool", func() bool { return len(s.Tools()["fake"]) == 2 })
		})
	}
}

// A server that lost its sessions is connected again, and a call that it did
// not read is made again, once.
func TestForgottenSession(t *testing.T) {
	m := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	m.AddTool(&mcp.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	newHandler := func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, nil)
	}
	var mu sync.Mutex
	handler := newHandler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	defer web.Close()
	s := open(t, Options{}, Spec{Name: "fake", URL: web.URL, Protocol: Legacy})
	defer s.Close()
	call(t, s, "exact", "")
	mu.Lock()
	handler = newHandler()
	mu.Unlock()
	call(t, s, "exact", "")
	for one := range m.Sessions() {
		one.Close() // the forgotten one
	}
}

func TestClosed(t *testing.T) {
	s := open(t, Options{}, script{Call: []string{"hang"}}.stdio(t))
	connected(t, s)
	done := make(chan error)
	go func() {
		_, err := s.Call(t.Context(), "fake", "", "exact", nil)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	s.Close()
	var e *Error
	if err := <-done; !errors.As(err, &e) || e.Kind != Unavailable {
		t.Errorf("got %v", err)
	}
	if e := failure(t, s, "exact", ""); e.Kind != Unavailable || !errors.Is(e, ErrClosed) {
		t.Errorf("got %v", e)
	}
	s.Apply([]Spec{{Name: "late"}})
	if len(s.Status()) != 1 {
		t.Error("a closed set takes servers")
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	var mu sync.Mutex
	var now, most int
	spec := Spec{Name: "fake", Limits: Limits{Concurrency: 3}, InProcess: func(context.Context, *slog.Logger) (*mcp.Server, error) {
		server := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "3"}, nil)
		server.AddTool(&mcp.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
				return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
			})
		return server, nil
	}}
	s := open(t, Options{}, spec)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() { call(t, s, "exact", "") })
	}
	calls.Wait()
	if most != 3 {
		t.Errorf("%d at a time", most)
	}
}
