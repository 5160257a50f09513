package approval

import (
	"fmt"
	"strings"

	"golang.org/x/text/width"
)

// What a prompt may take up: terminal clients show it in a small window. It
// has at most 20 lines, or 25 for several calls.
const (
	promptWidth    = 72
	promptLines    = 20
	promptArgs     = 5 // lines of arguments, at least
	promptWarnings = 4 // lines of them
	promptWraps    = 2 // lines of a sentence that may be long
)

// Prompt writes the description as a person reads it in a client's dialog:
// lines of plain text, none wider than 72 columns, that nothing from outside
// can break out of or imitate. Lines of arguments begin with two spaces, the
// rest of a sentence with five, warnings with "!"; all others are ours.
func (d Description) Prompt() string {
	var top, bottom []string
	tool := fmt.Sprintf("%s (server %s)", d.Tool, d.Server)
	risk := "risk " + strings.ToUpper(d.Risk)
	if first := d.Headline + "  " + tool; columns(first)+2+len(risk) <= promptWidth {
		top = append(top, first+strings.Repeat(" ", promptWidth-columns(first)-len(risk))+risk)
	} else {
		top = append(top, d.Headline+strings.Repeat(" ", max(2, promptWidth-columns(d.Headline)-len(risk)))+risk, clipMiddle("Tool: "+tool, promptWidth))
	}
	if d.RiskSays != "" {
		top = append(top, d.RiskSays)
	}
	if d.Own {
		top = append(top, clipEnd("Summary: "+d.Summary, promptWidth))
	}
	bottom = append(bottom, d.warningLines()...)
	bottom = append(bottom, wrap("Why: "+strings.Join(d.Why, "; "))...)
	bottom = append(bottom, wrap(d.coversLine())...)
	if len(d.Checks) > 0 {
		bottom = append(bottom, clipEnd("Checked before sending: "+strings.Join(d.Checks, ", "), promptWidth))
	}
	if len(d.Model.Calls) > 0 {
		bottom = append(bottom, d.modelLines()...)
	}
	if d.Model.Says != "" {
		bottom = append(bottom, wrap("A model's summary, unchecked: "+d.Model.Says)...)
	}
	number := 0
	if len(d.Calls) > 0 {
		number = d.Calls[0].Number
	}
	bottom = append(bottom, fmt.Sprintf("Call %d, %d made before. Unanswered at %s = not sent.", number, d.Done, d.Until))
	if d.At != "" {
		bottom = append(bottom, clipEnd("All of it: "+d.At, promptWidth))
	}
	room := max(promptArgs, promptLines-len(top)-len(bottom))
	lines := append(top, d.argumentLines(room)...)
	return strings.Join(append(lines, bottom...), "\n")
}

func (d Description) coversLine() string {
	text := d.Covers
	if len(d.Needs) > 0 {
		text += " It needs " + strings.Join(d.Needs, ", and ") + "."
	}
	if d.Missing != "" {
		text += " So far: " + d.Missing + "."
	}
	return text
}

// modelLines are the calls that the script seems to make: whole names, as many
// as fit.
func (d Description) modelLines() []string {
	const lead = "Written by the model, unchecked: its script has "
	all := d.Model.Calls
	for n := len(all); n > 0; n-- {
		text := lead + strings.Join(all[:n], ", ")
		if n < len(all) {
			text += " and " + Counted(len(all)-n, "more tool")
		}
		lines := wrap(text)
		var whole []string
		for _, line := range lines {
			whole = append(whole, strings.TrimSpace(line))
		}
		if strings.Join(whole, " ") == text {
			return lines
		}
	}
	return wrap(lead + strings.Join(all, ", ")) // a name that is too long by itself
}

// warningLines are the warnings, as far as they fit.
func (d Description) warningLines() []string {
	var lines []string
	for i, w := range d.Warnings {
		more := wrap("! " + w)
		if left := len(d.Warnings) - i - 1; len(lines)+len(more) > promptWarnings || left > 0 && len(lines)+len(more) == promptWarnings {
			return append(lines, fmt.Sprintf("! and %s", Counted(left+1, "more warning")))
		}
		lines = append(lines, more...)
	}
	return lines
}

