package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
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

// A measure is what one round found for a row, in nanoseconds, bytes or times a
// second.
type measure struct {
	direct float64 // 0 if there is nothing to compare with
	bridge float64
	reads  float64 // the same by a tool that only reads; 0 if there is no difference
}

// ratio returns how much larger a value is than the direct one, 0 if there is none.
func (m measure) ratio(value float64) float64 {
	if m.direct == 0 {
		return 0
	}
	return value / m.direct
}

// keptBy reports whether a value of a round is within the target.
func (t target) keptBy(m measure, value float64) bool {
	ratio := m.ratio(value)
	return !(t.ratio > 0 && (ratio == 0 || ratio > t.ratio) ||
		t.time > 0 && value >= float64(t.time) ||
		t.bytes > 0 && value >= float64(t.bytes) ||
		t.rate > 0 && value < t.rate)
}

// middle returns the round that is the median by a column: by its ratio to the direct value of the same minute if there
// is one, else by its value.
func middle(rounds []measure, column func(measure) float64) measure {
	worth := func(m measure) float64 { return cmp.Or(m.ratio(column(m)), column(m)) }
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b measure) int { return cmp.Compare(worth(a), worth(b)) })
	return sorted[len(sorted)/2]
}

// A row is what was found in each round.
type row struct {
	what   string
	rounds []measure
	show   func(float64) string
	want   target
}

// A table collects rows, each from one round or several, until it is printed.
type table struct {
	w      io.Writer
	rows   []*row
	missed int
	pages  []*grid // the same in Markdown, a heading each
}

const columns = "%-52s %9s %9s %8s %9s %8s %9s  %s\n"

func (t *table) heading(what string) {
	names := []string{"direct", "bridge", "ratio", "reads", "ratio", "target", ""}
	fmt.Fprintf(t.w, columns, what, names[0], names[1], names[2], names[3], names[4], names[5], names[6])
	t.pages = append(t.pages, &grid{heading: strings.TrimSpace(what), columns: names})
}

// add adds a round to the row of this name.
func (t *table) add(what string, m measure, show func(float64) string, want target) {
	for _, r := range t.rows {
		if r.what == what {
			r.rounds = append(r.rounds, m)
			return
		}
	}
	t.rows = append(t.rows, &row{what, []measure{m}, show, want})
}

// times adds a round of two durations; direct is 0 if there is nothing to compare with.
func (t *table) times(what string, direct, bridge time.Duration, want target) {
	t.calls(what, direct, bridge, 0, want)
}

// calls adds a round of three durations: reads is that of a tool that only reads.
func (t *table) calls(what string, direct, bridge, reads time.Duration, want target) {
	t.add(what, measure{float64(direct), float64(bridge), float64(reads)}, func(v float64) string { return show(time.Duration(v)) }, want)
}

// bytes adds a round of a size.
func (t *table) bytes(what string, n int64, want target) {
	t.add(what, measure{bridge: float64(n)}, func(v float64) string { return showBytes(int64(v)) }, want)
}

// rate adds a round of how often something is done in a second.
func (t *table) rate(what string, n float64, want target) {
	t.add(what, measure{bridge: n}, func(v float64) string { return fmt.Sprintf("%.0f/s", v) }, want)
}

// print prints the rows, counts those that miss, and begins anew.
func (t *table) print() {
	for _, r := range t.rows {
		cells := r.cells()
		if strings.HasPrefix(cells[len(cells)-1], miss) {
			t.missed++
		}
		line := make([]any, len(cells))
		for i := range cells {
			line[i] = cells[i]
		}
		fmt.Fprintf(t.w, columns, line...)
		if n := len(t.pages); n > 0 {
			t.pages[n-1].rows = append(t.pages[n-1].rows, cells)
		}
	}
	t.rows = nil
}

// markdown is all that was printed, for a page.
func (t *table) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "On %s, with nothing else to do; %d targets missed.\n\n", thisMachine(), t.missed)
	for _, g := range t.pages {
		g.print(&out)
	}
	return strings.TrimSpace(out.String()) + "\n"
}

const miss = "MISS"

// cells are what is shown of a row. Each column shows its own median, and is judged by that: "direct" is of the same
// round as "bridge".
func (r *row) cells() []string {
	bridge := middle(r.rounds, func(m measure) float64 { return m.bridge })
	reads := middle(r.rounds, func(m measure) float64 { return m.reads })
	verdict := ""
	if (r.want != target{}) {
		writesKept, readsKept := r.want.keptBy(bridge, bridge.bridge), reads.reads == 0 || r.want.keptBy(reads, reads.reads)
		switch {
		case writesKept && readsKept:
			verdict = "ok"
		case reads.reads == 0:
			verdict = miss
		case readsKept:
			verdict = miss + ": bridge"
		case writesKept:
			verdict = miss + ": reads"
		default:
			verdict = miss + ": both"
		}
	}
	value := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return r.show(v)
	}
	ratio := func(m measure, v float64) string {
		if v == 0 || m.direct == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2fx", m.ratio(v))
	}
	return []string{r.what, value(bridge.direct), r.show(bridge.bridge), ratio(bridge, bridge.bridge), value(reads.reads), ratio(reads, reads.reads), r.want.String(), verdict}
}

func show(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
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
	taken, err := interleave(n, functions...)
	if err != nil {
		return nil, err
	}
	medians := make([]time.Duration, len(functions))
	for i := range taken {
		medians[i] = median(taken[i])
	}
	return medians, nil
}
