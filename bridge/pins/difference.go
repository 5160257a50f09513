package pins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
)

// A Part is one part of a definition that differs.
type Part struct {
	What string `json:"what"` // title, description, input schema, output schema, annotations, definition
	// Lines begin with "-" for what was, "+" for what is, " " for what stayed, and
	// "!" for our remarks. What the server wrote is safe to show: invisible
	// characters and letters that pass for others are spelled out, and long lines
	// are cut with a count.
	Lines []string `json:"lines"`
}

const (
	maxLines = 120     // of one part
	maxLine  = 300     // characters of one line
	maxCells = 1 << 20 // of the table that middle fills
	around   = 1       // unchanged lines that are shown on each side of a change
)

// difference returns what differs between two definitions, for people. Was is nil
// if nothing was accepted or, where accepted is set, if that is not kept.
func difference(was *catalog.Definition, accepted bool, is *catalog.Definition) []Part {
	var parts []Part
	if was == nil {
		if accepted {
			parts = append(parts, Part{"definition", []string{"!what was accepted is not kept, because it was too large or odd: all of it is shown as new"}})
		}
		was = &catalog.Definition{}
	}
	for _, one := range []struct {
		what     string
		old, new []string
		remarks  []string
	}{
		{"title", prose(was.Title), prose(is.Title), nil},
		{"description", prose(was.Description), prose(is.Description), nil},
		{"input schema", leaves(was.Input), leaves(is.Input), nil},
		{"output schema", leaves(was.Output), leaves(is.Output), nil},
		{"annotations", hints(was), hints(is), annotationNotices(was, is)},
	} {
		lines := changed(one.old, one.new)
		for _, r := range one.remarks {
			lines = append(lines, "!"+r)
		}
		if len(lines) > 0 {
			parts = append(parts, Part{one.what, lines})
		}
	}
	if len(parts) == 0 { // such as 1 and 1.0, or white space within a text
		parts = append(parts, Part{"definition", []string{"!it differs in bytes that show as nothing"}})
	}
	return parts
}

// prose returns the lines of a text. A long one is broken at the ends of its
// sentences, so that one changed sentence is one changed line.
func prose(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for len(line) > 100 {
			at := strings.Index(line[60:], ". ")
			if at < 0 {
				break
			}
			all, line = append(all, line[:60+at+1]), line[60+at+2:]
		}
		all = append(all, line)
	}
	return all
}

// leaves returns the values of a schema, each on a line with its path:
//
//	properties.path.type: "string"
func leaves(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return []string{"unreadable: " + string(raw)}
	}
	var all []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if object, ok := v.(map[string]any); ok && len(object) > 0 {
			for name, inner := range object {
				walk(path+"."+name, inner)
			}
			return
		}
		text, err := compact(v)
		if err != nil {
			text = "unreadable"
		}
		all = append(all, strings.TrimPrefix(path, ".")+": "+text)
	}
	walk("", v)
	slices.Sort(all)
	return all
}

func compact(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// An annotation is one of the hints that the protocol has about what a tool does.
type annotation struct {
	name  string
	of    func(*catalog.Definition) *bool
	unset bool   // what a hint that is absent means
	safe  bool   // the value that promises less harm
	grown string // the remark when that is no longer promised
	less  string // the remark when it is promised now
}

var annotations = []annotation{
	{"readOnlyHint", func(d *catalog.Definition) *bool { return d.Annotations.ReadOnly }, false, true, "it no longer says that it only reads", "it now says that it only reads"},
	{"destructiveHint", func(d *catalog.Definition) *bool { return d.Annotations.Destructive }, true, false, "it no longer says that it destroys nothing", "it now says that it destroys nothing"},
	{"idempotentHint", func(d *catalog.Definition) *bool { return d.Annotations.Idempotent }, false, true, "it no longer says that a repeated call changes nothing more", "it now says that a repeated call changes nothing more"},
	{"openWorldHint", func(d *catalog.Definition) *bool { return d.Annotations.OpenWorld }, true, false, "it no longer says that it stays on this machine", "it now says that it reaches nothing outside"},
}

func hints(d *catalog.Definition) []string {
	var all []string
	for _, a := range annotations {
		if v := a.of(d); v != nil {
			all = append(all, a.name+": "+strconv.FormatBool(*v))
		}
	}
	return all
}

// annotationNotices returns remarks on annotations whose meaning changed.
func annotationNotices(was, is *catalog.Definition) []string {
	var all []string
	if was.Name == "" {
		return nil // there was no definition
	}
	worth := func(a annotation, d *catalog.Definition) bool {
		if v := a.of(d); v != nil {
			return *v
		}
		return a.unset
	}
	for _, a := range annotations {
		before, after := worth(a, was), worth(a, is)
		switch {
		case before == after:
		case after == a.safe:
			all = append(all, a.name+": "+a.less+", which nobody has checked")
		default:
			all = append(all, a.name+" loosens: "+a.grown)
		}
	}
	return all
}

// changed returns the lines that differ, with those around them, as they are shown.
func changed(was, is []string) []string {
	start := 0
	for start < len(was) && start < len(is) && was[start] == is[start] {
		start++
	}
	end := 0
	for end < len(was)-start && end < len(is)-start && was[len(was)-1-end] == is[len(is)-1-end] {
		end++
	}
	if start == len(was) && start == len(is) {
		return nil
	}
	var lines []string
	for _, same := range was[max(0, start-around):start] {
		lines = append(lines, " "+same)
	}
	lines = append(lines, middle(was[start:len(was)-end], is[start:len(is)-end])...)
	for _, same := range was[len(was)-end : min(len(was), len(was)-end+around)] {
		lines = append(lines, " "+same)
	}
	for i, line := range lines {
		lines[i] = line[:1] + shown(line[1:])
	}
	if left := len(lines) - maxLines; left > 0 {
		lines = append(lines[:maxLines], fmt.Sprintf("!and %d more lines", left))
	}
	return lines
}

// texts returns all of a definition that a model may read as text, safe to show and not
// cut: of schemas not what only gives a value its type or bounds.
func texts(d catalog.Definition) []Part {
	var parts []Part
	for _, one := range []struct {
		what  string
		lines []string
	}{{"title", prose(d.Title)}, {"description", prose(d.Description)}, {"input schema", telling(leaves(d.Input))}, {"output schema", telling(leaves(d.Output))}} {
		var lines []string
		for _, line := range one.lines {
			lines = append(lines, "+"+spelled(canon.Escape(line)))
		}
		if len(lines) > 0 {
			parts = append(parts, Part{one.what, lines})
		}
	}
	return parts
}

// Telling returns of a difference what texts has of a definition; its lines may be cut.
func Telling(parts []Part) []Part {
	var all []Part
	for _, part := range parts {
		if strings.HasSuffix(part.What, "schema") {
			part.Lines = telling(part.Lines)
		}
		if part.What != "annotations" && len(part.Lines) > 0 {
			all = append(all, part)
		}
	}
	return all
}

var structural = []string{
	"type", "format", "required", "additionalProperties", "$schema", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "nullable",
}

// telling leaves out of the lines of a schema those that only give a type or bounds. A
// long one may say anything.
func telling(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		path, value, _ := strings.Cut(strings.TrimLeft(line, "+-! "), ": ")
		return value == "{}" || len(value) <= 100 && slices.Contains(structural, path[strings.LastIndex(path, ".")+1:])
	})
}

