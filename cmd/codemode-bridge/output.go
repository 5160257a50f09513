package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// printJSON writes v to standard output: indented for a person, on one line
// for a program.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	if file, ok := a.out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// table writes rows in columns to standard output, the first row in capitals.
func (a *app) table(rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for i, row := range rows {
		line := strings.Join(row, "\t")
		if i == 0 {
			line = strings.ToUpper(line)
		}
		fmt.Fprintln(w, strings.TrimRight(line, "\t"))
	}
	return w.Flush()
}

// jsonFlag gives a command the flag --json.
func (a *app) jsonFlag(c *cobra.Command) { c.Flags().BoolVar(&a.json, "json", false, "print JSON") }

// count is a number of things: 1 server, 2 servers.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func timeDuration(d profiles.Duration) time.Duration { return time.Duration(d) }

// The counts of arguments that commands take; a wrong one is wrong usage.
func noArgs(c *cobra.Command, args []string) error { return maxArgs(0)(c, args) }

func maxArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		takes := "no arguments"
		if n > 0 {
			takes = "at most " + count(n, "argument")
		}
		return &usageError{fmt.Errorf("%s takes %s, not %d (does one need quotes?)", command(c), takes, len(args))}
	}
}

func minArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return &usageError{fmt.Errorf("%s needs %s: %s", command(c), count(n, "argument"), c.UseLine())}
	}
}

func oneArg(c *cobra.Command, args []string) error {
	if err := minArgs(1)(c, args); err != nil {
		return err
	}
	return maxArgs(1)(c, args)
}

// command is a command as it is typed, without the program.
func command(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// isCobraUsage reports whether err is cobra's own word for a command that
// does not exist; it has no type.
func isCobraUsage(err error) bool {
	return errors.Unwrap(err) == nil && strings.HasPrefix(err.Error(), "unknown command ")
}
