package wording

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// The space a prompt may take: terminal clients show it in a small window. It has
// 12 rows of promptWidth, and at most 25 if there are several calls, many warnings
// or demands on an answer; 32 if there is much to say of each of many calls.
const (
	promptRows     = 12
	promptMost     = 25
	promptSeveral  = 32
	promptArgs     = 5 // rows of arguments, at least
	promptWarnings = 4 // rows of warnings
	sameRows       = 2 // rows of what several calls have in common
	promptCall     = 3 // rows of one of several calls
)

// Prompt writes the description as a person reads it in a client's dialog: the
// question first, then what is not in it. It reads the same as plain text, as
// Markdown, and with its lines joined: clients do all three. So it consists of whole
// sentences of ours, which no reader changes, and of text that others wrote, above
// all the arguments, as JSON strings in code spans. A line that begins with "•" has
// an argument or, of several calls, one call; a line that begins with "!" is a
// warning; all other lines are our sentences.
func (d Description) Prompt() string {
	var top []string
	if d.DidNotCount != "" {
		top = append(top, "Your last answer did not count: "+d.DidNotCount+".")
	}
	top = append(top, d.firstLine())
	if d.Own {
		top = append(top, "Summary: "+theirs(d.Summary)+".")
	}
	long := promptLong*promptWidth - 1
	if len(d.Calls) > promptArgs {
		long = promptWidth - 1
	}
	var bottom []string
	for _, line := range []string{d.reasonLine(), d.needsLine(), d.nextLine(), d.scriptLine(long)} {
		if line != "" {
			bottom = append(bottom, line)
		}
	}
	if d.Model.Says != "" {
		const lead = "A model's summary, unchecked: "
		bottom = append(bottom, lead+theirsWithin(d.Model.Says, long-len(lead))+".")
	}

	taken := rows(d.lastLine("…, "))
	for _, line := range slices.Concat(top, bottom) {
		taken += rows(line)
	}
	needed := min(len(d.Calls), approval.MaxPlaces+1)
	if len(d.said.same) > 0 {
		needed += sameRows
	}
	warnings := d.warningLines(min(promptWarnings, promptMost-taken-max(promptArgs, needed)))
	for _, line := range warnings {
		taken += rows(line)
	}
	room := max(promptArgs, promptRows-taken)
	if len(d.Calls) > 1 {
		room = promptMost - taken
	}
	lines := slices.Concat(top, d.argumentLines(room), warnings, bottom)
	return strings.Join(append(lines, d.lastLine(strings.Join(lines, "\n"))), "\n")
}

// firstLine asks, and says what is known of where the call leads and why its risk is
// high.
func (d Description) firstLine() string {
	text := d.said.question.dialog
	for _, f := range d.said.facts {
		text += " " + capital(f.dialog)
	}
	if d.said.risk.dialog != "" {
		text += " " + d.said.risk.dialog
	}
	if box := capital(say("its server is %s.", d.Box).dialog); strings.HasPrefix(d.Box, "confined") && rows(text+" "+box) == rows(text) {
		text += " " + box // where there is room: it informs, and asks nothing
	}
	return text
}

// reasonLine names the tool, if the question does not, and the rule that asked.
func (d Description) reasonLine() string {
	var parts []string
	if len(d.Calls) > 0 && d.Calls[0].Tool == "" && !strings.HasPrefix(d.said.question.dialog, "Call ") {
		parts = append(parts, "Tool "+named(d.Tool).dialog+".")
	}
	if d.said.rule != "" {
		parts = append(parts, d.said.rule)
	}
	return strings.Join(parts, " ")
}

// lastLine says what silence means, and where all of it can be read if that is on a
// page or if some of it is not here.
func (d Description) lastLine(text string) string {
	last := "No answer by " + d.silence + " means no."
	at := d.At
	if at == "" && shortened.MatchString(text) {
		at = d.Whole // an argument that contains these words costs a line too many
	}
	switch {
	case at == "":
		return last
	case d.cut():
		return last + " As much of it as is kept: " + canon.Span(at) + "."
	default:
		return last + " All of it: " + canon.Span(at) + "."
	}
}

// shortened matches the marks for what is not shown.
var shortened = regexp.MustCompile("(?m) left out\\)|` … `|…$|…, |[Aa]nd [0-9,]+ more ")

// cut reports whether the request itself holds less than will be sent.
func (d Description) cut() bool {
	for _, c := range d.Calls {
		if c.Cut > 0 {
			return true
		}
	}
	return false
}

// needsLine says what else a yes takes; empty if it takes nothing.
func (d Description) needsLine() string {
	text := ""
	if slices.ContainsFunc(d.Calls, func(c DescribedCall) bool { return c.Planned }) {
		text = "A yes to calls to come holds for " + canon.Counted(int(approval.PlanFor.Minutes()), "minute") + ", for exactly these, in this order."
	}
	if len(d.said.needs) > 0 {
		text = strings.TrimLeft(text+" ", " ") + "A yes needs " + strings.Join(dialogs(d.said.needs), ", ") + "."
	}
	if d.Missing != "" {
		text = strings.TrimLeft(text+" So far: "+theirs(d.Missing)+".", " ")
	}
	return text
}

