package catalog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func withScripts() *Catalog {
	return Sources{
		Servers: []Server{{Name: "github", Tools: []Definition{{Name: "list_issues", Description: "List issues of a repository"}}}},
		Scripts: []Script{
			{Name: "weekly_report", Description: "Summary of the week's issues", Digest: "sha256:1",
				Input: json.RawMessage(`{"type":"object","properties":{"days":{"type":"number"}},"required":["days"]}`)},
			{Name: "half", Description: "", Digest: "sha256:2", Problem: "line 3: the schema is no JSON"},
			{Name: "weekly_report", Description: "the same name again", Digest: "sha256:9"},
		},
	}.Build()
}

func TestSavedScriptsAreFound(t *testing.T) {
	none := withScripts().View(func(string, string) bool { return false })
	all := withScripts().View(nil)
	discover := func(v *View, function, args string) string {
		t.Helper()
		answer, _, err := Discover(v, function, json.RawMessage(args))
		if err != nil {
			t.Fatalf("%s %s: %v", function, args, err)
		}
		return string(answer)
	}
	const report = `{"name":"run(\"weekly_report\")","summary":"Summary of the week's issues","declaration":"codemode.run(\"weekly_report\", input: {days: number}): Promise<unknown>"}`
	for _, row := range []struct {
		what, got, want string
	}{
		{"search", discover(all, SearchTools, `{"query":"weekly summary"}`), `[` + report + `]`},
		{"search of one server", discover(all, SearchTools, `{"query":"weekly","server":"github"}`), `[]`},
		{"list, under a profile that sees no tool", discover(none, GetTools, `{}`),
			`{"tools":[{"name":"run(\"half\")","summary":"[broken, can't be run: line 3: the schema is no JSON]"},` + report + `],"total":2}`},
		{"list of one server", discover(all, GetTools, `{"server":"github"}`),
			`{"tools":[{"name":"github__list_issues","summary":"List issues of a repository","declaration":"codemode.github__list_issues(args?: Record<string, unknown>): Promise<string>"}],"total":1}`},
		{"schema", discover(all, GetToolSchema, `{"name":"weekly_report"}`), discover(all, GetToolSchema, `{"name":"run(\"weekly_report\")"}`)},
	} {
		if row.got != row.want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.what, row.got, row.want)
		}
	}
	var page PageResult
	if err := json.Unmarshal([]byte(discover(all, GetTools, `{"limit":2}`)), &page); err != nil || page.Total != 3 || page.Next == "" {
		t.Fatalf("the first page: %+v, %v", page, err)
	}
	if got := discover(all, GetTools, `{"cursor":"`+page.Next+`"}`); !strings.Contains(got, `run(\"weekly_report\")`) || strings.Contains(got, "half") {
		t.Errorf("the second page: %s", got)
	}
	if text, ok := all.Declarations(1000); !ok || !strings.Contains(text, `codemode.run("weekly_report"`) || strings.Contains(text, "half") {
		t.Errorf("declarations: %q", text)
	}
}

func TestSavedScriptsAreNoTools(t *testing.T) {
	c := withScripts()
	for _, name := range []string{"weekly_report", `run("weekly_report")`, "run"} {
		if tool, ok := c.Lookup(name); ok {
			t.Errorf("Lookup(%q) finds %v", name, tool)
		}
	}
	if got := len(c.Tools()); got != 4 {
		t.Errorf("%d tools, want the discovery functions and one", got)
	}
	s, ok := c.Saved("weekly_report")
	if !ok || s.Digest != "sha256:1" || s.Saved == nil {
		t.Errorf("Saved: %+v, %v", s, ok)
	}
	var unknown *UnknownError
	if _, err := c.View(nil).Declare("weekly_reprt"); !errors.As(err, &unknown) || len(unknown.Near) == 0 || unknown.Near[0] != `run("weekly_report")` {
		t.Errorf("a near name: %v", err)
	}
}

func TestARevisionKnowsScripts(t *testing.T) {
	script := Script{Name: "a", Digest: "sha256:1"}
	one := Sources{Scripts: []Script{script}}.Build().Revision()
	script.Problem = "line 2: broken"
	if broken := (Sources{Scripts: []Script{script}}).Build().Revision(); one == broken {
		t.Error("a script that turns out to be broken does not change the revision")
	}
	script.Digest, script.Problem = "sha256:2", ""
	if two := (Sources{Scripts: []Script{script}}).Build().Revision(); one == two {
		t.Error("a changed script does not change the revision")
	}
}

// What was observed stands in what discovery shows, and nowhere else.
func TestObserved(t *testing.T) {
	declared := Definition{Name: "declared", Description: "Find a thing", Output: json.RawMessage(`{"type":"number"}`)}
	plain := Definition{Name: "plain", Description: "Find a thing"}
	seen := Observation{Remark: "observed: JSON text of number[]"}
	c := Sources{
		Servers:  []Server{{Name: "s", Tools: []Definition{declared, plain}}},
		Observed: func(tool *Tool, limit int) Observation { return seen },
	}.Build()
	v := c.View(nil)
	before, _ := v.Declarations(1000)
	answer, _, err := Discover(v, SearchTools, json.RawMessage(`{"query":"find thing"}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `Promise<string> /* observed: JSON text of number[] */`
	if n := strings.Count(string(answer), "observed"); n != 1 || !strings.Contains(string(answer), want) {
		t.Errorf("search: %s", answer)
	}
	if text, err := v.Declare("s__plain"); err != nil || !strings.Contains(text, want) {
		t.Errorf("schema: %s, %v", text, err)
	}
	seen = Observation{Answer: "{n: number}", Remark: "observed"}
	if text, _ := v.Declare("s__plain"); !strings.Contains(text, "Promise<{n: number}> /* observed */") {
		t.Errorf("schema: %s", text)
	}
	tool, _ := c.Lookup("s__plain")
	if after, _ := v.Declarations(1000); after != before || strings.Contains(after, "observed") || strings.Contains(tool.Declaration(), "observed") {
		t.Errorf("a text that must not change has what was observed: %s", after)
	}
}
