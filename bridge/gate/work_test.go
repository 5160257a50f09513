package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
)

// fan is a schema of n parts each of which refers twice to the next.
func fan(word string, n int, last string) string {
	parts := []string{fmt.Sprintf(`"d%d":%s`, n, last)}
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		parts = append(parts, fmt.Sprintf(`"d%d":{"%s":[%s,%s]}`, i, word, next, next))
	}
	return `{"type":"object","$ref":"#/$defs/d0","$defs":{` + strings.Join(parts, ",") + `}}`
}

// A schema that would take for ever to read, to show or to check does not keep the
// bridge: its arguments are not checked. Each of these took minutes, or did not end.
func TestSchemasThatNeverEnd(t *testing.T) {
	deepArgs := `{"a":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 41)
	for name, schema := range map[string]string{
		"all of both":      fan("allOf", 60, `{"type":"object"}`),
		"any of both":      fan("anyOf", 60, `{"type":"string"}`),
		"one of both":      fan("oneOf", 60, `{"type":"object"}`),
		"not any of both":  `{"not":` + fan("anyOf", 60, `{"type":"string"}`) + `}`,
		"nesting":          strings.Repeat(`{"not":`, 5000) + "{}" + strings.Repeat("}", 5000),
		"itself, twice":    `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
		"itself, by names": `{"$id":"x:y","properties":{"a":{"$id":"x:z","allOf":[{"$ref":"x:y"},{"$ref":"x:y"}]}}}`,
		"patterns":         `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"pattern":"`+strings.Repeat("(x?){1,999}", 40)+`"},`, 200) + `{}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := catalog.Build([]catalog.Server{{Name: "s", Tools: []catalog.Definition{{Name: "t", Input: json.RawMessage(schema)}}}})
			tool, ok := c.Lookup("s__t")
			if !ok {
				t.Fatal("there is no such tool")
			}
			args, err := canon.Parse([]byte(deepArgs))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (&View{Catalog: c}).check(tool, args, nil); err != nil {
				t.Errorf("refused: %v", err)
			}
			if text := tool.Declaration(); !strings.HasPrefix(text, "codemode.s__t(") {
				t.Errorf("it is declared as %s", text)
			}
		})
	}
}

// Schemas as they are in real life are checked, also those that refer to themselves.
func TestBoundsLeaveRealSchemas(t *testing.T) {
	const tree = `{"type":"object","$id":"https://example.com/tree","properties":{"name":{"type":"string","pattern":"^[a-z]+$"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`
	c := catalog.Build([]catalog.Server{{Name: "s", Tools: []catalog.Definition{{Name: "t", Input: json.RawMessage(tree)}}}})
	tool, _ := c.Lookup("s__t")
	v := &View{Catalog: c}
	for text, want := range map[string]string{
		`{"name":"a","kids":[{"name":"b","kids":[{"name":"c"}]}]}`: "",
		`{"name":"a","kids":[{"name":"b","kids":[{}]}]}`:           "args.kids.0.kids.0.name is missing",
		`{"name":"A"}`: "args.name",
	} {
		args, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := v.check(tool, args, nil); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
