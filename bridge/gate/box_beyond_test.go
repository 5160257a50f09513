package gate

import (
	"encoding/json"
	"testing"

	"codemode-bridge/profiles"
)

// What the box of a server may have kept a tool from is said to the script and recorded,
// beside the tool's own words, which stay as they are.
func TestAnErrorOfAToolInABox(t *testing.T) {
	for reply, want := range map[string]string{
		`{"isError":true,"content":[{"type":"text","text":"EROFS"}]}`: "EROFS; the box of mail ends there",
		`{"content":[{"type":"text","text":"EROFS"}]}`:                "EROFS",
	} {
		g := newGate(t, profiles.Spec{}, &fakeCaller{reply: reply}, &book{})
		g.View().Box = func(server string) Box {
			return Box{Beyond: func(string) string { return "; the box of " + server + " ends there" }}
		}
		r, err := g.Begin(t.Context(), Origin{ID: "r1"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := g.Call(t.Context(), r, Call{Number: 1, Name: "mail__send", Args: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.ErrorText(); got != want || answer.Text() != "EROFS" {
			t.Errorf("%s: %q and %q, want %q", reply, got, answer.Text(), want)
		}
	}
}
