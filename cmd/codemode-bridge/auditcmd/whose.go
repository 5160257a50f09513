package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A whose says whose runs count, where several configurations share the log.
type whose struct {
	of  string // a configuration: its file, its id, or as "runs list --all" shows it
	all bool
}

func (w *whose) flags(c *cobra.Command) {
	c.Flags().StringVar(&w.of, "runs-of", "", "only the runs of this `configuration`: its file, its id, or as runs list --all shows it")
	c.Flags().BoolVar(&w.all, "all", false, "the runs of all configurations that share the log")
}

// chosenRuns are the runs that count.
type chosenRuns struct {
	id   string // of their configuration; empty: all runs count
	says string // which ones count, where that is not plain
}

func (c chosenRuns) shown() func(configuration string) bool {
	if c.id == "" {
		return func(string) bool { return true }
	}
	return audit.Own(c.id)
}

// choose finds the configuration whose runs count. Without flags it is the present one or,
// if the log has no runs of it, the one that holds where the command line names none, or
// the only one that the log has runs of.
func (l *Log) choose(ctx context.Context, log ledger.Reader, w whose) (chosenRuns, error) {
	if w.all && w.of != "" {
		return chosenRuns{}, &cli.UsageError{Err: errors.New("--runs-of or --all, not both")}
	}
	if w.all || w.of == "" && l.Named() {
		return chosenRuns{}, nil
	}
	runs, err := audit.Configurations(ctx, log)
	if err != nil {
		return chosenRuns{}, fmt.Errorf("looking for the configurations that share the log: %w", err)
	}
	s := &sharers{l, runs, map[string]string{}}
	if w.of != "" {
		id, err := s.find(w.of)
		return s.chosen(id, ""), err
	}
	cfg, err := l.Load()
	if err != nil {
		return chosenRuns{}, err
	}
	own := s.name(cfg)
	if runs[own] > 0 || len(runs) == 0 {
		return s.chosen(own, ""), nil
	}
	if usual, err := l.At(""); err == nil {
		if id := s.name(usual); runs[id] > 0 {
			return s.chosen(id, ", since this configuration has none"), nil
		}
	}
	if len(runs) > 1 {
		return chosenRuns{}, &cli.UsageError{Err: fmt.Errorf("several configurations share the log, and it has no runs of this one: name with --runs-of whose count (%s), or let --all count all", s)}
	}
	for id := range runs {
		own = id
	}
	return s.chosen(own, ", the only configuration that the log has runs of"), nil
}

// sharers are the configurations that share a log.
type sharers struct {
	log   *Log
	runs  map[string]int    // how many it has, by the id of their configuration
	names map[string]string // by id, as far as they are known
}

// chosen says which runs count, if there are others or it is not plain why.
func (s *sharers) chosen(id, why string) chosenRuns {
	c := chosenRuns{id: id}
	others := len(s.runs)
	if s.runs[id] > 0 {
		others--
	}
	if why == "" && others == 0 {
		return c
	}
	c.says = "counted are the runs of " + s.called(id) + why
	if others > 0 {
		c.says += fmt.Sprintf("; the log has those of %s, too: --runs-of names whose count, --all counts all", cli.Count(others, "other configuration"))
	}
	return c
}

// find returns the id of a configuration that a person names.
func (s *sharers) find(of string) (string, error) {
	for _, id := range []string{of, "id " + of} {
		if s.runs[id] > 0 {
			return id, nil
		}
	}
	if _, err := os.Stat(of); err != nil {
		has := "it has runs of none"
		if len(s.runs) > 0 {
			has = "it has those of " + s.String()
		}
		return "", &cli.UsageError{Err: fmt.Errorf("--runs-of: the log has no runs of a configuration %q, and there is no such file; %s", of, has)}
	}
	cfg, err := s.log.At(of)
	if err != nil {
		return "", err
	}
	return s.name(cfg), nil
}

// name returns the id of a configuration and notes its name.
func (s *sharers) name(cfg *config.Config) string {
	id, name := cfg.Identity()
	s.names[id] = s.log.HomeShort(name)
	return id
}

// called is how people are told of a configuration.
func (s *sharers) called(id string) string {
	if name := s.names[id]; name != "" {
		return audit.Shown(name)
	}
	if given, ok := strings.CutPrefix(id, "id "); ok {
		return audit.Shown(given)
	}
	return audit.Shown(id)
}

// String lists those that the log has runs of.
func (s *sharers) String() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		all = append(all, fmt.Sprintf("%s: %s", s.called(id), cli.Count(s.runs[id], "run")))
	}
	return strings.Join(all, ", ")
}
