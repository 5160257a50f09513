package catalog

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// testdata/search.txt holds queries ("> words") and, below each, the names that
// are found among testdata/tools.txt, best first, and the unmatched words.
func TestSearchRanking(t *testing.T) {
	const file = "testdata/search.txt"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := Build(sample(t)).View(nil)
	var got strings.Builder
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "#"):
			got.WriteString(line)
		case strings.HasPrefix(line, "> "):
			query := strings.TrimSpace(line[2:])
			r := v.Search(SearchQuery{Query: query, Limit: 6})
			fmt.Fprintf(&got, "\n> %s\n", query)
			for _, e := range r.Tools {
				fmt.Fprintf(&got, "  %s\n", e.Name)
			}
			if r.More > 0 {
				fmt.Fprintf(&got, "  and %d more\n", r.More)
			}
			if len(r.Unmatched) > 0 {
				fmt.Fprintf(&got, "  unmatched: %s\n", strings.Join(r.Unmatched, ", "))
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(raw) {
		t.Errorf("%s is now (run with -update if that is right):\n%s", file, got.String())
	}
}

// A query that names a thing is not answered by a tool that shares its verbs alone.
func TestSearchByVerb(t *testing.T) {
	v := Build(append(sample(t), Server{Name: "draw", Tools: []Definition{{Name: "undo_or_redo", Description: "Undoes or redoes."}, {Name: "upload_download"}}})).View(nil)
	if r := v.Search(SearchQuery{Query: "upload or download invoices"}); len(r.Tools) > 0 {
		t.Errorf("invoices are found: %v", r.Tools)
	}
	if r := v.Search(SearchQuery{Query: "upload or download"}); len(r.Tools) != 1 {
		t.Errorf("verbs alone find %v", r.Tools)
	}
}

func TestSearchServer(t *testing.T) {
	v := Build(sample(t)).View(nil)
	r := v.Search(SearchQuery{Query: "create issue", Server: "linear"})
	if len(r.Tools) == 0 || r.Tools[0].Name != "linear__create_issue" {
		t.Errorf("got %v", r.Tools)
	}
	for _, e := range r.Tools {
		if !strings.HasPrefix(e.Name, "linear__") {
			t.Errorf("server linear has %s", e.Name)
		}
	}
}

func TestSearchLimits(t *testing.T) {
	v := Build(thousands(300)).View(nil)
	row := func(limit, want int) {
		t.Helper()
		r := v.Search(SearchQuery{Query: "issue", Limit: limit})
		if len(r.Tools) != want || r.More == 0 {
			t.Errorf("limit %d gives %d tools and %d more", limit, len(r.Tools), r.More)
		}
		for i, e := range r.Tools {
			if (e.Declaration != "") != (i < maxDeclared) {
				t.Errorf("entry %d has the declaration %q", i, e.Declaration)
			}
		}
	}
	row(3, 3)
	row(20, 20)
}

// Without a limit an answer is short, however much fits and however long it is.
func TestSearchIsBrief(t *testing.T) {
	tools := thousands(300)
	tools = append(tools, real(t, "notion", "linear-tacticlaunch", "brave", "playwright")...)
	v := Build(tools).View(nil)
	for _, query := range []string{"issue", "create page", "create", "search", "web search", "click", "update issue title description priority assignee"} {
		r := v.Search(SearchQuery{Query: query})
		text, err := encode(r.Tools)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Tools) == 0 || len(text) > maxAnswer+len("[]") || r.Tools[0].Declaration == "" {
			t.Errorf("%q: %d tools in %d bytes, the first declared as %q", query, len(r.Tools), len(text), r.Tools[0].Declaration)
		}
		if more := v.Search(SearchQuery{Query: query, Limit: MaxLimit}); len(more.Tools)+more.More != len(r.Tools)+r.More {
			t.Errorf("%q: %d and %d more, with a limit %d and %d more", query, len(r.Tools), r.More, len(more.Tools), more.More)
		}
	}
}

