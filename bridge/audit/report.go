package audit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// ReportOptions say what a report is about.
type ReportOptions struct {
	From, Until time.Time     // the period; zero means from the beginning, to now
	Now         time.Time     // when it is written
	Verified    ledger.Report // of the whole log
	Against     bool          // it was verified against a checkpoint from elsewhere
}

// WriteReport writes, as Markdown, what an auditor asks about a period: is the log
// complete and unaltered, who approved what, what was refused and why, of which calls
// the outcome is unknown, and how the policy changed. Rows are those of the period.
func WriteReport(w io.Writer, rows Rows, o ReportOptions) error {
	var verdicts, void, refusals, config, events []ledger.Row
	type person struct{ name, channel string }
	type tally struct{ yes, no int }
	people := map[person]*tally{}
	open := map[string]ledger.Row{}
	stats, err := Measure(func(yield func(ledger.Row, error) bool) {
		for row, err := range rows {
			r := row.Record
			switch {
			case err != nil:
			case r.Event == ledger.Verdict:
				if !counts(r) {
					void = append(void, row)
					break
				}
				verdicts = append(verdicts, row)
				who := person{cmp.Or(by(r), "nobody"), r.Channel}
				if people[who] == nil {
					people[who] = &tally{}
				}
				if approved(r) {
					people[who].yes++
				} else {
					people[who].no++
				}
			case r.Event == ledger.Refusal:
				refusals = append(refusals, row)
			case r.Event == ledger.Intent:
				open[trace(r)] = row
			case r.Event == ledger.Outcome:
				delete(open, trace(r))
				if r.Outcome == ledger.Unknown {
					open[trace(r)] = row
				}
			case r.Event == ledger.ConfigChanged:
				config = append(config, row)
			case r.Event == ledger.BridgeStarted, r.Event == ledger.BridgeEnded, r.Event == ledger.Pruned, r.Event == ledger.Repaired, r.Event == ledger.Granted, r.Event == ledger.Revoked, r.Event == ledger.Lapsed,
				r.Event == ledger.ToolChanged, r.Event == ledger.ToolAccepted, r.Event == ledger.ToolBlocked:
				events = append(events, row)
			}
			if !yield(row, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	p := &printer{w: w}
	from, until := "the beginning", o.Now.Local().Format(timeFormat)
	if !o.From.IsZero() {
		from = o.From.Local().Format(timeFormat)
	}
	if !o.Until.IsZero() {
		until = o.Until.Local().Format(timeFormat)
	}
	p.f("# Audit report\n\nFrom %s to %s. Written %s.\n", from, until, o.Now.Local().Format(timeFormat))
	writeWhole(p, o)

	q := stats.Questions
	p.f("\n## Summary\n\n| | |\n| --- | --- |\n")
	for _, row := range []struct {
		what string
		n    int
	}{
		{"runs", stats.Runs.All}, {"runs without an end", stats.Runs.Open},
		{"calls", stats.Calls.All}, {"done", stats.Calls.Done}, {"failed", stats.Calls.Failed}, {"refused", stats.Calls.Refused}, {"outcome unknown", stats.Calls.Unknown},
		{"questions", q.Asked}, {"yes by a person", q.Yes}, {"no by a person", q.No}, {"yes by an earlier yes", q.Remembered}, {"yes for want of a way to ask", q.Fallback},
	} {
		p.f("| %s | %d |\n", row.what, row.n)
	}

	p.f("\n## Who decided\n\n")
	var who [][]string
	for k, t := range people {
		who = append(who, []string{k.name, k.channel, fmt.Sprint(t.yes), fmt.Sprint(t.no)})
	}
	slices.SortFunc(who, slices.Compare)
	p.table([]string{"approver", "channel", "yes", "no"}, who)

	p.f("\n## Verdicts\n\n")
	answers := []string{"time", "run, call", "tool", "risk", "answer", "approver", "channel", "reason"}
	answered := func(r ledger.Record) []string {
		return []string{at(r), trace(r), r.Path(), r.Risk, said(r), by(r), r.Channel, words(r)}
	}
	p.table(answers, each(verdicts, answered))

	p.f("\n## Verdicts that did not count\n\n")
	p.table(answers, each(void, answered))

	p.f("\n## Refused calls\n\n")
	p.table([]string{"time", "run, call", "profile", "tool", "risk", "why"}, each(refusals, func(r ledger.Record) []string {
		return []string{at(r), trace(r), r.Profile, r.Path(), r.Risk, r.Error}
	}))

	p.f("\n## Calls whose outcome is not known\n\n")
	var unknown []ledger.Row
	for _, row := range open {
		unknown = append(unknown, row)
	}
	slices.SortFunc(unknown, func(a, b ledger.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	p.table([]string{"time", "run, call", "tool", "arguments"}, each(unknown, func(r ledger.Record) []string {
		return []string{at(r), trace(r), r.Path(), string(r.Args)}
	}))

	p.f("\n## Changes of the configuration\n\n")
	p.table([]string{"time", "state", "policy", "what"}, each(config, func(r ledger.Record) []string {
		return []string{at(r), configState(r), r.Revision, join("; ", append(r.Reasons, firstLine(r.Error))...)}
	}))

	p.f("\n## Other events\n\n")
	p.table([]string{"time", "event", "what"}, each(events, func(r ledger.Record) []string {
		return []string{at(r), string(r.Event), join(" ", r.Client, r.Path(), r.Answer, string(r.Detail))}
	}))
	return p.err
}

func writeWhole(p *printer, o ReportOptions) {
	p.f("\n## The log\n\n")
	v := o.Verified
	if v.Whole {
		p.f("The whole log was verified: rows %d to %d are what was written, in their order. The last hash is `%s`.\n", v.First, v.Last, v.Hash)
	} else {
		p.f("**The log is not what was written**: %s.\n", markdown(v.Message))
	}
	if o.Against {
		p.f("It was compared with a checkpoint kept elsewhere.\n")
	} else {
		p.f("It was not compared with a checkpoint kept elsewhere: an older copy of the whole log, or one written anew with its key, would not be noticed.\n")
	}
}

func at(r ledger.Record) string { return r.Time.Local().Format(timeFormat) }

// each makes cells of rows.
func each(rows []ledger.Row, cells func(ledger.Record) []string) [][]string {
	var all [][]string
	for _, row := range rows {
		all = append(all, cells(row.Record))
	}
	return all
}

// table writes a table of Markdown; the cells are texts of records.
func (p *printer) table(head []string, rows [][]string) {
	if len(rows) == 0 {
		p.f("None.\n")
		return
	}
	p.f("| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, row := range rows {
		for i, text := range row {
			row[i] = markdown(canon.Fit(text, 300))
		}
		p.f("| %s |\n", strings.Join(row, " | "))
	}
}

// markdown escapes everything in a text that could begin mark-up, a link, a tag or a
// table cell.
func markdown(text string) string {
	var b strings.Builder
	text = Shown(text)
	digit := func(i int) bool { return 0 <= i && i < len(text) && '0' <= text[i] && text[i] <= '9' }
	for i, r := range text {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == ':' && !(digit(i-1) && digit(i+1)): // a bare address becomes a link without any mark-up; a time does not
			b.WriteString("&#58;")
		case r == '@':
			b.WriteString("&#64;")
		case strings.ContainsRune("\\`*_{}[]()#|~>$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(b.String(), "www.", "www&#46;")
}
