package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/lines"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A level says how bad a finding is.
type level string

const (
	levelOK   level = "ok"
	levelWarn level = "warn" // it works, but not as it could or should
	levelFail level = "fail" // something does not work
)

// A finding is what the doctor has found of one thing. Docs/reference/cli.md
// promises its keys.
type finding struct {
	Area  string `json:"area"`            // config, servers, tools, logins, sandbox, store, ports, clients
	About string `json:"about,omitempty"` // of what: a server, a file, an address
	Level level  `json:"level"`
	Text  string `json:"text"` // one sentence, without a full stop
	// Do says what to do; empty where there is nothing.
	Do string `json:"do,omitempty"`
	// Said are lines that a server's program wrote.
	Said []string `json:"said,omitempty"`
	// File, Line and Column are the place of a mistake in the configuration.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// A diagnosis is what --json prints.
type diagnosis struct {
	Version  string    `json:"version"`
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	Config   string    `json:"config"`
	OK       bool      `json:"ok"` // nothing fails
	Warnings int       `json:"warnings"`
	Failures int       `json:"failures"`
	Findings []finding `json:"findings"`
}

func fine(about, text string) finding { return finding{About: about, Level: levelOK, Text: text} }
func warning(about, text, do string) finding {
	return finding{About: about, Level: levelWarn, Text: text, Do: do}
}
func failing(about, text, do string) finding {
	return finding{About: about, Level: levelFail, Text: text, Do: do}
}

// doctorCommand looks at everything that a bridge depends on.
func doctorCommand(con *console) *cobra.Command {
	limit := 30 * time.Second
	c := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with this installation, and say what to do", Args: noArgs,
		Long: "Looks at the configuration, connects to every server, and looks at logins, the sandbox, the audit log, the ports\n" +
			"and the configurations of your clients. It changes nothing. The exit code is 1 if something does not work;\n" +
			"warnings alone leave it 0.",
		RunE: func(c *cobra.Command, _ []string) error { return doctor(c.Context(), con, limit) },
	}
	c.Flags().DurationVar(&limit, "timeout", limit, "how long each server may take to start and list its tools")
	con.jsonFlag(c)
	return c
}

func doctor(ctx context.Context, con *console, limit time.Duration) error {
	if limit <= 0 {
		return &usageError{fmt.Errorf("--timeout %v leaves no time", limit)}
	}
	path, err := con.file()
	if err != nil {
		return err
	}
	up := &checkup{app: con, path: path, limit: limit, logins: logins(con)}
	defer up.logins.Close()
	up.known.HideLogins(up.logins.Hide)
	out := doctorPaper{app: con}
	if !con.json {
		out.head(path)
	}
	all := []finding{}
	for _, area := range up.areas() {
		if area.slow != "" && up.cfg != nil {
			out.wait(area.slow)
		}
		found := area.check(ctx)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for i := range found {
			found[i].Area = area.name
			up.clean(&found[i])
		}
		if !con.json {
			out.area(area.name, found)
		}
		all = append(all, found...)
	}
	count := map[level]int{}
	for _, f := range all {
		count[f.Level]++
	}
	if con.json {
		err = con.printJSON(diagnosis{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, path, count[levelFail] == 0, count[levelWarn], count[levelFail], all})
	} else {
		out.foot(count[levelWarn], count[levelFail])
	}
	if err == nil && count[levelFail] > 0 {
		err = &exitError{exitFailed}
	}
	return err
}

// clean makes what others wrote fit to be shown: without known secrets, and
// with every character visible.
func (up *checkup) clean(f *finding) {
	show := func(text string) string { return canon.Visible(canon.Redact(up.known.Hide(text))) }
	f.About, f.Text = show(f.About), show(f.Text)
	for i := range f.Said {
		f.Said[i] = show(f.Said[i])
	}
}

// A doctorPaper is the doctor's answer for a person, written as it is found.
type doctorPaper struct{ app *console }

// colour reports whether standard output shows colours.
func (p doctorPaper) colour() bool {
	file, ok := p.app.out.(*os.File)
	_, plain := p.app.env("NO_COLOR")
	return ok && !plain && term.IsTerminal(int(file.Fd()))
}

func (p doctorPaper) mark(l level) string {
	sign, colour := "✓", "32"
	switch l {
	case levelWarn:
		sign, colour = "!", "33"
	case levelFail:
		sign, colour = "✗", "31"
	}
	if p.colour() {
		sign = "\x1b[" + colour + "m" + sign + "\x1b[0m"
	}
	return "[" + sign + "]"
}

func (p doctorPaper) head(path string) {
	fmt.Fprintf(p.app.out, "codemode-bridge %s (%s, %s/%s)\n%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, homeShort(p.app, path))
}

// wait says on a terminal what takes a while.
func (p doctorPaper) wait(what string) {
	if file, ok := p.app.err.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(p.app.err, "%s...\n", what)
	}
}

// area prints the findings of one area. Those that say the same of several
// things share a line.
func (p doctorPaper) area(name string, found []finding) {
	if len(found) == 0 {
		return
	}
	worst := slices.MaxFunc(found, func(a, b finding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) }).Level
	fmt.Fprintf(p.app.out, "\n%s %s\n", p.mark(worst), name)
	for _, f := range folded(found) {
		line := f.Text
		if f.About != "" {
			line = f.About + ": " + f.Text
		}
		if f.Line > 0 {
			line = f.File + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column) + ": " + f.Text
		}
		sign := " "
		if f.Level != levelOK {
			sign = p.mark(f.Level)
			sign = sign[1 : len(sign)-1]
		}
		p.print("  "+sign+" ", "    ", line)
		for _, said := range f.Said {
			p.print("      | ", "      | ", said)
		}
		if f.Do != "" {
			p.print("      do: ", "          ", f.Do)
		}
	}
}

// print writes a line behind one beginning, and what of it does not fit the
// terminal below, behind another that is as wide.
func (p doctorPaper) print(first, next, line string) {
	parts := []string{line}
	if width := p.app.width(); width > 0 {
		parts = lines.Hang(line, width-len(next), "")
	}
	for i, part := range parts {
		from := first
		if i > 0 {
			from = next
		}
		fmt.Fprintln(p.app.out, from+strings.TrimRight(part, " "))
	}
}

func (p doctorPaper) foot(warnings, failures int) {
	switch {
	case failures > 0 && warnings > 0:
		fmt.Fprintf(p.app.out, "\n%s, %s\n", count(failures, "failure"), count(warnings, "warning"))
	case failures > 0:
		fmt.Fprintf(p.app.out, "\n%s\n", count(failures, "failure"))
	case warnings > 0:
		fmt.Fprintf(p.app.out, "\nall works, with %s\n", count(warnings, "warning"))
	default:
		fmt.Fprintln(p.app.out, "\nall is well")
	}
}

func rank(l level) int { return slices.Index([]level{levelOK, levelWarn, levelFail}, l) }

// folded are findings in which those that differ by what they are about alone
// have become one.
func folded(found []finding) []finding {
	var all []finding
	for _, f := range found {
		i := slices.IndexFunc(all, func(g finding) bool {
			return g.Level == f.Level && g.Text == f.Text && g.Do == f.Do && g.About != "" && f.About != "" && len(g.Said)+len(f.Said)+g.Line+f.Line == 0
		})
		if i < 0 {
			all = append(all, f)
			continue
		}
		all[i].About = strings.Join([]string{all[i].About, f.About}, ", ")
	}
	return all
}