// The bridge's own note tells a model what a list of tools does not.
func TestSearchNote(t *testing.T) {
	c := Sources{Servers: sample(t), Absent: []Absent{{"jira", "needs a login"}, {"aws", "connecting"}}}.Build()
	all := c.View(nil)
	row := func(v *View, q SearchQuery, want string) {
		t.Helper()
		if got := v.Search(q).Note(q); got != want {
			t.Errorf("%+v: the note is %q, want %q", q, got, want)
		}
	}
	row(all, SearchQuery{Query: "book a flight"}, `search_tools found nothing for "book a flight": no tool has "book", "flight"; not searched: aws (connecting), jira (needs a login)`)
	row(all, SearchQuery{Query: "take a screenshot"}, "not searched: aws (connecting), jira (needs a login)")
	row(all, SearchQuery{Query: "take a screenshot", Server: "playwright"}, "")
	row(c.View(func(server, _ string) bool { return server != "aws" }), SearchQuery{Query: "take a screenshot"}, "not searched: jira (needs a login)")
	row(Build(sample(t)).View(nil), SearchQuery{Query: "take a screenshot"}, "")
	row(Build(thousands(300)).View(nil), SearchQuery{Query: "issue"}, `search_tools found 24 more for "issue": give a limit to see them`)
}

// What its server calls deprecated comes after what it does not, unless it is asked for
// by name.
func TestSearchDeprecated(t *testing.T) {
	v := Build(real(t, "filesystem")).View(nil)
	names := func(query string) (all []string) {
		for _, e := range v.Search(SearchQuery{Query: query, Limit: 20}).Tools {
			all = append(all, e.Name)
		}
		return all
	}
	if got := names("read file"); len(got) < 3 || got[len(got)-1] != "filesystem__read_file" {
		t.Errorf("read file finds %v", got)
	}
	if got := names("filesystem__read_file"); len(got) == 0 || got[0] != "filesystem__read_file" {
		t.Errorf("its name finds %v", got)
	}
	for text, want := range map[string]bool{
		"Deprecated: use b": true, "[Deprecated] Reads": true, "Reads. DEPRECATED: use b": true, "Reads. This tool is deprecated": true, "(deprecated) Reads": true,
		"Lists deprecated APIs": false, "Finds calls of what is deprecated": false, "": false,
	} {
		if got := deprecated(Definition{Description: text}); got != want {
			t.Errorf("%q: deprecated is %v", text, got)
		}
	}
}

// Every tool is found by its own name, and whatever is asked, the answer is
// bounded and the same again.
func TestSearchProperties(t *testing.T) {
	servers := sample(t)
	c := Build(servers)
	v := c.View(nil)
	for _, tool := range c.Tools()[c.own:] {
		r := v.Search(SearchQuery{Query: tool.Path(), Limit: 3})
		if !slices.ContainsFunc(r.Tools, func(e Item) bool { return e.Name == tool.Script }) {
			t.Errorf("%s is not found by its name", tool.Path())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		query := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-z]{1,7} ){0,40}`)).Draw(t, "query")
		a, b := v.Search(SearchQuery{Query: query}), v.Search(SearchQuery{Query: query})
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%q: two answers", query)
		}
		if a.Tools == nil || len(a.Tools) > DefaultLimit {
			t.Fatalf("%q: %d tools", query, len(a.Tools))
		}
	})
}

func TestStem(t *testing.T) {
	same := func(words ...string) {
		t.Helper()
		for _, w := range words[1:] {
			if stem(w) != stem(words[0]) {
				t.Errorf("%s is %s, %s is %s", words[0], stem(words[0]), w, stem(w))
			}
		}
	}
	same("create", "creates", "created", "creating", "creation")
	same("issue", "issues")
	same("query", "queries")
	same("search", "searches", "searching", "searched")
	same("branch", "branches")
	same("process", "processes")
	same("status", "statuses")
	same("get", "getting")
	same("install", "installing", "installed")
	same("file", "files", "filing")
	same("delete", "deletion", "deleted")
	same("pr", "prs")
	for _, w := range []string{"string", "this", "bus", "is", "als", "é", "ing", "sql"} {
		if w != "als" && stem(w) != w {
			t.Errorf("%s is cut to %s", w, stem(w))
		}
	}
}

func TestWords(t *testing.T) {
	row := func(text string, want ...string) {
		t.Helper()
		var got []string
		words(text, func(stem string) { got = append(got, stem) })
		if !slices.Equal(got, want) {
			t.Errorf("words of %q: %q, want %q", text, got, want)
		}
	}
	row("create_issue", "creat", "issu")
	row("getHTTPServer2", "get", "http", "server2", "gethttpserver2")
	row("list-my.files/now", "list", "my", "fil", "now")
	row("天気予報", "天気", "気予", "予報")
	row("  ")
}
