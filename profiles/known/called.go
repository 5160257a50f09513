package known

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// calledWith returns t as a call with these arguments uses it: first what one
// argument says instead, then what others add.
func (t Tool) calledWith(args map[string]any) Tool {
	if len(t.When)+len(t.Adds) == 0 {
		return t
	}
	if t.Args = maps.Clone(t.Args); t.Args == nil {
		t.Args = make(map[string]Role)
	}
	for name, arms := range t.When {
		word := text(args[name])
		if t.role(name) == SQL {
			word = statement(word)
		}
		for words, change := range arms {
			if word != "" && slices.Contains(strings.Split(words, "|"), word) {
				t.instead(change)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Adds)) {
		if slices.ContainsFunc(valuesAt(args, name), isSet) {
			t.add(t.Adds[name])
		}
	}
	return t
}

// instead puts c in the place of what t does.
func (t *Tool) instead(c Change) {
	if c.Effects != nil {
		t.Effects = c.Effects
	}
	if c.Where != "" {
		t.Where = c.Where
	}
	if c.Net != "" {
		t.Net = c.Net
	}
}

// add adds c to what t does: the effects of both, and of two places and two kinds of
// hosts the one that is farther away.
func (t *Tool) add(c Change) {
	t.Effects = slices.Clone(t.Effects)
	if slices.Contains(c.Effects, Execute) {
		t.Runs = "" // more than without the argument
	}
	for _, e := range c.Effects {
		if !slices.Contains(t.Effects, e) {
			t.Effects = append(t.Effects, e)
		}
	}
	if slices.Index(wheres, c.Where) > slices.Index(wheres, t.Where) {
		t.Where = c.Where
	}
	if slices.Index(nets, c.Net) > slices.Index(nets, t.net()) {
		t.Net = c.Net
	}
	maps.Copy(t.Args, c.Args)
}

// hasValue reports whether v is a value that the file has of the parameter with that
// dotted name.
func (t Tool) hasValue(name string, v any) bool {
	if object, ok := v.(map[string]any); ok {
		for key := range object {
			if !slices.Contains(t.Values[name], key) {
				return false
			}
		}
		return true
	}
	return v == nil || slices.Contains(t.Values[name], text(v))
}

// valuesAt returns the values of the parameter with that dotted name, those of each
// element where a list is on the way or at its end.
func valuesAt(v any, name string) []any {
	switch v := v.(type) {
	case []any:
		var all []any
		for _, element := range v {
			all = append(all, valuesAt(element, name)...)
		}
		return all
	case map[string]any:
		if name == "" {
			return []any{v}
		}
		key, rest, _ := strings.Cut(name, ".")
		inner, ok := v[key]
		if !ok {
			return nil
		}
		return valuesAt(inner, rest)
	default:
		if name != "" {
			return nil
		}
		return []any{v}
	}
}

// isSet reports whether a value is something that a program could take for a yes.
func isSet(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case []any, map[string]any:
		return true
	case string: // "0" and "false" are texts like others to most programs
		return v != ""
	default:
		return text(v) != "0" && v != false
	}
}

// text returns a value as it is written; empty for lists and objects.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case interface{ String() string }: // json.Number
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return ""
	}
}
