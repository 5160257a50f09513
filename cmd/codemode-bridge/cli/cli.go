// Package cli has what all commands share: the streams they read and write,
// printing for people and for programs, checks of how many arguments there are, and
// the errors that end a command with an exit code. It knows nothing of what a
// command does.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/lines"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A Console is where a command reads and writes.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(name string) (value string, ok bool)
	JSON     bool // --json
}

// PrintJSON writes v to standard output: indented and with invisible characters
// escaped for a person, on one line and unchanged for a program.
func (con *Console) PrintJSON(v any) error {
	if file, ok := con.Out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		e := json.NewEncoder(con.Out)
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
	_, err := io.WriteString(con.Out, canon.EscapeLines(text.String()))
	return err
}

// Width returns the width of the terminal that is standard output, in characters;
// 0, which means unlimited, if it is no terminal.
func (con *Console) Width() int {
	if file, ok := con.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return max(width, 40)
		}
	}
	return 0
}

// Table writes rows in columns to standard output, the first row in capitals.
func (con *Console) Table(rows [][]string) error {
	_, err := io.WriteString(con.Out, lines.Table(rows, con.Width()))
	return err
}

// Told writes a sentence to standard error, wrapped to fit the terminal.
func (con *Console) Told(format string, args ...any) {
	fmt.Fprintln(con.Err, con.Fitted(fmt.Sprintf(format, args...)))
}

// Fitted wraps a sentence for standard error to the width of the terminal.
func (con *Console) Fitted(text string) string {
	width := 0
	if file, ok := con.Err.(*os.File); ok {
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

// PrintLines prints lines to standard output.
func (con *Console) PrintLines(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(con.Out, line)
	}
}

// HomeShort abbreviates the user's home folder in a path as ~, for people.
func (con *Console) HomeShort(path string) string {
	home, _ := con.Env("HOME")
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
		return filepath.Join("~", rest)
	}
	return path
}

// JSONFlag gives a command the flag --json.
func (con *Console) JSONFlag(c *cobra.Command) {
	c.Flags().BoolVar(&con.JSON, "json", false, "print JSON")
}

// Drain discards what was typed before a question.
func (con *Console) Drain() error {
	if file, ok := con.In.(*os.File); ok {
		return Drain(file)
	}
	return nil
}

// Step says, on a terminal only, what the command is busy with.
func (con *Console) Step(what string) {
	if file, ok := con.Err.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(con.Err, "%s...\n", what)
	}
}

// Colour reports whether standard output shows colours.
func (con *Console) Colour() bool {
	file, ok := con.Out.(*os.File)
	_, plain := con.Env("NO_COLOR")
	return ok && !plain && term.IsTerminal(int(file.Fd()))
}

// ReadSecret reads one value from standard input: without echo on a terminal, else
// all of the input without a line break at its end.
func (con *Console) ReadSecret(prompt string) (string, error) {
	if file, ok := con.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(con.Err, prompt)
		value, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(con.Err)
		if err != nil {
			return "", fmt.Errorf("reading a value: %w", err)
		}
		return string(value), nil
	}
	return ReadValue(con.In)
}

// ReadValue reads one value, without the line break at its end.
func ReadValue(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return "", fmt.Errorf("reading a value: %w", err)
	}
	text := strings.TrimSuffix(string(b), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// Count is a number of things: 1 server, 2 servers.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// FirstLine is text up to its first line break.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
