package gate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// hiddenNumber is what a rule hides under ssn.
const hiddenNumber = "123-45-6789"

// hidingGate is a gate before the server people, under a rule that hides ssn.
func hidingGate(t *testing.T, schema string, caller *fakeCaller, b *book) *Gate {
	t.Helper()
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Rules: []profiles.RuleSpec{
		{Tools: []string{"people__*"}, Action: new("notify"), Hidden: profiles.Hidden{"ssn": ""}},
	}}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := catalog.Build([]catalog.Server{{Name: "people", Tools: []catalog.Definition{{Name: "find", Input: json.RawMessage(schema)}}}})
	return New(&View{Profiles: set, Catalog: c}, Options{Caller: caller, Recorder: b})
}

// noNumber fails if what was recorded, or told to people, has the number.
func noNumber(t *testing.T, b *book, others ...any) {
	t.Helper()
	for _, v := range append(others, b.records) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), hiddenNumber) {
			t.Errorf("what is hidden stands in %s", text)
		}
	}
}

func TestHiddenValuesAreInNoArgumentError(t *testing.T) {
	for _, row := range []struct{ name, ssn, args, want string }{
		{"a pattern", `{"pattern":"^[0-9]{9}$"}`, `{"ssn":"123-45-6789"}`, "args.ssn does not match the pattern"},
		{"a choice", `{"enum":["a","b"]}`, `{"ssn":"123-45-6789"}`, "args.ssn: value must be one of 'a', 'b'"},
		{"a length", `{"maxLength":9}`, `{"ssn":"123-45-6789"}`, "args.ssn must have at most 9 characters"},
		{"a name beneath it", `{"additionalProperties":false}`, `{"ssn":{"123-45-6789":1}}`, "args.ssn is not an argument"},
		{"a value beneath it", `{"additionalProperties":{"type":"string"}}`, `{"ssn":{"123-45-6789":1}}`, "args.ssn must be string"},
		{"names beneath it that are no names", `{"propertyNames":{"maxLength":3}}`, `{"ssn":{"123-45-6789":1}}`, "args.ssn"},
		{"twice the same beneath it", `{}`, `{"ssn":{"123-45-6789":1,"123-45-6789":2}}`, "reading args.ssn: the name occurs twice"},
		{"two of a kind beneath it", `{"$ref":"https://elsewhere"}`, `{"ssn":{"123-45-6789a":1,"123-45-6789A":2}}`, "two names in args.ssn differ in case alone"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := &book{}
			g := hidingGate(t, `{"type":"object","properties":{"ssn":`+row.ssn+`}}`, &fakeCaller{reply: okReply}, b)
			_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "people__find", Args: json.RawMessage(row.args)})
			var wrong *ArgumentError
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			noNumber(t, b, wrong.Message)
			e := approval.StoredRequest{Request: approval.Request{Server: "people", Tool: "find", Items: []approval.Item{{Key: approval.Key{Profile: "p"}}}}}
			if err := g.fits(e, json.RawMessage(row.args)); err == nil || strings.Contains(err.Error(), hiddenNumber) {
				t.Errorf("of an edit is said %v", err)
			}
		})
	}
}

// No kind of error of the schema checker quotes the value that is wrong.
func TestArgumentErrorsQuoteNoValue(t *testing.T) {
	for _, row := range []struct{ schema, value string }{
		{`{"minimum":9000}`, `8642`}, {`{"maximum":9}`, `8642`}, {`{"exclusiveMinimum":9000}`, `8642`}, {`{"exclusiveMaximum":9}`, `8642`}, {`{"multipleOf":5}`, `8642`},
		{`{"const":"x"}`, `"8642"`}, {`{"enum":[1]}`, `8642`}, {`{"enum":[{}]}`, `8642`}, {`{"pattern":"^a"}`, `"8642"`}, {`{"not":{}}`, `8642`}, {`{"oneOf":[{},{}]}`, `8642`},
		{`{"contains":{"type":"string"}}`, `[8642]`}, {`{"uniqueItems":true}`, `[8642,8642]`}, {`{"items":{"minLength":9}}`, `["8642"]`}, {`false`, `8642`},
		{`{"minItems":2}`, `[8642]`}, {`{"dependentRequired":{"a":["b"]}}`, `{"a":8642}`}, {`{"contains":{},"maxContains":1}`, `[8642,8642]`},
	} {
		b := &book{}
		g := hidingGate(t, `{"type":"object","properties":{"n":`+row.schema+`}}`, &fakeCaller{reply: okReply}, b)
		_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "people__find", Args: json.RawMessage(`{"n":` + row.value + `}`)})
		var wrong *ArgumentError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, "args.n") || strings.Contains(wrong.Message, "8642") {
			t.Errorf("%s of %s: got %v", row.schema, row.value, err)
		}
	}
}

