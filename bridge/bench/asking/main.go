// Command asking counts how often a person is asked in ordinary work, and which harmful
// calls that look like it get through.
//
//	go run ./bridge/bench/asking -bridge bin/codemode-bridge -page docs/asking.md
//
// It plays the sessions in the folder sessions, which README.md describes, through the
// program itself: started as a client starts it, over standard input and output, with
// servers that this program plays under the name npx (npx.go). play.go plays a session
// and its twins, dialog.go answers as a person, run.go says what is played, and
// report.go writes the page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if asNpx() {
		if err := serveNpx(); err != nil {
			fmt.Fprintln(os.Stderr, "npx:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.bridge, "bridge", "bin/codemode-bridge", "the program; its worker is found beside it")
	flag.StringVar(&o.before, "before", "", "an older program, which plays what was the default before (default: the same one)")
	flag.StringVar(&o.sessions, "sessions", "bridge/bench/asking/sessions", "the folder with the sessions")
	flag.StringVar(&o.lists, "lists", "profiles/known/testdata/lists", "the folder with what servers list")
	flag.StringVar(&o.page, "page", "", "the Markdown file to write (default: standard output)")
	flag.StringVar(&o.dialogs, "dialogs", "", "a folder for the text of every question")
	flag.StringVar(&o.only, "only", "", "only sessions whose names contain this")
	flag.StringVar(&o.with, "with", "", "only these settings, separated by commas: supervised, init, fits (the template that fits) or a template")
	flag.BoolVar(&o.twins, "twins", true, "play the twins too, which takes most of the time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "asking:", err)
		os.Exit(1)
	}
}

type options struct {
	bridge, before, sessions, lists, page, dialogs, only, with string
	twins                                                      bool
}

// run plays everything and writes the page.
func run(ctx context.Context, o options) (err error) {
	scratch, err := os.MkdirTemp("", "asking")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	h, err := newHarness(o.bridge, o.lists, scratch)
	if err != nil {
		return err
	}
	if o.before != "" {
		if h.before, err = filepath.Abs(o.before); err != nil {
			return err
		}
	}
	all, err := sessions(o.sessions)
	if err != nil {
		return err
	}
	var cells []*cell
	for _, s := range all {
		if !strings.Contains(s.Name, o.only) {
			continue
		}
		for _, with := range settings() {
			c := &cell{Session: s, Setting: with, Fits: with.Template != "" && with.Template == fitting[s.Name]}
			if wanted := strings.Split(o.with, ","); o.with == "" || slices.Contains(wanted, with.Name) || c.Fits && slices.Contains(wanted, "fits") {
				cells = append(cells, c)
			}
		}
	}
	err = h.playCells(ctx, cells, func(c *cell) plan {
		counted := c.Setting.Baseline || c.Setting.Name == initName || c.Fits
		return plan{narrow: counted, twins: (c.Setting.Name == initName || c.Fits) && o.twins, shapes: c.Session.Name == "coding" && counted}
	})
	if err != nil {
		return err
	}
	if o.twins {
		fits := slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return !c.Fits })
		if err := each(fits, func(c *cell) error { return h.playLearning(ctx, c) }); err != nil {
			return err
		}
	}
	if o.dialogs != "" {
		if err := keepDialogs(o.dialogs, cells); err != nil {
			return err
		}
	}
	if o.page == "" {
		report(os.Stdout, cells)
		return nil
	}
	var page strings.Builder
	report(&page, cells)
	return os.WriteFile(o.page, []byte(page.String()), 0o644)
}

// newHarness makes a harness that plays a bridge.
func newHarness(bridge, listed, scratch string) (*harness, error) {
	h := &harness{}
	var err error
	if h.bridge, err = filepath.Abs(bridge); err != nil {
		return nil, err
	}
	if h.scratch, err = filepath.EvalSymlinks(scratch); err != nil {
		return nil, err
	}
	h.before = h.bridge
	h.lists, err = lists(listed)
	return h, err
}
