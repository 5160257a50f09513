package approval

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"

	"golang.org/x/text/width"
)

// A phrase is a sentence of ours, or a part of one, with what others wrote in
// it: for a page or a terminal, which tell the two apart in their own way, and
// for a dialog, where what others wrote stands as JSON strings in code spans.
type phrase struct{ plain, dialog string }

// Theirs at most, in columns of a dialog, within a sentence.
const theirsWidth = 60

// say makes a phrase. Strings among args were written by others, and are in the
// form of canon.Visible; all else is ours.
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

// ours marks a string in the arguments of say as one of ours.
type ours string

// words is a text of ours, which may name something of others, as an argument of
// say: ours where it is of nothing but words that every reader shows as they are.
func words(shown string) any {
	if plainWords.MatchString(shown) {
		return ours(shown)
	}
	return shown
}

var plainWords = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ,;:()"'-]*$`)

// plains are phrases as a page or a terminal shows them.
func plains(all []phrase) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.plain)
	}
	return texts
}

// dialogs are phrases as a dialog shows them.
func dialogs(all []phrase) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.dialog)
	}
	return texts
}

func spansOf(shown []string) []string {
	var all []string
	for _, one := range shown {
		all = append(all, say("%s", words(one)).dialog)
	}
	return all
}

// theirs is a text of others within a sentence.
func theirs(shown string) string { return theirsWithin(shown, theirsWidth) }

func theirsWithin(shown string, width int) string {
	whole := canon.Span(canon.Literal(shown))
	if columns(whole) <= width {
		return whole
	}
	return clipped(shown, width)
}

// clipped is the beginning and the end of a text: what matters in a path or a
// command often comes last. In between stands how much is left out.
func clipped(shown string, width int) string {
	n := Counted(len(units(shown)), "character")
	return ends(shown, width, func(left int) string { return "(" + Counted(left, "character") + " left out)" }, "("+n+" left out)")
}

// ends is as much of the beginning and the end of a text as fits into width
// columns with what stands in between for what is left out; none says that
// nothing fits.
func ends(shown string, width int, between func(left int) string, none string) string {
	all := units(shown)
	for keep := width - columns(between(len(all))) - len("``  ``"); keep > 4; keep = keep * 3 / 4 {
		head, tail := first(all, keep*2/3), last(all, keep-keep*2/3)
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

// beginning is as much of the beginning of a text as fits into width columns
// with the mark for the rest.
func beginning(shown string, width int) string {
	all := units(shown)
	for keep := width - len("`` ") - columns(cutMark); keep > 4; keep = keep * 3 / 4 {
		if text := span(all[:first(all, keep)]) + " " + cutMark; columns(text) <= width {
			return text
		}
	}
	return cutMark
}

// cutMark stands where a part of an argument is left out whose size was said
// before.
const cutMark = "…"

// units are the characters of a text in display form, each as that writes it.
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

func span(units []string) string {
	return canon.Span(canon.Literal(strings.Join(units, "")))
}

// unitColumns is how wide a unit is in a literal.
func unitColumns(unit string) int { return columns(canon.Literal(unit)) - 2 }

// first is how many units from the first fit into n columns; a mark stays with
// its letter.
func first(units []string, n int) int {
	fit := 0
	for fit < len(units) {
		if n -= unitColumns(units[fit]); n < 0 {
			break
		}
		fit++
	}
	for fit > 0 && fit < len(units) && isMark(units[fit]) {
		fit--
	}
	return fit
}

// last is first from the other end.
func last(units []string, n int) int {
	fit := 0
	for fit < len(units) {
		if n -= unitColumns(units[len(units)-1-fit]); n < 0 {
			break
		}
		fit++
	}
	for fit > 0 && isMark(units[len(units)-fit]) {
		fit--
	}
	return fit
}

func isMark(unit string) bool {
	c, _ := utf8.DecodeRuneInString(unit)
	return isLetterMark(c)
}

// listed joins as many items as fit into n columns behind lead, whole ones, and
// counts the rest.
func listed(lead string, items []string, between, noun string, n int) string {
	for k := min(len(items), n); k > 0; k-- {
		text := lead + strings.Join(items[:k], between)
		if k < len(items) {
			text += " and " + Counted(len(items)-k, "more "+noun)
		}
		if columns(text) <= n {
			return text
		}
	}
	return lead + Counted(len(items), noun)
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

// rows is how many lines of a dialog a text takes.
func rows(s string) int { return max(1, (columns(s)+promptWidth-1)/promptWidth) }

// firstColumns is as much of s as fits into n columns.
func firstColumns(s string, n int) string {
	for i, c := range s {
		if n -= columnsOf(c); n < 0 {
			return s[:i]
		}
	}
	return s
}
