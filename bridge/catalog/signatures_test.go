package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSignatures(t *testing.T) {
	schema := func(text string) json.RawMessage { return json.RawMessage(text) }
	const path, content = `{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`, `{"type":"object","properties":{"content":{"type":"string"}}}`
	from := Sources{
		Servers: []Server{
			{Name: "chrome-devtools", Tools: []Definition{{Name: "take-screenshot", Input: schema(`{"type":"object","additionalProperties":false}`)}, {Name: "type", Input: schema(path)}}},
			{Name: "files", Tools: []Definition{
				{Name: "read", Input: schema(path), Output: schema(content)}, {Name: "list", Input: schema(path), Output: schema(content)},
				{Name: "old", Description: "DEPRECATED: use read", Input: schema(path), Output: schema(content)},
				{Name: "count", Input: schema(path)}, {Name: "tree", Input: schema(path), Output: schema(`{"type":"object","properties":{"nodes":{"type":"array"}}}`)}}},
			{Name: "gone", Tools: []Definition{{Name: "old", Description: "DEPRECATED: use files", Input: schema(path)}}},
		},
		Scripts: []Script{{Name: "late", Input: schema(`{"type":"object","required":["days"],"properties":{"days":{"type":"number"}}}`)}, {Name: "all"}, {Name: "broken", Problem: "line 1"}},
	}
	const want = `chrome_devtools: take_screenshot(), type({path})
files => {content}: count({path}) => text, list({path}), read({path}), tree({path}) => {nodes[]}
saved scripts, called as codemode.run: run("all"), run("late", {days: number})`
	view := from.Build().View(nil)
	if got, ok := view.Signatures(len(want)); !ok || got != want {
		t.Errorf("%v\ngot:\n%s\nwant:\n%s", ok, got, want)
	}
	for limit := range len(want) {
		if got, ok := view.Signatures(limit); ok || got != "" {
			t.Fatalf("in %d bytes, of %d, fits\n%s", limit, len(want), got)
		}
	}
	if got, ok := from.Build().View(func(server, tool string) bool { return server == "files" && tool == "read" }).Signatures(500); !ok || !strings.HasPrefix(got, "files => {content}: read({path})\nsaved") {
		t.Errorf("a profile that sees one tool gets %v\n%s", ok, got)
	}
	// A tool that keeps another name cannot stand in the line of its server.
	from.Kept = map[ToolRef]string{{"files", "read"}: "papers__read"}
	if built := from.Build(); built.byRef[ToolRef{"files", "read"}].Script != "papers__read" {
		t.Fatal("it does not keep its name")
	} else if got, ok := built.View(nil).Signatures(5000); ok {
		t.Errorf("it is listed:\n%s", got)
	}
}

// What servers have besides tools survives the cache, and profiles hide it.
func TestOffers(t *testing.T) {
	tools := []Definition{{Name: "x"}}
	built := Build([]Server{{Name: "both", Tools: tools, Resources: true, Prompts: true}, {Name: "none", Tools: tools}, {Name: "prompts", Tools: tools, Prompts: true}})
	dir := t.TempDir()
	if err := built.Save(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again := Build(kept)
	if !again.SameOffers(built) || again.SameOffers(Build([]Server{{Name: "both", Tools: tools, Resources: true}})) {
		t.Errorf("the cache keeps %+v of %+v", again.offers, built.offers)
	}
	for _, row := range []struct {
		sees               func(server, tool string) bool
		resources, prompts bool
	}{
		{func(string, string) bool { return true }, true, true},
		{func(_, tool string) bool { return tool != ReadResource }, false, true},
		{func(server, _ string) bool { return server == "prompts" }, false, true},
		{func(server, _ string) bool { return server == "none" }, false, false},
	} {
		if resources, prompts := again.View(row.sees).Offers(); resources != row.resources || prompts != row.prompts {
			t.Errorf("resources %v, prompts %v, want %v and %v", resources, prompts, row.resources, row.prompts)
		}
	}
}
