package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A grid is a table in Markdown: rows with a text and a value for each column.
type grid struct {
	heading string
	columns []string
	rows    [][]string
}

// durations adds a row with a figure of each column's durations.
func (g *grid) durations(what string, of [][]time.Duration, figure func([]time.Duration) time.Duration) {
	row := []string{what}
	for _, all := range of {
		row = append(row, show(figure(all)))
	}
	g.rows = append(g.rows, row)
}

// loads adds a row with a figure of each load; columns that have none come first.
func (g *grid) loads(what string, of []*loaded, figure func(*loaded) string) {
	row := []string{what}
	for range len(g.columns) - len(of) {
		row = append(row, "")
	}
	for _, l := range of {
		row = append(row, figure(l))
	}
	g.rows = append(g.rows, row)
}

func (g *grid) print(w io.Writer) {
	fmt.Fprintf(w, "| %s | %s |\n| --- |%s\n", g.heading, strings.Join(g.columns, " | "), strings.Repeat(" --: |", len(g.columns)))
	for _, row := range g.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
}

// The measured tables of a page stand between one of the first two lines and the last.
const (
	measuredBegins = "<!-- measured: written by make bench-replicas -->\n"
	promisesBegin  = "<!-- measured: written by make bench -->\n"
	measuredEnds   = "<!-- /measured -->\n"
)

// replaceMeasured writes text in the place of what a page has as measured after the line begins.
func replaceMeasured(page, begins, text string) error {
	was, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(was), begins)
	_, after, ended := strings.Cut(rest, measuredEnds)
	if !ok || !ended {
		return fmt.Errorf("%s has no lines %q and %q, between which the tables would stand", page, strings.TrimSpace(begins), strings.TrimSpace(measuredEnds))
	}
	return os.WriteFile(page, []byte(before+begins+text+measuredEnds+after), 0o644)
}

// thisMachine names the machine that is measured: its system and its processors.
func thisMachine() string {
	model := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = " (" + strings.TrimSpace(value) + ")"
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s with %d processors%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model)
}

// interleave times n rounds of every function, one after the other in each round, after one
// round that does not count. What each took is in order of length.
func interleave(n int, functions ...func() error) ([][]time.Duration, error) {
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
	for _, all := range taken {
		slices.Sort(all)
	}
	return taken, nil
}

// quantile returns the percentile of durations that are in order: the one below which so
// many of a hundred are.
func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
