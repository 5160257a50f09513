//go:build real

package main_test

// Three bridges with one store in PostgreSQL, each on a machine of its own as far as it can
// tell: killed, frozen, cut off and ended while calls are made, with clocks that are wrong
// and of several versions. A fake server counts each call by its key.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/pgtest"
	"codemode-bridge/bridge/replica"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const replicaStoreKey = "the key of the store of three bridges"

// A counter is a server that counts the calls of its tools by their keys.
type counter struct {
	url string

	mu    sync.Mutex
	calls map[string]int
}

func newCounter(t *testing.T) *counter {
	c := &counter{calls: make(map[string]int)}
	server := mcp.NewServer(&mcp.Implementation{Name: "count", Version: "1"}, nil)
	for _, name := range []string{"write", "again"} {
		tool := &mcp.Tool{Name: name, Description: "Counts", InputSchema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}}}`)}
		server.AddTool(tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var args struct{ Key string }
			if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
				return nil, err
			}
			c.mu.Lock()
			c.calls[args.Key]++
			c.mu.Unlock()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: args.Key}}}, nil
		})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	c.url = web.URL
	return c
}

func (c *counter) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key]
}

// A fleet is three bridges with one store, and what a test sees of it.
type fleet struct {
	*testing.T
	count    *counter
	server   *pgtest.Server
	log      *pgstore.DB
	requests *pgstore.RequestStore
	table    *pgstore.Replicas
	bridges  []*member
}

// A member is one bridge of a fleet, behind a proxy of its own to the database.
type member struct {
	*heldBench
	proxy *pgtest.Proxy
	cmd   *exec.Cmd
	name  string
	out   atomic.Bool // it is not asked for anything
}

// newFleet starts a fleet. As says what is special of each of its bridges, in order.
func newFleet(t *testing.T, as ...func(*member)) *fleet {
	server := startPostgres(t, "max_connections=200")
	f := &fleet{T: t, count: newCounter(t), server: server}
	for i := range 3 {
		proxy, err := server.NewProxy()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		m := &member{proxy: proxy}
		// What differs is in variables: the configuration is the same on each machine.
		address := strings.NewReplacer(pgtest.Password, "${STORE_PASSWORD}", fmt.Sprintf(":%v/", proxy.Port), ":${STORE_PORT}/").Replace(server.At(proxy.Port, "postgres", "fleet"))
		m.heldBench = &heldBench{commandLine: newCommandLine(t, fmt.Sprintf(`{
  "id": "fleet", "servers": {"count": {"url": %q}}, "store": %q, "storeKey": "${STORE_KEY}", "runs": {"keep": "1h"},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["count__*"], "elicitationFallback": "queue",
    "rules": [{"tools": ["count__again"], "repeatable": true}]}}},
  "approvals": {"listen": "127.0.0.1:0", "perBridge": 1000, "approvers": [%s]},
}`, f.count.url, address, approverJSON("ann", "admin", annsToken)))}
		m.env = []string{"STORE_PASSWORD=" + pgtest.Password, "STORE_KEY=" + replicaStoreKey, fmt.Sprintf("STORE_PORT=%v", proxy.Port)}
		m.serving.file = m.commandLine.file
		if i < len(as) {
			as[i](m)
		}
		f.bridges = append(f.bridges, m)
		f.start(m)
	}
	o := pgstore.Options{URL: server.URL("postgres", "fleet"), Secret: []byte(replicaStoreKey), ReadOnly: true}
	var err error
	if f.log, err = pgstore.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.log.Close() })
	if f.requests, err = pgstore.OpenRequests(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.requests.Close() })
	if f.table, err = pgstore.NewReplicas(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.table.Close() })
	for _, m := range f.bridges {
		f.named(m)
	}
	return f
}

// start starts a bridge.
func (f *fleet) start(m *member) {
	f.Helper()
	m.cmd = m.program("", "serve", "--listen", "127.0.0.1:0")
	m.serving.start(f.T, m.cmd)
	f.Cleanup(func() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }) // before it is stopped in order
}

// named finds out what the others call a bridge.
func (f *fleet) named(m *member) {
	f.Helper()
	eventually(f.T, "a bridge is in no table", func() bool {
		for _, one := range f.replicas() {
			if one.Address == m.endpoint {
				m.name = one.Name
				return true
			}
		}
		return false
	})
}

func (f *fleet) replicas() []replica.Replica {
	f.Helper()
	all, err := f.table.List(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return all
}

// say makes a request of a bridge's API. A bridge that does not answer has status 0.
func (m *member) say(method, path string, body any) (status int, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	sent, err := json.Marshal(body)
	if err != nil {
		return 0, err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, method, m.page+path, bytes.NewReader(sent))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+annsToken)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(said)
}

// begin starts a run at a bridge that makes one call.
func (m *member) begin(tool, key string) (run string, err error) {
	status, text := m.say("POST", "/api/runs?wait=0s", map[string]any{"code": fmt.Sprintf(`return await codemode.count__%s({key: %q})`, tool, key)})
	var out struct{ Run string }
	if json.Unmarshal([]byte(text), &out) != nil || out.Run == "" {
		return "", fmt.Errorf("starting a run: %d %s", status, text)
	}
	return out.Run, nil
}

// open are the open questions of a run, wherever they are.
func (f *fleet) open(run string) []approval.StoredRequest {
	f.Helper()
	all, err := f.requests.Requests(f.Context(), approval.Filter{Run: run, Open: time.Now()})
	if err != nil {
		f.Fatal(err)
	}
	return all
}

// asks waits until a run asks, once.
func (f *fleet) asks(run string) (q approval.StoredRequest) {
	f.Helper()
	eventually(f.T, "run "+run+" does not ask", func() bool {
		all := f.open(run)
		if len(all) == 1 {
			q = all[0]
		}
		return len(all) == 1
	})
	return q
}

// yes approves a question at a bridge, and reports whether that counts.
func (m *member) yes(q approval.StoredRequest) (bool, string) {
	status, text := m.say("POST", "/api/decide/"+q.ID, map[string]any{"decision": "approve", "digest": q.Digest()})
	return status == http.StatusOK, fmt.Sprint(status, " ", text)
}

// end is the last record of a run; nil while it goes on.
func (f *fleet) end(run string) *ledger.Record {
	f.Helper()
	for row, err := range f.log.Rows(f.Context(), ledger.Query{Runs: []string{run}, Events: []ledger.Event{ledger.RunEnded}}) {
		if err != nil {
			f.Fatal(err)
		}
		return &row.Record
	}
	return nil
}

func (f *fleet) ends(run string) (r ledger.Record) {
	f.Helper()
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if end := f.end(run); end != nil {
			return *end
		}
	}
	f.Fatalf("run %s does not end: %+v\n%+v", run, f.kept(run), f.replicas())
	return r
}

// kept is what the store has of a run.
func (f *fleet) kept(run string) (k ledger.JournaledRun) {
	f.Helper()
	k, _, err := f.log.Read(f.Context(), run)
	if err != nil && !errors.Is(err, ledger.ErrNoJournal) {
		f.Fatal(err)
	}
	return k
}

// takenOver waits until others have taken a run over from a bridge, with its question, and
// checks that this is within ten seconds, of a machine that has time: by how much looking at
// the store takes longer than it should, they may be late.
func (f *fleet) takenOver(from *member, run string, since time.Time) {
	f.Helper()
	looked, late := time.Now(), time.Duration(0)
	eventually(f.T, "run "+run+" is not taken over", func() bool {
		q := f.open(run)
		over := f.kept(run).State == ledger.Paused && len(q) == 1 && q[0].Bridge == ""
		late += max(0, time.Since(looked)-40*time.Millisecond)
		looked = time.Now()
		return over
	})
	if took := time.Since(since); took > 10*time.Second+late {
		f.Errorf("run %s of %s is taken over after %v, on a machine that was %v late", run, from.name, took, late)
	}
}

// other is a bridge that is none of those.
func (f *fleet) other(than ...*member) *member {
	for _, i := range rand.Perm(len(f.bridges)) {
		m, out := f.bridges[i], false
		for _, one := range than {
			out = out || m == one
		}
		if !out && !m.out.Load() {
			return m
		}
	}
	return nil
}

// freeze stops a process, and waits until each of its threads has stopped.
func (f *fleet) freeze(m *member) {
	if err := m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		f.Error(err)
	}
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			time.Sleep(200 * time.Millisecond) // there is no /proc
			return
		}
		if !slices.ContainsFunc(threads, func(file string) bool {
			stat, err := os.ReadFile(file)
			return err == nil && !bytes.Contains(stat, []byte(") T ")) // one that has ended has no file
		}) {
			return
		}
	}
	f.Errorf("%s does not stop", m.name)
}

// A fault makes a bridge useless until the function that it returns is called.
type fault struct {
	name string
	do   func(f *fleet, m *member) (mend func())
}

// hurt does a fault to a bridge, and returns what mends it.
func (f *fleet) hurt(m *member, by fault) (mend func()) {
	m.out.Store(true)
	undo := by.do(f, m)
	return func() { undo(); m.out.Store(false) }
}

var faults = []fault{
	{"killed", func(f *fleet, m *member) func() {
		m.kill()
		return func() { f.start(m); f.named(m) }
	}},
	{"frozen", func(f *fleet, m *member) func() {
		f.freeze(m)
		return func() {
			if err := m.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				f.Error(err)
			}
		}
	}},
	{"cut off", func(_ *fleet, m *member) func() { return m.proxy.Stall() }},
	{"ended", func(f *fleet, m *member) func() {
		if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			f.Error(err)
		}
		return func() { f.ended(m); f.start(m); f.named(m) }
	}},
}

// ended waits until a bridge that was told to end has ended, in order.
func (f *fleet) ended(m *member) {
	f.Helper()
	defer time.AfterFunc(time.Minute, func() { _ = m.cmd.Process.Kill() }).Stop()
	m.wait()
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		f.Errorf("%s was told to end, and ended with exit code %d", m.name, code)
	}
}

// One of three bridges is killed, frozen, cut off or ended while others are called: its
// questions are answered at another bridge within ten seconds, and its runs go on there, or
// end there if somebody wants that. Every call is made once, and nothing that was approved
// is lost. (make storm does it again and again.)
func TestRealReplicas(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			newFleet(t).outlives(fault)
		})
	}
	t.Run("clocks that are wrong", func(t *testing.T) {
		t.Parallel()
		const off = 30 * time.Second
		f := newFleet(t, clock(off), clock(-off))
		f.isOff(f.bridges[0], off)
		f.isOff(f.bridges[1], -off)
		f.outlives(faults[0])
	})
}

// isOff checks by how much a bridge's clock is off: by when it says that a run began.
func (f *fleet) isOff(m *member, off time.Duration) {
	f.Helper()
	before := time.Now().Truncate(time.Second)
	run := f.begun(m, "at what time")
	q := f.asks(run)
	after := time.Now()
	for row, err := range f.log.Rows(f.Context(), ledger.Query{Runs: []string{run}, Events: []ledger.Event{ledger.RunStarted}}) {
		if err != nil {
			f.Fatal(err)
		}
		if at := row.Record.Time.Add(-off); at.Before(before) || at.After(after) {
			f.Errorf("%s began a run at %v, with a clock that is to be off by %v; it was from %v to %v", m.name, row.Record.Time, off, before, after)
		}
		f.stop(run, m)
		f.stopped(q)
		return
	}
	f.Errorf("the log does not say when run %s began", run)
}

// outlives checks that a fleet goes on after a fault of one bridge.
func (f *fleet) outlives(fault fault) {
	m := f.bridges[0]
	if status := m.does("", "status"); strings.Count(status, "alive until") != 3 {
		f.Errorf("status shows\n%s", status)
	}
	if said := m.does("", "doctor"); !strings.Contains(said, "3 bridges share it") {
		f.Errorf("doctor says\n%s", said)
	}
	f.comesIn()
	load := f.load(2, rand.Uint64())
	f.survives(m, fault, func() {})
	if done, _ := load.finish(); done == 0 {
		f.Error("the load has done nothing")
	}
	if said := m.does("", "audit", "verify"); !strings.Contains(said, "whole") {
		f.Errorf("the log: %s", said)
	}
}

// survives checks that what a bridge asks is answered, or ended, at others after a fault of
// it, and that the bridge goes on once that is mended. Before is done before that.
func (f *fleet) survives(m *member, fault fault, before func()) {
	f.Helper()
	held, ended := fault.name+", held by "+m.name, fault.name+", ended for "+m.name
	run := f.begun(m, held)
	q, unwanted := f.asks(run), f.asks(f.begun(m, ended))
	well := f.asks(f.begun(m, "ended while it was well"))
	f.stop(well.Run, f.other(m))
	f.stopped(well)
	if list := f.other(m).does("", "runs", "list", "-n", "0", "--json"); !strings.Contains(list, fmt.Sprintf("%q:%q", "bridge", m.name)) {
		f.Errorf("another bridge does not say that %s has a run:\n%s", m.name, list)
	}
	since := time.Now()
	mend := f.hurt(m, fault)
	var stops sync.WaitGroup
	stops.Go(func() { f.stop(unwanted.Run, f.other(m)) })
	f.takenOver(m, run, since)
	stops.Wait()
	f.stopped(unwanted)
	if list := f.other(m).does("", "runs", "list", "-n", "0", "--json"); !strings.Contains(list, `"state":"paused"`) {
		f.Errorf("after %s was %s the list has no paused run:\n%s", m.name, fault.name, list)
	}
	if counts, text := f.other(m).yes(q); !counts {
		f.Errorf("answering for a bridge that was %s: %s", fault.name, text)
	}
	if end := f.ends(run); end.Outcome != ledger.Done || f.count.of(held) != 1 {
		f.Errorf("the run of a bridge that was %s ends %s: %s, and made %d calls", fault.name, end.Outcome, end.Error, f.count.of(held))
	}
	if fault.name == "cut off" {
		f.refuses(m)
	}
	before()
	mend()
	f.works(m, "after "+held)
	for key, want := range map[string]int{held: 1, ended: 0, "ended while it was well": 0} {
		if n := f.count.of(key); n != want {
			f.Errorf("%s: the call was made %d times, want %d", key, n, want)
		}
	}
}

// begun begins a run at a bridge that makes one call.
func (f *fleet) begun(m *member, key string) string {
	f.Helper()
	run, err := m.begin("write", key)
	if err != nil {
		f.Fatal(err)
	}
	return run
}

// stop ends a run at a bridge that does not have it. For some seconds after a bridge was
// cut off, others may wait for what it was about to write.
func (f *fleet) stop(run string, at *member) {
	var status int
	var text string
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if status, text = at.say("POST", "/api/runs/"+run+"/stop", map[string]any{}); status == http.StatusOK || status == http.StatusConflict {
			return
		}
	}
	f.Errorf("ending run %s at %s: %d %s", run, at.name, status, text)
}

// stopped checks that a run that asked was ended, and asks nobody any more.
func (f *fleet) stopped(q approval.StoredRequest) {
	f.Helper()
	if end := f.ends(q.Run); end.Outcome != ledger.Stopped {
		f.Errorf("run %s was to be ended elsewhere, and ends %s: %s", q.Run, end.Outcome, end.Error)
	}
	eventually(f.T, "run "+q.Run+" has ended, and asks", func() bool { return len(f.open(q.Run)) == 0 })
	if counts, text := f.other().yes(q); counts {
		f.Errorf("a yes for run %s, which has ended, counts: %s", q.Run, text)
	}
}

// refuses checks that a bridge that is cut off makes no call.
func (f *fleet) refuses(m *member) {
	f.Helper()
	if status, text := m.say("POST", "/api/runs?wait=2s", map[string]any{"code": `return await codemode.count__write({key: "cut off, new"})`}); status == http.StatusOK && strings.Contains(text, "cut off, new") {
		f.Errorf("a bridge that is cut off makes a call: %s", text)
	}
	if n := f.count.of("cut off, new"); n != 0 {
		f.Errorf("a bridge that is cut off makes %d calls", n)
	}
}

// works checks that a bridge goes on after a fault.
func (f *fleet) works(m *member, key string) {
	f.Helper()
	var run string
	eventually(f.T, m.name+" does not come back", func() (ok bool) {
		var err error
		run, err = m.begin("write", key)
		return err == nil
	})
	q := f.asks(run)
	eventually(f.T, m.name+" takes no answer", func() bool { ok, _ := m.yes(q); return ok || f.end(run) != nil })
	if end := f.ends(run); end.Outcome != ledger.Done {
		f.Errorf("%s: %s ends its run %s: %s", key, m.name, end.Outcome, end.Error)
	}
}

// A bridge is frozen between the commit of an intent and the sending of its call, for
// longer than others wait. The call may be repeated, and another bridge asks whether to and
// does; the bridge that wakes up does not send it as well.
func TestRealFrozenBeforeSending(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	m := f.bridges[0]
	run, err := m.begin("again", "frozen")
	if err != nil {
		t.Fatal(err)
	}
	q := f.asks(run)
	var announced atomic.Bool
	var once sync.Once
	frozen := make(chan struct{})
	request := func(b []byte) bool {
		if bytes.Contains(b, []byte(`"event":"intent"`)) {
			announced.Store(true)
		}
		return true
	}
	answer := func(b []byte) bool {
		if announced.Load() && bytes.Contains(b, []byte("COMMIT")) && announced.CompareAndSwap(true, false) {
			once.Do(func() { f.freeze(m); close(frozen) })
		}
		return true
	}
	m.proxy.OnRequest.Store(&request)
	m.proxy.OnAnswer.Store(&answer)
	if ok, text := m.yes(q); !ok {
		t.Logf("the bridge was frozen before it answered: %s", text)
	}
	select {
	case <-frozen:
	case <-time.After(3 * time.Minute):
		t.Fatal("no intent was announced")
	}
	m.out.Store(true)
	if again := f.asks(run); again.ID == q.ID {
		t.Errorf("the question that was answered is open: %+v", again)
	} else if ok, text := f.other(m).yes(again); !ok {
		t.Errorf("answering whether to repeat it: %s", text)
	}
	if end := f.ends(run); end.Outcome != ledger.Done {
		t.Errorf("others end the run %s: %s", end.Outcome, end.Error)
	}
	if n := f.count.of("frozen"); n != 1 {
		t.Fatalf("others make %d calls", n)
	}
	if err := m.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.works(m, "awake")
	if n := f.count.of("frozen"); n != 1 {
		t.Errorf("after the bridge has woken up, the call was made %d times", n)
	}
}
