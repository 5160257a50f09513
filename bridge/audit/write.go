package audit

import (
	"codemode-bridge/bridge/canon"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Table returns rows as those of a table, below a head.
func Table(rows Rows) ([][]string, error) {
	table := [][]string{{"seq", "time", "run", "event", "decision", "risk", "what"}}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		r := row.Record
		table = append(table, []string{
			strconv.FormatInt(row.Seq, 10), r.Time.Local().Format(time.DateTime), Cell(r.Run), string(r.Event), Cell(r.Disposition), Cell(r.Risk),
			canon.Fit(Line(r), 160),
		})
	}
	return table, nil
}

// Cell escapes a text of a record for a cell of a table.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return Shown(s)
}

// Write writes statistics for people, with the unused rules. Table writes rows in
// columns; the first row is the head.
func (s *Stats) Write(w io.Writer, unused []string, table func(rows [][]string) error) error {
	p := &printer{w: w}
	q := s.Questions
	p.f("%s from %s to %s\n", number(s.Rows, "row"), s.From.Local().Format(time.DateTime), s.To.Local().Format(time.DateTime))
	p.f("runs       %d: %d done, %d failed, %d stopped, %d open\n", s.Runs.All, s.Runs.Done, s.Runs.Failed, s.Runs.Stopped, s.Runs.Open)
	p.f("calls      %d: %d done, %d failed, %d refused, %d unknown\n", s.Calls.All, s.Calls.Done, s.Calls.Failed, s.Calls.Refused, s.Calls.Unknown)
	p.f("questions  %d; by persons %d yes and %d no; %d by an earlier yes, %d by fallback\n", q.Asked, q.Yes, q.No, q.Remembered, q.Fallback)
	if q.Yes+q.No > 0 {
		p.f("approval   %.0f %%\n", 100*q.Rate)
		p.f("to decide  %v at the median, %v for 9 of 10\n", q.Median.Round(time.Millisecond), q.P90.Round(time.Millisecond))
	}
	if would := s.wouldSay(); would != "" {
		p.f("observed   would have %s\n", would)
	}
	section := func(title string, head []string, rows [][]string) {
		if len(rows) == 0 {
			return
		}
		p.f("\n%s\n", title)
		if p.err == nil {
			p.err = table(append([][]string{head}, rows...))
		}
	}
	var rules, observed, denials, failures [][]string
	for _, r := range s.Rules {
		rules = append(rules, []string{Cell(r.Rule), strconv.Itoa(r.Asked), strconv.Itoa(r.Yes), strconv.Itoa(r.No)})
	}
	for _, o := range s.Observed {
		observed = append(observed, []string{Cell(o.Rule), Cell(o.Would), strconv.Itoa(o.Calls), strconv.Itoa(o.Runs)})
	}
	for _, d := range s.Denials[:min(len(s.Denials), 20)] {
		denials = append(denials, []string{strconv.Itoa(d.Count), Cell(d.Tool), Cell(d.Why)})
	}
	for _, why := range slices.Sorted(maps.Keys(s.Failures)) {
		failures = append(failures, []string{strconv.Itoa(s.Failures[why]), Cell(why)})
	}
	section("rules that asked", []string{"rule", "asked", "yes", "no"}, rules)
	section("rules that are only observed", []string{"rule", "would", "calls", "runs"}, observed)
	section("refused", []string{"calls", "tool", "why"}, denials)
	section("questions without an answer", []string{"calls", "why"}, failures)
	if len(unused) > 0 {
		p.f("\nrules that nothing needed\n")
		for _, rule := range unused {
			p.f("  %s\n", Shown(rule))
		}
	}
	for _, suggestion := range s.Suggest() {
		suggestion.write(p)
	}
	return p.err
}

// write writes a rule for pasting, and everything that speaks against it.
func (s Suggestion) write(p *printer) {
	line := func(v any) string {
		text, err := lineOf(v)
		if err != nil {
			return err.Error()
		}
		return text
	}
	profile := s.Profile
	if profile == "" {
		profile = "-" // how the command line calls the one that binds eval
	}
	p.f("\n%s was answered yes %d times and no %d times (%s)\n", Shown(s.Tool), s.Yes, s.No, Shown(s.Asks))
	p.f("  a rule for profile %s that would have covered %d of them:\n", Shown(profile), s.Cover)
	p.f("    %s\n", Shown(line(s.Rule)))
	if s.Note != "" {
		p.f("  %s\n", Shown(s.Note))
	}
	for _, rule := range s.Instead {
		p.f("    instead: %s\n", Shown(line(rule)))
	}
	if s.Except != "" {
		p.f("    add to its condition: && %s\n", Shown(s.Except))
	}
	if len(s.LetThrough) == 0 {
		p.f("  it would have let none of the refused calls through\n")
		return
	}
	p.f("  it would have let through:\n")
	for _, c := range s.LetThrough {
		p.f("    %s\n", c.line(c.Answer+"  "+string(c.Args)))
	}
}
