package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// thenOf says what becomes of a tool's calls until somebody accepts it.
func thenOf(w pins.UnreviewedTool, cfg *config.Config) pins.Reaction {
	s := cfg.Servers[w.Server]
	if s == nil {
		return pins.Quarantine
	}
	return w.Then(pinRules(s))
}

// toolsReview shows the unreviewed tools with what has changed, and accepts or blocks
// them.
func toolsReview(con *console) *cobra.Command {
	var accept, block, all, yes, fromStdin bool
	c := &cobra.Command{
		Use: "review [tool...]", Short: "Show the tools that are new or have changed, and accept or block them",
		Long: "Shows the tools whose definitions nobody has accepted, and how they changed. With --accept, the named\n" +
			"tools, or with --all every one that waits, are accepted as they are; with --block, scripts do not get\n" +
			"them any more until somebody accepts them. A tool is accepted as you saw it: name it with the digest that\n" +
			"this command shows (server__tool@sha256:...); without one, the terminal shows it and asks. Where there are\n" +
			"approvers, that takes the token of one with the role admin. A running bridge notices it at once.",
		RunE: func(c *cobra.Command, names []string) error {
			switch {
			case accept && block:
				return &cli.UsageError{Err: errors.New("--accept and --block exclude each other")}
			case all && !accept:
				return &cli.UsageError{Err: errors.New("--all goes with --accept")}
			case all && len(names) > 0:
				return &cli.UsageError{Err: errors.New("name tools, or say --all, not both")}
			case (accept || block) && len(names) == 0 && !all:
				return &cli.UsageError{Err: errors.New("name the tools (as server__tool), or accept every one with --all")}
			}
			cfg, err := con.load()
			if err != nil {
				return err
			}
			var secrets recorder.Secrets
			if cfg, err = con.withSecrets(c.Context(), cfg); err != nil {
				return err
			}
			secrets.Learn(hidden(cfg, con.Env), con.Env)
			store := pins.Open(pinFolder(con, cfg.File))
			chosen, seen, err := chooseTools(store, cfg, names)
			if err != nil {
				return err
			}
			if !accept && !block {
				return printReview(con, con.Out, chosen, cfg, &secrets)
			}
			ask := func() error { return nil }
			if accept && !seen {
				ask = func() error { return confirmTools(con, len(names), yes) }
			}
			return decideTools(c.Context(), con, cfg, &secrets, store, chosen, accept, fromStdin, ask)
		},
	}
	f := c.Flags()
	f.BoolVar(&accept, "accept", false, "accept the tools as they are")
	f.BoolVar(&block, "block", false, "keep the tools from scripts")
	f.BoolVar(&all, "all", false, "with --accept: every tool that is new or has changed")
	f.BoolVarP(&yes, "yes", "y", false, "with --accept: whatever the tools are now, without a digest and without asking")
	f.BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input")
	con.JSONFlag(c)
	return c
}

// chooseTools returns the tools that a person names, or all unreviewed ones. Seen
// reports whether each was named with its digest, which means that the person has seen
// it as it is now.
func chooseTools(store *pins.Store, cfg *config.Config, names []string) (chosen []pins.UnreviewedTool, seen bool, err error) {
	if len(names) == 0 {
		chosen, err = store.Unreviewed(cfg.ServerNames())
		return chosen, false, err
	}
	chosen, seen, err = store.Choose(names, func(server string) bool { return cfg.Servers[server] != nil })
	if wrong := (*pins.NameError)(nil); errors.As(err, &wrong) {
		err = &cli.UsageError{Err: err}
	}
	return chosen, seen, err
}

// confirmTools asks the person whether to accept what was just shown.
func confirmTools(con *console, named int, yes bool) error {
	question := "accept these as they are?"
	if named == 1 {
		question = "accept it as it is?"
	}
	err := con.Confirm(question, yes)
	if usage := (*cli.UsageError)(nil); errors.As(err, &usage) {
		return &cli.UsageError{Err: errors.New("there is no terminal to ask at: name each tool with the digest that tools review shows (server__tool@sha256:...); --yes accepts whatever they are now")}
	}
	return err
}

