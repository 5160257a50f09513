package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A table in Markdown has a cell for each column, and what has no value is empty.
func TestGrid(t *testing.T) {
	g := &grid{heading: "what", columns: []string{"a", "b"}}
	g.durations("fast", [][]time.Duration{{time.Millisecond, 3 * time.Millisecond}, {2 * time.Millisecond, 4 * time.Millisecond}}, func(all []time.Duration) time.Duration { return quantile(all, 99) })
	g.loads("rate", []*loaded{{took: make([]time.Duration, 10), lasted: 2 * time.Second}}, func(l *loaded) string { return show(time.Duration(l.rate() * float64(time.Millisecond))) })
	var out strings.Builder
	g.print(&out)
	const want = "| what | a | b |\n| --- | --: | --: |\n| fast | 3.00ms | 4.00ms |\n| rate |  | 5.00ms |\n\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(i+1))
	}
	if p50, p99 := quantile(all, 50), quantile(all, 99); p50 != 101 || p99 != 199 {
		t.Errorf("p50 %d, p99 %d", p50, p99)
	}
	if only := quantile(all[:1], 99); only != 1 {
		t.Errorf("of one: %d", only)
	}
}

// Only what a page has as measured is replaced, and a page without a place for it is left
// as it is.
func TestReplaceMeasured(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("# Page\n\n" + measuredBegins + "old\n" + measuredEnds + "\nafter\n")
	for _, text := range []string{"new\n", "newer\n"} {
		if err := replaceMeasured(page, measuredBegins, text); err != nil {
			t.Fatal(err)
		}
		if want := "# Page\n\n" + measuredBegins + text + measuredEnds + "\nafter\n"; read() != want {
			t.Errorf("the page is %q", read())
		}
	}
	for _, text := range []string{"# Page\n", measuredBegins, measuredEnds + measuredBegins} {
		write(text)
		if err := replaceMeasured(page, measuredBegins, "new\n"); err == nil || read() != text {
			t.Errorf("%q became %q: %v", text, read(), err)
		}
	}
}

// The page of the documentation has a place for what is measured.
func TestScalePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/deploy/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), measuredBegins)
	tables, _, ended := strings.Cut(rest, measuredEnds)
	if !ok || !ended || !strings.Contains(tables, "| question to verdict: both |") {
		t.Errorf("what is measured there is %q", tables)
	}
}

// Sessions call in turn: none twice at the same time, and each as often as the others; a
// failure ends it.
func TestInTurn(t *testing.T) { synctest.Test(t, testInTurn) }

func testInTurn(t *testing.T) {
	var mu sync.Mutex
	busy, times, left := make(map[string]bool), make(map[string]int), 400
	one := func(s string) error {
		mu.Lock()
		defer mu.Unlock()
		if busy[s] {
			t.Errorf("%s twice at the same time", s)
		}
		busy[s] = true
		mu.Unlock()
		time.Sleep(time.Millisecond) // all take as long
		mu.Lock()
		busy[s] = false
		times[s]++
		return nil
	}
	more := func() bool { left--; return left >= 0 } // it is called by one at a time
	all := []string{"a", "b", "c", "d"}
	took, err := inTurn(all, 3, one, more)
	if err != nil || len(took) != 400 || !slices.IsSorted(took) {
		t.Errorf("%d evals, %v", len(took), err)
	}
	for _, s := range all {
		if times[s] < 400/3/2 { // of four, three at a time: who has waited once is next
			t.Errorf("%s called %d times", s, times[s])
		}
	}
	failure := errors.New("no")
	if _, err := inTurn(all, 8, func(string) error { return failure }, func() bool { return true }); !errors.Is(err, failure) {
		t.Errorf("it ends with %v", err)
	}
}

// What a bridge says as it starts has addresses after words.
func TestTalk(t *testing.T) {
	var said talk
	if got := said.after("endpoint"); got != "" {
		t.Errorf("before it said anything: %q", got)
	}
	if _, err := said.Write([]byte("codemode-bridge 0.1.0\n  endpoint     http://127.0.0.1:1/mcp\n  approve      http://127.0.0.1:2/login?x=y\n")); err != nil {
		t.Fatal(err)
	}
	if endpoint, page := said.after("endpoint"), said.after("approve"); endpoint != "http://127.0.0.1:1/mcp" || page != "http://127.0.0.1:2/login?x=y" {
		t.Errorf("the addresses are %q and %q", endpoint, page)
	}
}
