package approval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// The space a prompt may take: terminal clients show it in a small window. It has
// 20 rows of promptWidth, and at most 25 if there are several calls or many
// warnings.
const (
	promptRows     = 20
	promptMost     = 25
	promptArgs     = 5 // rows of arguments, at least
	promptWarnings = 4 // rows of warnings
)

// Prompt writes the description as a person reads it in a client's dialog. It
// reads the same as plain text, as Markdown, and with its lines joined: clients
// do all three. So it consists of whole sentences of ours, which no reader
// changes, and of text that others wrote, above all the arguments, as JSON
// strings in code spans. A line that begins with "•" has an argument or, of
// several calls, one call; a line that begins with "!" is a warning; all other
// lines are our sentences.
func (d Description) Prompt() string {
	whose := fmt.Sprintf("Tool %s of server %s.", theirs(d.Tool), theirs(d.Server))
	if len(d.Calls) > 0 && d.Calls[0].Tool != "" {
		whose = fmt.Sprintf("Of %s.", theirs(d.Server))
	}
	top := []string{
		d.Headline + " " + whose,
		"Risk " + strings.ToUpper(d.Risk) + strings.TrimPrefix(d.RiskSays, strings.ToUpper(d.Risk[:1])+d.Risk[1:]),
	}
	if d.DidNotCount != "" {
		top = append([]string{"Your last answer did not count: " + d.DidNotCount + "."}, top...)
	}
	if d.Own {
		top = append(top, "Summary: "+theirs(d.Summary)+".")
	}
	long := promptLong*promptWidth - 1
	if len(d.Calls) > promptArgs {
		long = promptWidth - 1
	}
	bottom := []string{listed("Why: ", dialogs(d.said.why), "; ", "reason", long) + ".", d.coversLine()}
	if len(d.Checks) > 0 {
		bottom = append(bottom, listed("Checked before sending: ", spansOf(d.Checks), ", ", "check", long)+".")
	}
	if len(d.Model.said) > 0 {
		bottom = append(bottom, listed("Written by the model, unchecked: its script has ", dialogs(d.Model.said), ", ", "tool", long)+".")
	}
	if d.Model.Says != "" {
		bottom = append(bottom, "A model's summary, unchecked: "+theirsWithin(d.Model.Says, long-len("A model's summary, unchecked: "))+".")
	}
	number := 0
	if len(d.Calls) > 0 {
		number = d.Calls[0].Number
	}
	bottom = append(bottom, fmt.Sprintf("Call %d, %d made before. Unanswered at %s = not sent.", number, d.Done, d.Until))

	taken := promptLong // by the line that says where to read the rest
	for _, line := range slices.Concat(top, bottom) {
		taken += rows(line)
	}
	warnings := d.warningLines(min(promptWarnings, promptMost-taken-max(promptArgs, len(d.Calls))))
	for _, line := range warnings {
		taken += rows(line)
	}
	bottom = append(warnings, bottom...)
	lines := append(append(top, d.argumentLines(max(promptArgs, promptRows-taken))...), bottom...)
	text := strings.Join(lines, "\n")
	at := d.At
	if at == "" && shortened.MatchString(text) {
		at = d.Whole // an argument that contains these words costs a line too many
	}
	switch {
	case at == "":
		return text
	case d.cut():
		return text + "\nAs much of it as is kept: " + canon.Span(at) + "."
	default:
		return text + "\nAll of it: " + canon.Span(at) + "."
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

func (d Description) coversLine() string {
	text := d.Covers
	if len(d.said.needs) > 0 {
		text += " It needs " + strings.Join(dialogs(d.said.needs), ", and ") + "."
	}
	if d.Missing != "" {
		text += " So far: " + theirs(d.Missing) + "."
	}
	return text
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
// calls each has its own line; of more than maxItems, calls from every place in the
// script have one, and the others are counted.
func (d Description) argumentLines(room int) []string {
	var lines []string
	if len(d.Calls) != 1 {
		shown := d.shownCalls()
		for _, c := range shown {
			lines = append(lines, c.line(max(1, room/len(shown))*promptWidth))
		}
		if more := len(d.Calls) - len(shown); more > 0 {
			lines = append(lines, fmt.Sprintf("• And %s.", canon.Counted(more, "more call")))
		}
		return lines
	}
	fields := d.Calls[0].Fields
	if len(fields) == 0 {
		return []string{"• No arguments."}
	}
	for i, f := range fields {
		left := len(fields) - i - 1
		if room <= 1 && left > 0 {
			return append(lines, fmt.Sprintf("• And %s.", canon.Counted(left+1, "more argument")))
		}
		line := f.within("• ", max(1, room-left)*promptWidth)
		lines, room = append(lines, line), room-rows(line)
	}
	return lines
}

// shownCalls returns the calls that a dialog has room for.
func (d Description) shownCalls() []DescribedCall {
	if len(d.Calls) <= maxItems {
		return d.Calls
	}
	type place struct {
		tool string
		line int
	}
	seen, shown := map[place]bool{}, map[int]bool{}
	for _, c := range d.Calls {
		if at := (place{c.Tool, c.Line}); !seen[at] && len(shown) < maxItems {
			seen[at], shown[c.Number] = true, true
		}
	}
	for _, c := range d.Calls {
		if len(shown) < maxItems {
			shown[c.Number] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(d.Calls), func(c DescribedCall) bool { return !shown[c.Number] })
}

// line writes one of several calls in width columns.
func (c DescribedCall) line(width int) string {
	line := fmt.Sprintf("• Call %d: ", c.Number)
	if c.Tool != "" {
		line = fmt.Sprintf("• Call %d, %s: ", c.Number, theirs(c.Tool))
	}
	if len(c.Fields) == 0 {
		return line + "no arguments."
	}
	for i, f := range c.Fields {
		left := len(c.Fields) - i - 1
		more := "and " + canon.Counted(left+1, "more argument")
		room := width - columns(line)
		if left > 0 {
			room -= len(", " + more)
		}
		next := f.within("", room)
		if columns(next) > room {
			return line + more
		}
		if line += next; left > 0 {
			line += ", "
		}
	}
	return line
}

// within writes the argument on one line of about width columns. If it is cut,
// the line says how long the argument is.
func (f Field) within(begin string, width int) string {
	name := theirs(f.key)
	if columns(name) > maxFieldName+len("``") {
		name = clipped(f.key, maxFieldName+len("`` (10,000 characters left out) ``"))
	}
	begin += name + ": "
	if whole := begin + canon.Span(f.json()); columns(whole) <= width && !(f.Text && f.Cut) {
		return whole
	}
	text, size := f.text, ""
	switch {
	case !f.Text:
		text = f.json()
		size = "JSON, " + canon.Counted(utf8.RuneCountInString(text), "character")
		text = canon.Escape(text)
	case f.Cut:
		size = canon.Counted(f.Characters, "character")
	default:
		size = canon.Counted(len(units(text)), "character")
		if len(f.Lines) > 1 {
			size += ", " + canon.Counted(len(f.Lines), "line")
		}
	}
	begin += size + ": "
	if f.Text && f.Cut {
		return begin + beginning(text, width-columns(begin))
	}
	return begin + ends(text, width-columns(begin), func(int) string { return cutMark }, cutMark)
}

// json returns the value as JSON on one line.
func (f Field) json() string {
	if f.Text {
		return canon.Literal(f.text)
	}
	return canon.LiteralJSON([]byte(f.value))
}
