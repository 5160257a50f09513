package audit

import (
	"fmt"
	"time"

	"codemode-bridge/bridge/canon"
)

// An evidence is what speaks for a rule, in words.
type evidence struct {
	calls       string // how many
	first, last time.Time
	answers     string // what people said to them, and whatever else there is to say
	examples    []Case
}

// lines are the evidence for people: a line that sums it up, and one for each example.
func (e evidence) lines() []string {
	when := e.first.Local().Format(time.DateOnly)
	if last := e.last.Local().Format(time.DateOnly); last != when {
		when += " to " + last
	}
	all := []string{e.calls + ", " + when + "; " + e.answers}
	for _, c := range e.examples {
		all = append(all, "  "+c.line(string(c.Args)))
	}
	return all
}

// maxShown bounds what is shown of a call, in columns.
const maxShown = 160

// line is a recorded call in a line: when it was, in which run, and what is shown of it.
func (c Case) line(shown string) string {
	return fmt.Sprintf("%s  %s #%d  %s", c.Time.Local().Format(time.DateTime), Shown(c.Run), c.Call, canon.Fit(Shown(shown), maxShown))
}
