package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A target bounds a row. The zero target bounds nothing.
type target struct {
	ratio float64       // of the bridge's value to the direct one
	time  time.Duration // of the bridge's value
	bytes int64         // of the bridge's value
	rate  float64       // that the bridge's value reaches, a second
}

func (t target) String() string {
	switch {
	case t.ratio > 0:
		return fmt.Sprintf("%.2fx", t.ratio)
	case t.time > 0:
		return show(t.time)
	case t.bytes > 0:
		return showBytes(t.bytes)
	case t.rate > 0:
		return fmt.Sprintf("%.0f/s", t.rate)
	}
	return "-"
}

// A table prints rows as they come.
type table struct {
	w      io.Writer
	missed int
}

func (t *table) heading() {
	fmt.Fprintf(t.w, "%-44s %10s %10s %8s %9s\n", "", "direct", "bridge", "ratio", "target")
}

// times prints a row of two durations; direct is 0 if there is nothing to compare with.
func (t *table) times(what string, direct, bridge time.Duration, want target) {
	beside, ratio, r := "-", "-", 0.0
	if direct > 0 {
		r = float64(bridge) / float64(direct)
		beside, ratio = show(direct), fmt.Sprintf("%.2fx", r)
	}
	t.row(what, beside, show(bridge), ratio, want, want.metBy(r, bridge))
}

// metBy reports whether a ratio (0 if there is none) and a duration are within
// the target.
func (t target) metBy(ratio float64, d time.Duration) bool {
	if t.ratio != 0 && (ratio <= 0 || ratio > t.ratio) {
		return false
	}
	return t.time == 0 || d < t.time
}

// bytes prints a row of a size.
func (t *table) bytes(what string, n int64, want target) {
	t.row(what, "-", showBytes(n), "-", want, want.bytes == 0 || n < want.bytes)
}

// rate prints a row of how often something is done in a second.
func (t *table) rate(what string, n float64, want target) {
	t.row(what, "-", fmt.Sprintf("%.0f/s", n), "-", want, n >= want.rate)
}

func (t *table) row(what, direct, bridge, ratio string, want target, ok bool) {
	verdict := ""
	switch {
	case want == target{}:
	case ok:
		verdict = "ok"
	default:
		verdict = "MISS"
		t.missed++
	}
	fmt.Fprintf(t.w, "%-44s %10s %10s %8s %9s  %s\n", what, direct, bridge, ratio, want, verdict)
}

func show(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.0fus", float64(d)/float64(time.Microsecond))
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.0fms", float64(d)/float64(time.Millisecond))
}

func showBytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// median sorts all and returns the middle one.
func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// alternate times n rounds of every function, one after the other in each
// round, after one round that does not count, and returns their medians.
func alternate(n int, functions ...func() error) ([]time.Duration, error) {
	taken := make([][]time.Duration, len(functions))
	for round := range n + 1 {
		for i, f := range functions {
			start := time.Now()
			if err := f(); err != nil {
				return nil, err
			}
			if round > 0 {
				taken[i] = append(taken[i], time.Since(start))
			}
		}
	}
	medians := make([]time.Duration, len(functions))
	for i := range taken {
		medians[i] = median(taken[i])
	}
	return medians, nil
}
