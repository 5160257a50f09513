package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"

	"github.com/spf13/cobra"
)

// A reviewRow is a tool that waits to be looked at, as --json prints it.
type reviewRow struct {
	Tool       string      `json:"tool"`  // server__tool
	Named      string      `json:"named"` // and with its digest, as --accept takes it
	State      pins.State  `json:"state"`
	Then       string      `json:"then"` // what becomes of it meanwhile
	Since      time.Time   `json:"since"`
	Digest     string      `json:"digest"`
	Was        string      `json:"was,omitempty"`
	AcceptedBy string      `json:"accepted_by,omitempty"`
	AcceptedAt time.Time   `json:"accepted_at,omitzero"`
	BlockedBy  string      `json:"blocked_by,omitempty"`
	BlockedAt  time.Time   `json:"blocked_at,omitzero"`
	Notices    []string    `json:"notices,omitempty"`
	Difference []pins.Part `json:"difference"`
}

func newReviewRow(w pins.Waiting, cfg *config.Config, secrets *recorder.Secrets) reviewRow {
	r := reviewRow{Tool: w.Server + "__" + canon.Visible(w.Tool), State: w.State, Then: string(thenOf(w, cfg)), Since: w.Since, Digest: w.Digest,
		Was: w.Was, AcceptedBy: w.AcceptedBy, AcceptedAt: w.AcceptedAt, BlockedBy: w.BlockedBy, BlockedAt: w.BlockedAt, Notices: secrets.HideAll(w.Notices), Difference: []pins.Part{}}
	r.Named = r.Tool + "@" + w.Digest[:min(len(w.Digest), len(digestScheme)+shownDigest)]
	for _, part := range w.Difference {
		r.Difference = append(r.Difference, pins.Part{What: part.What, Lines: secrets.HideAll(part.Lines)})
	}
	return r
}

// thenOf is what becomes of a tool until somebody accepts it.
func thenOf(w pins.Waiting, cfg *config.Config) pins.Reaction {
	switch s := cfg.Servers[w.Server]; {
	case s == nil, w.State == pins.Blocked:
		return pins.Quarantine
	case w.State == pins.Changed:
		return pins.Reaction(s.ChangedTools)
	case w.State == pins.New:
		return pins.Reaction(s.NewTools)
	}
	return pins.Allow
}

