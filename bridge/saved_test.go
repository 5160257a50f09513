package bridge

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"
)

// withSaved adds saved scripts to a bench.
func withSaved(t *testing.T, b *bench, spec profiles.Spec) {
	t.Helper()
	view := newView(t, spec)
	var tools []catalog.Definition
	for _, tool := range view.Catalog.Tools() {
		if tool.Server == "a" {
			tools = append(tools, tool.Definition)
		}
	}
	twice := json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"number"}}}`)
	b.Replace(&gate.View{Profiles: view.Profiles, Catalog: catalog.Sources{
		Servers: []catalog.Server{{Name: "a", Tools: tools}},
		Scripts: []catalog.Script{
			{Name: "twice", Description: "Doubles a number", Digest: "sha256:1", Input: twice,
				Source: "// description: Doubles a number\nconst {n} = JSON.parse(await codemode.a__echo(input));\nreturn 2 * n;"},
			{Name: "careless", Description: "Fails", Digest: "sha256:2", Source: "await codemode.a__echo({});\nreturn missing;"},
			{Name: "half", Digest: "sha256:3", Problem: "line 1: the description is missing"},
		},
	}.Build()})
}

func TestSavedScripts(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	withSaved(t, b, profiles.Spec{})
	c := b.connect(t, nil)
	for _, row := range []struct{ what, code, want string }{
		{"run", `return await codemode.run("twice", {n: 4})`, "8"},
		{"run in parallel", `return Promise.all([1, 2, 3].map(n => codemode.run("twice", {n})))`, "[2,4,6]"},
		{"an error", "const x = 1;\nreturn await codemode.run('careless')",
			"ReferenceError: missing is not defined (in saved script careless, line 2, column 8) (line 2, column 14)\n  1 | const x = 1;\n> 2 | return await codemode.run('careless')\n    |              ^\nsaved script careless:\n  1 | await codemode.a__echo({});\n> 2 | return missing;\n    |        ^\nHint: nothing is kept between scripts: pass data in `input`, return what is needed later\nEffects: calls: 1 done. Done, and not known to be repeatable, so don't repeat: a__echo (call 2). Run "},
		{"a wrong input", `return await codemode.run("twice", {n: "4"})`, `ArgumentError: run("twice") was not sent: args.n must be number, got string. Declaration: codemode.run("twice", input: {n: number}): Promise<unknown> (line 1`},
		{"no such script", `return await codemode.run("twise", {})`, `UnknownToolError: there is no saved script run("twise"); did you mean run("twice")? (line 1`},
		{"a broken script", `return await codemode.run("half", {})`, "UnknownToolError: saved script half can't be run: line 1: the description is missing (line 1"},
		{"search", `return (await codemode.search_tools({query: "double a number"})).map(t => t.declaration)`, `["codemode.run(\"twice\", input: {n: number}): Promise<unknown>"]`},
	} {
		if got := eval(t, c, row.code); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", row.what, got, row.want)
		}
	}
}

// A saved script may do what the profile may, and no more.
func TestSavedScriptsAreBoundByTheProfile(t *testing.T) {
	spec := profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"none": {Denylist: []string{"a__*"}}}}
	b := newBench(t, spec)
	withSaved(t, b, spec)
	c := b.connect(t, nil)
	out, failed := call(t, c, "codemode_eval_none", map[string]any{"code": `try { return await codemode.run("twice", {n: 1}) } catch (e) { return [e instanceof ToolCallDeniedError, e.reason] }`})
	if failed || !strings.HasPrefix(out, `{"result":[true,"denied"]`) {
		t.Errorf("got %s", out)
	}
	if made := b.up.made(); len(made) > 0 {
		t.Errorf("calls were made: %v", made)
	}
	if got := eval(t, c, `return await codemode.run("twice", {n: 1})`); got != "2" {
		t.Errorf("without the profile: %s", got)
	}
}

func TestAnswersAreObserved(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	b := newBench(t, profiles.Spec{}, func(o *Options) {
		o.Observed = func(tool *catalog.Tool, a gate.Answer) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, tool.Path()+" "+a.Text())
		}
	})
	c := b.connect(t, nil)
	eval(t, c, `await codemode.a__echo({n: 1}); await codemode.raw("b__echo", {}); await codemode.search_tools({query: "echo"}); await codemode.a__fail({}).catch(() => 0)`)
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, "; "); got != `a__echo {"n":1}; b__echo b{}` {
		t.Errorf("observed %s", got)
	}
}
