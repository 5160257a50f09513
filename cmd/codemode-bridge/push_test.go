package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/otlptest"
)

// A bridge sends what is in its log to a collector and to a webhook, goes on after a restart
// where it was, and doctor tries both.
func TestPush(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	var mu sync.Mutex
	var seqs []int64
	came := make(chan struct{}, 1000)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got struct {
			Rows []struct {
				Seq    int64
				Record struct{ Event string }
			}
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &got); err != nil || !strings.HasPrefix(r.Header.Get("Codemode-Signature"), "v1=") {
			t.Errorf("it gets %s, %v, with %v", body, err, r.Header)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, row := range got.Rows {
			if seqs = append(seqs, row.Seq); row.Record.Event == "run_ended" {
				came <- struct{}{}
			}
		}
	}))
	defer hook.Close()
	h := newHome(t, map[string]any{
		"servers": map[string]any{"time": map[string]any{"builtin": "time"}},
		"audit":   map[string]any{"push": map[string]any{"otlp": map[string]any{"url": c.GRPC, "protocol": "grpc"}, "webhook": map[string]any{"url": hook.URL, "secret": "0123456789abcdef"}}},
	})
	for range 2 {
		bridge := h.connect("--alone")
		if answer := bridge.call(t, "eval", map[string]any{"code": "return 6 * 7"}); !strings.Contains(answer, "42") {
			t.Errorf("it answers %s", answer)
		}
		<-came
		if err := bridge.Close(); err != nil {
			t.Logf("closing: %v", err)
		}
	}
	mu.Lock()
	got := slices.Clone(seqs)
	mu.Unlock()
	for i, seq := range got {
		if seq != int64(i+1) {
			t.Fatalf("the webhook has the rows %v", got)
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