// decideTools shows the chosen tools and accepts or blocks them once ask agrees. A
// tool that changes after it was shown is not accepted.
func decideTools(ctx context.Context, con *console, cfg *config.Config, secrets *recorder.Secrets, store *pins.Store, chosen []pins.UnreviewedTool, accept, fromStdin bool, ask func() error) (err error) {
	if accept && len(chosen) > 1 { // --all leaves blocked tools blocked
		kept := chosen[:0]
		for _, w := range chosen {
			if w.State != pins.Blocked {
				kept = append(kept, w)
			}
		}
		chosen = kept
	}
	if len(chosen) == 0 {
		if con.JSON {
			return con.PrintJSON([]pins.NamedRow{})
		}
		fmt.Fprintln(con.Err, nothingWaits)
		return nil
	}
	if err := printReview(con, con.Err, chosen, cfg, secrets); err != nil {
		return err
	}
	if err := ask(); err != nil {
		return err
	}
	by, err := whoReviews(ctx, con, cfg, fromStdin)
	if err != nil {
		return err
	}
	l, err := openQuietLogs(con, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	rec, err := con.openLog(ctx, cfg.Audit, l.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	r, decide, word := pins.Reviewer{Store: store, Recorder: rec}, pins.Reviewer.Accept, "accepted"
	if !accept {
		decide, word = pins.Reviewer.Block, "blocked"
	}
	var failed []error
	done := []map[string]string{}
	for _, w := range chosen {
		name := w.Server + "__" + canon.Escape(w.Tool)
		if err := decide(r, ctx, w, by, "terminal"); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		done = append(done, map[string]string{"tool": name, "digest": w.Digest, "decision": word, "by": canon.Escape(by)})
		if !con.JSON {
			fmt.Fprintf(con.Out, "%s is %s by %s\n", name, word, canon.Escape(by))
		}
	}
	if con.JSON {
		failed = append(failed, con.PrintJSON(done))
	}
	return errors.Join(failed...)
}

// whoReviews identifies the person at the terminal: an approver with the right to
// edit, by their token. If there are no approvers, whoever can change the
// configuration may review tools too.
func whoReviews(ctx context.Context, con *console, cfg *config.Config, fromStdin bool) (string, error) {
	cfg, err := inForce(ctx, con, cfg)
	if err != nil {
		return "", err
	}
	if len(cfg.Approvals.Approvers) > 0 {
		_, who, _, err := authenticate(con, cfg, fromStdin)
		if err != nil {
			return "", err
		}
		if !who.May(approval.Edit) {
			return "", fmt.Errorf("%s may not accept or block tools: that takes the role admin", who.Name)
		}
		return who.Name, nil
	}
	return thisUser(), nil
}

const nothingWaits = "no tool waits to be looked at"

// printReview shows tools with their differences.
func printReview(con *console, out io.Writer, chosen []pins.UnreviewedTool, cfg *config.Config, secrets *recorder.Secrets) error {
	rows := []pins.NamedRow{}
	for _, w := range chosen {
		rows = append(rows, pins.NewNamedRow(w, thenOf(w, cfg), secrets.Hide))
	}
	if con.JSON {
		if out != con.Out {
			return nil // a program has read them already
		}
		return con.PrintJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(con.Err, nothingWaits)
		return nil
	}
	for i, r := range rows {
		if i > 0 {
			fmt.Fprintln(out)
		}
		lines := r.Lines()
		if out == con.Out {
			lines = append(lines, "  accept this with: "+typed(con, "tools review --accept "+typedName(r.Named)))
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
	}
	if out == con.Out {
		fmt.Fprintln(con.Err, "\nkeep from scripts with: "+typed(con, "tools review --block TOOL..."))
	}
	return nil
}

// typedName quotes a word for a shell, if need be.
func typedName(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@/"
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
