package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

func TestVerdicts(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		what                  string
		direct, bridge, reads time.Duration
		want                  target
		says                  string
	}{
		{"within the ratio", 10 * ms, 20 * ms, 0, target{ratio: 2}, "2.00x         -        -     2.00x  ok"},
		{"over the ratio", 10 * ms, 21 * ms, 0, target{ratio: 2}, "2.10x         -        -     2.00x  MISS"},
		{"both within", 10 * ms, 20 * ms, 15 * ms, target{ratio: 2}, "2.00x   15.00ms    1.50x     2.00x  ok"},
		{"one that reads over the ratio", 10 * ms, 20 * ms, 21 * ms, target{ratio: 2}, "2.00x   21.00ms    2.10x     2.00x  MISS: reads\n"},
		{"one that writes over the ratio", 10 * ms, 21 * ms, 20 * ms, target{ratio: 2}, "2.10x   20.00ms    2.00x     2.00x  MISS: bridge\n"},
		{"both over the ratio", 10 * ms, 21 * ms, 21 * ms, target{ratio: 2}, "2.10x   21.00ms    2.10x     2.00x  MISS: both\n"},
		{"all of it", 0, 241 * time.Second, 0, target{time: allOfIt}, "4m1s        -         -        -      4m0s  MISS\n"},
		{"a ratio to nothing", 0, 1 * ms, 0, target{ratio: 2}, "MISS"},
		{"under the time", 0, 24 * ms, 0, target{time: 25 * ms}, "ok"},
		{"the time itself", 0, 25 * ms, 0, target{time: 25 * ms}, "MISS"},
		{"no target", 1 * ms, 99 * ms, 0, target{}, "99.00x"},
	} {
		var out strings.Builder
		table := &table{w: &out}
		table.calls(row.what, row.direct, row.bridge, row.reads, row.want)
		table.print()
		if !strings.Contains(out.String(), row.says) {
			t.Errorf("%s: %q does not say %q", row.what, out.String(), row.says)
		}
		if missed := strings.Contains(row.says, "MISS"); missed != (table.missed == 1) {
			t.Errorf("%s: %d missed", row.what, table.missed)
		}
	}

	var out strings.Builder
	table := &table{w: &out}
	table.bytes("small", 39<<20, target{bytes: 40 << 20})
	table.bytes("large", 41<<20, target{bytes: 40 << 20})
	table.rate("often", 200, target{rate: 200})
	table.rate("seldom", 199, target{rate: 200})
	table.print()
	if table.missed != 2 || !strings.Contains(out.String(), "41.0 MB") || !strings.Contains(out.String(), "199/s") {
		t.Errorf("%d missed:\n%s", table.missed, out.String())
	}
	out.Reset()
	if table.print(); out.Len() > 0 {
		t.Errorf("printed again:\n%s", out.String())
	}
}

// A row of several rounds shows the one in the middle as it was, by its ratio where it
// has one, and is judged by that.
func TestTheMiddleRound(t *testing.T) {
	const ms = time.Millisecond
	var out strings.Builder
	table := &table{w: &out}
	for _, round := range [][2]time.Duration{{10 * ms, 40 * ms}, {30 * ms, 60 * ms}, {10 * ms, 15 * ms}} {
		table.times("beside a direct one", round[0], round[1], target{ratio: 2})
		table.times("alone", 0, round[1], target{time: 40 * ms})
		table.rate("rate", round[1].Seconds()*1000, target{rate: 40})
	}
	table.print()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || table.missed != 1 {
		t.Fatalf("%d missed:\n%s", table.missed, out.String())
	}
	for i, want := range []string{"30.00ms   60.00ms    2.00x", "40.00ms", "40/s"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("%q does not say %q", lines[i], want)
		}
	}
	if !strings.HasSuffix(lines[1], "MISS") || !strings.HasSuffix(lines[2], "ok") {
		t.Errorf("the verdicts of\n%s", out.String())
	}
}

