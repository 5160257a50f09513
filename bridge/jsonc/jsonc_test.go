package jsonc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// A value is put where it belongs, in the style of what stands there.
func TestInsert(t *testing.T) {
	for name, row := range map[string]struct {
		before, pointer string
		value           any
		after           string // empty: an error
	}{
		"into nothing":      {`{}`, "/a", 1, "{\n  \"a\": 1\n}"},
		"after a member":    {"{\n  \"a\": 1\n}\n", "/b", 2, "{\n  \"a\": 1,\n  \"b\": 2\n}\n"},
		"a trailing comma":  {"{\n  \"a\": 1,\n}", "/b", "x<y", "{\n  \"a\": 1,\n  \"b\": \"x<y\",\n}"},
		"a comment":         {"{\n  \"a\": 1, // one\n  // last\n}", "/b", 2, "{\n  \"a\": 1, // one\n  // last\n  \"b\": 2,\n}"},
		"without a comma":   {"{\n  \"a\": 1 // one\n}", "/b", 2, "{\n  \"a\": 1, // one\n  \"b\": 2\n}"},
		"deeper":            {"{\n  \"a\": {\n    \"b\": 1\n  }\n}", "/a/c/d", true, "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": {\n      \"d\": true\n    }\n  }\n}"},
		"a new list":        {"{}", "/a/list/-", "x", "{\n  \"a\": {\n    \"list\": [\n      \"x\"\n    ]\n  }\n}"},
		"the end of a list": {"{\"a\": [\n  1, // one\n]}", "/a/-", 2, "{\"a\": [\n  1, // one\n    2,\n  ]}"},
		"with comments":     {"{\n  \"a\": 1,\n}", "/b", Text("{\n  // two\n  \"c\": 2,\n}\n"), "{\n  \"a\": 1,\n  \"b\": {\n    // two\n    \"c\": 2,\n  },\n}"},
		"an escaped key":    {`{}`, "/a~1b", 1, "{\n  \"a/b\": 1\n}"},
		"what is there":     {`{"a": {"b": 1}}`, "/a/b", 2, ""},
		"into a number":     {`{"a": 1}`, "/a/b", 2, ""},
		"no place":          {`{"a": [1]}`, "/a/7", 2, ""},
		"no JSON":           {`{"a": `, "/b", 2, ""},
	} {
		got, err := Insert([]byte(row.before), row.pointer, row.value)
		if (err != nil) != (row.after == "") || string(got) != row.after {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, row.after)
		}
	}
}

// A value takes the place of another, and not a byte beside it changes.
func TestReplace(t *testing.T) {
	const text = "{ // head\n  \"a\": {\"b\": 1, // one\n  }, \"c\": [2], // tail\n}\n"
	for name, row := range map[string]struct{ pointer, value, after string }{ // after empty: an error
		"an object":          {"/a", `{"x": 3}`, "{ // head\n  \"a\": {\"x\": 3}, \"c\": [2], // tail\n}\n"},
		"with comments":      {"/a", " {\n // three\n \"x\": 3,\n}\n", "{ // head\n  \"a\": {\n // three\n \"x\": 3,\n}, \"c\": [2], // tail\n}\n"},
		"a comment after it": {"/a", `{} // end`, "{ // head\n  \"a\": {} // end\n, \"c\": [2], // tail\n}\n"},
		"what stands in it":  {"/c/0", `5`, "{ // head\n  \"a\": {\"b\": 1, // one\n  }, \"c\": [5], // tail\n}\n"},
		"what is not there":  {"/d", `5`, ""},
		"more than a value":  {"/a", `{}, "servers": {}`, ""},
		"out of the object":  {"/a", `{}}`, ""},
		"an open comment":    {"/a", `{} /*`, ""},
		"nothing":            {"/a", ` `, ""},
	} {
		got, err := Replace([]byte(text), row.pointer, Text(row.value))
		if (err != nil) != (row.after == "") || string(got) != row.after {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, row.after)
		}
	}
	section, err := Section([]byte(text), "/a")
	if err != nil || string(section) != "{\"b\": 1, // one\n  }" {
		t.Errorf("section: %q, %v", section, err)
	}
	if same, err := Replace([]byte(text), "/a", section); err != nil || string(same) != text {
		t.Errorf("put back: %q, %v", same, err)
	}
	if section, err := Section([]byte(text), "/b"); section != nil || err != nil {
		t.Errorf("a section that is not there: %q, %v", section, err)
	}
}

// The example of the repository keeps every line through an edit and back.
func TestEditsKeepTheExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config.example.json"))
	if err != nil {
		t.Fatal(err)
	}
	added, err := Insert(text, "/approvals/approvers/-", map[string]any{"name": "ann", "sha256": strings.Repeat("ab", 32)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hujson.Parse(added); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		if trimmed := strings.TrimRight(line, "\n,"); !strings.Contains(string(added), trimmed) {
			t.Errorf("lost: %s", trimmed)
		}
	}
	back, err := Remove(added, "/approvals")
	if err != nil {
		t.Fatal(err)
	}
	want, err := hujson.Standardize(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := hujson.Standardize(back)
	if err != nil {
		t.Fatal(err)
	}
	if squeeze(string(got)) != squeeze(string(want)) {
		t.Errorf("after adding and removing:\n%s", got)
	}
	if _, err := Remove(text, "/approvals"); err == nil {
		t.Error("what is not there was removed")
	}
}

func squeeze(s string) string { return strings.NewReplacer(" ", "", "\n", "", ",", "").Replace(s) }
