package catalog_test

import (
	"encoding/json"
	"testing"

	"codemode-bridge/bridge/catalog"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsKeepTheServersOrder(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}, "body": {"properties": {"x": {}}}, "a": true}}`: {"to", "body", "a"},
		`{"properties": {}}`:         nil,
		`{"properties": ["a"]}`:      nil,
		`{"type": "object"}`:         nil,
		`[{"properties": {"a":{}}}]`: nil,
		`{"properties": {"a":`:       nil,
		``:                           nil,
	} {
		if diff := cmp.Diff(want, catalog.Definition{Input: json.RawMessage(schema)}.Arguments()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schema, diff)
		}
	}
}
