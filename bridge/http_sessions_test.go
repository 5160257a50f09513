package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/mcphttptest"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A door is a bridge over HTTP with room for four sessions, and its clock.
type door struct {
	*testing.T
	*bench
	url  string
	late atomic.Int64 // how much later it is, in nanoseconds
}

func newDoor(t *testing.T, o mcphttp.Options) *door {
	d := &door{T: t}
	began := time.Now()
	d.bench = newBench(t, profiles.Spec{}, func(o *Options) {
		o.Now = func() time.Time { return began.Add(time.Duration(d.late.Add(int64(time.Millisecond)))) }
	})
	o.MaxSessions = 4
	d.url = serveHTTP(t, d.bench, o).URL + "/mcp"
	return d
}

// asks posts a body, waits for the end of the answer, and returns its status and
// its session.
func (d *door) asks(body string, headers ...string) (status int, session string) {
	d.Helper()
	res := mcphttptest.Post(d.T, "POST", d.url, body, headers...)
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		d.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Mcp-Session-Id")
}

// opens opens a session, which has to succeed.
func (d *door) opens(headers ...string) (session string) {
	d.Helper()
	status, session := d.asks(mcphttptest.Initialize, headers...)
	if status != http.StatusOK || session == "" {
		d.Fatalf("a session is refused: status %d", status)
	}
	if status, _ := d.asks(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(headers, in(session)...)...); status != http.StatusAccepted {
		d.Fatalf("status %d", status)
	}
	return session
}

func in(session string) []string {
	return []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-06-18"}
}

