package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
)

// Text returns the profile as a configuration has it, each rule with what speaks for it as
// comments above it.
func (l *Learnt) Text() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\n")
	if l.Profile.Extends != nil {
		fmt.Fprintf(&b, "  \"extends\": %s,\n", quote(*l.Profile.Extends))
	}
	b.WriteString("  \"default\": \"ask\",\n")
	if len(l.Profile.Asklist) > 0 {
		text, err := lineOf(l.Profile.Asklist)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "  // calls of these were refused\n  \"asklist\": %s,\n", text)
	}
	b.WriteString("  \"rules\": [\n")
	for i, rule := range l.Profile.Rules {
		e := l.Lines[i]
		fmt.Fprintf(&b, "    // %s\n", e.Words())
		for _, c := range e.examples() {
			fmt.Fprintf(&b, "    //   %s #%d  %s\n", Shown(c.Run), c.Call, canon.Fit(Shown(string(c.Args)), maxShownArgs))
		}
		text, err := lineOf(rule)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "    %s,\n", text)
	}
	b.WriteString("  ],\n}")
	return b.Bytes(), nil
}

// maxShownArgs bounds the arguments of an example, in columns.
const maxShownArgs = 120

// lineOf writes a value in one line.
func lineOf(value any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Words says what speaks for a rule.
func (e LearntRule) Words() string {
	day := func(t time.Time) string { return t.Local().Format(time.DateOnly) }
	when := day(e.First.Time)
	if last := day(e.Last.Time); last != when {
		when += " to " + last
	}
	tools := make([]string, len(e.Tools))
	for i, t := range e.Tools {
		tools[i] = fmt.Sprintf("%s %d", Shown(t.Tool), t.Calls)
	}
	return fmt.Sprintf("%s in %s, %s; %d approved by a person: %s", counted(e.Calls, "call"), counted(e.Runs, "run"), when, e.Approved, strings.Join(tools, ", "))
}

// examples are the first and the last call.
func (e LearntRule) examples() []Case {
	if e.First.Run == e.Last.Run && e.First.Call == e.Last.Call {
		return []Case{e.First}
	}
	return []Case{e.First, e.Last}
}

// Words says what became of the calls of the log, in a line each.
func (l *Learnt) Words() (lines []string) {
	lines = append(lines, fmt.Sprintf("%s done: %d it lets pass, %d it asks about", counted(l.Calls, "call"), l.Allowed, l.Calls-l.Allowed))
	for _, left := range l.Left {
		lines = append(lines, fmt.Sprintf("  asks about %d: %s", left.Count, left.Why))
	}
	lines = append(lines, fmt.Sprintf("%s refused: it lets none of them pass", counted(l.Refused, "call")))
	if l.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("left out: %s that would have let a refused call pass", counted(l.Dropped, "rule")))
	}
	return lines
}
