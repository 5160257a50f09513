package wording

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// A phrase is one of our sentences, or a part of one, with text that others wrote
// in it: plain for a page or a terminal, which tell the two apart in their own
// way, and dialog for a dialog, where the text of others is written as JSON
// strings in code spans.
type phrase struct{ plain, dialog string }

// The space of our sentences in a dialog.
const (
	promptWidth = 72 // columns of a row; the client wraps longer lines
	promptLong  = 2  // rows of a sentence with a list or much text of others in it
	theirsWidth = 60 // columns of others' text within a sentence, usually
)

// say makes a phrase. Strings among args were written by others and have passed
// canon.Escape; everything else is ours.
func say(format string, args ...any) phrase {
	plain, dialog := make([]any, len(args)), make([]any, len(args))
	for i, arg := range args {
		plain[i], dialog[i] = arg, arg
		switch a := arg.(type) {
		case string:
			dialog[i] = theirs(a)
		case phrase:
			plain[i], dialog[i] = a.plain, a.dialog
		}
	}
	return phrase{fmt.Sprintf(format, plain...), fmt.Sprintf(format, dialog...)}
}

// ours marks a string among the arguments of say as our own.
type ours string

// words turns a text of ours that may contain a name of others' into an argument
// of say: it counts as ours only if it consists of words that every reader shows
// unchanged, and is no longer than a sentence of ours.
func words(shown string) any {
	if len(shown) <= promptLong*promptWidth && plainWords.MatchString(shown) {
		return ours(shown)
	}
	return shown
}

var plainWords = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ,;:()'-]*$`)

// plains returns phrases as a page or a terminal shows them.
func plains(all []phrase) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.plain)
	}
	return texts
}

// dialogs returns phrases as a dialog shows them.
func dialogs(all []phrase) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.dialog)
	}
	return texts
}

// theirs writes text of others for use within a sentence.
func theirs(shown string) string { return theirsWithin(shown, theirsWidth) }

func theirsWithin(shown string, width int) string {
	whole := canon.Span(canon.Literal(shown))
	if columns(whole) <= width {
		return whole
	}
	return clipped(shown, width)
}

// called writes the name of a profile or an argument: as it is if it is a plain word,
// which every reader shows unchanged.
func called(shown string) ours {
	if len(shown) <= maxFieldName && plainName.MatchString(shown) {
		return ours(shown)
	}
	return ours(theirs(shown))
}

// argument makes the name of an argument an argument of say.
func argument(name string) phrase {
	shown := canon.Escape(name)
	if len(shown) <= theirsWidth && dottedName.MatchString(shown) && !plainName.MatchString(shown) {
		return phrase{shown, canon.Span(shown)}
	}
	return phrase{shown, string(called(shown))}
}

// dottedName matches the names of arguments within others, such as edits[0].newText.
var dottedName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(\[[0-9]+\]|\.[A-Za-z0-9_-]+)*$`)

// named makes the name of a tool, a server or a profile, in display form, an argument
// of say. One of letters, digits and a few marks needs no quotes: nothing else looks
// like it. Any other stands in quotes everywhere.
func named(shown string) phrase {
	if len(shown) <= theirsWidth && identifier.MatchString(shown) {
		return phrase{shown, canon.Span(shown)}
	}
	return phrase{canon.Literal(shown), theirs(shown)}
}

// identifier matches names that consist of one word.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_.:@-]+[A-Za-z0-9]+)*$`)

// plainName matches names that mean nothing in Markdown: no underscore in them begins
// or ends a word.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*$`)

// clipped keeps the beginning and the end of a text, because what matters in a
// path or a command often comes last. In between it says how much is left out.
func clipped(shown string, width int) string {
	all := units(shown)
	n := canon.Counted(len(all), "character")
	return ends(all, width, func(left int) string { return "(" + canon.Counted(left, "character") + " left out)" }, "("+n+" left out)")
}

// ends returns as much of the beginning and the end of a text as fits into width
// columns, with between's mark for what is left out; if nothing fits, none.
func ends(all []string, width int, between func(left int) string, none string) string {
	return endsWith(all, width, 1.0/3, between, none)
}

// endsWith is ends with the end's share of the room.
func endsWith(all []string, width int, share float64, between func(left int) string, none string) string {
	for keep := width - columns(between(len(all))) - len("``  ``"); keep > 4; keep = keep * 3 / 4 {
		behind := int(math.Ceil(float64(keep) * share))
		head, tail := first(all, keep-behind), last(all, behind)
		if head == 0 || tail == 0 || head+tail >= len(all) {
			break
		}
		text := span(all[:head]) + " " + between(len(all)-head-tail) + " " + span(all[len(all)-tail:])
		if columns(text) <= width {
			return text
		}
	}
	return none
}

