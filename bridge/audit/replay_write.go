package audit

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Write writes what a policy would change, for people: first what it asks or denies less.
// Table writes rows in columns; the first row is the head.
func (r *Replay) Write(w io.Writer, table func(rows [][]string) error) error {
	p := &printer{w: w}
	p.f("%s from %s to %s, decided anew\n", number(r.Calls, "call"), r.From.Local().Format(time.DateTime), r.To.Local().Format(time.DateTime))
	changed, unknown := 0, 0
	for _, c := range r.Changes {
		changed += c.Count
	}
	for _, u := range r.Undecided {
		unknown += u.Count
	}
	p.f("as before  %d\nchanged    %d\nunknown    %d\n", r.Same, changed, unknown)
	q := r.Questions
	p.f("questions  %d before, %s a day; %d now, %s a day", q.Before, aDay(q.BeforeDaily), q.After, aDay(q.AfterDaily))
	if q.Most > q.After {
		p.f("; at most %d, as far as is unknown", q.Most)
	}
	p.f("\n")
	var looser, stricter []Change
	for _, c := range r.Changes {
		if c.Looser() {
			looser = append(looser, c)
		} else {
			stricter = append(stricter, c)
		}
	}
	p.changes("looser than before", looser, table)
	p.changes("stricter than before", stricter, table)
	p.unknown(r.Undecided, table)
	return p.err
}

// changes writes the groups of one kind, and then examples of each.
func (p *printer) changes(title string, all []Change, table func(rows [][]string) error) {
	if len(all) == 0 || p.err != nil {
		return
	}
	rows := [][]string{{"", "calls", "was", "is", "by", "before by", "yes", "no"}}
	for i, c := range all {
		rows = append(rows, []string{strconv.Itoa(i + 1), strconv.Itoa(c.Count), c.Was, c.Is, Cell(c.IsRule), Cell(c.WasRule), strconv.Itoa(c.Yes), strconv.Itoa(c.No)})
	}
	p.f("\n%s\n", title)
	if p.err == nil {
		p.err = table(rows)
	}
	for i, c := range all {
		p.examples(strconv.Itoa(i+1)+". ", c.Examples)
	}
}

// unknown writes which calls cannot be decided, by cause.
func (p *printer) unknown(all []UndecidedCall, table func(rows [][]string) error) {
	if len(all) == 0 || p.err != nil {
		return
	}
	rows := [][]string{{"", "calls", "cannot be decided, because"}}
	for i, u := range all {
		rows = append(rows, []string{strconv.Itoa(i + 1), strconv.Itoa(u.Count), GapText(u.Gap)})
	}
	p.f("\nunknown\n")
	if p.err == nil {
		p.err = table(rows)
	}
	for i, u := range all {
		p.examples(strconv.Itoa(i+1)+". ", u.Examples)
	}
}

func (p *printer) examples(number string, all []Example) {
	for _, e := range all {
		p.f("%s%s\n", number, e.line(e.Tool+" "+string(e.Args)))
		number = fmt.Sprintf("%*s", len(number), "")
	}
}

// GapText is a cause for which a call cannot be decided, in words.
func GapText(gap string) string {
	for _, word := range gapWords {
		if word.gap == gap {
			return word.words
		}
	}
	return gap
}

// aDay is a number of questions a day.
func aDay(n float64) string {
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}
