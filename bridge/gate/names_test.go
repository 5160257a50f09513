package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// namesGate is a gate before one tool with a schema.
func namesGate(t *testing.T, schema string, p profiles.ProfileSpec, caller *fakeCaller, b *book) *Gate {
	t.Helper()
	set, problems := profiles.Parse(supervised(p))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tools := []catalog.Definition{{Name: "put", Input: json.RawMessage(schema)}}
	return New(&View{Profiles: set, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: tools}})}, Options{Caller: caller, Recorder: b})
}

// A server that looks at no case may read the name that nobody decided on.
func TestNamesThatDifferInCaseAlone(t *testing.T) {
	const (
		declared = `{"type":"object","properties":{"path":{"type":"string"}}}`
		open     = `{"type":"object"}`
		deep     = `{"$defs":{"rows":{"type":"array","items":{"anyOf":[{"properties":{"to":{"additionalProperties":{"required":["host"]}}}}]}}},"properties":{"rows":{"$ref":"#/$defs/rows"}}}`
	)
	reads := func(when profiles.When) profiles.ProfileSpec {
		return profiles.ProfileSpec{Rules: []profiles.RuleSpec{{Tools: []string{"fs__*"}, When: &when, Action: new("notify")}}}
	}
	for _, row := range []struct {
		name, schema string
		p            profiles.ProfileSpec
		args         string
		refused      string // empty: sent
		noted        string // in the intent
	}{
		{"one is declared", declared, profiles.ProfileSpec{}, `{"path":"/tmp/x","Path":"/etc/shadow"}`, "args.Path and args.path", ""},
		{"neither is, but for its case", declared, profiles.ProfileSpec{}, `{"PATH":"/tmp/x","Path":"/etc/shadow"}`, "args.PATH and args.Path", ""},
		{"by a long s and a Kelvin sign", `{"properties":{"hosts":{},"key":{}}}`, profiles.ProfileSpec{}, "{\"hosts\":1,\"ho\u017Fts\":2}", "args.hosts and args.ho\u017Fts", ""},
		{"by a Kelvin sign", `{"properties":{"key":{}}}`, profiles.ProfileSpec{}, "{\"key\":1,\"\u212Aey\":2}", "args.key and args.\u212Aey", ""},
		{"deep in the schema", deep, profiles.ProfileSpec{}, `{"rows":[{},{"to":{"x":{"host":1,"HOST":2}}}]}`, "args.rows.[].to.x.HOST and args.rows.[].to.x.host", ""},
		{"elsewhere than declared", declared, profiles.ProfileSpec{}, `{"path":"x","env":{"PATH":"a","Path":"b"}}`, "", "args.env.PATH and args.env.Path differ in case alone"},
		{"a condition reads it", open, reads(profiles.When{Expr: "args.mode == 'x'"}), `{"mode":"x","Mode":"y"}`, "args.Mode and args.mode", ""},
		{"a test reads it", open, reads(profiles.When{Params: []profiles.ParamSpec{{Param: "to.mode", Matches: "x"}}}), `{"to":[{"mode":"x","Mode":"y"}]}`, "args.to.[].Mode and args.to.[].mode", ""},
		{"a rule hides it", open, profiles.ProfileSpec{Rules: []profiles.RuleSpec{{Tools: []string{"*"}, Action: new("notify"), Hidden: profiles.Hidden{"ssn": ""}}}}, `{"a":{"SSN":1,"ssn":2}}`, "args.a.SSN and args.a.ssn", ""},
		{"a rule for other tools reads it", open, profiles.ProfileSpec{Rules: []profiles.RuleSpec{{Tools: []string{"db__*"}, When: &profiles.When{Expr: "args.mode == 'x'"}, Action: new("deny")}}}, `{"mode":"x","Mode":"y"}`, "", "args.Mode and args.mode differ in case alone"},
		{"plain data", open, profiles.ProfileSpec{}, `{"words":{"The":1,"the":2}}`, "", "args.words.The and args.words.the differ in case alone"},
		{"a schema that cannot be read may declare anything", `{"$ref":"https://elsewhere"}`, profiles.ProfileSpec{}, `{"a":1,"A":2}`, "args.A and args.a", ""},
		{"apart", declared, profiles.ProfileSpec{}, `{"path":"x","paths":"y","a":{"path":1},"b":{"Path":2}}`, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			caller, b := &fakeCaller{reply: okReply}, &book{}
			g := namesGate(t, row.schema, row.p, caller, b)
			_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "fs__put", Args: json.RawMessage(row.args)})
			last := b.records[1]
			if row.refused != "" {
				var wrong *ArgumentError
				if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, row.refused+" differ in case alone") || len(caller.calls) > 0 || !strings.Contains(last.Error, row.refused) {
					t.Errorf("got %v, sent %q, recorded %+v", err, caller.calls, last)
				}
				return
			}
			noted := ""
			if n := len(last.Reasons); n > 0 && strings.Contains(last.Reasons[n-1], "case alone") {
				noted = last.Reasons[n-1]
			}
			if err != nil || len(caller.calls) != 1 || noted != row.noted {
				t.Errorf("got %v, sent %q, noted %q", err, caller.calls, noted)
			}
		})
	}
}

