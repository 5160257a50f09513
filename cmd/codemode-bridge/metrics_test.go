package main_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// A bridge whose port for metrics is taken says so, and does everything else.
func TestMetricsPortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := newHome(t, map[string]any{
		"servers": map[string]any{"time": map[string]any{"builtin": "time"}},
		"metrics": map[string]any{"listen": l.Addr().String()}, "log": map[string]any{"level": "warn", "format": "json"},
	})
	bridge := h.connect()
	if answer := bridge.call(t, "eval", map[string]any{"code": "return 6 * 7"}); !strings.Contains(answer, "42") {
		t.Errorf("it answers %s", answer)
	}
	if err := bridge.Close(); err != nil {
		t.Logf("closing: %v", err)
	}
	want := fmt.Sprintf("serving metrics: listen tcp %s: bind: ", l.Addr())
	if said := h.talk.String(); strings.Count(said, "there are no metrics of this bridge; metrics.listen names another address") != 1 || !strings.Contains(said, want) {
		t.Errorf("it says\n%s", said)
	}
}
