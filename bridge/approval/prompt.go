package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// What a prompt may take up: terminal clients show it in a small window.
const (
	promptWidth = 72
	promptArgs  = 6 // lines of arguments
)

// Prompt writes a request as a person reads it in a client's dialog. It is
// made only from the frozen calls, in lines of plain text that no argument can
// break out of; what a model wrote stands apart and says so.
func (r Request) Prompt() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(clip(fmt.Sprintf(format, args...), promptWidth) + "\n")
	}
	what := "Send this call?"
	if n := len(r.Items); n > 1 {
		what = fmt.Sprintf("Send these %d calls?", n)
	}
	line("%s  risk %s", what, strings.ToUpper(r.Decision.Risk.String()))
	line("tool     %s (server %s)", canon.Visible(r.Tool), r.Server)
	if len(r.Items) == 1 {
		for _, l := range argumentLines(r.Items[0].Shown.JSON) {
			line("%s", l)
		}
	} else {
		for i, item := range r.Items {
			if i == promptArgs {
				line("  and %d more calls", len(r.Items)-i)
				break
			}
			line("  #%d %s", item.Call, oneLine(item.Shown.JSON))
		}
	}
	if hidden, cut := r.sum(func(s canon.Shown) int { return s.Hidden }), r.sum(func(s canon.Shown) int { return s.Cut }); hidden+cut > 0 {
		line("! %d values hidden as secrets, %d shortened", hidden, cut)
	}
	line("Why: %s", r.Why())
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
		line("Written by the model, unchecked: its script has %s", preview)
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
	if r.Decision.Profile != "" {
		text += ", profile " + r.Decision.Profile
	}
	return canon.Visible(text)
}

// argumentLines writes arguments one to a line, the first few.
func argumentLines(shown []byte) []string {
	d := json.NewDecoder(bytes.NewReader(shown))
	var lines []string
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return []string{"args     " + oneLine(shown)}
	}
	more := 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		if len(lines) == promptArgs {
			more++
			continue
		}
		lines = append(lines, fmt.Sprintf("  %-10s %s", oneLine([]byte(key.(string))), oneLine(value)))
	}
	switch {
	case more > 0:
		lines = append(lines, fmt.Sprintf("  and %d more arguments", more))
	case len(lines) == 0:
		lines = append(lines, "  no arguments")
	}
	return lines
}

// oneLine is display JSON on one line, with every line break written out.
func oneLine(shown []byte) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(string(shown))
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

// clip cuts a line to width characters and says that it did.
func clip(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}
