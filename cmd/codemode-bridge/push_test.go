package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/otlptest"
)

// A receiver is a webhook that gets the rows of an audit log. Whoever sends rows out of order
// fails the test: each request goes on where the last acknowledged one ended.
type receiver struct {
	url string

	mu    sync.Mutex
	fails bool    // it answers 503
	hangs bool    // it reads, and answers nothing
	acked []int64 // the numbers of the rows that it acknowledged
	tried []int64 // the first row of each request that it did not
	ended []int64 // the rows of acked that end a run
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	c := new(receiver)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.takes(t, w, r) }))
	t.Cleanup(hook.Close)
	t.Cleanup(hook.CloseClientConnections)
	c.url = hook.URL
	return c
}

func (c *receiver) takes(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var got struct {
		Rows []struct {
			Seq    int64
			Record struct{ Event string }
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	if err := json.Unmarshal(body, &got); err != nil || !strings.HasPrefix(r.Header.Get("Codemode-Signature"), "v1=") {
		t.Errorf("it gets %s, %v, with %v", body, err, r.Header)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails || c.hangs {
		if len(got.Rows) > 0 {
			c.tried = append(c.tried, got.Rows[0].Seq)
		}
		if c.hangs {
			c.mu.Unlock()
			<-r.Context().Done()
			c.mu.Lock()
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	for _, row := range got.Rows {
		if row.Seq != int64(len(c.acked)+1) {
			t.Errorf("after %d rows it gets row %d", len(c.acked), row.Seq)
		}
		if c.acked = append(c.acked, row.Seq); row.Record.Event == "run_ended" {
			c.ended = append(c.ended, row.Seq)
		}
	}
}

// is says how it behaves from now on.
func (c *receiver) is(fails, hangs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails, c.hangs = fails, hangs
}

// seen are how many rows and ends of runs it acknowledged, and the requests that it did not.
func (c *receiver) seen() (acked, ended int, tried []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked), len(c.ended), slices.Clone(c.tried)
}

// has waits until it has acknowledged the ends of n runs.
func (c *receiver) has(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the receiver does not get the end of a run", func() bool { _, ended, _ := c.seen(); return ended >= n })
}

// refuses waits until it has not acknowledged more than n requests.
func (c *receiver) refuses(t *testing.T, n int) {
	t.Helper()
	eventually(t, "nothing is tried", func() bool { _, _, tried := c.seen(); return len(tried) > n })
}

// push is a configuration that pushes to it.
func (c *receiver) push() map[string]any {
	return map[string]any{"webhook": map[string]any{"url": c.url, "secret": "0123456789abcdef"}}
}

// works has a bridge run a script.
func (c *client) works(t *testing.T) {
	t.Helper()
	if answer := c.call(t, "eval", map[string]any{"code": "return 6 * 7"}); !strings.Contains(answer, "42") {
		t.Errorf("it answers %s", answer)
	}
}

// A bridge sends what is in its log to a collector and to a webhook, goes on after a restart
// where it was, and doctor tries both.
func TestPush(t *testing.T) {
	t.Parallel()
	c, hook := otlptest.New(t), newReceiver(t)
	push := hook.push()
	push["otlp"] = map[string]any{"url": c.GRPC, "protocol": "grpc"}
	h := newHome(t, map[string]any{"servers": map[string]any{"time": map[string]any{"builtin": "time"}}, "audit": map[string]any{"push": push}})
	for n := range 2 {
		bridge := h.connect("--alone")
		bridge.works(t)
		hook.has(t, n+1)
		if err := bridge.Close(); err != nil {
			t.Logf("closing: %v", err)
		}
	}
	events := map[string]int{}
	for _, r := range c.Records(t, 5) {
		events[r.EventName]++
	}
	if events["codemode.audit.run_ended"] == 0 {
		t.Errorf("the collector has %v", events)
	}
	if said := h.says([]int{0, 1}, "doctor"); !strings.Contains(said, "audit.push.otlp, audit.push.webhook: it answers") {
		t.Errorf("doctor says\n%s", said)
	}
}

// kept are the numbers of the rows in a home's log.
func (h *home) kept() (seqs []int64) {
	h.t.Helper()
	var rows []struct{ Seq int64 }
	log := filepath.Join(h.dir, "state", "codemode-bridge", "audit.db")
	if err := json.Unmarshal([]byte(h.says([]int{0}, "audit", "query", "--json", "-n", "0", "--log", log)), &rows); err != nil {
		h.t.Fatal(err)
	}
	for _, r := range rows {
		seqs = append(seqs, r.Seq)
	}
	slices.Sort(seqs)
	return seqs
}

// A receiver that is down costs no call and no row: nothing that it did not acknowledge can be
// pruned, bridges are killed, one of them while it sends, and the next goes on there.
func TestPushToAReceiverThatIsDown(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t)
	h := newHome(t, map[string]any{"servers": map[string]any{"time": map[string]any{"builtin": "time"}}, "audit": map[string]any{"push": hook.push()}})
	prune := func() string { return h.says([]int{0}, "audit", "prune", "--keep-rows", "1") }
	kill := func(bridge *client) {
		t.Helper()
		if err := bridge.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = bridge.Close() // it was killed
	}

	bridge := h.connect("--alone")
	bridge.works(t)
	hook.has(t, 1)
	hook.is(true, false)
	bridge.works(t)
	hook.refuses(t, 0) // so that the bridge has noted what went before
	acked, _, _ := hook.seen()
	would, said := h.says([]int{0}, "audit", "prune", "--keep-rows", "1", "--dry-run"), prune()
	if kept := h.kept(); kept[0] == 1 || kept[0] > int64(acked+1) || strings.TrimPrefix(would, "would remove") != strings.TrimPrefix(said, "removed") {
		t.Errorf("the receiver has %d rows, and the log %v: %s%s", acked, kept, would, said)
	}
	if said := h.talk.String(); strings.Count(said, "not everybody who gets them (audit.push, or a centre) has acknowledged them") != 2 {
		t.Errorf("it says\n%s", said)
	}
	if said := h.says([]int{1}, "doctor"); !strings.Contains(said, "answered 503") || !strings.Contains(said, "records are kept here until it takes them") {
		t.Errorf("doctor says\n%s", said)
	}
	kill(bridge)

	hook.is(false, true)
	_, _, tried := hook.seen()
	bridge = h.connect("--alone")
	hook.refuses(t, len(tried))
	kill(bridge)

	hook.is(false, false)
	bridge = h.connect("--alone")
	hook.has(t, 2) // what the first one had left
	bridge.works(t)
	hook.has(t, 3)
	if n := h.count("--event-type", "run_ended"); n < 2 { // the first may be pruned
		t.Errorf("the log has the ends of %d runs", n)
	}
	if now, _, tried := hook.seen(); now <= acked || slices.ContainsFunc(tried, func(seq int64) bool { return seq != int64(acked+1) }) {
		t.Errorf("after %d rows it was sent %v, and has %d", acked, tried, now)
	}
	eventually(t, "what the receiver has cannot be pruned", func() bool { prune(); return len(h.kept()) <= 2 })
	if said := h.says([]int{0}, "audit", "verify"); !strings.Contains(said, "whole") {
		t.Errorf("the log: %s", said)
	}
}