// What a deny rule forbids of args.path does not go as args.Path, alone or beside it.
func TestDenyRuleHoldsForRespelledNames(t *testing.T) {
	deny := profiles.ProfileSpec{Rules: []profiles.RuleSpec{{Tools: []string{"fs__*"}, Action: new("deny"),
		When: &profiles.When{Expr: "has(args.path) && args.path.startsWith('/etc/')"}}}}
	for _, args := range []string{`{"Path":"/etc/shadow"}`, `{"path":"/tmp/x","Path":"/etc/shadow"}`} {
		caller := &fakeCaller{reply: okReply}
		g := namesGate(t, `{"type":"object"}`, deny, caller, &book{})
		_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "fs__put", Args: json.RawMessage(args)})
		var denied *approval.DeniedError
		if !errors.As(err, &denied) || !strings.Contains(denied.Message, "an argument's name differs from path in case alone") || len(caller.calls) > 0 {
			t.Errorf("%s: got %v, sent %q", args, err, caller.calls)
		}
	}
}

// A schema that takes too long to look through may declare anything.
func TestNamesInASchemaThatTakesTooLong(t *testing.T) {
	schema := `{"additionalProperties":{"anyOf":[` + strings.Repeat(`{"type":"object"},`, 2000) + `{}]}}`
	args := map[string]any{}
	for i := range 30 {
		args[fmt.Sprint("n", i)] = map[string]int{"a": 1, "A": 2}
	}
	for pairs, refused := range map[int]bool{1: false, 30: true} {
		some := map[string]any{}
		for i := range pairs {
			some[fmt.Sprint("n", i)] = args[fmt.Sprint("n", i)]
		}
		text, err := json.Marshal(some)
		if err != nil {
			t.Fatal(err)
		}
		g := namesGate(t, schema, profiles.ProfileSpec{}, &fakeCaller{reply: okReply}, &book{})
		_, err = g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "fs__put", Args: text})
		if (err != nil) != refused {
			t.Errorf("%d pairs: got %v", pairs, err)
		}
	}
}

// Many pairs in data are counted, not listed.
func TestManyNamesThatDifferInCaseAlone(t *testing.T) {
	args := map[string]any{}
	for i := range 30 {
		args[fmt.Sprintf("name%d", i)], args[fmt.Sprintf("NAME%d", i)] = i, i
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	b := &book{}
	g := namesGate(t, `{"type":"object"}`, profiles.ProfileSpec{}, &fakeCaller{reply: okReply}, b)
	if _, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "fs__put", Args: text}); err != nil {
		t.Fatal(err)
	}
	if notes := b.records[1].Reasons; notes[len(notes)-1] != "25 more pairs of names differ in case alone" {
		t.Errorf("noted %q", notes)
	}
}

// What a person writes is held to the same.
func TestEditedNamesThatDifferInCaseAlone(t *testing.T) {
	caller := &fakeCaller{reply: okReply}
	p := profiles.ProfileSpec{Asklist: []string{"fs__*"}}
	g := namesGate(t, `{"properties":{"path":{}}}`, p, caller, &book{})
	e := approval.StoredRequest{Request: approval.Request{Server: "fs", Tool: "put", Items: []approval.Item{{Key: approval.Key{Profile: "p"}}}}}
	edited := json.RawMessage(`{"path":"/tmp/x","PATH":"/etc/shadow"}`)
	const want = "args.PATH and args.path differ in case alone"
	if err := g.fits(e, edited); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an edit fits: %v", err)
	}
	tool, _ := g.View().Catalog.Lookup("fs__put")
	c := &call{gate: g, tool: tool}
	if err := c.edit(g.View(), nil, approval.Verdict{Approve: true, Args: edited, By: "ann"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an edit is taken: %v", err)
	}
}
