// Command context counts what a model reads to do eight tasks with 2, 5 and 11 real MCP
// servers, in three ways:
//
//   - direct: the definitions of all tools are in the prompt
//   - found: one tool searches, and its answers have the definitions of what it finds, as
//     some clients do by default
//   - bridge: the tools of codemode-bridge
//
// The tasks are written down in tasks.go as what a model sends; the answers are those of the
// real servers, which it starts. ways.go plays them, tokens.go counts by the tokenizer
// o200k, report.go writes the page. With -model, a model does the tasks itself (model.go).
//
//	go run ./bridge/bench/context -bridge bin/codemode-bridge -packages .cache/context -page docs/context.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	var o options
	flag.StringVar(&o.bridge, "bridge", "bin/codemode-bridge", "the program; its worker is found beside it")
	flag.StringVar(&o.packages, "packages", ".cache/context", "the folder with the servers' npm packages and the tokenizer")
	flag.StringVar(&o.page, "page", "", "the Markdown file to write (default: standard output)")
	flag.BoolVar(&o.model, "model", false, "have a model do the tasks: CONTEXT_MODEL, CONTEXT_API_KEY and, if it is not OpenAI's, CONTEXT_BASE_URL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "context:", err)
		os.Exit(1)
	}
}

type options struct {
	bridge, packages, page string
	model                  bool
}

// sizes are how many of the servers take part.
var sizes = []int{2, 5, 11}

func run(ctx context.Context, o options) (err error) {
	for _, path := range []*string{&o.bridge, &o.packages} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	var m *endpoint
	if o.model {
		if m, err = endpointOf(os.Getenv); err != nil {
			return err
		}
	}
	var stages []*stage
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.close())
		}
	}()
	for _, n := range sizes {
		s, err := open(ctx, o, servers[:n])
		if err != nil {
			return fmt.Errorf("with %d servers: %w", n, err)
		}
		stages = append(stages, s)
	}
	out := os.Stdout
	if o.page != "" {
		if out, err = os.Create(o.page); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}
	if m != nil {
		return m.report(ctx, out, stages)
	}
	return report(ctx, o, out, stages)
}