// What a rule hides stays hidden where it has no name: where the server repeats
// it, and where the script ends with that.
func TestHiddenValuesThatAreRepeated(t *testing.T) {
	caller, b := &fakeCaller{reply: `{"isError":true,"content":[{"type":"text","text":"nobody has the number ` + hiddenNumber + `"}]}`}, &book{}
	g := hidingGate(t, `{}`, caller, b)
	r, err := g.Begin(t.Context(), Origin{ID: "r1", Profile: "p",
		Script: `codemode.people__find({ssn: "` + hiddenNumber + `"})`, Input: json.RawMessage(`{"people":[{"ssn":"` + hiddenNumber + `"}],"year":2026}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.records[0].Input); got != `{"input":{"people":[{"ssn":"[hidden]"}],"year":2026}}` {
		t.Errorf("the input is recorded as %s", got)
	}
	if got := b.records[0].Script; !strings.HasPrefix(got, "codemode.people__find({ssn: ") {
		t.Errorf("the script is recorded as %s", got)
	}
	if _, err := g.Call(t.Context(), r, Call{Number: 1, Name: "people__find", Args: json.RawMessage(`{"ssn":"` + hiddenNumber + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Call(t.Context(), r, Call{Number: 2, Name: "people__find_" + hiddenNumber}); err == nil {
		t.Error("there is such a tool")
	}
	if err := r.RecordServerRequest(t.Context(), ServerRequest{Server: "people", Kind: "elicitation", About: "Is it " + hiddenNumber + "?", Outcome: "accept"}); err != nil {
		t.Fatal(err)
	}
	if err := r.End(t.Context(), "failed", "Error: nobody has the number "+hiddenNumber, Entries{}); err != nil {
		t.Fatal(err)
	}
	noNumber(t, b, r.Effects())
	if got := b.records[len(b.records)-1].Error; got != "Error: nobody has the number [hidden]" {
		t.Errorf("the end is recorded as %q", got)
	}
}

// Of a long value its beginning is known, and hides all that follows.
func TestLongHiddenValuesThatAreRepeated(t *testing.T) {
	long := strings.Repeat("abc ", 400) + hiddenNumber
	b := &book{}
	g := hidingGate(t, `{}`, &fakeCaller{reply: `{"isError":true,"content":[{"type":"text","text":"no: ` + long + `"}]}`}, b)
	if _, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "people__find", Args: json.RawMessage(`{"ssn":"` + long + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if got := b.records[2].Error; got != "no: [hidden]" {
		t.Errorf("recorded %q", got)
	}
}

// A saved script's input and source are recorded like a script's own.
func TestHiddenValuesOfSavedScripts(t *testing.T) {
	b := &book{}
	g := hidingGate(t, `{}`, &fakeCaller{}, b)
	view := g.View()
	g.Replace(&View{Profiles: view.Profiles, Catalog: catalog.Sources{Scripts: []catalog.Script{{Name: "look", Digest: "sha256:1",
		Input: json.RawMessage(`{"type":"object","properties":{"ssn":{"type":"string"}}}`), Source: `find({ssn: "` + hiddenNumber + `"})`}}}.Build()})
	r := begin(t, g, "p")
	if _, err := g.Saved(t.Context(), r, Call{Number: 1, Name: "look", Args: json.RawMessage(`{"ssn":"` + hiddenNumber + `"}`)}); err != nil {
		t.Fatal(err)
	}
	noNumber(t, b)
	if got := string(b.records[1].Input); got != `{"ssn":"[hidden]"}` {
		t.Errorf("its input is recorded as %s", got)
	}
}
