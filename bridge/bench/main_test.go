package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		what           string
		direct, bridge time.Duration
		want           target
		says           string
	}{
		{"within the ratio", 10 * ms, 20 * ms, target{ratio: 2}, "2.00x     2.00x  ok"},
		{"over the ratio", 10 * ms, 21 * ms, target{ratio: 2}, "2.10x     2.00x  MISS"},
		{"a ratio to nothing", 0, 1 * ms, target{ratio: 2}, "MISS"},
		{"under the time", 0, 24 * ms, target{time: 25 * ms}, "ok"},
		{"the time itself", 0, 25 * ms, target{time: 25 * ms}, "MISS"},
		{"no target", 1 * ms, 99 * ms, target{}, "99.00x         -"},
	} {
		var out strings.Builder
		table := &table{w: &out}
		table.times(row.what, row.direct, row.bridge, row.want)
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
	if table.missed != 1 || !strings.Contains(out.String(), "41.0 MB") {
		t.Errorf("%d missed:\n%s", table.missed, out.String())
	}
	table.rate("often", 200, target{rate: 200})
	table.rate("seldom", 199, target{rate: 200})
	if table.missed != 2 || !strings.Contains(out.String(), "199/s") {
		t.Errorf("%d missed:\n%s", table.missed, out.String())
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
