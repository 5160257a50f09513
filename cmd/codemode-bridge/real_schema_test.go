//go:build real

package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every answer of an eval tool meets the output schema that the tool declares, according
// to Ajv, and real clients, which refuse answers that do not, accept it.
func TestRealAnswersMeetTheirSchema(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		for _, kind := range []string{"sdk", "legacy", "modern"} {
			t.Run(transport+"/"+kind, func(t *testing.T) { realSchema(t, transport, kind) })
		}
	}
}

func realSchema(t *testing.T, transport, kind string) {
	r := newReal(t)
	config, err := json.Marshal(map[string]any{
		"servers": map[string]any{"time": map[string]any{"type": "builtin", "builtin": "time"}},
		"evaluation": map[string]any{"clientPatience": "100ms", "profiles": map[string]any{
			"p": map[string]any{"asklist": []string{"time__*"}, "elicitationFallback": "queue"}}},
		"approvals": map[string]any{"listen": "off", "approvers": []any{json.RawMessage(approverJSON("ann", "admin", annsToken))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(config))
	call := func(name string, args map[string]any) clientStep {
		return clientStep{Op: "call", Name: name, Arguments: args}
	}
	rows := []struct {
		step clientStep
		want string // in the structured content
	}{
		{call("eval", map[string]any{"code": `console.log("x"); return {n: [1, null]}`}), `"result"`},
		{call("eval", map[string]any{"code": `let x`}), `"run"`},
		{call("eval", map[string]any{"code": `throw new RangeError("too far")`}), `"effects"`},
		{call("eval", map[string]any{"code": `return (`}), `"error"`},
		{call("eval", map[string]any{"script": 1}), `"error"`},
		{call("codemode_eval_p", map[string]any{"code": `return await codemode.time__now({})`}), `"paused"`},
		{call("eval_resume", map[string]any{"run": "r0"}), `"error"`},
	}
	j := r.job(t, transport)
	j.Steps = []clientStep{{Op: "list"}}
	for _, row := range rows {
		j.Steps = append(j.Steps, row.step)
	}
	a := r.client(t, kind, j)
	declared := 0
	for _, tool := range a.Steps[0].Result.Tools {
		if tool.OutputSchema != nil {
			declared++
		}
	}
	if declared != 3 {
		t.Errorf("%d tools declare what they answer", declared)
	}
	for i, row := range rows {
		d := a.Steps[i+1]
		if got := string(d.Result.StructuredContent); d.Error != nil || d.Invalid != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s with %v: %s %s %+v", row.step.Name, row.step.Arguments, got, d.Invalid, d.Error)
		}
	}
}