// middle returns a shortest difference between two lists of lines. Where computing
// it would cost too much, it removes all old lines and adds all new ones.
func middle(was, is []string) []string {
	var lines []string
	add := func(mark string, all []string) {
		for _, l := range all {
			lines = append(lines, mark+l)
		}
	}
	if len(was)*len(is) > maxCells {
		add("-", was)
		add("+", is)
		return lines
	}
	// common[i][j] is how many lines was[i:] and is[j:] have in common, in order.
	common := make([][]int, len(was)+1)
	for i := range common {
		common[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); was[i] == is[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(was) || j < len(is); {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			lines = append(lines, " "+was[i])
			i, j = i+1, j+1
		case j == len(is) || i < len(was) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "-"+was[i])
			i++
		default:
			lines = append(lines, "+"+is[j])
			j++
		}
	}
	return lines
}

// shown returns a line as people see it: invisible characters and letters that pass
// for others spelled out, and cut with a count if it is long.
func shown(line string) string {
	n := utf8.RuneCountInString(line)
	if n > maxLine {
		line = string([]rune(line)[:maxLine])
	}
	line = spelled(canon.Escape(line))
	if n > maxLine {
		line += fmt.Sprintf("… %d characters more", n-maxLine)
	}
	return line
}

// spelled spells out the letters of other scripts in words that also have Latin
// ones: what looks like "filesystem" may have a Cyrillic letter in it.
func spelled(text string) string {
	var b strings.Builder
	for _, word := range canon.Words(text) {
		if !canon.Mixed(word) {
			b.WriteString(word)
			continue
		}
		for _, r := range word {
			if unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) || canon.Wide(r) {
				fmt.Fprintf(&b, `\u{%X}`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// notices returns what a person should know about a definition before they read it.
func notices(d catalog.Definition) []string {
	var all []string
	texts := slices.Concat([]string{d.Name, d.Title, d.Description}, leaves(d.Input), leaves(d.Output))
	hidden, words := 0, []string{}
	for _, text := range texts {
		for _, r := range text {
			if r > 0x7f && (unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || unicode.IsControl(r)) || r == 0x1b || r == 0x7f {
				hidden++
			}
		}
		for _, word := range canon.Words(text) {
			if canon.Mixed(word) && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	if hidden > 0 {
		all = append(all, fmt.Sprintf("it has characters that nobody sees: %d, written as \\u{...} here", hidden))
	}
	for i, word := range words {
		if i == 3 {
			all = append(all, fmt.Sprintf("and %d more such words", len(words)-i))
			break
		}
		all = append(all, "letters of two scripts in one word, which may pass for another: "+spelled(canon.Escape(word)))
	}
	if strings.ContainsFunc(d.Name, func(r rune) bool { return r > 0x7e || r < '!' }) {
		all = append(all, "its name has characters that names of tools usually don't have: "+strconv.QuoteToASCII(d.Name))
	}
	if n := utf8.RuneCountInString(d.Description); n > 4000 {
		all = append(all, fmt.Sprintf("its description is very long: %d characters", n))
	}
	return all
}
