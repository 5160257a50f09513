package auditcmd

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
)

// A learning says what "profiles suggest --as" learns, and what becomes of it.
type learning struct {
	as, extends string
	apply       bool
}

func (n *learning) flags(c *cobra.Command) {
	c.Flags().StringVar(&n.as, "as", "", "learn a whole profile of this `name` from what was done and approved")
	c.Flags().StringVar(&n.extends, "extends", "", "the `profile` that it extends (default: what the default profile extends, if that is part of the bridge)")
}

// learn learns a profile, and prints or writes it. With is as of Replay.
func (l *Log) learn(ctx context.Context, s Selection, n learning, with func(context.Context, func(audit.ReplayOptions) error) error, rewrite func(edit func(text []byte) ([]byte, error)) error) error {
	cfg, err := l.Load()
	if err != nil {
		return err
	}
	if cfg.Evaluation.Profiles[n.as] != nil {
		return &cli.UsageError{Err: fmt.Errorf("there is a profile %q already", n.as)}
	}
	if n.extends == "" {
		n.extends = extended(cfg)
	}
	return with(ctx, func(o audit.ReplayOptions) error {
		learnt, err := l.learnt(ctx, s, n, cfg, o)
		if err != nil {
			return err
		}
		return l.showLearnt(learnt, n.apply, rewrite)
	})
}

// extended is what the default profile extends, if that is part of the bridge.
func extended(cfg *config.Config) string {
	e := cfg.Evaluation
	if e.DefaultProfile == nil || e.Profiles[*e.DefaultProfile] == nil || e.Profiles[*e.DefaultProfile].Extends == nil {
		return ""
	}
	if name := *e.Profiles[*e.DefaultProfile].Extends; strings.HasPrefix(name, profiles.BuiltinPrefix) {
		return name
	}
	return ""
}

func (l *Log) learnt(ctx context.Context, s Selection, n learning, cfg *config.Config, o audit.ReplayOptions) (learnt *audit.Learnt, err error) {
	err = l.read(ctx, func(ctx context.Context, store ledger.Store) error {
		q, err := s.Query(ctx, store, time.Now())
		if err != nil {
			return err
		}
		whole, err := os.ReadFile(cfg.File)
		if err != nil {
			return err
		}
		learnt, err = audit.Learn(audit.LearnOptions{
			Name: n.as, Extends: n.extends, Facts: o.Facts, Progress: l.progress(),
			Rows: func() audit.Rows { return audit.Of(store.Rows(ctx, q), l.shown(false)) },
			With: func(name string, spec profiles.ProfileSpec) (*profiles.Set, error) {
				next, err := jsonc.Insert(whole, "/evaluation/profiles/"+name, spec)
				if err != nil {
					return nil, err
				}
				with, err := l.Parse(cfg.File, next)
				if err != nil {
					return nil, err
				}
				return with.Profiles, nil
			},
			Known: func(server, tool string) audit.Meaning { return l.Known(cfg, server, tool) },
		})
		return err
	})
	return learnt, err
}

// showLearnt prints what was learnt, and writes it into the configuration if it is to be applied.
func (l *Log) showLearnt(learnt *audit.Learnt, apply bool, rewrite func(edit func(text []byte) ([]byte, error)) error) error {
	if l.JSON && !apply {
		return l.PrintJSON(learnt)
	}
	text, err := learnt.Text()
	if err != nil {
		return err
	}
	for _, line := range learnt.Words() {
		l.Told("%s", line)
	}
	fmt.Fprintf(l.Out, "%q: %s\n", learnt.Name, text)
	if !apply {
		l.Told("nothing was changed; --apply writes it, and profiles replay --by %s shows what it would change then", learnt.Name)
		return nil
	}
	return rewrite(func(whole []byte) ([]byte, error) {
		return jsonc.Insert(whole, "/evaluation/profiles/"+learnt.Name, jsonc.Text(text))
	})
}
