package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/profileview"
	"codemode-bridge/profiles/templates"

	"github.com/spf13/cobra"
)

// addProfileCommand copies a ready-made profile into the configuration.
func addProfileCommand(con *console) *cobra.Command {
	var template, as string
	var dry bool
	long := "Copies a ready-made profile into evaluation.profiles of the configuration, with its\n" +
		"comments; all else in the file stays as it is. It prints what it adds. Change it there\n" +
		"as you like. A bridge that runs takes it over at once or, where it is looser and there are\n" +
		"approvers, when one of them has confirmed it. The templates:\n"
	for _, t := range templates.All() {
		long += "\n  " + t.Name + "\n      " + t.Summary + "\n"
	}
	c := &cobra.Command{
		Use: "add", Short: "Add a ready-made profile to the configuration", Args: noArgs, Long: long,
		Example: "  codemode-bridge profiles add --template read-only --dry-run\n  codemode-bridge profiles add --template git-safe --as repositories",
		RunE:    func(*cobra.Command, []string) error { return addProfile(con, template, as, dry) },
	}
	c.Flags().StringVar(&template, "template", "", "the `name` of the ready-made profile")
	c.Flags().StringVar(&as, "as", "", "the `profile`'s name (default: the template's, with underscores)")
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be added and change nothing")
	_ = c.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templates.Names(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	_ = c.RegisterFlagCompletionFunc("as", cobra.NoFileCompletions)
	con.jsonFlag(c)
	return c
}

// addProfile puts a template into the configuration file. What comes of it must
// be a whole configuration, or nothing is written.
func addProfile(con *console, template, as string, dry bool) error {
	t, ok := templates.Find(template)
	if !ok {
		why := fmt.Errorf("there is no template %q; there are: %s", template, strings.Join(templates.Names(), ", "))
		if template == "" {
			why = fmt.Errorf("profiles add needs --template; there are: %s", strings.Join(templates.Names(), ", "))
		}
		return &usageError{why}
	}
	if as == "" {
		as = strings.ReplaceAll(t.Name, "-", "_")
	}
	pointer := "/evaluation/profiles/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(as)
	var file string
	var before, after []byte
	var tools []string
	err := editConfig(con, func(text []byte, whole *config.Config) ([]byte, error) {
		file, before, after = whole.File, text, text
		cfg, err := config.Parse(con.shown(file), text, con.env, con.policy(file)) // without an overlay
		if err != nil {
			return nil, err
		}
		if cfg.Has(pointer) {
			return nil, &usageError{fmt.Errorf("the configuration has a profile %q already; name another with --as", as)}
		}
		if !cfg.Has("/evaluation/profiles") {
			if after, err = config.Insert(after, "/evaluation/profiles", map[string]any{}); err != nil {
				return nil, err
			}
		}
		if after, err = config.Insert(after, pointer, config.JSONC(t.Text)); err != nil {
			return nil, err
		}
		if cfg, err = config.Parse(con.shown(file), after, con.env, con.policy(file)); err != nil {
			fmt.Fprintln(con.err, "the file was not changed: with this profile it would have mistakes")
			return nil, err
		}
		profile, _ := cfg.Profiles.Profile(as)
		if tools = profileview.Tools(cfg.Profiles, profile); dry {
			return nil, errDryRun
		}
		return after, nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	if con.json {
		return con.printJSON(map[string]any{"profile": as, "template": t.Name, "file": file, "tools": tools, "written": !dry})
	}
	printAdded(con.out, con.shown(file), before, after)
	if dry {
		fmt.Fprintf(con.err, "%s was not changed; without --dry-run, the profile %s would bind %s\n", con.shown(file), as, strings.Join(tools, " and "))
	} else {
		fmt.Fprintf(con.err, "the profile %s binds %s\n", as, strings.Join(tools, " and "))
	}
	return nil
}

var errDryRun = errors.New("nothing is changed")

// printAdded prints the lines that an insertion has changed, as a diff with
// three lines around them.
func printAdded(out io.Writer, name string, before, after []byte) {
	const around = 3
	old, now := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	from, rest := max(0, head-around), min(tail, around)
	fmt.Fprintf(out, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n", name, name, from+1, len(old)-tail+rest-from, from+1, len(now)-tail+rest-from)
	print := func(mark string, lines []string) {
		for _, line := range lines {
			fmt.Fprintln(out, mark+canon.VisibleLines(line))
		}
	}
	print(" ", old[from:head])
	print("-", old[head:len(old)-tail])
	print("+", now[head:len(now)-tail])
	print(" ", old[len(old)-tail:len(old)-tail+rest])
}
