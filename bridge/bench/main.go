// Command bench measures the bridge from outside, as whole processes, and compares it
// with the same client calling the same upstream directly.
//
//	go run ./bridge/bench -bridge bin/codemode-bridge
//
// The upstream is this program again, started as a stdio MCP server
// (upstream.go). The client is the Go SDK's in both cases, over stdio. Direct and bridged
// calls alternate, so that a busy machine slows both. What is promised is measured in
// three rounds, and each column of a row shows the round that is its median, as it was:
//
//	what   direct   bridge   ratio   reads   ratio   target   ok or MISS, and of which
//
// The tool of "bridge" may write, so what it is to do is on the disk before it is sent;
// that of "reads" only reads, and its ratio is to the direct calls of its own round. A target
// like "2.50x" bounds the ratios and one like "100ms" the bridge's own value. What is not
// promised follows, measured once. With -page both go into a page too, in Markdown. The exit
// status is 0 even if a target is missed, because a busy machine misses some. With
// -strict it is then 1. With -only some sections are measured.
//
// With -replicas it measures instead what a store in PostgreSQL costs, what one, two and
// three bridges do with it, and how long questions and verdicts take between them, and
// writes tables in Markdown, into a page with -page (replicas.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		serve := map[string]func([]string) error{upstreamArg: serveUpstream, floorArg: serveFloor, computeArg: serveCompute}[os.Args[1]]
		if serve != nil {
			if err := serve(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
				os.Exit(1)
			}
			return
		}
	}

	bridge := flag.String("bridge", "bin/codemode-bridge", "the binary to measure; its worker is found beside it")
	rounds := flag.Int("rounds", 120, "repetitions of the short measurements, a third of them in each round; the long ones take a tenth")
	strict := flag.Bool("strict", false, "exit with 1 if a target is missed")
	only := flag.String("only", "", "measure only these sections, separated by commas: "+strings.Join(slices.Concat(names(promised), names(besides)), ", "))
	rows := flag.Int("rows", longRows, "how many rows the long audit log has; ten million take some minutes to make")
	var s scale
	replicas := flag.Bool("replicas", false, "measure bridges with one store in PostgreSQL instead")
	flag.IntVar(&s.sessions, "sessions", 1000, "with -replicas: how many sessions the bridges have together")
	flag.IntVar(&s.calls, "calls", 200, "with -replicas: how many calls are made one after the other")
	flag.IntVar(&s.questions, "questions", 300, "with -replicas: how many questions are answered at another bridge")
	flag.DurationVar(&s.load, "load", 12*time.Second, "with -replicas: how long each load lasts")
	flag.StringVar(&s.page, "page", "", "the page whose tables are replaced")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute+time.Duration(*rows)*100*time.Microsecond)
	defer cancel()
	m := &machine{bridge: *bridge, rounds: *rounds, longRows: *rows}
	measure := func() (int, error) { return run(ctx, os.Stdout, m, *only, s.page) }
	if *replicas {
		measure = func() (int, error) { return m.replicas(ctx, os.Stdout, s) }
	}
	missed, err := measure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if *strict && missed > 0 {
		os.Exit(1)
	}
}

// A section is measures that are taken together.
type section struct {
	name string
	take func(*machine, context.Context, *table) error
}

var (
	promised = []section{
		{"calls", (*machine).calls}, {"floor", (*machine).floor}, {"turns", (*machine).turns}, {"neighbours", (*machine).neighbours},
		{"decisions", (*machine).decisions}, {"tools", (*machine).manyTools}, {"memory", (*machine).memory}, {"starts", (*machine).starts}, {"replays", (*machine).replays},
	}
	besides = []section{
		{"windows", (*machine).windows}, {"audits", (*machine).audits}, {"reloads", (*machine).reloads}, {"workers", (*machine).workers},
		{"slow", (*machine).slowServers}, {"paused", (*machine).paused}, {"sessions", (*machine).sessions},
	}
)

func names(list []section) (names []string) {
	for _, m := range list {
		names = append(names, m.name)
	}
	return names
}

// choose is the sections that are named, separated by commas; all if none is.
func choose(list []section, only string) []section {
	if only == "" {
		return list
	}
	named := strings.Split(only, ",")
	return slices.DeleteFunc(slices.Clone(list), func(m section) bool { return !slices.Contains(named, m.name) })
}

// allOfIt is how long the whole measurement takes at most: what takes longer is not run.
const allOfIt = 4 * time.Minute

// run measures the sections that only names, or all, and prints the table to w, and into a page if
// one is named. It returns how many targets were missed.
func run(ctx context.Context, w io.Writer, m *machine, only, page string) (missed int, err error) {
	began := time.Now()
	if page != "" && only != "" {
		return 0, errors.New("-page needs all sections: leave -only out")
	}
	promised, besides := choose(promised, only), choose(besides, only)
	if len(promised)+len(besides) == 0 {
		return 0, fmt.Errorf("-only %s: there is no such section", only)
	}
	if m.bridge, err = filepath.Abs(m.bridge); err != nil {
		return 0, err
	}
	if m.scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.scratch)) }()

	rounds := m.rounds
	m.rounds = max(rounds/3, 1)
	t := &table{w: w}
	const times = 3 // one would show a bad minute as it is
	for round := range times {
		if len(promised) > 0 {
			fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, times)
		}
		for _, part := range promised {
			if err := part.take(m, ctx, t); err != nil {
				return 0, err
			}
		}
	}
	if len(promised) > 0 {
		t.heading("promised (medians of 3 rounds)")
		t.print()
	}

	m.rounds = rounds
	if len(besides) > 0 {
		t.heading("\nbesides")
	}
	for _, part := range besides {
		if err := part.take(m, ctx, t); err != nil {
			return t.missed, err
		}
		t.print()
	}
	if only == "" && m.longRows == longRows {
		t.times("all of this", 0, time.Since(began), target{time: allOfIt})
		t.print()
	}
	if page != "" {
		if err := replaceMeasured(page, promisesBegin, t.markdown()); err != nil {
			return t.missed, err
		}
	}
	fmt.Fprintf(w, "\n%d targets missed\nNot a matter of time, and tested: what is left of a run after kill -9 (go test ./bridge -run 'Killed|Outlive').\n", t.missed)
	return t.missed, nil
}
