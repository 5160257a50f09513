package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/surface"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// meetsAnswerSchema says what keeps an eval tool's structured content from
// meeting the schema that the tool declares; nil if nothing does.
func meetsAnswerSchema(structured any) error {
	declared, err := jsonschema.UnmarshalJSON(strings.NewReader(surface.AnswerSchema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("answer.json", declared); err != nil {
		return err
	}
	schema, err := c.Compile("answer.json")
	if err != nil {
		return err
	}
	text, err := json.Marshal(structured)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// checkAnswers checks every answer of an eval tool in every test of this package
// against its schema. An answer without structured content is one only if it
// asks for input.
func checkAnswers(t testing.TB) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			answer, _ := res.(*mcp.CallToolResult)
			if err != nil || answer == nil || len(answer.InputRequests) > 0 {
				return res, err
			}
			if !strings.Contains(req.GetParams().(*mcp.CallToolParamsRaw).Name, "eval") {
				return res, err
			}
			if err := meetsAnswerSchema(answer.StructuredContent); err != nil {
				t.Errorf("the structured content %s: %v", answer.StructuredContent, err)
			}
			return res, err
		}
	}
}

func TestAnswersMeetTheirSchema(t *testing.T) {
	spec := asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = ptr(profiles.FallbackQueue.String()) })
	patience := profiles.Duration(100 * time.Millisecond)
	spec.ClientPatience = &profiles.Patience{Default: &patience}
	spec.Profiles["other"] = &profiles.ProfileSpec{} // so that each has a tool of its own
	b := newBench(t, spec)
	b.approvers.Store(true)
	eras(t, b, func() *mcp.ClientOptions { return nil }, func(t *testing.T, c *mcp.ClientSession) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		declared := 0
		for _, tool := range list.Tools {
			if tool.OutputSchema != nil {
				declared++
			}
		}
		if declared != 4 { // eval, codemode_eval_p, codemode_eval_other and eval_resume
			t.Errorf("%d tools have an output schema", declared)
		}
		for _, row := range []struct {
			name, tool string
			args       map[string]any
			want       string // a member of the answer
		}{
			{"a value", "eval", map[string]any{"code": `console.log("x"); return [1]`}, "result"},
			{"nothing", "eval", map[string]any{"code": `1`}, "run"},
			{"a failed script", "eval", map[string]any{"code": `await codemode.search_tools({query: "x"}); throw new RangeError("too far")`}, "effects"},
			{"a script that cannot be read", "eval", map[string]any{"code": `return (`}, "error"},
			{"arguments that it does not take", "eval", map[string]any{"script": "1"}, "error"},
			{"another profile's tool", "codemode_eval_p", map[string]any{"code": `return null`}, "result"},
			{"a run that waits for a person", "eval", map[string]any{"code": tryEcho}, "status"},
			{"a run that never was", "eval_resume", map[string]any{"run": "r0"}, "error"},
		} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: row.tool, Arguments: row.args})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := res.StructuredContent.(map[string]any)
			if _, ok := body[row.want]; !ok {
				t.Errorf("%s: no %s in %v", row.name, row.want, res.StructuredContent)
			}
			if err := meetsAnswerSchema(res.StructuredContent); err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		}
	})
	for _, wrong := range []string{`null`, `[]`, `{"error":"text"}`, `{"error":{"name":"x"}}`, `{"effects":{}}`, `{"logs":"text"}`, `{"status":"done"}`, `{"run":7}`} {
		if meetsAnswerSchema(json.RawMessage(wrong)) == nil {
			t.Errorf("the schema allows %s", wrong)
		}
	}
}
