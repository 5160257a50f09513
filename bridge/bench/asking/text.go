package main

import (
	"encoding/json"
	"strings"
)

// shownChars is how much of a text is looked for in a question, which may cut it.
const shownChars = 40

// longestText returns the beginning of the longest line that stands in a text among
// arguments: enough of it to recognize a call in a question.
func longestText(args json.RawMessage) string {
	var v any
	if json.Unmarshal(args, &v) != nil {
		return ""
	}
	longest := ""
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case string:
			for line := range strings.SplitSeq(v, "\n") {
				if len(line) > len(longest) {
					longest = line
				}
			}
		case []any:
			for _, one := range v {
				visit(one)
			}
		case map[string]any:
			for _, one := range v {
				visit(one)
			}
		}
	}
	visit(v)
	if chars := []rune(longest); len(chars) > shownChars {
		return string(chars[:shownChars])
	}
	return longest
}
