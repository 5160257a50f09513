package canon

import (
	"encoding/json"
	"strings"
)

// Hides reports whether Display hides what a member of this name holds. What
// stands beneath it, names included, is part of that value.
func (o DisplayOptions) Hides(name string) bool {
	_, hidden := newHider(o).hides(name)
	return hidden
}

// longName is more than names have that tell what they hold, in bytes.
const longName = 1 << 10

// telling is as much of a name as is looked at: of a very long one both ends.
func telling(name string) string {
	if len(name) <= longName {
		return name
	}
	return name[:longName/2] + name[len(name)-longName/2:]
}

// minHiddenText is the length from which a hidden value is looked for in other
// texts: shorter ones are parts of ordinary words and numbers.
const minHiddenText = 4

// HiddenTexts returns the texts and numbers that o.Hidden hides in a, as they
// are, so that they can be hidden where somebody else repeats them. Those of
// fewer than four bytes are left out.
func (o DisplayOptions) HiddenTexts(a Args) []string {
	h := newHider(o)
	var all []string
	add := func(text string, hidden bool) {
		if hidden && len(text) >= minHiddenText {
			all = append(all, text)
		}
	}
	var walk func(v any, hidden bool)
	walk = func(v any, hidden bool) {
		switch v := v.(type) {
		case string:
			add(v, hidden)
		case json.Number:
			add(v.String(), hidden)
		case []any:
			for _, element := range v {
				walk(element, hidden)
			}
		case map[string]any:
			for name, member := range v {
				add(name, hidden)
				_, named := h.extra[plainName(name)]
				walk(member, hidden || named || valueNames[strings.ToLower(name)] && h.pairHides(v))
			}
		}
	}
	walk(a.Value(), false)
	return all
}

// pairHides reports whether an object is like {"name": "ssn", "value": ...},
// with a name that the configuration hides.
func (h *hider) pairHides(object map[string]any) bool {
	for name, v := range object {
		if text, ok := v.(string); ok && pairNames[strings.ToLower(name)] {
			if _, hidden := h.extra[plainName(text)]; hidden {
				return true
			}
		}
	}
	return false
}
