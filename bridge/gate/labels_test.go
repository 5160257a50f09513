package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// renamed is a view in which the server fs is called files, and another one, that has nothing to hide, is called fs.
func renamed(g *Gate) *View {
	was := g.View()
	object := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"body":{},"to":{}}}`)
	return &View{Profiles: was.Profiles, Catalog: catalog.Build([]catalog.Server{
		{Name: "files", Tools: []catalog.Definition{{Name: "read", Input: object}}},
		{Name: "fs", Tools: []catalog.Definition{{Name: "read", Input: object}}},
		{Name: "mail", Tools: []catalog.Definition{{Name: "send", Input: object}}},
	}), Meanings: map[string]Meant{
		"files": was.Meanings["fs"], "mail": was.Meanings["mail"],
		"fs": {Labels: func(string) ([]string, bool) { return nil, true }},
	}}
}

// What was read stays private when its server gets another name and another server its name, for the run
// that has read it and for the next ones; and what is read under the new name is private, too.
func TestLabelsOutliveANewName(t *testing.T) {
	for _, by := range []string{"content", "context"} {
		g := flowing(t, aFlow("deny", by), &book{})
		r := begin(t, g, "p")
		read := func(r *Run, number int, name string) {
			t.Helper()
			if err := callTo(t, g, r, number, name, map[string]any{"path": "a.md"}); err != nil {
				t.Fatal(err)
			}
		}
		next := func(id, session string) *Run {
			r, err := g.Begin(t.Context(), Origin{ID: id, Session: session, Client: "test", Profile: "p"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		read(r, 1, "fs__read")
		g.Replace(renamed(g))
		read(r, 2, "fs__read") // the other server's answer takes no label from the first one's
		if callTo(t, g, r, 3, "mail__send", sends(salary)) == nil {
			t.Errorf("by %s: the run sent what it had read under the old name", by)
		}
		if by == "context" && callTo(t, g, next("r2", "s1"), 1, "mail__send", sends("hello")) == nil {
			t.Error("the next run of the session is in no context")
		}
		other := next("r3", "s3")
		if read(other, 1, "fs__read"); callTo(t, g, other, 2, "mail__send", sends(salary)) != nil {
			t.Errorf("by %s: what the other server answers is taken for private", by)
		}
		if read(other, 3, "files__read"); callTo(t, g, other, 4, "mail__send", sends(salary)) == nil {
			t.Errorf("by %s: what is read under the new name is sent", by)
		}
	}
}

// A tool has the labels of its server's file under whichever name the server has, and beside a second server of the same
// package. When it is listed anew as nobody has described it, it keeps them, and may have any other.
func TestLabelsOfToolsThatAreListedAnew(t *testing.T) {
	notes, err := known.Parse("notes", []byte(`{"title": "Notes", "verified": "1.2.3", "launch": [{"npm": "notes-mcp"}],
		"tools": {"read": {"effects": ["read"], "where": "local", "labels": ["private"], "args": {"id": "plain"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const described = `{"type":"object","properties":{"id":{}}}`
	for name, row := range map[string]struct {
		tool, schema string
		unreviewed   bool
		declined     bool // nobody has accepted the file
		want         profiles.Labels
	}{
		"as it is described":          {tool: "read", schema: described, want: profiles.Labels{Has: []string{"private"}}},
		"with one more that it needs": {tool: "read", schema: `{"type":"object","properties":{"id":{},"to":{}},"required":["to"]}`, want: profiles.Labels{Has: []string{"private"}, Unknown: true}},
		"changed since it was seen":   {tool: "read", schema: described, unreviewed: true, want: profiles.Labels{Has: []string{"private"}, Unknown: true}},
		"a file that nobody accepted": {tool: "read", schema: described, declined: true, want: profiles.Labels{Has: []string{"private"}, Unknown: true}},
		"under another name":          {tool: "fetch", schema: described, want: profiles.Labels{Unknown: true}},
	} {
		for _, servers := range [][]string{{"notes"}, {"memos"}, {"memos", "notes"}} {
			v := &View{Meanings: map[string]Meant{}, Unreviewed: map[ToolName]UnreviewedTool{}}
			var all []catalog.Server
			for _, server := range servers {
				v.Meanings[server] = Meant{Server: notes, Accepted: !row.declined}
				if row.unreviewed {
					v.Unreviewed[ToolName{server, row.tool}] = UnreviewedTool{Why: "it has changed"}
				}
				all = append(all, catalog.Server{Name: server, Tools: []catalog.Definition{{Name: row.tool, Input: json.RawMessage(row.schema)}}})
			}
			v.Catalog = catalog.Build(all)
			for _, server := range servers {
				tool, ok := v.Catalog.Tool(catalog.ToolRef{Server: server, Tool: row.tool})
				if !ok {
					t.Fatal(server)
				}
				if got := v.labels(tool); got.Unknown != row.want.Unknown || !slices.Equal(got.Has, row.want.Has) {
					t.Errorf("%s, of %s among %s: %s", name, server, servers, fmt.Sprintf("%+v, want %+v", got, row.want))
				}
			}
		}
	}
}