func (d Description) nextLine() string {
	if d.Next == "" {
		return ""
	}
	return "Next: " + d.Next
}

// warningLines returns as many warnings as fit into room rows.
func (d Description) warningLines(room int) []string {
	var lines []string
	used := 0
	for i, w := range d.said.warnings {
		line := "! " + strings.ToUpper(w.dialog[:1]) + w.dialog[1:] + "."
		left := len(d.said.warnings) - i - 1
		if used += rows(line); used > room || left > 0 && used == room {
			return append(lines, fmt.Sprintf("! And %s.", canon.Counted(left+1, "more warning")))
		}
		lines = append(lines, line)
	}
	return lines
}

// argumentLines returns the arguments in about room rows. If there are several
// calls each has its own line; of more than MaxPlaces, calls from every place in the
// script have one, and the others are counted.
func (d Description) argumentLines(room int) []string {
	if len(d.said.rows) == 1 {
		if len(d.Calls[0].Fields) == 0 {
			return []string{"• No arguments."}
		}
		return fieldLines("• ", d.said.rows[0].fields, room)
	}
	var lines []string
	if len(d.said.same) > 0 {
		room -= sameRows
	}
	shown := d.shownCalls()
	width := min(promptCall, max(1, room/max(1, len(shown)))) * promptWidth
	for n, one := range d.said.rows {
		if shown[d.Calls[n].Number] {
			lines = append(lines, one.line(d.Calls[n], width))
		}
	}
	if more := len(d.Calls) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("• And %s.", canon.Counted(more, "more call")))
	}
	return append(lines, fieldLines("• In each: ", d.said.same, sameRows)...)
}

// shownCalls returns the numbers of the calls that a dialog has room for: one of each
// place of the script and each reason to ask, those of the highest risk first, then the
// last call, where a loop has got to, and as many more as there is room for.
func (d Description) shownCalls() map[int]bool {
	type place struct {
		tool string
		line int
	}
	seen, shown := map[place][]approval.Item{}, map[int]bool{}
	order := make([]int, len(d.Calls))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.said.items[b].Decision.Risk, d.said.items[a].Decision.Risk) })
	for _, n := range order {
		at, one := place{d.Calls[n].Tool, d.Calls[n].Line}, d.said.items[n]
		if len(shown) < approval.MaxPlaces && !slices.ContainsFunc(seen[at], one.SameReasons) {
			seen[at] = append(seen[at], one)
			shown[d.Calls[n].Number] = true
		}
	}
	for _, c := range slices.Concat(d.Calls[max(0, len(d.Calls)-1):], d.Calls) {
		if len(shown) < approval.MaxPlaces {
			shown[c.Number] = true
		}
	}
	return shown
}

// fieldLines writes arguments, a line each, in about room rows.
func fieldLines(begin string, fields []Field, room int) (lines []string) {
	for i, f := range fields {
		left := len(fields) - i - 1
		if room <= 1 && left > 0 {
			return append(lines, fmt.Sprintf("%sand %s.", begin, canon.Counted(left+1, "more argument")))
		}
		line := f.line(begin, max(1, room-left)*promptWidth)
		lines, room = append(lines, line), room-rows(line)
	}
	return lines
}

// line writes one of several calls in width columns: each argument that differs is
// named, as far as there is room, and after it as much of its value.
func (one row) line(c DescribedCall, width int) string {
	line, between := fmt.Sprintf("• Call %d: ", c.Number), ""
	if c.Planned {
		line = fmt.Sprintf("• Call %d, to come: ", c.Number)
	}
	if one.begin != "" {
		line, between = line+one.begin, ", "
	}
	if one.begin != "" || len(one.facts) > 0 {
		width = max(width, one.least, 2*promptWidth)
	}
	said := one.said(max(width-columns(line)-len(", and 10,000 more arguments"), width/3))
	width -= columns(said)
	for i, f := range one.fields {
		more := "and " + canon.Counted(len(one.fields)-i, "more argument")
		room, rest := width-columns(line+between), 0
		for _, next := range one.fields[i+1:] {
			if rest += next.least(); rest > room {
				break // there may be thousands
			}
		}
		next := f.line("", max(room-rest, min(room, 30)))
		if columns(next) > room-min(rest, len(", "+more)) {
			if i > 0 || one.begin != "" || len(one.facts) > 0 {
				return line + between + more + said
			}
			next = theirsWithin(f.key, 40) + ": …"
		}
		line, between = line+between+next, ", "
	}
	switch {
	case between != "":
	case one.none:
		line += "no arguments"
	default:
		line += "nothing else"
	}
	return line + said
}

// least is how many columns a row takes at least to name the argument after others.
func (f Field) least() int {
	size := len("1,000 characters: …")
	if f.Characters < size {
		size = min(size, columns(f.whole()))
	}
	return len(", : ") + columns(f.name()) + size
}

// said is what is known of where the values of the call lead, and its risk from high
// on, in room columns.
func (one row) said(room int) string {
	all := dialogs(one.facts)
	if one.risk.dialog != "" {
		all = append([]string{one.risk.dialog}, all...)
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + listed("", all, "; ", "fact", max(room, len("10 more facts"))) + ")"
}