// What writes and what only reads are judged each by its own median, and each ratio is to the direct call of its own round. A
// round in which the one is in the middle says nothing of the other.
func TestEachColumnHasItsMedian(t *testing.T) {
	const ms = time.Millisecond
	var out strings.Builder
	table := &table{w: &out}
	table.heading("promised")
	for _, round := range [][3]time.Duration{{10 * ms, 30 * ms, 11 * ms}, {10 * ms, 20 * ms, 90 * ms}, {20 * ms, 20 * ms, 26 * ms}} {
		table.calls("a call", round[0], round[1], round[2], target{ratio: 1.5})
		table.calls("another", round[0], round[2], round[1], target{ratio: 1.5})
	}
	table.print()
	for _, want := range []string{"10.00ms   20.00ms    2.00x   26.00ms    1.30x     1.50x  MISS: bridge", "20.00ms   26.00ms    1.30x   20.00ms    2.00x     1.50x  MISS: reads"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s does not say %q", out.String(), want)
		}
	}
	page := table.markdown()
	for _, want := range []string{"; 2 targets missed.", "| promised | direct | bridge | ratio | reads | ratio | target |  |\n", "\n| a call | 10.00ms | 20.00ms | 2.00x | 26.00ms | 1.30x | 1.50x | MISS: bridge |\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

// The documentation has a place for what is promised, and nothing but a whole measurement goes there.
func TestPromisesHaveAPage(t *testing.T) {
	const page = "../../docs/engine.md"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(was), promisesBegin)
	_, after, ended := strings.Cut(rest, measuredEnds)
	if !ok || !ended {
		t.Fatalf("%s has no place for what is measured", page)
	}
	copied := filepath.Join(t.TempDir(), "engine.md")
	if err := os.WriteFile(copied, was, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceMeasured(copied, promisesBegin, "new\n"); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(copied); err != nil || string(now) != before+promisesBegin+"new\n"+measuredEnds+after {
		t.Errorf("the page is %s, %v", now, err)
	}
	if _, err := run(t.Context(), io.Discard, &machine{rounds: 1}, "decisions", copied); err == nil || !strings.Contains(err.Error(), "leave -only out") {
		t.Errorf("a part is written to the page: %v", err)
	}
}

// The rules whose time is measured do decide: on a call that one is about, they ask.
func TestMeasuredRules(t *testing.T) {
	policy, err := policyOf(mixedRule)
	if err != nil {
		t.Fatal(err)
	}
	call := profiles.Call{Server: "server0", Tool: "write_file", Args: map[string]any{"path": "/etc/0/x", "size": json.Number("1")}}
	if got := policy.Decide(call); got.Disposition != profiles.Ask {
		t.Errorf("a call that a rule is about: %s", got.Disposition)
	}
}

// A long log is records in pairs: none of its batches begins in the middle of a call.
func TestLongRecords(t *testing.T) {
	list := longRecords(500, 4)
	if len(list) != 4 || list[0].Event != ledger.Intent || list[1].Event != ledger.Outcome || list[0].Call != list[1].Call || list[1].Call == list[2].Call {
		t.Errorf("%+v", list)
	}
}

// The processor time of a process is what it has used, whatever its name.
func TestProcessorTime(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now < before+50*time.Millisecond; { // of its own, so it comes
		if now, err = processorTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := statTicks(os.Getpid(), 4); err != nil {
		t.Error(err)
	}
	if _, err := processorTime(1 << 30); err == nil {
		t.Error("the time of a process that is not there")
	}
}

func TestAlternate(t *testing.T) {
	var order strings.Builder
	medians, err := alternate(2,
		func() error { order.WriteByte('d'); return nil },
		func() error { order.WriteByte('b'); return nil })
	if err != nil || len(medians) != 2 || order.String() != "dbdbdb" {
		t.Errorf("%v, %v, in the order %s", medians, err, order.String())
	}
	failure := errors.New("gone")
	if _, err := alternate(2, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestField(t *testing.T) {
	const status = "Name:\tcodemode-worker\nPPid:\t41\nVmRSS:\t    7160 kB\n"
	if got, ok := field(status, "VmRSS:"); !ok || got != "7160 kB" {
		t.Errorf("got %q, %v", got, ok)
	}
	if _, ok := field(status, "VmSwap:"); ok {
		t.Error("found what is not there")
	}
}

// The configuration of the slow servers is read as it is meant: by the upstream itself.
func TestSlowConfig(t *testing.T) {
	text, err := slowConfig("/bin/bench")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if got := config.Servers["hangs"].Args; len(config.Servers) != 11 || !slices.Equal(got, []string{upstreamArg, "-after", "-1s"}) {
		t.Errorf("%d servers, of which one hangs with %q", len(config.Servers), got)
	}
}
