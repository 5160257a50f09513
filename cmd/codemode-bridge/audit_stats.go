package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"

	"github.com/spf13/cobra"
)

// statsCommand counts.
func statsCommand(con *console) *cobra.Command {
	var s selection
	c := &cobra.Command{
		Use: "stats", Short: "Count questions, answers, refusals, and suggest rules", Args: noArgs,
		Long: "Counts what was asked and how it was answered, what was refused and why, and which rules nothing\nneeded. For a rule that is nearly always answered yes, it prints the narrowest rule that would have\ncovered those answers, with every no that it would have let through. Nothing is changed.",
		RunE: func(c *cobra.Command, _ []string) error {
			return readLog(c.Context(), con, func(ctx context.Context, store ledger.Store) error {
				q, err := s.query(ctx, store, time.Now())
				if err != nil {
					return err
				}
				stats, err := audit.Measure(store.Rows(ctx, q))
				if err != nil {
					return err
				}
				unused, err := unused(con, stats)
				if err != nil {
					fmt.Fprintf(con.err, "rules that nothing needed are not listed: the configuration cannot be read: %s\n", firstLine(err.Error()))
				}
				if con.json {
					return con.printJSON(struct {
						*audit.Stats
						Unused      []string           `json:"unused"`
						Suggestions []audit.Suggestion `json:"suggestions"`
					}{stats, unused, stats.Suggest()})
				}
				return printStats(con, stats, unused)
			})
		},
	}
	s.period(c)
	c.Flags().StringSliceVar(&s.profiles, "profile", nil, "only runs under this `profile`")
	con.jsonFlag(c)
	return c
}

// unused are the rules of the present configuration that the log never names.
func unused(con *console, stats *audit.Stats) ([]string, error) {
	cfg, err := con.load()
	if err != nil {
		return nil, err
	}
	return stats.Unused(cfg.Evaluation), nil
}

func printStats(con *console, s *audit.Stats, unused []string) error {
	out := func(format string, args ...any) { fmt.Fprintf(con.out, format, args...) }
	if s.Rows == 0 {
		fmt.Fprintln(con.err, "no rows match")
		return nil
	}
	q := s.Questions
	out("%s from %s to %s\n", count(s.Rows, "row"), s.From.Local().Format(time.DateTime), s.To.Local().Format(time.DateTime))
	out("runs       %d: %d done, %d failed, %d stopped, %d open\n", s.Runs.All, s.Runs.Done, s.Runs.Failed, s.Runs.Stopped, s.Runs.Open)
	out("calls      %d: %d done, %d failed, %d refused, %d unknown\n", s.Calls.All, s.Calls.Done, s.Calls.Failed, s.Calls.Refused, s.Calls.Unknown)
	out("questions  %d; by persons %d yes and %d no; %d by an earlier yes, %d by fallback\n", q.Asked, q.Yes, q.No, q.Remembered, q.Fallback)
	if q.Yes+q.No > 0 {
		out("approval   %.0f %%\n", 100*q.Rate)
		out("to decide  %v at the median, %v for 9 of 10\n", q.Median.Round(time.Millisecond), q.P90.Round(time.Millisecond))
	}
	section := func(title string, head []string, rows [][]string) error {
		if len(rows) == 0 {
			return nil
		}
		out("\n%s\n", title)
		return con.table(append([][]string{head}, rows...))
	}
	var rules, denials, failures [][]string
	for _, r := range s.Rules {
		rules = append(rules, []string{dash(r.Rule), strconv.Itoa(r.Asked), strconv.Itoa(r.Yes), strconv.Itoa(r.No)})
	}
	for _, d := range s.Denials[:min(len(s.Denials), 20)] {
		denials = append(denials, []string{strconv.Itoa(d.Count), dash(d.Tool), dash(d.Why)})
	}
	for _, why := range slices.Sorted(maps.Keys(s.Failures)) {
		failures = append(failures, []string{strconv.Itoa(s.Failures[why]), dash(why)})
	}
	err := errors.Join(
		section("rules that asked", []string{"rule", "asked", "yes", "no"}, rules),
		section("refused", []string{"calls", "tool", "why"}, denials),
		section("questions without an answer", []string{"calls", "why"}, failures))
	if len(unused) > 0 {
		out("\nrules that nothing needed\n")
		for _, rule := range unused {
			out("  %s\n", audit.Shown(rule))
		}
	}
	for _, suggestion := range s.Suggest() {
		printSuggestion(con, suggestion)
	}
	return err
}

// printSuggestion prints a rule to paste, and all that speaks against it.
func printSuggestion(con *console, s audit.Suggestion) {
	out := func(format string, args ...any) { fmt.Fprintf(con.out, format, args...) }
	line := func(v any) string {
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // it is for pasting: && is to stay what it is
		if err := e.Encode(v); err != nil {
			return err.Error()
		}
		return strings.TrimSpace(text.String())
	}
	profile := s.Profile
	if profile == "" {
		profile = evalProfile
	}
	out("\n%s was answered yes %d times and no %d times (%s)\n", audit.Shown(s.Tool), s.Yes, s.No, audit.Shown(s.Asks))
	out("  a rule for profile %s that would have covered %d of them:\n", audit.Shown(profile), s.Cover)
	out("    %s\n", audit.Shown(line(s.Rule)))
	if s.Note != "" {
		out("  %s\n", audit.Shown(s.Note))
	}
	for _, rule := range s.Instead {
		out("    instead: %s\n", audit.Shown(line(rule)))
	}
	if s.Except != "" {
		out("    add to its condition: && %s\n", audit.Shown(s.Except))
	}
	if len(s.LetThrough) == 0 {
		out("  it would have let none of the refused calls through\n")
		return
	}
	out("  it would have let through:\n")
	for _, c := range s.LetThrough {
		out("    %s  %s #%d  %s  %s\n", c.Time.Local().Format(time.DateTime), audit.Shown(c.Run), c.Call, audit.Shown(c.Answer), cut(audit.Shown(string(c.Args)), 200))
	}
}

// reportCommand writes the report for an auditor.
func reportCommand(con *console) *cobra.Command {
	var s selection
	var against string
	c := &cobra.Command{
		Use: "report", Short: "Write a report of a period, for an auditor, as Markdown", Args: noArgs,
		Long: "Verifies the whole log and writes, as Markdown, who let what happen in a period, what was refused\nand why, which outcomes are not known, and how the configuration changed. Where the log is not whole\nthe report says so and the exit code is 5.",
		RunE: func(c *cobra.Command, _ []string) error {
			return withLog(c.Context(), con, func(ctx context.Context, store *sqlstore.DB) error {
				now := time.Now()
				q, err := s.query(ctx, store, now)
				if err != nil {
					return err
				}
				checkpoints, err := readCheckpoints(against)
				if err != nil {
					return err
				}
				verified, err := verify(ctx, store, checkpoints)
				if err != nil {
					return err
				}
				err = audit.WriteReport(con.out, store.Rows(ctx, q), audit.ReportOptions{
					From: q.Since, Until: q.Until, Now: now, Verified: verified, Against: len(checkpoints) > 0,
				})
				if err == nil && !verified.Whole {
					return &exitError{exitNotWhole}
				}
				return err
			})
		},
	}
	s.period(c)
	c.Flags().StringVar(&against, "against", "", "verify also against a checkpoint: a `file`, or the line itself")
	return c
}
