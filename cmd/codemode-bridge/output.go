package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/profiles"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// printJSON writes v to standard output: indented for a person, with what cannot
// be seen written out, and on one line for a program, as it is.
func (con *console) printJSON(v any) error {
	if file, ok := con.out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		e := json.NewEncoder(con.out)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(con.out, canon.EscapeLines(text.String()))
	return err
}

// width is how many characters a line of the terminal has that standard
// output goes to; 0 if it goes elsewhere, where lines are as long as they are.
func (con *console) width() int {
	if file, ok := con.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return max(width, 40)
		}
	}
	return 0
}

// table writes rows in columns to standard output, the first row in capitals.
func (con *console) table(rows [][]string) error {
	_, err := io.WriteString(con.out, lines.Table(rows, con.width()))
	return err
}

// told writes a sentence to standard error.
func (con *console) told(format string, args ...any) {
	fmt.Fprintln(con.err, con.fitted(fmt.Sprintf(format, args...)))
}

// fitted is a sentence for standard error, in lines that fit the terminal.
func (con *console) fitted(text string) string {
	width := 0
	if file, ok := con.err.(*os.File); ok {
		width, _, _ = term.GetSize(int(file.Fd()))
	}
	if width < 40 {
		return text
	}
	fits := lines.Hang(text, width, "  ")
	for i, line := range fits {
		fits[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(fits, "\n")
}

// printLines prints lines to standard output.
func printLines(con *console, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(con.out, line)
	}
}

// homeShort is a path for people.
func homeShort(con *console, path string) string {
	home, _ := con.env("HOME")
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
		return filepath.Join("~", rest)
	}
	return path
}

// jsonFlag gives a command the flag --json.
func (con *console) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&con.json, "json", false, "print JSON")
}

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