// argumentLines are the arguments in about room lines. Of several calls each
// has its own: maxItems is as many as fit.
func (d Description) argumentLines(room int) []string {
	if len(d.Calls) != 1 {
		var lines []string
		for _, c := range d.Calls {
			var values []string
			for _, f := range c.Fields {
				value := f.oneLine()
				if strings.Contains(value, ", ") {
					value = f.value // in quotes: it could look like more arguments
				}
				values = append(values, f.Name+" "+value)
			}
			lines = append(lines, clipMiddle(fmt.Sprintf("  #%d %s", c.Number, strings.Join(values, ", ")), promptWidth))
		}
		return lines
	}
	fields := d.Calls[0].Fields
	if len(fields) == 0 {
		return []string{"  no arguments"}
	}
	var lines []string
	label := 8
	for _, f := range fields[:min(len(fields), room)] {
		label = max(label, min(columns(f.Name), 14))
	}
	for i, f := range fields {
		left := len(fields) - i - 1
		if i == room-1 && left > 0 {
			return append(lines, fmt.Sprintf("  and %s", Counted(left+1, "more argument")))
		}
		name := "  " + f.Name + strings.Repeat(" ", max(0, label-columns(f.Name))) + "  "
		if !f.Text || len(f.Lines) == 1 {
			lines = append(lines, name+f.brief(promptWidth-columns(name)))
			continue
		}
		lines = append(lines, f.textLines(name, room-len(lines)-left)...)
	}
	return lines
}

// textLines are a text of several lines: how much it is, then its first lines
// and its last.
func (f Field) textLines(name string, room int) []string {
	body := f.Lines
	show := min(len(body), max(room-1, 1))
	if show < len(body) && show > 2 {
		show-- // a line says what is left out
	}
	if show < 2 {
		return []string{name + f.brief(promptWidth-columns(name))}
	}
	head := fmt.Sprintf("%s%s, %s", name, Counted(f.Characters, "character"), Counted(len(body), "line"))
	if show < len(body) {
		head += fmt.Sprintf(", %d shown", show)
	}
	lines := []string{clipEnd(head+":", promptWidth)}
	for i, line := range body {
		switch {
		case i < show-1, i == len(body)-1:
			lines = append(lines, clipMiddle("  | "+line, promptWidth))
		case i == show-1 && len(body) > show && room > 3:
			lines = append(lines, fmt.Sprintf("  … %s", Counted(len(body)-show, "more line")))
		}
	}
	return lines
}

// clipEnd cuts the end off a text that is wider than width columns, and says
// how much.
func clipEnd(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	head := firstColumns(s, width-len("… 1000000 more"))
	return fmt.Sprintf("%s… %d more", head, len([]rune(s))-len([]rune(head)))
}

// wrap breaks a sentence into lines, between words where it can, and cuts off
// what does not fit into as many as there may be.
func wrap(s string) []string {
	const indent = "     "
	var lines []string
	for len(lines) < promptWraps-1 && columns(s) > promptWidth {
		head := firstColumns(s, promptWidth)
		if at := strings.LastIndexByte(head, ' '); at > len(head)/2 {
			head = head[:at]
		}
		lines = append(lines, head)
		s = indent + strings.TrimLeft(s[len(head):], " ")
	}
	return append(lines, clipEnd(s, promptWidth))
}

// columnsOf is how wide a terminal shows a character.
func columnsOf(c rune) int {
	if isLetterMark(c) {
		return 0
	}
	switch width.LookupRune(c).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func columns(s string) int {
	n := 0
	for _, c := range s {
		n += columnsOf(c)
	}
	return n
}

// firstColumns is as much of s as fits into n columns.
func firstColumns(s string, n int) string {
	for i, c := range s {
		if n -= columnsOf(c); n < 0 {
			return s[:i]
		}
	}
	return s
}
