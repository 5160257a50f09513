package toolscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// Rules are the reactions to new and changed tools that a server is configured with.
func Rules(s *config.Server) pins.Rules {
	return pins.Rules{New: pins.Reaction(s.NewTools), Changed: pins.Reaction(s.ChangedTools)}
}

// Then says what becomes of a tool's calls until somebody accepts it.
func Then(w pins.UnreviewedTool, cfg *config.Config) pins.Reaction {
	s := cfg.Servers[w.Server]
	if s == nil {
		return pins.Quarantine
	}
	return w.Then(Rules(s))
}

// review is the command that shows the unreviewed tools with what has changed, and accepts
// or blocks them.
func (con *Bridge) review() *cobra.Command {
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
			cfg, err := con.Load()
			if err != nil {
				return err
			}
			secrets, err := con.Secrets(c.Context(), cfg)
			if err != nil {
				return err
			}
			store := con.Pins(cfg)
			chosen, seen, err := chooseTools(store, cfg, names)
			if err != nil {
				return err
			}
			if !accept && !block {
				return printReview(con, con.Out, chosen, len(names) > 0, cfg, secrets)
			}
			ask := func() error { return nil }
			if accept && !seen {
				ask = func() error { return confirmTools(con, len(names), yes) }
			}
			return decideTools(c.Context(), con, cfg, secrets, store, chosen, verdict{len(names) > 0, accept, fromStdin, ask})
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
func confirmTools(con *Bridge, named int, yes bool) error {
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

// A verdict is what a person wants to be done with tools.
type verdict struct {
	named     bool         // they named them
	accept    bool         // else the tools are blocked
	fromStdin bool         // their token comes from standard input
	ask       func() error // once they have seen the tools
}

// decideTools shows the chosen tools and accepts or blocks them once v.ask agrees. A
// tool that changes after it was shown is not accepted.
func decideTools(ctx context.Context, con *Bridge, cfg *config.Config, secrets *recorder.Secrets, store *pins.Store, chosen []pins.UnreviewedTool, v verdict) error {
	if v.accept && len(chosen) > 1 { // --all leaves blocked tools blocked
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
	if err := printReview(con, con.Err, chosen, v.named, cfg, secrets); err != nil {
		return err
	}
	if err := v.ask(); err != nil {
		return err
	}
	by, err := con.Admin(ctx, cfg, v.fromStdin)
	if err != nil {
		return err
	}
	return con.Record(ctx, cfg, func(rec pins.Recorder) error {
		return decideEach(ctx, con, cfg, pins.Reviewer{Store: store, Recorder: rec}, chosen, v.accept, by)
	})
}

// decideEach accepts or blocks tools in somebody's name.
func decideEach(ctx context.Context, con *Bridge, cfg *config.Config, r pins.Reviewer, chosen []pins.UnreviewedTool, accept bool, by string) error {
	decide, word := pins.Reviewer.Accept, "accepted"
	if !accept {
		decide, word = pins.Reviewer.Block, "blocked"
	}
	var failed []error
	var decided []pins.UnreviewedTool
	done := []map[string]string{}
	for _, w := range chosen {
		name := w.Server + "__" + canon.Escape(w.Tool)
		if err := decide(r, ctx, w, by, "terminal"); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		decided = append(decided, w)
		done = append(done, map[string]string{"tool": name, "digest": w.Digest, "decision": word, "by": canon.Escape(by)})
		if !con.JSON {
			fmt.Fprintf(con.Out, "%s is %s by %s\n", name, word, canon.Escape(by))
		}
	}
	if con.JSON {
		failed = append(failed, con.PrintJSON(done))
	}
	if accept && len(decided) > 0 {
		failed = append(failed, relock(con, cfg, r.Store, decided))
	}
	return errors.Join(failed...)
}

const nothingWaits = "no tool waits to be looked at"

// printReview shows tools: those that a person named whole, else all of them in short.
func printReview(con *Bridge, out io.Writer, chosen []pins.UnreviewedTool, named bool, cfg *config.Config, secrets *recorder.Secrets) error {
	rows := []pins.NamedRow{}
	for _, w := range chosen {
		rows = append(rows, pins.NewNamedRow(w, Then(w, cfg), secrets.Hide))
	}
	if con.JSON {
		if out != con.Out {
			return nil // a program has read them already
		}
		return con.PrintJSON(rows)
	}
	deciding := out != con.Out
	var todo []string
	if !deciding && !named {
		todo = hints(con, cfg, chosen)
	}
	if len(rows) == 0 {
		fmt.Fprintln(con.Err, strings.Join(append([]string{nothingWaits}, todo...), "\n"))
		return nil
	}
	if named {
		return con.Pages(out, wholeLines(con, rows, deciding))
	}
	all := append([]string{summary(chosen)}, todo...)
	server := ""
	for i, w := range chosen {
		if w.Server != server {
			server = w.Server
			all = append(all, "", server)
		}
		all = append(all, shortLines(con, w, rows[i], secrets.Hide, deciding)...)
	}
	if !deciding {
		all = append(all, "", "one whole, with how to accept it: "+con.Typed("tools review TOOL"), "keep from scripts with: "+con.Typed("tools review --block TOOL..."))
	}
	if err := con.Pages(out, all); err != nil && (deciding || !errors.Is(err, cli.ErrNotRead)) {
		return err
	}
	return nil
}

// wholeLines are tools with all that differs.
func wholeLines(con *Bridge, rows []pins.NamedRow, deciding bool) []string {
	var all []string
	for i, r := range rows {
		if i > 0 {
			all = append(all, "")
		}
		all = append(all, r.Lines()...)
		if !deciding {
			all = append(all, "  accept this with: "+con.Typed("tools review --accept "+typedName(r.Named)))
		}
	}
	if !deciding {
		all = append(all, "", "keep from scripts with: "+con.Typed("tools review --block TOOL..."))
	}
	return all
}

// summary counts what waits, in all and by server.
func summary(chosen []pins.UnreviewedTool) string {
	states, servers, names := map[pins.State]int{}, map[string]int{}, []string{}
	for _, w := range chosen {
		if states[w.State]++; servers[w.Server] == 0 {
			names = append(names, w.Server)
		}
		servers[w.Server]++
	}
	var are, of []string
	for _, s := range []pins.State{pins.Changed, pins.New, pins.Blocked} {
		if states[s] > 0 {
			are = append(are, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	for _, name := range names {
		of = append(of, fmt.Sprintf("%s %d", name, servers[name]))
	}
	return fmt.Sprintf("%s: %s (%s)", cli.Count(len(chosen), "tool"), strings.Join(are, ", "), strings.Join(of, ", "))
}

// hints say what to do about many tools at once.
func hints(con *Bridge, cfg *config.Config, chosen []pins.UnreviewedTool) []string {
	store := con.Pins(cfg)
	lock, path, err := store.Lock()
	if err != nil {
		return []string{"what is accepted by the lock file alone is unreviewed: " + canon.Escape(err.Error())}
	}
	n, err := store.Proposed()
	file := con.HomeShort(path)
	switch {
	case err != nil:
		return []string{canon.Escape(err.Error())}
	case n > 0:
		return []string{fmt.Sprintf("%s has %s that nobody has accepted here; look at that and accept it with: %s", file, cli.Count(n, "tool"), con.Typed("tools lock --accept"))}
	case len(chosen) == 0 || slices.ContainsFunc(chosen, func(w pins.UnreviewedTool) bool { return w.State != pins.New }):
		return nil
	}
	all := []string{"accept all of them with: " + con.Typed("tools review --accept --all")}
	if lock == nil {
		all = append(all, "if the configuration file was moved or copied: codemode-bridge tools lock, where it was, writes what was accepted into a file; beside this one it is "+file+"; then "+con.Typed("tools lock --accept"))
	}
	return all
}

// shortLines are one tool in a list: a line, and what has changed or is odd. Whoever is
// about to accept new tools sees their texts.
func shortLines(con *Bridge, w pins.UnreviewedTool, r pins.NamedRow, hide func(string) string, deciding bool) []string {
	if w.State != pins.New {
		lines := r.Lines()
		for i, line := range lines {
			lines[i] = "  " + line
		}
		if !deciding && w.State == pins.Changed {
			lines = append(lines, "    accept this with: "+con.Typed("tools review --accept "+typedName(r.Named)))
		}
		return lines
	}
	text := fmt.Sprintf("  %s  %s; %s", r.Tool, r.Why(time.Local), r.Meanwhile())
	if !deciding {
		for _, part := range r.Difference {
			if part.What == "description" && len(part.Lines) > 0 {
				text += ": " + lines.Cut(strings.TrimPrefix(part.Lines[0], "+"), shownOfDescription)
			}
		}
	}
	all := []string{text}
	for _, n := range r.Notices {
		all = append(all, "    ! "+n)
	}
	if deciding {
		all = append(all, partLines(pins.Telling(w.Difference), "    ", hide)...)
	}
	return all
}

const shownOfDescription = 60 // characters of a new tool's description in a list

// typedName quotes a word for a shell, if need be.
func typedName(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@/"
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