// toolsReview shows what servers have changed in their tools, and takes what a
// person decides on it.
func toolsReview(con *console) *cobra.Command {
	var accept, block, all, yes, fromStdin bool
	c := &cobra.Command{
		Use: "review [tool...]", Short: "Show the tools that are new or have changed, and accept or block them",
		Long: "Shows which tools are not as somebody last accepted them, and how they differ. With --accept, the named\n" +
			"tools, or with --all every one that waits, are accepted as they are; with --block, scripts do not get\n" +
			"them any more until somebody accepts them. A tool is accepted as you saw it: name it with the digest that\n" +
			"this command shows (server__tool@sha256:...); without one, the terminal shows it and asks. Where there are approvers, that takes the token of one with the\n" +
			"role admin. A bridge that runs notices it at once.",
		RunE: func(c *cobra.Command, names []string) error {
			switch {
			case accept && block:
				return &usageError{errors.New("--accept and --block exclude each other")}
			case all && !accept:
				return &usageError{errors.New("--all goes with --accept")}
			case all && len(names) > 0:
				return &usageError{errors.New("name tools, or say --all, not both")}
			case (accept || block) && len(names) == 0 && !all:
				return &usageError{errors.New("name the tools (as server__tool), or accept every one with --all")}
			}
			cfg, err := con.load()
			if err != nil {
				return err
			}
			var secrets recorder.Secrets
			secrets.Learn(given(specs(cfg)), con.env)
			store := pins.Open(pinFolder(con, cfg.File))
			chosen, seen, err := chooseTools(store, cfg, names)
			if err != nil {
				return err
			}
			if !accept && !block {
				return printReview(con, con.out, chosen, cfg, &secrets)
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
	con.jsonFlag(c)
	return c
}

// chooseTools are the tools that a person names, or all that wait. Seen
// reports that each was named with its digest, so that it is what they saw.
func chooseTools(store *pins.Store, cfg *config.Config, names []string) (chosen []pins.Waiting, seen bool, err error) {
	if len(names) == 0 {
		chosen, err = store.Waiting(cfg.ServerNames())
		return chosen, false, err
	}
	seen = true
	for _, name := range names {
		digest := ""
		if i := strings.LastIndex(name, "@"+digestScheme); i >= 0 {
			name, digest = name[:i], name[i+1:]
			if hex := digest[len(digestScheme):]; len(hex) < leastDigest || strings.Trim(hex, "0123456789abcdef") != "" {
				return nil, false, &usageError{fmt.Errorf("%s is not the digest of %s: that takes %d hex digits at least, as tools review shows them", digest, name, leastDigest)}
			}
		}
		seen = seen && digest != ""
		server, tool, ok := strings.Cut(name, "__") // no server has that in its name
		if !ok || cfg.Servers[server] == nil {
			return nil, false, &usageError{fmt.Errorf("there is no server of a tool %q; name it as server__tool", name)}
		}
		w, ok, err := store.Find(server, tool)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return nil, false, &usageError{fmt.Errorf("server %s has never listed a tool %q to a bridge with this configuration", server, tool)}
		}
		if !strings.HasPrefix(w.Digest, digest) {
			return nil, false, fmt.Errorf("%s is not what you saw: it is %s now, not %s; look at it again with tools review", name, w.Digest, digest)
		}
		chosen = append(chosen, w)
	}
	return chosen, seen, nil
}

// A definition is named by a part of its digest that nobody hits by chance:
// with leastDigest hex digits at least, and shown with more.
const (
	digestScheme = "sha256:"
	leastDigest  = 12
	shownDigest  = 24
)

// confirmTools asks whether what was just shown is accepted.
func confirmTools(con *console, named int, yes bool) error {
	question := "accept these as they are?"
	if named == 1 {
		question = "accept it as it is?"
	}
	err := confirm(con, question, yes)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return &usageError{errors.New("there is no terminal to ask at: name each tool with the digest that tools review shows (server__tool@sha256:...); --yes accepts whatever they are now")}
	}
	return err
}

// decideTools accepts or blocks what is shown first, once ask agrees: only
// that, should a tool change again meanwhile.
func decideTools(ctx context.Context, con *console, cfg *config.Config, secrets *recorder.Secrets, store *pins.Store, chosen []pins.Waiting, accept, fromStdin bool, ask func() error) (err error) {
	if accept && len(chosen) > 1 { // --all is for what waits, not for what somebody blocked
		kept := chosen[:0]
		for _, w := range chosen {
			if w.State != pins.Blocked {
				kept = append(kept, w)
			}
		}
		chosen = kept
	}
	if len(chosen) == 0 {
		if con.json {
			return con.printJSON([]reviewRow{})
		}
		fmt.Fprintln(con.err, nothingWaits)
		return nil
	}
	if err := printReview(con, con.err, chosen, cfg, secrets); err != nil {
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
	r, decide, word := reviewer{store, rec.Recorder}, reviewer.accept, "accepted"
	if !accept {
		decide, word = reviewer.block, "blocked"
	}
	var failed []error
	done := []map[string]string{}
	for _, w := range chosen {
		name := w.Server + "__" + canon.Visible(w.Tool)
		if err := decide(r, ctx, w, by, "terminal"); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		done = append(done, map[string]string{"tool": name, "digest": w.Digest, "decision": word, "by": canon.Visible(by)})
		if !con.json {
			fmt.Fprintf(con.out, "%s is %s by %s\n", name, word, canon.Visible(by))
		}
	}
	if con.json {
		failed = append(failed, con.printJSON(done))
	}
	return errors.Join(failed...)
}

// whoReviews finds out who sits at the terminal: an approver who may edit, by
// their token; where there are no approvers, whoever may change the
// configuration may do this, too.
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
func printReview(con *console, out io.Writer, chosen []pins.Waiting, cfg *config.Config, secrets *recorder.Secrets) error {
	rows := []reviewRow{}
	for _, w := range chosen {
		rows = append(rows, newReviewRow(w, cfg, secrets))
	}
	if con.json {
		if out != con.out {
			return nil // a program has read them before
		}
		return con.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(con.err, nothingWaits)
		return nil
	}
	for i, r := range rows {
		if i > 0 {
			fmt.Fprintln(out)
		}
		lines := r.lines()
		if out == con.out {
			lines = append(lines, "  accept this with: "+typed(con, "tools review --accept "+typedName(r.Named)))
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
	}
	if out == con.out {
		fmt.Fprintln(con.err, "\nkeep from scripts with: "+typed(con, "tools review --block TOOL..."))
	}
	return nil
}

// typedName is a word as a shell reads it.
func typedName(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@/"
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// lines are a row as a person reads it.
func (r reviewRow) lines() []string {
	state := string(r.State)
	switch r.State {
	case pins.Changed:
		since := "since it was first seen on " + r.AcceptedAt.Local().Format(time.DateOnly)
		if r.AcceptedBy != "" {
			since = fmt.Sprintf("since %s accepted it on %s", canon.Visible(r.AcceptedBy), r.AcceptedAt.Local().Format(time.DateOnly))
		}
		state = "changed " + since
	case pins.Blocked:
		state = fmt.Sprintf("blocked by %s on %s", canon.Visible(r.BlockedBy), r.BlockedAt.Local().Format(time.DateOnly))
	case pins.New:
		state = "new since " + r.Since.Local().Format(time.DateOnly)
	}
	then := map[string]string{string(pins.Ask): "each call asks", string(pins.Quarantine): "hidden from scripts", string(pins.Allow): "not held"}[r.Then]
	lines := []string{fmt.Sprintf("%s  %s; %s", r.Tool, state, then)}
	for _, n := range r.Notices {
		lines = append(lines, "  ! "+n)
	}
	for _, part := range r.Difference {
		lines = append(lines, "  the server's "+part.What+":")
		for _, line := range part.Lines {
			lines = append(lines, "    "+line[:1]+" "+line[1:])
		}
	}
	return lines
}
