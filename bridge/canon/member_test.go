package canon

import (
	"encoding/json"
	"testing"
)

func TestMember(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "{}", `[1, 2]`: `{"input":[1,2]}`, `{`: `{"input":"[not to be read]"}`, `1},"x":{`: `{"input":"[not to be read]"}`} {
		if got := string(Display(Member("input", json.RawMessage(value)), DisplayOptions{}).JSON); got != want {
			t.Errorf("%q is shown as %s, want %s", value, got, want)
		}
	}
}

func TestShowObject(t *testing.T) {
	t.Parallel()
	o := DisplayOptions{Hidden: map[string]string{"pin": "a rule"}}
	for text, want := range map[string]string{"": "", `{"a":1}`: `{"a":1}`, `{"a":`: "", `{"abcdefghij":"klmnopqrstuvw"}`: ""} {
		if got := ShowObject(text, 20, o); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
