package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/knownview"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/cmd/codemode-bridge/approverscmd"
	"codemode-bridge/cmd/codemode-bridge/cautions"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles/known"

	"github.com/spf13/cobra"
)

// knownServersCommand shows what is known of servers, so that a person can accept it
// or correct it.
func knownServersCommand(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "known [name]", Short: "Show which servers are known, and what is known of one", Args: cli.MaxArgs(1),
		Long: "Shows which servers the bridge knows, or what it knows of one: how it is started, and of each tool its\n" +
			"effects (read, write, delete, execute, send, spend), where they are (workspace: where its paths lead; local:\n" +
			"in a store of the server's own on this machine; remote: on another machine), whether it talks to no host, a\n" +
			"fixed one or one that is chosen by the call, and what its arguments are. Once you have accepted it for a\n" +
			"server, with \"known\" in the configuration, rules about what calls mean hold for that server.",
		Example: "  codemode-bridge servers known\n  codemode-bridge servers known filesystem",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if con.JSON {
					return con.PrintJSON(knownview.Rows())
				}
				return con.Table(knownview.Table())
			}
			s, ok := known.Find(args[0])
			if !ok {
				return &cli.UsageError{Err: fmt.Errorf("no server is known as %q; servers known lists them", args[0])}
			}
			if con.JSON {
				return con.PrintJSON(knownview.Server{Name: s.Name, Server: s})
			}
			for _, line := range append(knownview.Head(s), "") {
				con.PrintLines(fitted(line, con.Width()))
			}
			if err := con.Table(knownview.Tools(s)); err != nil {
				return err
			}
			con.Told("is something wrong? it is profiles/known/servers/%s.jsonc in the source, which anybody may correct; until then leave \"known\" out of this server, and its calls are guessed", s.Name)
			return nil
		},
	}
	c.ValidArgsFunction = cobra.FixedCompletions(known.Names(), cobra.ShellCompDirectiveNoFileComp)
	con.JSONFlag(c)
	return c
}

// fitted breaks a line to fit a width; 0 means unlimited.
func fitted(line string, width int) []string {
	if width == 0 {
		return []string{line}
	}
	all := lines.Hang(line, width, "      ")
	for i, part := range all {
		all[i] = strings.TrimRight(part, " ")
	}
	return all
}

// acceptServer accepts what is known of a server that the configuration has, and the box
// that is proposed for it.
func acceptServer(con *console, name string, box bool) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	return editServer(con, name, "accepted what is known of", func(text []byte, at string) ([]byte, error) {
		next, words, says, err := setup.AcceptIn(text, at)
		switch {
		case err != nil:
			return nil, err
		case says == "" && box:
			if boxed, p, err := setup.NewBoxes(clientSystem(con), cfg.Evaluation.Workspace...).ConfineIn(text, at); err == nil && len(p.Box) > 0 {
				con.Told("%s was accepted already, and is confined from now on: %s", name, p.Words)
				return boxed, nil
			}
			fallthrough
		case says == "":
			return nil, &cli.UsageError{Err: fmt.Errorf("there is nothing to accept of %s: %s", name, words)}
		}
		con.Told("%s is %s from now on, and its version is pinned", name, words)
		if !box {
			return next, nil
		}
		return setupOf(con).Confined(at, name, next, cfg)
	})
}

// noWorkspace says why the folders of evaluation.workspace are none that scripts can work
// on; nil if they are.
func noWorkspace(con *console, cfg *config.Config) error {
	w, err := workspace.New(cfg.Evaluation.Workspace, ownFiles(con, cfg))
	if err != nil {
		return err
	}
	for _, folder := range w.Folders() {
		if at, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("workspace %s: there is no such folder", folder)
		} else if err == nil && !at.IsDir() {
			return fmt.Errorf("workspace %s: it is no folder", folder)
		}
	}
	return nil
}

// remarks are what is no mistake in a configuration: warnings of what is not as it
// should be, and notes. What servers list is taken from the catalogue of the last run.
func remarks(con *console, cfg *config.Config) (warnings, notes []string) {
	warnings = []string{}
	if approverscmd.NobodyMayConfirm(cfg) {
		warnings = append(warnings, approverscmd.NobodyConfirms)
	}
	if err := noWorkspace(con, cfg); err != nil {
		warnings = append(warnings, "evaluation."+err.Error()+"; no path counts as inside it")
	}
	if err := lockProblem(con, cfg); err != nil {
		warnings = append(warnings, err.Error())
	}
	warnings = append(warnings, cfg.BoxRemarks()...)
	for _, caution := range cautions.Of(cfg) {
		warnings = append(warnings, caution.String())
	}
	listed := map[string][]knownview.Listed{}
	if servers, err := catalog.Load(cacheFolder(con, cfg.File)); err == nil { // without one, only the servers say
		for _, s := range servers {
			for _, t := range s.Tools {
				listed[s.Name] = append(listed[s.Name], knownview.Listed{Name: t.Name, Input: t.Input, Destructive: t.Annotations.Destructive, Description: t.Description})
			}
		}
	}
	for _, name := range cfg.ServerNames() {
		s := cfg.Servers[name]
		if s.Disabled {
			continue
		}
		for _, f := range knownview.Findings(name, s.Recognize(), listed[name], !s.Tools.IsZero()) {
			if text := "server " + name + ": " + f.String(); f.Notice {
				notes = append(notes, text)
			} else {
				warnings = append(warnings, text)
			}
		}
		started := s.Command.String()
		for _, arg := range s.Args {
			started += " " + arg.String()
		}
		if f, ok := knownview.Shared(name, started, s.Recognize(), listed[name]); ok && !says(cfg, name, "perSession") && s.Type != config.KindBuiltin {
			warnings = append(warnings, "server "+name+": "+f.String())
		}
	}
	return warnings, notes
}

// says reports whether the configuration says something of a server, by its key.
func says(cfg *config.Config, server, key string) bool {
	return cfg.Has(setup.ServersKey(cfg) + "/" + server + "/" + key)
}
