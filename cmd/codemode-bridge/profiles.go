package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/profileview"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
)

// evalProfile names, on the command line, the profile of the base eval tool. No
// configured profile can have this name.
const evalProfile = "-"

// profilesCommand shows and explains the policy.
func profilesCommand(con *console) *cobra.Command {
	group := &cobra.Command{
		Use: "profiles", Short: "What scripts may do, and why",
		Long: "Shows and explains the profiles of the configuration. Where a profile is named, " + evalProfile + " stands\n" +
			"for the one that binds the base eval tool: evaluation.defaultProfile or, without it,\nthe unrestricted one.",
	}
	list := &cobra.Command{
		Use: "list", Short: "List the profiles and the eval tools that they bind", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listProfiles(con) },
	}
	show := &cobra.Command{
		Use: "show profile", Short: "Print a profile's effective rules, including those it extends", Args: cli.ExactArgs(1),
		Long: "Prints the lists, rules and settings of a profile, its own and those it extends.\nThe profile " + evalProfile + " is the one that binds eval.",
		RunE: func(_ *cobra.Command, args []string) error { return showProfile(con, args[0]) },
	}
	explain := &cobra.Command{
		Use: "explain profile tool [arguments]", Short: "Decide one call without making it, and show why", Args: cli.RangeArgs(2, 3),
		Long: "Decides one call as the first of a run, without making it, and prints the decision,\n" +
			"its reasons, and every list entry and rule with its outcome. The arguments are JSON.\n" +
			"The tool is as the bridge has it that runs with this configuration, or else as its server listed it last; only if\n" +
			"that is not known, its server is started.\n" +
			"The profile " + evalProfile + " is the one that binds eval. The exit code is 0 whatever the decision.",
		Example: `  codemode-bridge profiles explain supervised filesystem__write_file '{"path": "/etc/hosts"}'
  codemode-bridge profiles explain - time__now`,
		RunE: func(c *cobra.Command, args []string) error {
			return explain(c.Context(), con, args[0], args[1], strings.Join(args[2:], ""))
		},
	}
	show.ValidArgsFunction, explain.ValidArgsFunction = con.completeProfiles, con.completeProfiles
	for _, c := range []*cobra.Command{list, show, explain} {
		con.JSONFlag(c)
		group.AddCommand(c)
	}
	suggest := logFlag(con, auditLogOf(con).Suggest(func(edit func(text []byte) ([]byte, error)) error {
		return editConfig(con, func(text []byte, _ *config.Config) ([]byte, error) { return edit(text) })
	}, con.anew))
	group.AddCommand(templatesCommand(con), addProfileCommand(con), suggest, logFlag(con, auditLogOf(con).Replay(con.anew)), promoteCommand(con), checks(con).Profiles())
	return group
}

// namedProfile returns the profile that an argument of the command line names.
func namedProfile(set *profiles.Set, name string) (*profiles.Profile, error) {
	if name == evalProfile {
		return set.Default(), nil
	}
	if p, ok := set.Profile(name); ok {
		return p, nil
	}
	known := "the configuration has none"
	if names := set.Names(); len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}
	return nil, &cli.UsageError{Err: fmt.Errorf("there is no profile %q; %s", name, known)}
}

// listProfiles prints a line for each profile; if that of eval has no name, it is the
// first.
func listProfiles(con *console) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	set := cfg.Profiles
	rows := profileview.Rows(set, cfg.Evaluation.Profiles)
	if con.JSON {
		return con.PrintJSON(rows)
	}
	table := [][]string{{"profile", "tools", "extends", "deny", "ask", "allow", "rules", "otherwise"}}
	for _, r := range rows {
		name, extends, allow, trial := r.Name, r.Extends, "-", ""
		if name == "" {
			name = evalProfile
		}
		if extends == "" {
			extends = "-"
		}
		if r.Observed > 0 {
			trial = fmt.Sprintf(" (%d only observed)", r.Observed)
		}
		if r.Allowlist != nil {
			allow = strconv.Itoa(*r.Allowlist)
		}
		table = append(table, []string{
			name, strings.Join(r.Tools, ", "), extends,
			strconv.Itoa(r.Denylist), strconv.Itoa(r.Asklist), allow, strconv.Itoa(r.Rules), r.Default + trial,
		})
	}
	if err := con.Table(table); err != nil {
		return err
	}
	if !set.Enabled() {
		fmt.Fprintln(con.Err, "evaluation.enabled is false: what would be asked is allowed")
	}
	return nil
}

// showProfile prints a profile with all that it inherits.
func showProfile(con *console, name string) error {
	cfg, err := con.load()
	if err != nil {
		return err
	}
	p, err := namedProfile(cfg.Profiles, name)
	if err != nil {
		return err
	}
	e, specs := p.Effective(), cfg.Evaluation.Profiles
	if con.JSON {
		return con.PrintJSON(struct {
			Name    string                 `json:"name"`
			Tools   []string               `json:"tools"`
			Lineage []string               `json:"lineage"` // the root first
			Profile profiles.EffectiveSpec `json:"profile"`
		}{p.Name(), profileview.Tools(cfg.Profiles, p), slices.Concat([]string{}, profileview.Lineage(specs, p.Name())), e})
	}
	if err := profileview.Write(con.Out, cfg.Profiles, specs, p); err != nil || e.Risk == nil {
		return err
	}
	fmt.Fprintln(con.Out)
	return con.Table(profileview.RiskRows(e.Risk))
}

// explain decides a call without making it.
func explain(ctx context.Context, con *console, profile, tool, arguments string) error {
	args, err := canon.Parse([]byte(arguments))
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf(`%w (they are an object in JSON, such as '{"path": "/etc/passwd"}')`, err)}
	}
	var x profileview.Explained
	var title string
	err = onceResting(ctx, con, func(ctx context.Context, p *parts) error {
		owners := append([]string{}, p.gate.View().Owners(tool)...)
		boxed := func(name string) bool { return p.cfg.Servers[name] != nil && p.cfg.Servers[name].Confine != nil } // it holds while its server runs
		if told := askRunning(ctx, con, p.config(), owners); told != nil {
			p.hear(told)
		} else if p.gate.View().Catalog.Resolve(tool).Tool == nil || slices.ContainsFunc(owners, boxed) {
			if err := p.only(ctx, con, owners...); err != nil {
				return err
			}
		}
		view := p.gate.View()
		policy, err := namedProfile(view.Profiles, profile)
		if err != nil {
			return err
		}
		complain(con, p)
		title = profileview.Called(policy)
		servers := profileview.Servers{
			Has:      func(server string) bool { return p.cfg.Servers[server] != nil },
			Disabled: func(server string) bool { s := p.cfg.Servers[server]; return s != nil && s.Disabled },
		}
		x, err = profileview.Explain(view, policy, tool, args, p.roots(con).Workspace(ctx, nil, false), servers, p.gate.TimeToAnswer)
		return err
	})
	if err != nil {
		return err
	}
	if con.JSON {
		return con.PrintJSON(x)
	}
	x.Write(con.Out, title)
	fmt.Fprintln(con.Out)
	return con.Table(x.TriedRows())
}
