package tsdecl

import (
	"encoding/json"
	"testing"
)

func TestSignature(t *testing.T) {
	for _, row := range []struct{ schema, want string }{
		{``, "({...})"},
		{`{}`, "({...})"},
		{`{"type":"object","additionalProperties":false}`, "()"},
		{`{"type":"object","required":["path"],"properties":{"head":{"type":"number"},"path":{"type":"string"},"tail":{"type":"string"}}}`, "({path, head?: number, tail?})"},
		{`{"type":"object","properties":{"by":{"enum":["name","size"]},"all":{"type":"boolean"}}}`, `({all?: boolean, by?: "name" | "size"})`},
		{`{"type":"object","required":["edits"],"properties":{"edits":{"type":"array","items":{"type":"object","required":["old","new"],"properties":{"old":{"type":"string"},"new":{"type":"string"}}}}}}`, "({edits: {old, new}[]})"},
		{`{"type":"object","required":["x"],"properties":{"x":{"type":["string","null"]},"odd key":{"type":"string"}}}`, `({x: string | null, "odd key"?})`},
		{`{"type":"object","required":["x"],"properties":{"x":{}}}`, "({x: unknown})"},
		{`{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"of":{"$ref":"#/$defs/n"}}}}}`, "({n: {of?: unknown}})"},
		{`{"type":"object","required":["s"],"properties":{"s":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`, "({s: string})"},
		{`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":{"type":"string"}}`, "({x?, [key: string]: string})"},
	} {
		if got, fits := Signature(json.RawMessage(row.schema), 500); got != row.want || !fits {
			t.Errorf("%s\ngot  %s, %v\nwant %s", row.schema, got, fits, row.want)
		}
	}
	const long = `{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`
	if got, fits := Signature(json.RawMessage(long), len("({path})")); got != "({path})" || !fits {
		t.Errorf("what just fits gives %s, %v", got, fits)
	}
	if _, fits := Signature(json.RawMessage(long), len("({path})")-1); fits {
		t.Error("what is too long by a byte fits")
	}
}

func TestAnswer(t *testing.T) {
	for _, row := range []struct{ schema, want, text string }{
		{``, "text", ""},
		{`{"type":"object","required":["content"],"properties":{"content":{"type":"string"}}}`, "{content}", "content"},
		{`{"type":"object","required":["content"],"properties":{"content":{"type":"number"}}}`, "{content}", ""},
		{`{"type":"object","properties":{"odd key":{"type":"string"}}}`, `{"odd key"}`, ""},
		{`{"type":"object","required":["items","total"],"properties":{"items":{"type":"array"},"total":{"type":"integer"}}}`, "{items[], total}", ""},
		{`{"type":"object"}`, "{...}", ""},
		{`{"anyOf":[{"type":"object"},{"type":"string"}]}`, "{...}", ""},
		{`{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{},"i":{}}}`, "{a, b, c, d, e, f, g, h, ...}", ""},
		{`{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","properties":{"list":{"type":"array"},"next":{"$ref":"#/$defs/r"}}}}}`, "{list[], next}", ""},
		{`not JSON`, "{...}", ""},
	} {
		if got, text := Answer(json.RawMessage(row.schema)), OnlyText(json.RawMessage(row.schema)); got != row.want || text != row.text {
			t.Errorf("%s: %s and %q, want %s and %q", row.schema, got, text, row.want, row.text)
		}
	}
}
