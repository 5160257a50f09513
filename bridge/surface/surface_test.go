package surface

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/catalog"
)

func TestDescriptionsFit(t *testing.T) {
	var servers []catalog.Server
	for i := range 60 {
		s := catalog.Server{Name: fmt.Sprintf("a-rather-long-server-name-%d", i)}
		for j := range i + 1 {
			s.Tools = append(s.Tools, catalog.Definition{Name: fmt.Sprintf("tool_%d", j), Input: json.RawMessage(`{"type":"object"}`)})
		}
		servers = append(servers, s)
	}
	for n := range len(servers) + 1 {
		view := catalog.Build(servers[:n]).View(nil)
		text := describe(view)
		if len(text) > maxDescription {
			t.Fatalf("with %d servers the description has %d bytes", n, len(text))
		}
		if text != describe(catalog.Build(servers[:n]).View(nil)) {
			t.Fatalf("with %d servers the description is not stable", n)
		}
	}
	few, many := describe(catalog.Build(servers[:1]).View(nil)), describe(catalog.Build(servers).View(nil))
	if !strings.Contains(few, "TOOLS\n") || !strings.Contains(many, "SERVERS (tools)") || !strings.Contains(many, "more") {
		t.Errorf("few:\n%s\nmany:\n%s", few, many)
	}
}

// Every client has the schema in its context, once for each eval tool.
func TestAnswerSchemaIsSmall(t *testing.T) {
	if len(AnswerSchema) > 512 {
		t.Errorf("it has %d bytes", len(AnswerSchema))
	}
}
