package auditcmd

import (
	"context"
	"errors"
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

// stats prints statistics, and suggests rules.
func (l *Log) stats() *cobra.Command {
	var s Selection
	c := &cobra.Command{
		Use: "stats", Short: "Count questions, answers, refusals, and suggest rules", Args: cli.NoArgs,
		Long: "Counts what was asked and how it was answered, what was refused and why, and which rules nothing\nneeded. For a rule that is nearly always answered yes, it prints the narrowest rule that would have\ncovered those answers, with every no that it would have let through. Nothing is changed.",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.read(c.Context(), func(ctx context.Context, store ledger.Store) error {
				q, err := s.Query(ctx, store, time.Now())
				if err != nil {
					return err
				}
				stats, err := audit.Measure(store.Rows(ctx, q))
				if err != nil {
					return err
				}
				unused, err := l.unused(stats)
				if err != nil {
					fmt.Fprintf(l.Err, "rules that nothing needed are not listed: the configuration cannot be read: %s\n", cli.FirstLine(err.Error()))
				}
				suggested := l.applicable(c.Context(), s, stats.Suggest())
				if l.JSON {
					return l.PrintJSON(struct {
						*audit.Stats
						Unused      []string     `json:"unused"`
						Suggestions []applicable `json:"suggestions"`
					}{stats, unused, suggested})
				}
				if stats.Rows == 0 {
					fmt.Fprintln(l.Err, "no rows match")
					return nil
				}
				if err := stats.Write(l.Out, unused, l.Table); err != nil {
					return err
				}
				for i, one := range suggested {
					if one.Apply != "" {
						l.Told("suggestion %d (%s), as far as nobody refused such a call, is written by: %s", i+1, one.Tool, one.Apply)
					} else {
						l.Told("suggestion %d (%s) is for you to write: it asks by a rule or list of its own, was refused at times, or is of high risk", i+1, one.Tool)
					}
				}
				return nil
			})
		},
	}
	s.Period(c)
	c.Flags().StringSliceVar(&s.Profiles, "profile", nil, "only runs under this `profile`")
	l.JSONFlag(c)
	return c
}

// An applicable is a suggestion with the command that writes a rule for its calls; empty
// where a person has to write it.
type applicable struct {
	audit.Suggestion
	Apply string `json:"apply,omitempty"`
}

// applicable finds the commands that apply suggestions: those of the rules that
// "profiles suggest" proposes for the same tool.
func (l *Log) applicable(ctx context.Context, s Selection, suggested []audit.Suggestion) []applicable {
	all := make([]applicable, len(suggested))
	var proposed []audit.Proposal
	if cfg, err := l.Load(); err == nil && len(suggested) > 0 {
		proposed, _ = l.proposals(ctx, s, cfg) // without them nothing can be applied
	}
	for i, one := range suggested {
		all[i].Suggestion = one
		for _, p := range proposed {
			if p.Tool == one.Tool && (p.Profile == one.Profile || one.Profile == "") {
				all[i].Apply = "codemode-bridge profiles suggest " + *p.Rule.Name + " --apply"
			}
		}
	}
	return all
}

// unused returns the rules of the present configuration that the log never names.
func (l *Log) unused(stats *audit.Stats) ([]string, error) {
	cfg, err := l.Load()
	if err != nil {
		return nil, err
	}
	return stats.Unused(cfg.Evaluation.Spec), nil
}

// report writes the report for an auditor.
func (l *Log) report() *cobra.Command {
	var s Selection
	var against string
	c := &cobra.Command{
		Use: "report", Short: "Write a report of a period, for an auditor, as Markdown", Args: cli.NoArgs,
		Long: "Verifies the whole log and writes, as Markdown, who let what happen in a period, what was refused\nand why, which outcomes are not known, and how the configuration changed. Where the log is not whole\nthe report says so and the exit code is 5.",
		RunE: func(c *cobra.Command, _ []string) error {
			return l.With(c.Context(), func(ctx context.Context, store ledger.Book) error {
				now := time.Now()
				q, err := s.Query(ctx, store, now)
				if err != nil {
					return err
				}
				checkpoints, err := readCheckpoints(against)
				if err != nil {
					return err
				}
				verified, err := audit.Verify(ctx, store, checkpoints)
				if err != nil {
					return err
				}
				err = audit.WriteReport(l.Out, store.Rows(ctx, q), audit.ReportOptions{
					From: q.Since, Until: q.Until, Now: now, Verified: verified, Against: len(checkpoints) > 0,
				})
				if err == nil && !verified.Whole {
					return &cli.ExitError{Code: cli.ExitNotWhole}
				}
				return err
			})
		},
	}
	s.Period(c)
	c.Flags().StringVar(&against, "against", "", "verify also against a checkpoint: a `file`, or the line itself")
	return c
}

// Suggest is the command "profiles suggest". Rewrite edits the configuration file as any
// edit of it.
func (l *Log) Suggest(rewrite func(edit func(text []byte) ([]byte, error)) error, with func(context.Context, func(audit.ReplayOptions) error) error) *cobra.Command {
	var s Selection
	var whole learning
	var apply bool
	c := &cobra.Command{
		Use: "suggest [rule...]", Short: "Propose rules that would have spared questions, by the audit log",
		Long: "Looks for questions of one tool that people nearly always answer yes, and proposes the narrowest rule that\n" +
			"covers those calls, with how many it would have spared, when, and examples. It proposes nothing of high\n" +
			"risk, nothing that deletes, runs code, spends or sends, and nothing that anybody has refused. With --apply\n" +
			"the rules (or those named) are written into the profiles that asked; as with any edit, a bridge with\n" +
			"approvers holds them until one of them confirms it.\n" +
			"With --as it learns a whole profile instead: the smallest that lets pass what was done and approved, and asks\n" +
			"about the rest. Each rule has what speaks for it as a comment: how many calls, in how many runs, when, and examples.\n" +
			"Folders and hosts stand for what is in them only from three different files or addresses on; texts may differ; all else is\n" +
			"bound to what it was. What deletes, spends or runs code stays a question, and so does whatever a refused call is like.",
		Example: "  codemode-bridge profiles suggest --since 30d\n  codemode-bridge profiles suggest suggested-1f09c2ab --apply\n" +
			"  codemode-bridge profiles suggest --as learnt --extends builtin:coding@1",
		RunE: func(c *cobra.Command, names []string) error {
			if whole.as != "" {
				if len(names) > 0 {
					return &cli.UsageError{Err: errors.New("--as learns a whole profile: it goes without names of rules")}
				}
				whole.apply = apply
				return l.learn(c.Context(), s, whole, with, rewrite)
			}
			cfg, err := l.Load()
			if err != nil {
				return err
			}
			all, err := l.proposals(c.Context(), s, cfg)
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
	c.Flags().BoolVar(&apply, "apply", false, "write the rules, or the profile, into the configuration")
	whole.flags(c)
	l.JSONFlag(c)
	return c
}

// proposals returns the rules that the log speaks for and the configuration does not
// have.
func (l *Log) proposals(ctx context.Context, s Selection, cfg *config.Config) (all []audit.Proposal, err error) {
	err = l.read(ctx, func(ctx context.Context, store ledger.Store) error {
		q, err := s.Query(ctx, store, time.Now())
		if err != nil {
			return err
		}
		stats, err := audit.Measure(audit.Of(store.Rows(ctx, q), l.shown(false)))
		if err != nil {
			return err
		}
		for _, p := range stats.Proposals(func(server, tool string) audit.Meaning { return l.Known(cfg, server, tool) }) {
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
