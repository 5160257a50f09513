package bridge

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The description of eval has what a model must know before its first script. Every other
// rule is told by the answer that makes it matter; here each is, in such a run. That long
// text is built with array.join is said when the time runs out, which a busy machine
// decides: TestAdvice of package sandbox has it, and the case "quadratic" of the worker.
func TestRulesAppearWhereTheyMatter(t *testing.T) {
	spec := asks(func(p *profiles.ProfileSpec) {
		p.Asklist = []string{"b__*"}
		p.ElicitationFallback = ptr(profiles.FallbackQueue.String())
	})
	patience := profiles.Duration(50 * time.Millisecond)
	spec.ClientPatience = &profiles.Patience{Default: &patience}
	b := newBench(t, spec)
	b.approvers.Store(true)
	loose, strict := json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`)
	b.Replace(&gate.View{Profiles: b.o.Gate.View().Profiles, Complete: true, Catalog: catalog.Build([]catalog.Server{
		{Name: "a", Tools: []catalog.Definition{{Name: "echo", Input: loose}, {Name: "image", Input: loose}, {Name: "strict", Input: strict}}},
		{Name: "b", Tools: []catalog.Definition{{Name: "echo", Input: loose}}}})})
	c := b.connect(t, nil)
	description := describedAs(t, c)
	for _, row := range []struct {
		rule   string
		was    string // its words in the description, until they left it
		code   string
		want   []string // in the text of the answer
		member string   // of the structured answer, that says it
	}{
		{"calls that a failed script made are not repeated", `"effects"`,
			`await codemode.a__echo({n: 1}); throw new Error("no")`, []string{"calls: 1 done.", "don't repeat: a__echo (call 1)"}, "next"},
		{"a failed script that did nothing may run again", "which not to make again",
			`throw new Error("no")`, []string{"no calls were made. Safe to run again."}, "effects"},
		{"a paused run is no error: tell the user and stop", `{status:"paused"`,
			`return await codemode.b__echo({})`, []string{`"status":"paused"`, "tell the user that their answer is needed, and stop", "when they are ready, call eval_resume with"}, "next"},
		{"large results are read on in the next script", "{shape, sample, handle}",
			`return Array.from({length: 20000}, (_, n) => n)`, []string{`"shape"`, `"sample"`, `in your next script: await codemode.read(\"h`, `[0:50]`}, "result"},
		{"media are handles, and emit shows them", "emit(handle) shows one",
			`return await codemode.a__image({})`, []string{`is media: emit(\"h`, `in your next script shows it to the user`}, "notes"},
		{"nothing is kept between scripts, data is passed as input", "Nothing is kept between scripts",
			`return rowsOfBefore.length`, []string{"nothing is kept between scripts: pass data in `input`"}, "error"},
		{"there is no process", "process", `return process.env`, []string{"there is no process here"}, "error"},
		{"there are no modules and no files", "use a server's tool",
			`return require("fs")`, []string{"what a library would do, a server's tool does"}, "error"},
		{"there is no network", "use a server's tool", `return await fetch("http://x")`, []string{"there is no network here: use a server's tool"}, "error"},
		{"text that is JSON goes through json", "Most tools return TEXT",
			`const all = await codemode.a__echo({n: 1}); return all.map(x => x)`, []string{"json(await codemode.a__echo(...))"}, "error"},
		{"json leaves objects alone", "leaves objects alone", `return json(json("{\"a\":1}"))`, []string{`"result":{"a":1}`}, "result"},
		{"a search that finds nothing says so", "[] if nothing fits",
			`return await codemode.search_tools({query: "book a flight"})`, []string{`"result":[]`, "search_tools found nothing for"}, "notes"},
		{"names are not guessed", "Never guess names",
			`return await codemode.a__ecco({})`, []string{"there is no tool", "did you mean", "a__echo"}, "error"},
		{"arguments are not guessed", "Never guess names or arguments",
			`return await codemode.a__strict({})`, []string{"was not sent", "Declaration: "}, "error"},
	} {
		if strings.Contains(description, row.was) {
			t.Errorf("%s: the description still says it:\n%s", row.rule, description)
		}
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": row.code}})
		if err != nil {
			t.Fatal(err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		for _, want := range row.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the answer lacks %q:\n%s", row.rule, want, text)
			}
		}
		if body, _ := res.StructuredContent.(map[string]any); body[row.member] == nil {
			t.Errorf("%s: the structured answer has no %s: %v", row.rule, row.member, res.StructuredContent)
		}
	}
	if strings.Contains(description, "array.join") {
		t.Errorf("the description has what belongs to a script that took too long:\n%s", description)
	}
	// What stays, since it holds before anything has happened.
	for _, rule := range []string{"return just what is needed", "ToolError", "Some calls wait for a person",
		"ToolCallDeniedError is final unless .retryable: take no other route, tell the user its reason", "No fetch, import or files"} {
		if !strings.Contains(description, rule) {
			t.Errorf("the description does not say %q:\n%s", rule, description)
		}
	}
}

// Where a handle ends with its script, the note on media does not promise a next one.
func TestMediaOfAScriptThatEnds(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	eras(t, b, func() *mcp.ClientOptions { return nil }, func(t *testing.T, c *mcp.ClientSession) {
		for code, note := range map[string]bool{
			`return await codemode.a__image({})`:                                     true,
			`const r = await codemode.a__image({}); emit(r.media[0]); return r`:      false, // they see it
			`const r = await codemode.a__image({}); return r.text`:                   false, // the model does not
			`return {media: [{handle: "h7", kind: "image"}]}`:                        false, // it is none
			`const r = await codemode.raw("a__image", {}); return r.content[1].type`: false,
		} {
			out, _ := call(t, c, "eval", map[string]any{"code": code})
			if got := strings.Contains(out, "shows it to the user"); got != note {
				t.Errorf("%s: %s", code, out)
			}
		}
	})
}

// Resources and prompts are described where a server that may be asked for them has them.
func TestResourcesAndPromptsAreDescribed(t *testing.T) {
	for _, row := range []struct {
		server             catalog.Server
		spec               profiles.Spec
		resources, prompts bool
	}{
		{catalog.Server{}, profiles.Spec{}, false, false},
		{catalog.Server{Resources: true}, profiles.Spec{}, true, false},
		{catalog.Server{Prompts: true}, profiles.Spec{}, false, true},
		{catalog.Server{Resources: true, Prompts: true}, asks(func(p *profiles.ProfileSpec) { p.Denylist = []string{"a__resources/*"} }), false, true},
	} {
		row.server.Name, row.server.Tools = "a", []catalog.Definition{{Name: "echo", Input: json.RawMessage(`{"type":"object"}`)}}
		b := newBench(t, row.spec)
		b.Replace(&gate.View{Profiles: b.o.Gate.View().Profiles, Catalog: catalog.Build([]catalog.Server{row.server}), Complete: true})
		text := describedAs(t, b.connect(t, nil))
		if strings.Contains(text, "codemode.resources.list(server?), .read(server, uri)") != row.resources || strings.Contains(text, "codemode.prompts.list(server?), .get(server, name, args)") != row.prompts {
			t.Errorf("%+v:\n%s", row, text)
		}
	}
}

func describedAs(t *testing.T, c *mcp.ClientSession) string {
	t.Helper()
	res, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		if tool.Name == "eval" {
			return tool.Description
		}
	}
	t.Fatal("there is no eval")
	return ""
}
