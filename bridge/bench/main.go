// Command bench measures the bridge from outside, as whole processes, and compares it
// with the same client calling the same upstream directly.
//
//	go run ./bridge/bench -bridge bin/codemode-bridge
//
// The upstream is this program again, started as a stdio MCP server
// (upstream.go). The client is the Go SDK's in both cases, over stdio. Rounds of
// direct and bridged calls alternate, so that a busy machine slows both. A row shows
// medians:
//
//	what   direct   bridge   ratio   target   ok or MISS
//
// where a target like "2.00x" bounds the ratio and one like "25ms" the
// bridge's own value. The exit status is 0 even if a target is missed, because a busy
// machine misses some. With -strict it is then 1.
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
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == upstreamArg {
		if err := serveUpstream(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench upstream:", err)
			os.Exit(1)
		}
		return
	}

	bridge := flag.String("bridge", "bin/codemode-bridge", "the binary to measure; its worker is found beside it")
	rounds := flag.Int("rounds", 200, "rounds of the short measurements; the long ones take a tenth")
	strict := flag.Bool("strict", false, "exit with 1 if a target is missed")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	missed, err := run(ctx, os.Stdout, *bridge, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if *strict && missed > 0 {
		os.Exit(1)
	}
}

// run measures everything and prints the table to w. It returns how many
// targets were missed.
func run(ctx context.Context, w io.Writer, bridge string, rounds int) (missed int, err error) {
	if bridge, err = filepath.Abs(bridge); err != nil {
		return 0, err
	}
	scratch, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	m := &machine{bridge: bridge, scratch: scratch, rounds: rounds}
	t := &table{w: w}
	t.heading()
	for _, measure := range []func(context.Context, *table) error{
		m.calls, m.windows, m.audits, m.manyTools, m.reloads, m.starts, m.slowServers, m.memory, m.paused, m.isolation, m.turns,
	} {
		if err := measure(ctx, t); err != nil {
			return t.missed, err
		}
	}
	fmt.Fprintf(w, "\n%d targets missed\n", t.missed)
	return t.missed, nil
}
