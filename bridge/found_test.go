package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a list of tools cannot say reaches a model all the same: among the notes of a script,
// and beside the answer of search_tools.
func TestSearchSaysWhatItDidNotFind(t *testing.T) {
	const why = `search_tools found nothing for "book a flight": no tool has "book", "flight"`
	c := newBench(t, profiles.Spec{}).connect(t, nil)
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{
		"code": `const of = () => codemode.search_tools({query: "book a flight"}); return [await of(), await of()]`}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result [][]any
		Notes  []string
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Result) != 2 || len(answer.Result[0]) != 0 || len(answer.Notes) != 1 || answer.Notes[0] != why {
		t.Errorf("a script gets %s", text)
	}

	res, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "book a flight"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	quoted := strings.ReplaceAll(why, `"`, `\"`)
	for _, want := range []string{`{"type":"text","text":"[]"}`, `"text":"` + quoted, `"note":"` + quoted, `"result":[]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the tool's answer lacks %s: %s", want, text)
		}
	}
	if out, _ := call(t, c, "search_tools", map[string]any{"query": "echo"}); strings.Contains(out, "note") || strings.Contains(out, "not searched") {
		t.Errorf("a search that finds something has the note %s", out)
	}
}

// What is found says whose tools are missing, and why.
func TestSearchesNameServersThatAreNotReady(t *testing.T) {
	b := newBench(t, profiles.Spec{}, func(o *Options) {
		from := catalog.Sources{Order: []string{"a", "gone", "late"}, Absent: []catalog.Absent{{Server: "late", Why: "connecting"}, {Server: "gone", Why: "failed: no such file"}}}
		from.Servers = []catalog.Server{{Name: "a", Tools: []catalog.Definition{{Name: "echo", Description: "Says what it hears"}}}}
		o.Gate.Replace(&gate.View{Profiles: o.Gate.View().Profiles, Catalog: from.Build(), Awaited: []string{"gone", "late"}})
	})
	c := b.connect(t, nil)
	const why = "gone (failed: no such file), late (connecting)"
	for _, row := range []struct {
		tool string
		args map[string]any
		note string
	}{
		{"search_tools", map[string]any{"query": "echo"}, "not searched: " + why},
		{"get_tools", map[string]any{}, "not listed: " + why},
		{"eval", map[string]any{"code": `return (await codemode.search_tools({query: "echo"})).length`}, "not searched: " + why},
		{"eval", map[string]any{"code": `return (await codemode.get_tools()).total`}, "not listed: " + why},
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: row.tool, Arguments: row.args})
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []any{res.StructuredContent, res.Content} {
			if text, err := json.Marshal(what); err != nil || res.IsError || strings.Count(string(text), row.note) != 1 {
				t.Errorf("%s %v: %s, %v", row.tool, row.args, text, err)
			}
		}
	}
	for _, name := range []string{"late", "Late"} {
		if out, failed := call(t, c, "get_tools", map[string]any{"server": name}); !failed || !strings.Contains(out, "not listed: late (connecting)") {
			t.Errorf("a list of the tools of such a server says %s", out)
		}
	}
	if out, failed := call(t, c, "eval", map[string]any{"code": `return await codemode.a__echo({})`}); failed || strings.Contains(out, "late") {
		t.Errorf("a script that looks for nothing says %s", out)
	}
}
