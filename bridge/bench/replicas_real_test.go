//go:build real

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// make bench-replicas, with numbers that are too small to say anything, measures all of its
// rows and writes them into a page.
func TestRealBenchReplicas(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", bin+string(filepath.Separator), "../../cmd/codemode-bridge", "../../cmd/codemode-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+measuredBegins+measuredEnds+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	m := &machine{bridge: filepath.Join(bin, "codemode-bridge")}
	if _, err := m.replicas(t.Context(), &out, scale{sessions: 9, calls: 3, questions: 4, load: 300 * time.Millisecond, page: page}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil || string(text) != "before\n"+measuredBegins+out.String()+measuredEnds+"after\n" {
		t.Errorf("the page is %q: %v", text, err)
	}
	for _, want := range []string{"| no store | SQLite | PostgreSQL |", "| 1 bridge | 2 bridges | 3 bridges |", "| p50 | p99 | target |", "PostgreSQL 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| ") && (strings.Contains(line, "| 0us |") || strings.Contains(line, "| 0 |")) {
			t.Errorf("nothing was measured: %s", line)
		}
	}
}
