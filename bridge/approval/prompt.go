package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// What a prompt may take up: terminal clients show it in a small window. It
// has at most 16 lines, or 20 for several calls.
const (
	promptWidth = 72
	promptArgs  = 6 // lines of arguments
	promptWraps = 2 // lines of a sentence that may be long
)

// Prompt writes a request as a person reads it in a client's dialog. It is
// made only from the frozen calls, in lines of plain text that no argument can
// break out of; what a model wrote stands apart and says so.
func (r Request) Prompt() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(clip(fmt.Sprintf(format, args...), promptWidth) + "\n")
	}
	sentence := func(format string, args ...any) {
		for _, l := range wrap(fmt.Sprintf(format, args...)) {
			line("%s", l)
		}
	}
	what := "Send this call?"
	if n := len(r.Items); n > 1 {
		what = fmt.Sprintf("Send these %d calls?", n)
	}
	line("%s  risk %s", what, strings.ToUpper(r.Decision.Risk.String()))
	line("tool     %s (server %s)", canon.Visible(r.Tool), canon.Visible(r.Server))
	if len(r.Items) == 1 {
		for _, l := range argumentLines(r.Items[0].Shown.JSON) {
			line("%s", l)
		}
	} else {
		for _, item := range r.Items { // each of them: maxItems is as many as fit
			line("%s", clipValue(fmt.Sprintf("  #%d ", item.Call), item.Shown.JSON))
		}
	}
	if hidden, cut := r.sum(func(s canon.Shown) int { return s.Hidden }), r.sum(func(s canon.Shown) int { return s.Cut }); hidden+cut > 0 {
		line("! %d values hidden as secrets, %d shortened", hidden, cut)
	}
	sentence("Why: %s", r.Why())
	if len(r.Checks) > 0 {
		line("Checked before sending: %s", strings.Join(r.Checks, ", "))
	}
	switch {
	case r.Decision.Remember:
		line("Yes covers what you choose below.")
	case len(r.Items) > 1:
		line("Yes sends these %d calls, once.", len(r.Items))
	default:
		line("Yes sends this one call.")
	}
	if preview := previewLine(r.Preview); preview != "" {
		sentence("Written by the model, unchecked: its script has %s", preview)
	}
	line("Call %d, %d made before. Unanswered at %s (%s) = not sent.", r.Items[0].Call, r.Done, r.Until.Format("15:04:05"), left(r))
	return strings.TrimRight(b.String(), "\n")
}

// left says how long the person has, counted from when it was asked.
func left(r Request) string { return r.Until.Sub(r.Asked).Round(1e9).String() }

func (r Request) sum(of func(canon.Shown) int) int {
	n := 0
	for _, i := range r.Items {
		n += of(i.Shown)
	}
	return n
}

// Why says in words why the call is asked for.
func (r Request) Why() string {
	var words []string
	for _, reason := range r.Decision.Reasons {
		if reason.Disposition == profiles.Ask || reason.Kind == profiles.KindRisk {
			words = append(words, reason.String())
		}
	}
	text := strings.Join(words, "; ")
	if p := r.Decision.Profile; p != "" && !strings.Contains(text, "profile "+p) {
		text += ", profile " + r.Decision.Profile
	}
	return canon.Visible(text)
}

// argumentLines writes arguments one to a line, the first few.
func argumentLines(shown []byte) []string {
	d := json.NewDecoder(bytes.NewReader(shown))
	var lines []string
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return []string{clipValue("args     ", shown)}
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		lines = append(lines, clipValue(fmt.Sprintf("  %-10s ", shownKey(key.(string))), value))
	}
	switch n := len(lines); {
	case n > promptArgs:
		lines = append(lines[:promptArgs-1], fmt.Sprintf("  and %d more arguments", n-promptArgs+1))
	case n == 0:
		lines = append(lines, "  no arguments")
	}
	return lines
}

// shownKey is an argument's name as it stands in a line: in quotes unless it
// is a plain word, so that no name can look like a name with its value.
func shownKey(key string) string {
	plain := func(c rune) bool {
		return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	if key != "" && strings.TrimFunc(key, plain) == "" {
		return key
	}
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false) // <, > and & are shown as they are
	if e.Encode(key) != nil {
		return "?"
	}
	// The name was decoded from display form, which is visible but for line
	// feeds and tabs; those are escapes again now.
	return clip(strings.TrimSuffix(quoted.String(), "\n"), promptWidth/3)
}

// previewLine lists the script's other calls.
func previewLine(p analysis.Report) string {
	counts := map[string]int{}
	loops := map[string]bool{}
	for _, c := range p.Calls {
		name := c.Name
		if name == "" {
			name = "a call of a computed name"
		}
		counts[name]++
		loops[name] = loops[name] || c.Loop
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	var parts []string
	for _, name := range names {
		part := canon.Visible(name)
		if counts[name] > 1 {
			part += fmt.Sprintf(" x%d", counts[name])
		}
		if loops[name] {
			part += " in a loop"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// clipMark is the room that is kept for saying what was left out.
const clipMark = 16

// clip cuts the end off a text that is wider than width, and says how much.
func clip(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	keep := width - clipMark
	return fmt.Sprintf("%s… %d more", string(runes[:keep]), len(runes)-keep)
}

// clipValue writes a value after its label, on one line. Of a long one it
// keeps both ends: what matters in a path or a command often comes last.
func clipValue(label string, shown []byte) string {
	runes := []rune(strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(string(shown)))
	room := promptWidth - len([]rune(label))
	if len(runes) <= room {
		return label + string(runes)
	}
	keep := room - clipMark
	head := keep * 2 / 3
	tail := len(runes) - (keep - head)
	for tail < len(runes) && unicode.IsMark(runes[tail]) {
		tail++ // its letter is cut off
	}
	return fmt.Sprintf("%s%s… %d more …%s", label, string(runes[:head]), tail-head, string(runes[tail:]))
}

// wrap breaks a sentence into lines, between words where it can, and cuts off
// what does not fit into as many as there may be.
func wrap(s string) []string {
	const indent = "     "
	var lines []string
	for runes := []rune(s); len(lines) < promptWraps-1 && len(runes) > promptWidth; runes = []rune(s) {
		at := promptWidth
		for i := promptWidth; i > promptWidth/2; i-- {
			if runes[i] == ' ' {
				at = i
				break
			}
		}
		for at > promptWidth/2 && unicode.IsMark(runes[at]) {
			at-- // a mark stays with its letter
		}
		lines = append(lines, string(runes[:at]))
		s = indent + strings.TrimLeft(string(runes[at:]), " ")
	}
	return append(lines, clip(s, promptWidth))
}
