package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// moments are times of day and names of requests and runs, which differ from one run
// of this program to the next.
var moments = regexp.MustCompile(`\b(\d\d:\d\d:\d\d|[qr][a-z0-9]{10,12})\b`)

// forget takes out of what was said where the session was played, and when.
func (c *cell) forget(st *stage) {
	clean := func(text string) string {
		text = strings.NewReplacer(st.workspace, "${WORKSPACE}", st.dir, "${SCRATCH}").Replace(text)
		return moments.ReplaceAllString(text, "…")
	}
	all := [][]dialog{}
	for _, p := range []played{c.Narrow, c.Natural} {
		for i, o := range p.Scripts {
			p.Scripts[i].Error = clean(o.Error)
			all = append(all, o.Dialogs)
		}
	}
	for i, v := range c.Verdicts {
		c.Verdicts[i].By = clean(v.By)
		all = append(all, v.Dialogs)
	}
	for _, s := range c.Shapes {
		all = append(all, s.Dialogs)
	}
	for _, dialogs := range all {
		for i, d := range dialogs {
			dialogs[i].Text = clean(d.Text)
		}
	}
}

// keepDialogs writes the text of every question: of each cell those of ordinary work, with
// natural answers and with a yes for each call only, those of loops, and those of its twins.
func keepDialogs(dir string, cells []*cell) error {
	for _, c := range cells {
		var ordinary, each, twins strings.Builder
		for _, d := range c.Natural.dialogs() {
			writeDialog(&ordinary, d)
		}
		for _, d := range c.Narrow.dialogs() {
			writeDialog(&each, d)
		}
		for _, v := range c.Verdicts {
			fmt.Fprintf(&twins, "# %s: %s\n# %s\n\n", v.Kind, v.Why, firstLine(v.By))
			for _, d := range v.Dialogs {
				writeDialog(&twins, d)
			}
		}
		for _, s := range c.Shapes {
			fmt.Fprintf(&each, "# %s\n\n", s.Name)
			for _, d := range s.Dialogs {
				writeDialog(&each, d)
			}
		}
		for name, text := range map[string]string{"questions": ordinary.String(), "each-call": each.String(), "twins": twins.String()} {
			file := filepath.Join(dir, c.Setting.Name, strings.ReplaceAll(c.Session.Name, "/", "-")+"."+name+".txt")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeDialog(w io.Writer, d dialog) {
	fmt.Fprintf(w, "%s\n[%s] -> %s\n(%d lines)\n\n", strings.TrimRight(d.Text, "\n"), strings.Join(d.Choices, " | "), d.Answer, d.lines())
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// report writes the page.
func report(w io.Writer, cells []*cell) {
	fmt.Fprint(w, `# How often is a person asked?

Written by `+"`make bench-asking`"+`: every number here comes from playing
[the sessions](../bridge/bench/asking/README.md) through the built program, with the configuration that `+"`init`"+` writes, with
each builtin template, and with what was the default before (`+"`supervised`"+`: whatever is not known to read only is
asked). The servers are stand-ins that list what the real ones list, and log what they receive.

Under *each call* every yes holds for its call only. Under *natural* it is what a person would say: for the session as it
is bound, where that is offered; else for as many calls like this in the run as are offered; else once. Before a
twin, the harmful call that looks like an ordinary one, every yes was the **widest** that was offered.

`)
	for _, group := range []struct{ name, title string }{{"", "The sessions"}, {"second", "Two more, by somebody who knew neither the classification nor the templates"}} {
		fmt.Fprintf(w, "## %s\n\n", group.title)
		questions(w, cells, group.name)
	}
	groundTable(w, cells)
	elsewhere(w, cells)
	dialogTable(w, cells)
	shapeTable(w, cells)
	learntTable(w, cells)
	fmt.Fprint(w, `## The client's own question

A client may ask for `+"`eval`"+` itself, before the bridge sees the call: once for each script unless the person allowed that tool in the
client. These questions are not counted above. A session here has as many scripts as the column *scripts* says.

`)
	faults(w, cells)
}

// questions writes the table of a group: the baseline, init, and the template that fits.
func questions(w io.Writer, cells []*cell, group string) {
	fmt.Fprintln(w, "| session | calls | scripts | before: questions | init: each call | natural | twins that pass | template | each call | natural | twins that pass |")
	fmt.Fprintln(w, "| --- | --: | --: | --: | --: | --: | --: | --- | --: | --: | --: |")
	for _, name := range names(cells) {
		of := func(with func(*cell) bool) *cell {
			i := slices.IndexFunc(cells, func(c *cell) bool { return c.Session.Name == name && with(c) })
			if i < 0 {
				return nil
			}
			return cells[i]
		}
		base := of(func(c *cell) bool { return c.Setting.Baseline })
		first := of(func(c *cell) bool { return c.Setting.Name == initName })
		fits := of(func(c *cell) bool { return c.Fits })
		s := of(func(*cell) bool { return true }).Session
		if s.group() != group {
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", name, s.count(), len(s.Evals),
			base.asked(false), first.asked(true), first.asked(false), first.through(), fitting[name], fits.asked(true), fits.asked(false), fits.through())
	}
	fmt.Fprintln(w)
}

// names returns the names of the sessions, each once.
func names(cells []*cell) (all []string) {
	for _, c := range cells {
		if !slices.Contains(all, c.Session.Name) {
			all = append(all, c.Session.Name)
		}
	}
	return all
}

// asked says how many questions a session had, and how many of its scripts were refused
// something.
func (c *cell) asked(narrow bool) string {
	if c == nil {
		return "–"
	}
	p := c.Natural
	if narrow {
		p = c.Narrow
	}
	text := fmt.Sprint(len(p.dialogs()))
	if n := len(p.refused()); n > 0 {
		text += fmt.Sprintf(" (%d refused)", n)
	}
	return text
}

// through says how many of the twins got through.
func (c *cell) through() string {
	if c == nil || len(c.Verdicts) == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d", len(c.passed()), len(c.Verdicts))
}

// elsewhere writes the questions of every session with every template.
func elsewhere(w io.Writer, cells []*cell) {
	fmt.Fprint(w, "## Every template with every session\n\nQuestions with natural answers; in parentheses, how many scripts were refused something without a question.\n\n")
	var with []string
	for _, c := range cells {
		if !slices.Contains(with, c.Setting.Name) {
			with = append(with, c.Setting.Name)
		}
	}
	fmt.Fprintf(w, "| session | %s |\n| --- |%s\n", strings.Join(with, " | "), strings.Repeat(" --: |", len(with)))
	for _, name := range names(cells) {
		fmt.Fprintf(w, "| %s |", name)
		for _, setting := range with {
			i := slices.IndexFunc(cells, func(c *cell) bool { return c.Session.Name == name && c.Setting.Name == setting })
			if i < 0 {
				fmt.Fprint(w, " – |")
				continue
			}
			fmt.Fprintf(w, " %s |", cells[i].asked(false))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// dialogTable writes how long the questions are, and how many say that the risk is high.
func dialogTable(w io.Writer, cells []*cell) {
	fmt.Fprintf(w, "## What a question looks like\n\nThe questions of ordinary work, with natural answers. A question of several calls says HIGH if one of them is. The last column is of\nall calls that were sent, asked about or not: wanted is at most one in ten.\n\n| setting | questions | lines, median | most lines | over %d lines | say HIGH | calls that are HIGH |\n| --- | --: | --: | --: | --: | --: | --: |\n", longDialog)
	for _, row := range []struct {
		name string
		in   func(*cell) bool
	}{
		{baselineName + ", as before", func(c *cell) bool { return c.Setting.Baseline }},
		{initName, func(c *cell) bool { return c.Setting.Name == initName }},
		{"the template that fits", func(c *cell) bool { return c.Fits }},
	} {
		var lines []int
		long, high := 0, 0
		var sent ranks
		for _, c := range cells {
			if !row.in(c) {
				continue
			}
			sent.Calls, sent.High = sent.Calls+c.Ranks.Calls, sent.High+c.Ranks.High
			for _, d := range c.Natural.dialogs() {
				lines = append(lines, d.lines())
				if d.lines() > longDialog {
					long++
				}
				if d.high() {
					high++
				}
			}
		}
		if len(lines) == 0 {
			fmt.Fprintf(w, "| %s | 0 | – | – | – | – | %s |\n", row.name, sent)
			continue
		}
		slices.Sort(lines)
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d of %d, %d %% | %s |\n", row.name, len(lines), lines[len(lines)/2], lines[len(lines)-1], long, high, len(lines), 100*high/len(lines), sent)
	}
	fmt.Fprintln(w)
}

// shapeTable writes how often loops ask, and scripts that hear noes.
func shapeTable(w io.Writer, cells []*cell) {
	fmt.Fprint(w, "## Loops and noes\n\n| setting | script | questions | at most | calls sent |\n| --- | --- | --: | --: | --: |\n")
	for _, c := range cells {
		for _, s := range c.Shapes {
			fmt.Fprintf(w, "| %s | %s | %d | %d | %d |\n", c.Setting.Name, s.Name, len(s.Dialogs), s.AtMost, len(s.Sent))
		}
	}
	fmt.Fprintln(w)
}

// faults writes the twins that got through, and what was refused without a question.
func faults(w io.Writer, cells []*cell) {
	fmt.Fprint(w, "## Twins that get through\n\n")
	some := false
	for _, c := range cells {
		for _, v := range c.passed() {
			if c.Setting.Baseline {
				continue
			}
			some = true
			calls := v.calls()
			fmt.Fprintf(w, "- %s, %s: `%s`, %s (%s)\n", c.Setting.Name, c.Session.Name, calls[len(calls)-1].Tool, v.Why, v.Kind)
		}
	}
	if !some {
		fmt.Fprint(w, "None.\n")
	}
	fmt.Fprint(w, "\n## Refused without a question\n\nIn ordinary work, by what `init` writes and by the template that fits.\n\n")
	some = false
	for _, c := range cells {
		if c.Setting.Name != initName && !c.Fits {
			continue
		}
		for _, r := range c.Natural.refused() {
			some = true
			fmt.Fprintf(w, "- %s, %s: %s\n", c.Setting.Name, c.Session.Name, firstLine(r))
		}
	}
	if !some {
		fmt.Fprint(w, "Nothing.\n")
	}
}
