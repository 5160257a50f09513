package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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
		for _, line := range l.Lines[i].evidence().lines() {
			fmt.Fprintf(&b, "    // %s\n", line)
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

// lineOf writes a value in one line, for pasting: && stays &&.
func lineOf(value any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// evidence is what speaks for the rule; its examples are the first and the last call.
func (e LearntRule) evidence() evidence {
	tools := make([]string, len(e.Tools))
	for i, t := range e.Tools {
		tools[i] = fmt.Sprintf("%s %d", Shown(t.Tool), t.Calls)
	}
	examples := []Case{e.First}
	if e.First.Run != e.Last.Run || e.First.Call != e.Last.Call {
		examples = append(examples, e.Last)
	}
	return evidence{number(e.Calls, "call") + " in " + number(e.Runs, "run"), e.First.Time, e.Last.Time,
		fmt.Sprintf("%d approved by a person: %s", e.Approved, strings.Join(tools, ", ")), examples}
}

// Words says what became of the calls of the log, in a line each.
func (l *Learnt) Words() (lines []string) {
	lines = append(lines, fmt.Sprintf("%s done: %d it lets pass, %d it asks about", number(l.Calls, "call"), l.Allowed, l.Calls-l.Allowed))
	for _, left := range l.Left {
		lines = append(lines, fmt.Sprintf("  asks about %d: %s", left.Count, left.Why))
	}
	lines = append(lines, fmt.Sprintf("%s refused: it lets none of them pass", number(l.Refused, "call")))
	if l.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("left out: %s that would have let a refused call pass", number(l.Dropped, "rule")))
	}
	return lines
}
