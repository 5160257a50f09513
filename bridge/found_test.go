package bridge

import (
	"encoding/json"
	"strings"
	"testing"

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
