package bridge

import (
	"strings"
	"testing"

	"codemode-bridge/profiles"
)

func TestScriptsReadResourcesAndPrompts(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	c := b.connect(t, nil)
	for _, row := range []struct{ what, code, want string }{
		{"a list", `return codemode.resources.list("a")`, `{"resources":[{"name":"one","server":"a","uri":"x://1"}]}`},
		{"a list of all", `return (await codemode.resources.list()).resources.length`, `1`},
		{"a resource", `const r = await codemode.resources.read("a", "x://1"); return [r.text, r.media[0].kind, r.media[0].mimeType, r.media[0].size, await codemode.read(r.media[0])]`, `["first","image","image/png",5,"aGVsbG8="]`},
		{"a resource by an object", `return (await codemode.resources.read({server: "a", uri: "x://1"})).text`, `"first"`},
		{"a prompt", `const p = await codemode.prompts.get("a", "hello", {who: "you"}); return [p.messages[0], p.messages[1].role, p.messages[1].media[0].kind]`,
			`[{"role":"user","text":"{\"arguments\":{\"who\":\"you\"},\"name\":\"hello\"}"},"assistant","image"]`},
		{"without a server", `return codemode.resources.read({uri: "x://1"})`, "Error: codemode.resources.read: the first argument must be the name of a server (line 1, column 8)"},
		{"with a server that is no text", `return codemode.resources.list(7)`, "Error: codemode.resources.list: the server must be its name, not 7 (line 1, column 8)"},
		{"with a wrong argument", `return codemode.resources.read("a", 7)`, "ArgumentError: resources.read was not sent: args.uri must be string, got number. Declaration: codemode.resources.read(server: string, uri: string): "},
		{"of a server without", `return codemode.prompts.list("b")`, "ToolError: prompts.list: the server has no such thing (line 1, column 8)"},
	} {
		if got := eval(t, c, row.code); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", row.what, got, row.want)
		}
	}
}
