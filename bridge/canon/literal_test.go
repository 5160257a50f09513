package canon_test

import (
	"encoding/json"
	"testing"

	"codemode-bridge/bridge/canon"

	"pgregory.net/rapid"
)

func TestLiteral(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"a \"b\" \\ c", `"a \"b\" \\ c"`},
		{"two\nlines\tand\ra\bb\f", `"two\nlines\tand\ra\bb\f"`},
		{"\x1b\u202e\U000E0041", `"\u001b\u202e\udb40\udc41"`},
		{`\u{1B}`, `"\\u{1B}"`}, // their own, and not an escape
		{`\u001b`, `"\\u001b"`},
		{"<&>|`é日", "\"<&>|`é日\""},
	} {
		if got := canon.Literal(canon.Escape(row.text)); got != row.want {
			t.Errorf("%q: %s, want %s", row.text, got, row.want)
		}
	}
	// What Display hid or left out is told from what looks like that.
	shown := canon.Display(mustParse(t, `{"password":"x","a":"[hidden]","b":"… 5 characters in all"}`), canon.DisplayOptions{})
	if got, want := canon.LiteralJSON(shown.JSON), `{"a":"\u005bhidden]","b":"\u2026 5 characters in all","password":"[hidden]"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A literal is the text again, and so is the JSON of what is shown whole.
func TestLiteralIsWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var back string
		if err := json.Unmarshal([]byte(canon.Literal(canon.Escape(text))), &back); err != nil || back != text {
			t.Fatalf("%q became %q, %v", text, back, err)
		}
		raw, err := json.Marshal(map[string]any{"a": text, "b": []any{text, nil, 1.5}})
		if err != nil {
			t.Fatal(err)
		}
		args, err := canon.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		shown := canon.Display(args, canon.DisplayOptions{})
		if shown.Hidden+shown.Cut > 0 {
			return
		}
		again, err := canon.Parse([]byte(canon.LiteralJSON(shown.JSON)))
		if err != nil || again.Digest() != args.Digest() {
			t.Fatalf("%s became %s, %v", args.Bytes(), canon.LiteralJSON(shown.JSON), err)
		}
	})
}

func TestSpan(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`"a"`, "`\"a\"`"}, {"\"`\"", "``\"`\"``"}, {"\"``a`\"", "```\"``a`\"```"}, {"\"```\"", "````\"```\"````"},
	} {
		if got := canon.Span(row.text); got != row.want {
			t.Errorf("%s: %s, want %s", row.text, got, row.want)
		}
	}
}

func TestLabel(t *testing.T) {
	for _, same := range []string{"color", "Which color?", "max_tokens", "first-name", "and/or", "Yes, please. Now", "Größe (in cm)", "don't", "да", "step: 2"} {
		if got := canon.Label(same); got != same {
			t.Errorf("%q became %s", same, got)
		}
	}
	for _, other := range []string{"", " a", "a ", "a  b", "- a", "1. a", "1) a", "# a", "a.example", "http://x", "a@b", "_a_", "a_", "**a**", "[a]", "<b>", "a & b", "a | b", "`a`", "~a~", ":a:", "a\\", "!a", "…", "$a$", "a\n---"} {
		if got := canon.Label(canon.Escape(other)); got != canon.Span(canon.Literal(canon.Escape(other))) {
			t.Errorf("%q stays %s", other, got)
		}
	}
}
