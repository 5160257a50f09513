package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/profileview"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/profiles/templates"

	"github.com/spf13/cobra"
)

// templatesCommand shows the profiles that are part of the program.
func templatesCommand(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "templates [name]", Short: "List the profiles that are part of the bridge, or print one", Args: cobra.MaximumNArgs(1),
		Long: "A profile of the configuration refers to one, as \"extends\": \"builtin:coding@1\", and adds rules of its\n" +
			"own. With a name, as coding or coding@1, it prints the rules.",
		RunE: func(_ *cobra.Command, args []string) error { return showTemplates(con, args) },
	}
	c.ValidArgsFunction = cobra.FixedCompletions(templates.Names(), cobra.ShellCompDirectiveNoFileComp)
	con.JSONFlag(c)
	return c
}

// showTemplates lists the templates, or prints the one that is named.
func showTemplates(con *console, names []string) error {
	type row struct {
		Name    string `json:"name"`
		Extends string `json:"extends"`
		Summary string `json:"summary"`
		Text    string `json:"text,omitempty"`
	}
	if len(names) > 0 {
		t, ok := templates.Find(names[0])
		if !ok {
			return &cli.UsageError{Err: noTemplate(names[0])}
		}
		if con.JSON {
			return con.PrintJSON(row{t.Name, t.Reference(), t.Summary, t.Text})
		}
		_, err := fmt.Fprintf(con.Out, "// %s\n// %s\n%s\n", t.Summary, t.Reference(), t.Text)
		return err
	}
	var rows []row
	table := [][]string{{"template", "extends", "what it does"}}
	for _, t := range templates.All() {
		rows = append(rows, row{t.Name, t.Reference(), t.Summary, ""})
		table = append(table, []string{t.Name, t.Reference(), t.Summary})
	}
	if con.JSON {
		return con.PrintJSON(rows)
	}
	return con.Table(table)
}

func noTemplate(name string) error {
	return fmt.Errorf("there is no template %q; there are: %s", name, strings.Join(templates.Names(), ", "))
}

// addProfileCommand adds a profile that is a template to the configuration.
func addProfileCommand(con *console) *cobra.Command {
	var template, as string
	var dry bool
	long := "Adds a profile to evaluation.profiles of the configuration that extends one of the bridge's own; all\n" +
		"else in the file stays as it is. It prints what it adds. Add rules of your own beside it, as you like.\n" +
		"A bridge that runs takes it over at once or, where it is looser and there are approvers, when one of\n" +
		"them has confirmed it. The templates:\n"
	for _, t := range templates.All() {
		long += "\n  " + t.Name + "\n      " + t.Summary + "\n"
	}
	c := &cobra.Command{
		Use: "add template", Short: "Add a ready-made profile to the configuration", Args: cli.MaxArgs(1), Long: long,
		Example: "  codemode-bridge profiles add read-only --dry-run\n  codemode-bridge profiles add coding --as work",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if template != "" {
					return &cli.UsageError{Err: errors.New("profiles add takes one template")}
				}
				template = args[0]
			}
			return addProfile(con, template, as, dry)
		},
	}
	c.ValidArgsFunction = cobra.FixedCompletions(templates.Names(), cobra.ShellCompDirectiveNoFileComp)
	c.Flags().StringVar(&template, "template", "", "the `name` of the ready-made profile")
	con.OlderFlag(c, "template", "profiles add TEMPLATE")
	c.Flags().StringVar(&as, "as", "", "the `profile`'s name (default: the template's, with underscores)")
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be added and change nothing")
	_ = c.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templates.Names(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	_ = c.RegisterFlagCompletionFunc("as", cobra.NoFileCompletions)
	con.JSONFlag(c)
	return c
}

// addProfile inserts a template into the configuration file. If the result would not
// be a valid configuration, nothing is written.
func addProfile(con *console, template, as string, dry bool) error {
	t, ok := templates.Find(template)
	if !ok {
		why := noTemplate(template)
		if template == "" {
			why = fmt.Errorf("profiles add needs the name of a template; there are: %s", strings.Join(templates.Names(), ", "))
		}
		return &cli.UsageError{Err: why}
	}
	if as == "" {
		as = strings.ReplaceAll(t.Name, "-", "_")
	}
	var file string
	var before, after []byte
	var tools []string
	err := editConfig(con, func(text []byte, whole *config.Config) ([]byte, error) {
		file, before, after = whole.File, text, text
		parse := func(text []byte) (*config.Config, error) { // without an overlay
			return con.loader(file).Text(context.Background(), con.shown(file), text, "")
		}
		next, err := setup.AddProfile(text, as, t.Profile(), parse)
		if errors.Is(err, setup.ErrThere) {
			return nil, &cli.UsageError{Err: fmt.Errorf("the configuration has a profile %q already; name another with --as", as)}
		}
		if err != nil {
			return nil, err
		}
		cfg, err := parse(next)
		if err != nil {
			fmt.Fprintln(con.Err, "the file was not changed: with this profile it would have mistakes")
			return nil, err
		}
		after = next
		profile, _ := cfg.Profiles.Profile(as)
		if tools = profileview.Tools(cfg.Profiles, profile); dry {
			return nil, errDryRun
		}
		return after, nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	if con.JSON {
		return con.PrintJSON(map[string]any{"profile": as, "template": t.Name, "file": file, "tools": tools, "written": !dry})
	}
	con.PrintLines(setup.Added(con.shown(file), before, after))
	if dry {
		fmt.Fprintf(con.Err, "%s was not changed; without --dry-run, the profile %s would bind %s\n", con.shown(file), as, strings.Join(tools, " and "))
	} else {
		fmt.Fprintf(con.Err, "the profile %s binds %s\n", as, strings.Join(tools, " and "))
	}
	return nil
}

var errDryRun = errors.New("nothing is changed")
