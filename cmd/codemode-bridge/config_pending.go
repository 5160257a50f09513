package main

import (
	"bufio"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/explaincmd"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// configCommand shows, confirms and rejects a pending configuration.
func configCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "What the keys of the configuration mean, and an edit that waits for an approver"}
	group.AddCommand((&explaincmd.Bridge{Console: &con.Console, Documents: documents()}).Command(), configPending(con), configVerdict(con, true), configVerdict(con, false), con.Older(configAccept(con), "config confirm --offline"))
	return group
}

func configPending(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "pending", Short: "Show what waits, what it loosens, and how the profiles differ", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := openWaiting(c.Context(), con)
			if errors.Is(err, errNothingPending) {
				if con.JSON {
					return con.PrintJSON(nil)
				}
				fmt.Fprintln(con.Err, errNothingPending)
				return nil
			}
			if err != nil {
				return err
			}
			if err := w.close(); err != nil {
				return err
			}
			if con.JSON {
				return con.PrintJSON(pending.Show(w.row))
			}
			return printPending(con.Out, w.row)
		},
	}
	con.JSONFlag(c)
	return c
}

// configVerdict confirms the pending configuration, or rejects it.
func configVerdict(con *console, confirm bool) *cobra.Command {
	var fromStdin, offline bool
	var reason string
	c := &cobra.Command{
		Use: "confirm", Short: "Apply it in all bridges, as an approver with the role admin", Args: cli.NoArgs,
		Long: "Shows what waits and applies it in every bridge with this configuration file. Asks for your approver's token;\nan approver whom only the change itself adds does not count. " +
			"With --offline it is applied without an approver,\nfor when none is available: at a terminal, while no bridge has it pending, after you have typed the name of the\nfile. The audit log says who did it, and why.",
	}
	if !confirm {
		c.Use, c.Short = "reject", "Keep what was confirmed last, as an approver with the role admin"
		c.Long = "Shows what waits and rejects it: nothing of it applies, not even the rights that it takes away. The file\nstays as it is, and its next edit is judged afresh. Asks for your approver's token."
	}
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if offline {
			if fromStdin {
				return &cli.UsageError{Err: errors.New("--offline does without an approver, and so without --token-stdin")}
			}
			return confirmOffline(c.Context(), con, reason)
		}
		w, err := openWaiting(c.Context(), con)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.close()) }()
		if w.store == nil {
			return &configError{errors.New("what waits is in the bridge's memory: audit.enabled is false"), "confirm it on the bridge's page"}
		}
		if err := printPending(con.Err, w.row); err != nil {
			return err
		}
		_, who, _, err := authenticate(con, w.inForce, fromStdin)
		switch {
		case err != nil:
			return err
		case !who.May(approval.ConfirmConfig):
			return fmt.Errorf("%s may not confirm or reject a configuration: that takes the role admin", who.Name)
		case confirm && w.row.NeedsReason && strings.TrimSpace(reason) == "":
			return &cli.UsageError{Err: errors.New("this change needs a reason: --reason \"...\"")}
		}
		said := approval.Confirmation{By: who.Name, Channel: "terminal", Text: reason, At: time.Now()}
		if !confirm {
			return w.reject(c.Context(), con, said)
		}
		if err := w.confirm(c.Context(), con, said); err != nil {
			return err
		}
		_, err = fmt.Fprintf(con.Out, "confirmed by %s: the bridges that hold it take it over\n", who.Name)
		return err
	}
	if confirm {
		c.Flags().BoolVar(&offline, "offline", false, "no approver is available; takes --reason")
	}
	c.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input")
	c.Flags().StringVar(&reason, "reason", "", "why; needed to confirm where a denial was removed, nobody is asked any more, or somebody may allow more")
	return c
}

// configAccept is an older spelling of confirm --offline.
func configAccept(con *console) *cobra.Command {
	var offline bool
	var reason string
	c := &cobra.Command{
		Use: "accept --offline", Short: "Apply it without an approver, at a terminal", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !offline {
				return &cli.UsageError{Err: errors.New("accept does without an approver: say --offline; an approver uses config confirm")}
			}
			return confirmOffline(c.Context(), con, reason)
		},
	}
	c.Flags().BoolVar(&offline, "offline", false, "no approver is available")
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}

