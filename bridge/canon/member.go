package canon

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Member returns a JSON value, from whoever, as the member of an object that has nothing
// else: that is how values that are no object are displayed. Nothing is no member.
func Member(name string, value json.RawMessage) Args {
	if len(value) == 0 {
		return Args{}
	}
	args, err := Parse(fmt.Appendf(nil, `{%q:%s}`, name, value))
	if err != nil {
		args, _ = Parse(fmt.Appendf(nil, `{%q:"[not to be read]"}`, name))
	}
	return args
}

// ShowObject returns the text of a JSON object as a person may see it; empty if it is
// longer than most bytes, or no JSON.
func ShowObject(text string, most int, o DisplayOptions) string {
	if text == "" || len(text) > most {
		return ""
	}
	whole, err := Parse([]byte(`{"args":` + text + `}`))
	if err != nil {
		return ""
	}
	shown := Display(whole, o).JSON
	return strings.TrimSuffix(strings.TrimPrefix(string(shown), `{"args":`), "}")
}