// runs runs a script in a session and returns the status.
func (d *door) runs(session string, headers ...string) int {
	d.Helper()
	status, _ := d.asks(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 1"}}}`, append(headers, in(session)...)...)
	return status
}

func TestSessionsWithoutUseGoFirst(t *testing.T) {
	d := newDoor(t, mcphttp.Options{})
	works, unused := d.opens(), d.opens()
	if status := d.runs(works); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	for range 20 {
		if status, _ := d.asks(mcphttptest.Initialize); status != http.StatusOK {
			t.Fatalf("a client is locked out: status %d", status)
		}
	}
	if status := d.runs(works); status != http.StatusOK {
		t.Errorf("the session that is used has status %d", status)
	}
	if status := d.runs(unused); status != http.StatusNotFound {
		t.Errorf("the session without use has status %d", status)
	}
	if status := d.runs(d.opens()); status != http.StatusOK {
		t.Errorf("its client cannot start anew: status %d", status)
	}
}

// Sessions that are used are ended for others once they rest, the longest first.
func TestSessionsInUseStay(t *testing.T) {
	d := newDoor(t, mcphttp.Options{})
	var all []string
	for range 4 {
		all = append(all, d.opens())
		d.runs(all[len(all)-1])
	}
	if status, _ := d.asks(mcphttptest.Initialize); status != http.StatusServiceUnavailable {
		t.Errorf("a fifth session where four are used: status %d", status)
	}
	d.late.Add(int64(mcphttp.Quiet))
	d.runs(all[0])
	d.opens()
	for i, want := range []int{http.StatusOK, http.StatusNotFound, http.StatusOK, http.StatusOK} {
		if status := d.runs(all[i]); status != want {
			t.Errorf("session %d: status %d, want %d", i, status, want)
		}
	}
}

// A session whose script runs does not rest, however long that takes.
func TestRunningSessionsStay(t *testing.T) {
	d := newDoor(t, mcphttp.Options{})
	began, goOn := make(chan struct{}), make(chan struct{})
	d.up.tools["a__wait"] = func(context.Context, json.RawMessage) (string, error) {
		began <- struct{}{}
		<-goOn
		return "", nil
	}
	var all sync.WaitGroup
	for range 4 {
		session := d.opens()
		all.Go(func() {
			if status, _ := d.asks(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"await codemode.a__wait({})"}}}`, in(session)...); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		})
		<-began
	}
	d.late.Add(int64(mcphttp.Quiet))
	if status, _ := d.asks(mcphttptest.Initialize); status != http.StatusServiceUnavailable {
		t.Errorf("a fifth session beside four whose scripts run: status %d", status)
	}
	close(goOn)
	all.Wait()
}

// A script goes on without the connection on which it was sent, and its session with
// it.
func TestRunningSessionsStayWithoutTheirConnections(t *testing.T) {
	d := &door{T: t, bench: newBench(t, profiles.Spec{})}
	began, goOn, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	d.up.tools["a__wait"] = func(context.Context, json.RawMessage) (string, error) {
		close(began)
		<-goOn
		return "", nil
	}
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	handler := mcphttp.Handler(d.bench, mcphttp.Options{
		MaxSessions: 1,
		Now:         func() time.Time { return time.Now().Add(time.Duration(d.late.Load())) },
		Logger: slog.New(listener{slog.DiscardHandler, func(message string) {
			if message == "a session is ended to make room for another" { // which waits for its script
				t.Error("the session is ended")
				release()
			}
		}}),
	})
	d.url = mcphttptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		if r.Context().Err() != nil {
			close(gone)
		}
	})).URL + "/mcp"
	session := d.opens()
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", d.url, strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"await codemode.a__wait({})"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"} {
		req.Header.Set(name, value)
	}
	go func() {
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-began
	hangUp()
	<-gone
	d.late.Add(int64(mcphttp.Quiet))
	if status, _ := d.asks(mcphttptest.Initialize); status != http.StatusServiceUnavailable {
		t.Errorf("a second session beside one whose script runs: status %d", status)
	}
}

func TestNobodyHasAllSessions(t *testing.T) {
	token := func(name string) mcphttp.Token { return mcphttp.Token{Name: name, SHA256: sha256.Sum256([]byte(name))} }
	d := newDoor(t, mcphttp.Options{Tokens: func() []mcphttp.Token { return []mcphttp.Token{token("a"), token("b")} }})
	a, b := []string{"Authorization", "Bearer a"}, []string{"Authorization", "Bearer b"}
	for range 2 {
		d.runs(d.opens(a...), a...)
	}
	if status, _ := d.asks(mcphttptest.Initialize, a...); status != http.StatusServiceUnavailable {
		t.Errorf("more than half of the sessions are one principal's: status %d", status)
	}
	d.opens(b...)
}

// A principal who has sessions to give, at a machine that has none, loses none
// for a session that is refused.
func TestRefusedSessionEndsNoOther(t *testing.T) {
	token := func(name string) mcphttp.Token { return mcphttp.Token{Name: name, SHA256: sha256.Sum256([]byte(name))} }
	handler := mcphttp.Handler(newBench(t, profiles.Spec{}), mcphttp.Options{MaxSessions: 6, Tokens: func() []mcphttp.Token { return []mcphttp.Token{token("a"), token("b")} }})
	from := func(address, name, body, session string) (status int, opened string) {
		r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+name)
		r.Header.Set("Mcp-Session-Id", session)
		r.RemoteAddr = address + ":4711"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Mcp-Session-Id")
	}
	const here, there = "192.0.2.1", "192.0.2.2"
	var unused []string
	for range 3 {
		_, session := from(there, "a", mcphttptest.Initialize, "")
		unused = append(unused, session)
		_, session = from(here, "b", mcphttptest.Initialize, "")
		if status, _ := from(here, "b", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 1"}}}`, session); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if status, _ := from(here, "a", mcphttptest.Initialize, ""); status != http.StatusServiceUnavailable {
		t.Errorf("more than half of the sessions are one machine's: status %d", status)
	}
	for i, session := range unused {
		if status, _ := from(there, "a", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, session); status != http.StatusOK {
			t.Errorf("session %d: status %d", i, status)
		}
	}
	// They count as before.
	if status, _ := from(there, "a", mcphttptest.Initialize, ""); status != http.StatusOK {
		t.Errorf("a session in place of another one: status %d", status)
	}
	ended := 0
	for _, session := range unused {
		if status, _ := from(there, "a", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, session); status == http.StatusNotFound {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d sessions were ended for one", ended)
	}
}

// A listener hears what a server logs before it goes on.
type listener struct {
	slog.Handler
	hear func(message string)
}

func (listener) Enabled(context.Context, slog.Level) bool { return true }

func (l listener) Handle(_ context.Context, r slog.Record) error {
	l.hear(r.Message)
	return nil
}

// A session with a request under way, which is about to begin a script, is not
// ended for another one.
func TestSessionThatBeginsAScriptStays(t *testing.T) {
	reached, let, status := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	d := &door{T: t}
	b := newBench(t, profiles.Spec{}, func(o *Options) {
		o.Workspace = func(context.Context, *mcp.ServerSession, bool) (none workspace.Workspace) { // the script has not begun
			close(reached)
			<-let
			return none
		}
		o.Logger = slog.New(listener{slog.DiscardHandler, func(message string) {
			if message == "a session is ended to make room for another" { // which waits for its request
				t.Error("the session is ended")
				close(let)
			}
		}})
	})
	d.url = serveHTTP(t, b, mcphttp.Options{MaxSessions: 1}).URL + "/mcp"
	first := d.opens()
	go func() { status <- d.runs(first) }()
	<-reached
	if got, _ := d.asks(mcphttptest.Initialize); got != http.StatusServiceUnavailable {
		t.Errorf("another session is opened with status %d", got)
	}
	if t.Failed() {
		return
	}
	close(let)
	if got := <-status; got != http.StatusOK {
		t.Errorf("the script's request has status %d", got)
	}
}

// A request that comes while its session is being ended begins nothing, and its
// client is told to open another session.
func TestEndedSessionBeginsNoScript(t *testing.T) {
	var first string
	d := &door{T: t}
	status := 0
	b := newBench(t, profiles.Spec{}, func(o *Options) {
		o.Logger = slog.New(listener{slog.DiscardHandler, func(message string) {
			if message == "a session is ended to make room for another" {
				status, _ = d.asks(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return await codemode.a__echo({})"}}}`, in(first)...)
			}
		}})
	})
	d.url = serveHTTP(t, b, mcphttp.Options{MaxSessions: 1}).URL + "/mcp"
	first = d.opens()
	second := d.opens()
	if status != http.StatusNotFound || len(b.up.made()) > 0 {
		t.Errorf("the script's request has status %d, and made %q", status, b.up.made())
	}
	if got := d.runs(first); got != http.StatusNotFound {
		t.Errorf("once it has ended, the status is %d", got)
	}
	if got := d.runs(second); got != http.StatusOK {
		t.Errorf("the other session has status %d", got)
	}
}
