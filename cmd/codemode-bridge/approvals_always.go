package main

import (
	"bytes"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/approvalview"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// approvalsAlways writes the rule that a request proposes into the configuration, and
// allows its calls.
func approvalsAlways(con *console) *cobra.Command {
	var o answering
	c := &cobra.Command{
		Use: "always id", Short: "Allow calls, and write a rule that always allows calls like them", Args: cli.ExactArgs(1), ValidArgsFunction: con.completeRequest,
		Long: "Allows the calls of a request and, for the rest of their run, calls like them; and adds a rule to the\n" +
			"profile that asked, so that nobody is asked about such calls again. It prints the calls and how the\n" +
			"configuration would change, and asks for your approver's token, which must be one of an admin. The edit\n" +
			"is held like any: where there are approvers, config confirm takes it over.",
		RunE: func(c *cobra.Command, ids []string) error { return alwaysAllow(c.Context(), con, ids[0], o) },
	}
	c.Flags().StringVar(&o.verdict.Text, "reason", "", "why")
	answerFlags(con, c, &o)
	return c
}

func alwaysAllow(ctx context.Context, con *console, id string, o answering) error {
	o.verdict.Approve, o.verdict.Scope = true, approval.RunScope
	return withRequests(ctx, con, func(cfg *config.Config, store storecmd.Requests) (err error) {
		e, err := find(ctx, store, id)
		if err != nil {
			return err
		}
		o.verdict.Count = e.MaxCount()
		rule := e.Proposed()
		switch {
		case rule == nil || !e.Open(time.Now()):
			return &cli.UsageError{Err: fmt.Errorf("no rule is proposed for the calls of %s: answer it with approvals approve or deny", e.ID)}
		case e.ConfigurationID() != realmOf(cfg).Configuration:
			return &cli.UsageError{Err: fmt.Errorf("%s is from a bridge with another configuration: its rule belongs there", e.ID)}
		}
		whole, err := os.ReadFile(cfg.File)
		if err != nil {
			return fmt.Errorf("reading the configuration: %w", err)
		}
		next, err := withRule(con, cfg.File, whole, e.Decision.Profile, *rule)
		if err != nil {
			return err
		}
		lines := append(approvalview.Lines(e, realmOf(cfg).Configuration, time.Now()), "", "the configuration with the rule:")
		lines = append(lines, setup.Diff(con.HomeShort(cfg.File), whole, next, setup.Secrets(whole))...)
		fmt.Fprintln(con.Err, strings.Join(lines, "\n"))
		people, who, _, err := authenticate(con, cfg, o.fromStdin)
		if err != nil {
			return err
		}
		if !who.May(approval.Edit) {
			return fmt.Errorf("%s may not edit the configuration, which takes the role admin", who.Name)
		}
		signed, err := people.Sign(who, e.Request, o.verdict, "terminal", time.Now())
		if err == nil {
			err = signed.Valid(e.Request, time.Now()) // nothing is written for a yes that could not count
		}
		if err != nil {
			return err
		}
		s, err := openSettling(ctx, con, cfg, store)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		err = rewrite(con, cfg.File, func(text []byte) ([]byte, error) {
			if !bytes.Equal(text, whole) {
				return nil, setup.ErrChanged
			}
			return next, nil
		}, func(*config.Config) error { return nil })
		if err != nil {
			return err
		}
		fmt.Fprintf(con.Err, "the rule is written; if it waits for an approver, codemode-bridge config confirm takes it over%s\n", withConfig(cfg, con.Env))
		return settleOne(ctx, con, s, people, who, e, o.verdict)
	})
}
