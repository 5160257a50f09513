package auditcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
)

// Suggest is the command "profiles suggest". Known says what is known of a server's
// tool, and rewrite edits the configuration file as any edit of it.
func (l *Log) Suggest(known func(cfg *config.Config, server, tool string) audit.Meaning, rewrite func(edit func(text []byte) ([]byte, error)) error) *cobra.Command {
	var s Selection
	var apply bool
	c := &cobra.Command{
		Use: "suggest [rule...]", Short: "Propose rules that would have spared questions, by the audit log",
		Long: "Looks for questions of one tool that people nearly always answer yes, and proposes the narrowest rule that\n" +
			"covers those calls, with how many it would have spared, when, and examples. It proposes nothing of high\n" +
			"risk, nothing that deletes, runs code, spends or sends, and nothing that anybody has refused. With --apply\n" +
			"the rules (or those named) are written into the profiles that asked; as with any edit, a bridge with\n" +
			"approvers holds them until one of them confirms it.",
		Example: "  codemode-bridge profiles suggest --since 30d\n  codemode-bridge profiles suggest suggested-1f09c2ab --apply",
		RunE: func(c *cobra.Command, names []string) error {
			cfg, err := l.Load()
			if err != nil {
				return err
			}
			all, err := l.proposals(c.Context(), s, cfg, known)
			if err != nil {
				return err
			}
			if all, err = chosen(all, names); err != nil {
				return err
			}
			if apply && len(all) > 0 {
				return l.apply(cfg, all, rewrite)
			}
			return l.showProposals(all)
		},
	}
	s.Period(c)
	c.Flags().BoolVar(&apply, "apply", false, "write the rules into the configuration")
	l.JSONFlag(c)
	return c
}

// proposals returns the rules that the log speaks for and the configuration does not
// have.
func (l *Log) proposals(ctx context.Context, s Selection, cfg *config.Config, known func(cfg *config.Config, server, tool string) audit.Meaning) (all []audit.Proposal, err error) {
	err = l.read(ctx, func(ctx context.Context, store ledger.Store) error {
		q, err := s.Query(ctx, store, time.Now())
		if err != nil {
			return err
		}
		stats, err := audit.Measure(store.Rows(ctx, q))
		if err != nil {
			return err
		}
		for _, p := range stats.Proposals(func(server, tool string) audit.Meaning { return known(cfg, server, tool) }) {
			if p.Profile == "" && cfg.Evaluation.DefaultProfile != nil {
				p.Profile = *cfg.Evaluation.DefaultProfile
			}
			profile := cfg.Evaluation.Profiles[p.Profile]
			if profile == nil {
				continue // it is gone
			}
			if !slices.ContainsFunc(profile.Rules, func(has profiles.RuleSpec) bool { return has.Name != nil && *has.Name == *p.Rule.Name }) {
				all = append(all, p)
			}
		}
		return nil
	})
	return all, err
}

// chosen returns the proposals whose rules are named, or all.
func chosen(all []audit.Proposal, names []string) ([]audit.Proposal, error) {
	if len(names) == 0 {
		return all, nil
	}
	var some []audit.Proposal
	for _, name := range names {
		i := slices.IndexFunc(all, func(p audit.Proposal) bool { return *p.Rule.Name == name })
		if i < 0 {
			return nil, &cli.UsageError{Err: fmt.Errorf("no rule %q is proposed", name)}
		}
		some = append(some, all[i])
	}
	return some, nil
}

func (l *Log) showProposals(all []audit.Proposal) error {
	if l.JSON {
		return l.PrintJSON(append([]audit.Proposal{}, all...))
	}
	if len(all) == 0 {
		fmt.Fprintln(l.Err, "no rule is proposed: no tool's questions were answered yes often enough, without a no, and by default")
		return nil
	}
	for i, p := range all {
		var text strings.Builder
		if err := p.Write(&text, i+1); err != nil {
			return err
		}
		fmt.Fprint(l.Out, text.String())
	}
	fmt.Fprintln(l.Err, "nothing was changed; --apply writes them")
	return nil
}

// apply writes the rules.
func (l *Log) apply(cfg *config.Config, all []audit.Proposal, rewrite func(edit func(text []byte) ([]byte, error)) error) error {
	var before, after []byte
	err := rewrite(func(text []byte) (next []byte, err error) {
		before, next = text, text
		for _, p := range all {
			if next, err = setup.AddRule(next, p.Profile, p.Rule); err != nil {
				return nil, err
			}
		}
		after = next
		return next, nil
	})
	if err != nil {
		return err
	}
	if l.JSON {
		return l.PrintJSON(all)
	}
	l.PrintLines(setup.Diff(l.HomeShort(cfg.File), before, after, setup.Secrets(before)))
	fmt.Fprintf(l.Err, "wrote %s; if a bridge with approvers runs, codemode-bridge config confirm takes it over\n", cli.Count(len(all), "rule"))
	return nil
}