// confirmOffline takes a pending configuration over without an approver, where none
// is available: at a terminal, with a reason, and recorded.
func confirmOffline(ctx context.Context, con *console, reason string) (err error) {
	terminal, ok := con.In.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return &cli.UsageError{Err: errors.New("there is no terminal here; without one, an approver uses config confirm")}
	}
	w, err := openWaiting(ctx, con)
	var unread *pending.UnreadableError
	if errors.As(err, &unread) {
		w, err = openUnread(ctx, con, unread)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if !w.cfg.Audit.Enabled {
		return &configError{errors.New("the file keeps no audit log (audit.enabled is false), so that it is taken over could not be recorded"), "let it keep one; an approver may confirm it without"}
	}
	running := false
	err = storecmd.WithOthers(w.inForce.Audit, func(gone func(string) bool) error {
		running = slices.ContainsFunc(w.row.Bridges, func(b string) bool { return !gone(b) })
		return nil
	})
	if err != nil {
		return err
	}
	if running {
		return &configError{errors.New("the edit waits at a running bridge"), "an approver confirms it, on its page or with config confirm; or end the bridge first"}
	}
	if err := printPending(con.Err, w.row); err != nil {
		return err
	}
	if strings.TrimSpace(reason) == "" {
		return &cli.UsageError{Err: errors.New("taking it over without an approver needs a reason: --reason \"...\"")}
	}
	if err := typesName(con, terminal, filepath.Base(w.row.File)); err != nil {
		return err
	}
	if err := w.confirm(ctx, con, approval.Confirmation{By: thisUser(), Channel: "offline", Text: reason, At: time.Now()}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.Out, "%s is taken over without an approver, and the audit log says so\n", w.row.File)
	return err
}