// beginning returns as much of the beginning of a text as fits into width
// columns, with a mark for the rest.
func beginning(all []string, width int) string {
	for keep := width - len("`` ") - columns(cutMark); keep > 4; keep = keep * 3 / 4 {
		if text := span(all[:first(all, keep)]) + " " + cutMark; columns(text) <= width {
			return text
		}
	}
	return cutMark
}

// cutMark stands for an omitted part of an argument whose size has already been
// given.
const cutMark = "…"

// escapes matches the escape of an invisible character in display form.
var escapes = regexp.MustCompile(`\\[ux]\{[0-9A-F]+\}`)

// units splits a text in display form into its characters, each as it is written
// there.
func units(shown string) []string {
	var all []string
	for i := 0; i < len(shown); {
		size := 0
		if at := escapes.FindStringIndex(shown[i:min(len(shown), i+12)]); at != nil && at[0] == 0 {
			size = at[1]
		} else {
			_, size = utf8.DecodeRuneInString(shown[i:])
		}
		all = append(all, shown[i:i+size])
		i += size
	}
	return all
}

// span writes units as JSON strings in code spans. What is hidden among them stands
// between these, in words of ours: it never reads as a part of the text.
func span(units []string) string { return spanned(units, canon.Span) }

func spanned(units []string, quote func(string) string) string {
	var parts []string
	begin := 0
	for i, unit := range units {
		note, isHidden := strings.CutPrefix(unit, hiddenUnit)
		if !isHidden {
			continue
		}
		if i > begin {
			parts = append(parts, quote(canon.Literal(strings.Join(units[begin:i], ""))))
		}
		parts, begin = append(parts, note), i+1
	}
	if begin < len(units) || len(units) == 0 {
		parts = append(parts, quote(canon.Literal(strings.Join(units[begin:], ""))))
	}
	return strings.Join(parts, " ")
}

// hiddenUnit begins the unit that stands for a hidden part: it is in no text in display
// form. What follows it is what people read.
const hiddenUnit = "\x00"

// hiddenMark matches what canon.Display writes for a hidden value. Arguments cannot
// contain it: their own [hidden is escaped.
var hiddenMark = regexp.MustCompile(`\[hidden(?:: looks like (an? [A-Za-z ]+)[^\]\n]*|[^\]\n]*)\]`)

// unitsHiding splits a text in display form like units, with a unit for each part
// that is hidden.
func unitsHiding(shown string) []string {
	var all []string
	at := 0
	for _, m := range hiddenMark.FindAllStringSubmatchIndex(shown, -1) {
		what := "a secret"
		if m[2] >= 0 {
			what = shown[m[2]:m[3]]
		}
		all = append(append(all, units(shown[at:m[0]])...), hiddenUnit+"("+what+" is hidden here)")
		at = m[1]
	}
	return append(all, units(shown[at:])...)
}

// unitColumns returns the width of a unit in a literal.
func unitColumns(unit string) int {
	if note, isHidden := strings.CutPrefix(unit, hiddenUnit); isHidden {
		return columns(note) + len("`\" \"`")
	}
	return columns(canon.Literal(unit)) - 2
}

// first returns how many units, counted from the first, fit into n columns; a
// mark stays with its letter.
func first(units []string, n int) int {
	fit := 0
	for fit < len(units) {
		if n -= unitColumns(units[fit]); n < 0 {
			break
		}
		fit++
	}
	for fit > 0 && fit < len(units) && isMarkUnit(units[fit]) {
		fit--
	}
	return fit
}

// last is like first, but counts from the end.
func last(units []string, n int) int {
	fit := 0
	for fit < len(units) {
		if n -= unitColumns(units[len(units)-1-fit]); n < 0 {
			break
		}
		fit++
	}
	for fit > 0 && isMarkUnit(units[len(units)-fit]) {
		fit--
	}
	return fit
}

func isMarkUnit(unit string) bool {
	c, _ := utf8.DecodeRuneInString(unit)
	return isLetterMark(c)
}

// listed joins as many whole items as fit into n columns after lead, and counts
// the rest.
func listed(lead string, items []string, between, noun string, n int) string {
	for k := min(len(items), n); k > 0; k-- {
		text := lead + strings.Join(items[:k], between)
		if k < len(items) {
			text += " and " + canon.Counted(len(items)-k, "more "+noun)
		}
		if columns(text) <= n {
			return text
		}
	}
	return lead + canon.Counted(len(items), noun)
}

// rows returns how many lines of a dialog a text takes.
func rows(s string) int { return max(1, (columns(s)+promptWidth-1)/promptWidth) }

const maxFieldName = 24
