package web

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
)

// regexpParts gives prelude/regexp.js what it needs.
func (r *World) regexpParts() []goja.Value {
	translate := func(c goja.FunctionCall) goja.Value {
		text, err := r.script.Translate(c.Argument(0).String(), c.Argument(1).String())
		if err != nil {
			panic(r.SyntaxError(err.Error()))
		}
		return r.VM.ToValue(text)
	}
	written := func(c goja.FunctionCall) goja.Value {
		if text, ok := r.script.Written(c.Argument(0).String()); ok {
			return r.VM.ToValue(text)
		}
		return goja.Undefined()
	}
	compiled := make(map[string]*regexp2.Regexp)
	var read *matchedText
	indices := func(c goja.FunctionCall) goja.Value {
		pattern, flags := c.Argument(0).String(), c.Argument(1).String()
		re := compiled[flags+"/"+pattern]
		if re == nil {
			options := regexp2.ECMAScript
			for flag, o := range map[string]regexp2.RegexOptions{"m": regexp2.Multiline, "s": regexp2.Singleline, "i": regexp2.IgnoreCase, "u": regexp2.Unicode} {
				if strings.Contains(flags, flag) {
					options |= o
				}
			}
			var err error
			if re, err = regexp2.Compile(pattern, options); err != nil {
				panic(r.SyntaxError(err.Error()))
			}
			compiled[flags+"/"+pattern] = re
		}
		if text, whole := r.StringOf(c.Argument(2)), strings.Contains(flags, "u"); !read.of(text, whole) {
			read = readText(text, whole)
		}
		return r.matchIndices(re, read, int(c.Argument(3).ToInteger()))
	}
	return []goja.Value{r.VM.ToValue(translate), r.VM.ToValue(indices), r.VM.ToValue(written)}
}

// A matchedText is a text as regexp2 reads it.
type matchedText struct {
	text  goja.String
	whole bool // surrogate pairs are one character
	runes []rune
	units []int // where each of them begins, in UTF-16 units; and the end
}

func (m *matchedText) of(text goja.String, whole bool) bool {
	return m != nil && m.whole == whole && m.text.SameAs(text)
}

func readText(text goja.String, whole bool) *matchedText {
	m := &matchedText{text: text, whole: whole}
	for i := 0; i < text.Length(); i++ {
		c := rune(text.CharAt(i))
		m.units = append(m.units, i)
		if whole && utf16.IsSurrogate(c) && i+1 < text.Length() {
			if pair := utf16.DecodeRune(c, rune(text.CharAt(i+1))); pair != unicode.ReplacementChar {
				c = pair
				i++
			}
		}
		m.runes = append(m.runes, c)
	}
	m.units = append(m.units, text.Length())
	return m
}

// matchIndices finds the match at an index again, and returns where its groups
// begin and end, in UTF-16 units.
func (r *World) matchIndices(re *regexp2.Regexp, text *matchedText, index int) goja.Value {
	runes, units := text.runes, text.units
	start, exact := slices.BinarySearch(units, index)
	if !exact {
		start = max(0, start-1)
	}
	start = min(start, len(runes))
	m, err := re.FindRunesMatchStartingAt(runes, start)
	if err != nil {
		panic(r.VM.NewTypeError("matching: %s", err.Error()))
	}
	if m == nil {
		return goja.Undefined()
	}
	var list []any
	var named *goja.Object
	for i, g := range m.Groups() {
		v := goja.Value(goja.Undefined())
		if len(g.Captures) > 0 {
			v = r.VM.NewArray(units[g.RuneIndex], units[g.RuneIndex+g.RuneLength])
		}
		list = append(list, v)
		if i > 0 && g.Name != fmt.Sprint(i) {
			if named == nil {
				named = r.VM.NewObject()
				named.SetPrototype(nil)
			}
			named.Set(g.Name, v)
		}
	}
	out := r.VM.NewArray(list...)
	if named != nil {
		out.Set("groups", named)
	} else {
		out.Set("groups", goja.Undefined())
	}
	return out
}