// typesName asks the person to type a name on the terminal, and refuses any other.
// What was typed before the question is discarded.
func typesName(con *console, terminal *os.File, name string) error {
	if err := cli.Drain(terminal); err != nil {
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	fmt.Fprintf(con.Err, "type %s to take it over without an approver: ", canon.Escape(name))
	line, err := bufio.NewReader(io.LimitReader(terminal, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	if strings.TrimSpace(line) != name {
		return &cli.UsageError{Err: errors.New("that is another name: nothing was changed")}
	}
	return nil
}

// A waiting is a pending configuration, as a command sees it.
type waiting struct {
	cfg     *config.Config // what waits
	inForce *config.Config // what the bridges use meanwhile
	row     *approval.PendingConfig
	store   storecmd.Requests // nil where requests are kept in a bridge's memory
}

// openWaiting compares the file with what was confirmed of it. The error is
// errNothingPending if nothing waits.
func openWaiting(ctx context.Context, con *console) (*waiting, error) {
	cfg, err := con.load()
	if err != nil {
		return nil, err
	}
	change, err := judge(con, cfg, nil)
	switch {
	case err != nil:
		return nil, err
	case change == nil:
		return nil, errNothingPending
	case change.Old == nil:
		return nil, hinted(&pending.UnreadableError{Config: cfg, Err: errors.New(strings.Join(change.Why, "; "))})
	}
	if change.Old, err = con.withSecrets(ctx, change.Old, append(storecmd.Pointers, approverTokens)...); err != nil {
		return nil, err
	}
	row := change.Row(change.Old, "")
	w := &waiting{cfg: cfg, inForce: change.Old, row: &row}
	row.Bridges = nil
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	w.inForce = change.Meanwhile(w.row.Rejected != nil)
	return w, nil
}

// openUnread is openWaiting for a file whose record of what was confirmed cannot be
// read.
func openUnread(ctx context.Context, con *console, unread *pending.UnreadableError) (*waiting, error) {
	w := &waiting{cfg: unread.Config, inForce: unread.Config, row: &approval.PendingConfig{
		File: pending.Key(unread.Config), Digest: pending.Digest(unread.Config), Since: time.Now(), Why: []string{unread.Error()}, NeedsReason: true,
	}}
	return w, w.open(ctx)
}

// open opens the store, and takes from it what running bridges have noted of the
// same pending configuration.
func (w *waiting) open(ctx context.Context) error {
	if !w.inForce.Audit.Enabled {
		return nil
	}
	if err := mustHavePath(w.inForce.Audit); err != nil {
		return err
	}
	var err error
	if w.store, err = storecmd.OpenRequests(ctx, w.inForce.Audit); err != nil {
		return err
	}
	kept, err := approval.PendingConfigOf(ctx, w.store, w.row.File)
	if err != nil {
		return errors.Join(err, w.store.Close())
	}
	if kept != nil && kept.By == "" && kept.Digest == w.row.Digest {
		w.row.Since, w.row.Bridges, w.row.Rejected = kept.Since, kept.Bridges, kept.Rejected
	}
	return nil
}

func (w *waiting) close() error {
	if w.store == nil {
		return nil
	}
	return w.store.Close()
}

// confirm records who confirmed the configuration, tells the running bridges, and
// keeps it as confirmed for those that start later.
func (w *waiting) confirm(ctx context.Context, a *console, said approval.Confirmation) error {
	if err := w.record(ctx, a, "confirm", said); err != nil {
		return err
	}
	if w.store != nil {
		if err := pending.Confirm(ctx, w.store, *w.row, said); err != nil {
			return err
		}
	}
	_, err := history(a).Keep(w.cfg, said.By, said.Channel, said.At)
	return hinted(err)
}

// reject records who rejected the configuration, and tells the running bridges.
func (w *waiting) reject(ctx context.Context, a *console, said approval.Confirmation) error {
	if err := w.record(ctx, a, "reject", said); err != nil {
		return err
	}
	if err := pending.Reject(ctx, w.store, *w.row, said); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "rejected by %s: what was confirmed last holds as it was\n", said.By)
	return err
}

// record writes a decision to the audit log before it takes effect: to the log of
// the configuration in force or, if that has none, of the pending one.
func (w *waiting) record(ctx context.Context, a *console, verb string, said approval.Confirmation) (err error) {
	with := w.inForce
	if !with.Audit.Enabled {
		with = w.cfg
	}
	l, err := openQuietLogs(a, with)
	if err != nil {
		return err
	}
	defer l.Close()
	rec, err := a.openLog(ctx, with.Audit, l.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	return rec.Record(ctx, ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.ConfigPending, Time: said.At, Durable: true, Approver: said.By, Channel: said.Channel, Reasons: w.row.Why,
		Detail: ledger.Detail(map[string]string{"file": w.row.File, verb: w.row.Digest, "said": canon.Escape(canon.Redact(said.Text))}),
	})
}

func printPending(w io.Writer, row *approval.PendingConfig) error {
	_, err := fmt.Fprintln(w, strings.Join(pending.Lines(row), "\n"))
	return err
}

// inForce returns the configuration that running bridges use: cfg or, while that
// waits for an approver, what was last confirmed, without the approvers and rights
// that cfg takes away.
func inForce(ctx context.Context, con *console, cfg *config.Config) (*config.Config, error) {
	change, err := judge(con, cfg, nil)
	switch {
	case err != nil:
		return nil, err
	case change == nil:
		return con.withSecrets(ctx, cfg, append(storecmd.Pointers, approverTokens)...)
	case change.Old == nil:
		return nil, refusal(change, "")
	}
	if change.Old, err = con.withSecrets(ctx, change.Old, append(storecmd.Pointers, approverTokens)...); err != nil {
		return nil, err
	}
	rejected, err := isRejected(ctx, change)
	if err != nil {
		return nil, err
	}
	return change.Meanwhile(rejected), nil
}

// isRejected reports whether somebody has rejected the pending configuration.
// Without a file of requests nobody has.
func isRejected(ctx context.Context, change *pending.Change) (bool, error) {
	place := change.Old.Audit
	if !place.Enabled || storecmd.NeverAsked(place) {
		return false, nil
	}
	store, err := storecmd.OpenRequests(ctx, place)
	if err != nil {
		return false, err
	}
	row, err := approval.PendingConfigOf(ctx, store, change.Key())
	return row != nil && row.Rejected != nil && row.Digest == change.Digest(), errors.Join(err, store.Close())
}

var errNothingPending = errors.New("no configuration waits for an approver")
