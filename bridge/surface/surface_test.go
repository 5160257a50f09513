package surface

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"codemode-bridge/bridge/catalog"
)

func TestDescriptionsFit(t *testing.T) {
	var servers []catalog.Server
	for i := range 60 {
		s := catalog.Server{Name: fmt.Sprintf("a-rather-long-server-name-%d", i)}
		for j := range i + 1 {
			s.Tools = append(s.Tools, catalog.Definition{Name: fmt.Sprintf("tool_%d", j), Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)})
		}
		servers = append(servers, s)
	}
	for n := range len(servers) + 1 {
		view := catalog.Build(servers[:n]).View(nil)
		text, listed := describe(view)
		if len(text) > maxDescription {
			t.Fatalf("with %d servers the description has %d bytes", n, len(text))
		}
		if again, _ := describe(catalog.Build(servers[:n]).View(nil)); text != again {
			t.Fatalf("with %d servers the description is not stable", n)
		}
		if listed == strings.Contains(text, "FIND: ") {
			t.Errorf("with %d servers listed is %v:\n%s", n, listed, text)
		}
	}
	few, _ := describe(catalog.Build(servers[:1]).View(nil))
	some, _ := describe(catalog.Build(servers[:8]).View(nil))
	many, _ := describe(catalog.Build(servers).View(nil))
	if !strings.Contains(few, "TOOLS\n") || !strings.Contains(some, "\na_rather_long_server_name_2: tool_0(), tool_1(), tool_2()\n") || !strings.Contains(many, "SERVERS (tools)") || !strings.Contains(many, "more") {
		t.Errorf("few:\n%s\nsome:\n%s\nmany:\n%s", few, some, many)
	}
}

// The example calls tools that are there, or says by its name that it calls none.
func TestExample(t *testing.T) {
	tool := func(name, schema string) catalog.Definition {
		return catalog.Definition{Name: name, Input: json.RawMessage(schema)}
	}
	const owned, assigned = `{"properties":{"owner":{},"repo":{},"state":{}}}`, `{"properties":{"assignee":{}}}`
	const path = `{"required":["path"],"properties":{"path":{"type":"string"}}}`
	hub := catalog.Server{Name: "hub", Tools: []catalog.Definition{tool("list_issues", owned)}}
	lines := catalog.Server{Name: "lines", Tools: []catalog.Definition{tool("list_issues", assigned)}}
	files := catalog.Server{Name: "files", Tools: []catalog.Definition{tool("read_media_file", path), tool("read_text_file", path),
		{Name: "read_file", Description: "DEPRECATED: use read_text_file", Input: json.RawMessage(path)}, tool("write_file", path)}}
	row := func(want string, servers ...catalog.Server) {
		t.Helper()
		text := example(catalog.Build(servers).View(nil))
		got := strings.Join(regexp.MustCompile(`codemode\.\w+`).FindAllString(text, -1), " ")
		if got != want {
			t.Errorf("the example calls %s, want %s:\n%s", got, want, text)
		}
	}
	row("codemode.hub__list_issues codemode.lines__list_issues", hub, lines, files)
	row("codemode.hub__list_issues", hub, files)
	row("codemode.files__read_text_file", lines, files)
	row("codemode.server__list", lines)
	row("codemode.server__list")
	row("codemode.server__list", catalog.Server{Name: "odd", Tools: []catalog.Definition{
		tool("read_it", `{"required":["delete"],"properties":{"delete":{"type":"string"}}}`), tool("read_two", `{"required":["a","b"],"properties":{"a":{"type":"string"}}}`),
		tool("read_n", `{"required":["n"],"properties":{"n":{"type":"integer"}}}`), tool("read_dash", `{"required":["a-b"],"properties":{"a-b":{"type":"string"}}}`)}})
	if text := example(catalog.Build([]catalog.Server{hub}).View(func(string, string) bool { return false })); strings.Contains(text, "hub") {
		t.Errorf("the example has what the profile hides:\n%s", text)
	}
}

// What is not ready is named in a line, and never at the cost of the bound.
func TestNotReady(t *testing.T) {
	from := catalog.Sources{Servers: []catalog.Server{{Name: "hub", Tools: []catalog.Definition{{Name: "a"}}}},
		Absent: []catalog.Absent{{Server: "mail", Why: "failed: no such file\nas npx"}, {Server: "chat", Why: "needs a login"}}}
	if text, listed := describe(from.Build().View(nil)); listed || !strings.Contains(text, "\nNOT READY: chat (needs a login), mail (failed: no such file as npx)\n") {
		t.Errorf("it says nothing of them:\n%s", text)
	}
	for i := range 500 {
		from.Absent = append(from.Absent, catalog.Absent{Server: fmt.Sprintf("server-%d", i), Why: strings.Repeat("why ", 100)})
	}
	if text, _ := describe(from.Build().View(nil)); len(text) > maxDescription || !strings.Contains(text, "NOT READY: chat (needs a login)") || !strings.Contains(text, " more\n") {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}
}

// Every client has the schema in its context, once for each eval tool.
func TestAnswerSchemaIsSmall(t *testing.T) {
	if len(AnswerSchema) > 512 {
		t.Errorf("it has %d bytes", len(AnswerSchema))
	}
}
