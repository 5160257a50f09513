package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

// What nobody has accepted reaches no model: no text of the server's, whichever
// way a tool is asked for.
func TestUnreadToolsSayNothing(t *testing.T) {
	definition := Definition{Name: "fetch", Title: "canary title", Description: "canary description", Input: json.RawMessage(
		`{"type":"object","description":"canary root","properties":{"url":{"type":"string","description":"canary property","default":"canary default","examples":["canary example"],"format":"canary format","pattern":"canary"}}}`),
		Output: json.RawMessage(`{"type":"object","description":"canary output","properties":{"n":{"type":"number","title":"canary number"}}}`)}
	build := func(unread map[string]string) *Catalog {
		return Build([]Server{{Name: "web", Tools: []Definition{definition}, Unread: unread}, server("other", "get")})
	}
	c := build(map[string]string{"fetch": "nobody has read it"})
	long, err := c.View(nil).Declare("web__fetch")
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.View(nil).Page(PageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	found := c.View(nil).Search(SearchQuery{Query: "fetch"})
	short, _ := c.View(nil).Declarations(1 << 20)
	all, err := json.Marshal([]any{long, page, found, short})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all), "canary") {
		t.Errorf("a model reads %s", all)
	}
	for _, want := range []string{"[nobody has read it]", "url?: string"} {
		if !strings.Contains(long, want) {
			t.Errorf("a model reads %s, without %q", long, want)
		}
	}
	if len(found.Tools) == 0 {
		t.Fatal("it is not found by its name")
	}
	if got := found.Tools[0].Summary; got != "[nobody has read it]" {
		t.Errorf("a model reads the summary %q", got)
	}
	if hits := c.View(nil).Search(SearchQuery{Query: "canary"}); len(hits.Tools) != 0 {
		t.Errorf("it is found by what it says of itself: %+v", hits)
	}
	read := build(nil)
	if read.Revision() == c.Revision() {
		t.Error("that it may be read is no change")
	}
	if hits := read.View(nil).Search(SearchQuery{Query: "canary"}); len(hits.Tools) != 1 {
		t.Errorf("it is not found: %+v", hits)
	}
	a, _ := c.Lookup("web__fetch")
	b, _ := read.Lookup("web__fetch")
	if a.Digest != b.Digest || a.Description != "canary description" {
		t.Error("the definition itself is another")
	}
}
