// Package accesscmd has the command that says what somebody may see and call, and why.
package accesscmd

import (
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Bridge is what the command needs of the program.
type Bridge struct {
	*cli.Console

	Load func() (*config.Config, error)
}

// Command is the command group "access".
func (b *Bridge) Command() *cobra.Command {
	group := &cobra.Command{Use: "access", Short: "Who may see and call what"}
	group.AddCommand(b.explain())
	return group
}

// nobody is how whoever has no name is called on the command line.
const nobody = "-"

func (b *Bridge) explain() *cobra.Command {
	var groups []string
	c := &cobra.Command{
		Use: "explain PRINCIPAL", Short: "Say what somebody may see and call, and which entry says so", Args: cli.ExactArgs(1),
		Long: "Says which eval tools, profiles and servers somebody has by the configuration's access, what limits hold, and which\n" +
			"entry says so, with its line. PRINCIPAL is the name of a token or of whoever logged in; " + nobody + " is whoever has no name: over\n" +
			"stdio and on the command line. No server is started. The groups of a token are those of the configuration.",
		Example: "  codemode-bridge access explain ann@example.com --group platform\n  codemode-bridge access explain " + nobody,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := b.Load()
			if err != nil {
				return err
			}
			name := args[0]
			if name == nobody {
				name = ""
			}
			policy := access.Policy{Profiles: cfg.Profiles.Names(), Default: cfg.Profiles.Default().Name(), Alone: cfg.Profiles.Alone()}
			servers := slices.DeleteFunc(cfg.ServerNames(), func(name string) bool { return cfg.Servers[name].Disabled })
			x := cfg.Rules().Explain(name, groups, policy, servers, cfg.Surface == config.SurfaceFull)
			if b.JSON {
				return b.PrintJSON(x)
			}
			return b.print(x)
		},
	}
	c.Flags().StringArrayVarP(&groups, "group", "g", nil, "a `group` that they are in; may be repeated")
	b.JSONFlag(c)
	return c
}

// print shows an explanation to a person.
func (b *Bridge) print(x access.Explanation) error {
	who := canon.Escape(x.Principal)
	if who == "" {
		who = "whoever has no name"
	}
	switch {
	case !x.Rules:
		fmt.Fprintf(b.Out, "%s: everything, since the configuration has no access\n", who)
	case x.Entry == "":
		fmt.Fprintf(b.Out, "%s: nothing, since no entry of access holds\n", who)
	default:
		fmt.Fprintf(b.Out, "%s: %s holds, by %s\n", who, x.Entry, canon.Escape(x.Because))
	}
	if len(x.Groups) > 0 {
		fmt.Fprintf(b.Out, "in the groups: %s\n", canon.Escape(strings.Join(x.Groups, ", ")))
	}
	if len(x.Passed) > 0 {
		fmt.Fprintf(b.Out, "not about them: %s\n", strings.Join(x.Passed, ", "))
	}
	for _, part := range []struct {
		title string
		all   []access.Given
	}{{"eval tool", x.Tools}, {"profile", x.Profiles}, {"server", x.Servers}} {
		rows := [][]string{{part.title, "has", "why"}}
		for _, one := range part.all {
			has := "no"
			if one.Has {
				has = "yes"
			}
			rows = append(rows, []string{canon.Escape(one.Name), has, canon.Escape(one.Why)})
		}
		if len(rows) == 1 {
			continue
		}
		fmt.Fprintln(b.Out)
		if err := b.Table(rows); err != nil {
			return err
		}
	}
	if len(x.Tools) == 0 {
		fmt.Fprintln(b.Out, "\nThey are shown no tools, and a call of any is one of an unknown tool.")
		return nil
	}
	_, err := fmt.Fprintf(b.Out, "\nsurface: %s\nquestions go to: %s\nlimits: %s\n", x.Surface, asked(x.Asked), limits(x.Limits))
	return err
}

func asked(where string) string {
	if where == access.AskedApprovers {
		return "approvers alone"
	}
	return "the person at the client, and approvers, as profiles say"
}

func limits(l access.Limits) string {
	var all []string
	for _, one := range []struct {
		n    int
		what string
	}{{l.Sessions, "session"}, {l.Runs, "run"}, {l.Workers, "running script"}, {l.Questions, "open question"}} {
		if one.n > 0 {
			all = append(all, cli.Count(one.n, one.what))
		}
	}
	if len(all) == 0 {
		return "none of their own"
	}
	return strings.Join(all, ", ")
}
