package catalog

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// judgedServers are those whose tools testdata/judged speaks of.
var judgedServers = strings.Fields(`airtable brave chrome-devtools context7 desktop-commander everything fetch filesystem firecrawl
	git-cyanheads github google-maps kubernetes memory mongodb playwright postgres sentry sequential-thinking tavily`)

// real returns servers as their packages list them.
func real(t testing.TB, names ...string) []Server {
	t.Helper()
	var servers []Server
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join("../../profiles/known/testdata/lists", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name, Title, Description  string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		s := Server{Name: name}
		for _, d := range list.Tools {
			s.Tools = append(s.Tools, Definition{Name: d.Name, Title: d.Title, Description: d.Description, Input: d.InputSchema, Output: d.OutputSchema})
		}
		servers = append(servers, s)
	}
	return servers
}

// A judgement is one line of testdata/judged.
type judgement struct {
	query string
	right []string // patterns of paths; none if nothing is right
}

func judgements(t testing.TB, file string) []judgement {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/judged", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []judgement
	for line := range strings.Lines(string(raw)) {
		query, right, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok {
			t.Fatalf("%s: no judgement in %q", file, line)
		}
		j := judgement{query: query}
		if right != "none" {
			j.right = strings.Fields(right)
		}
		all = append(all, j)
	}
	return all
}

// is reports whether the tool is right.
func (j judgement) is(t *testing.T, tool string) bool {
	return slices.ContainsFunc(j.right, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	})
}

// What testdata/judged/README.md defines. The numbers may only rise.
func TestJudged(t *testing.T) {
	c := Build(real(t, judgedServers...))
	if n := len(c.listed); n != 308 {
		t.Fatalf("%d tools, the queries were judged with 308", n)
	}
	v := c.View(nil)
	for file, want := range map[string]struct {
		precision float64
		found     int // queries without an answer that find something
	}{
		"tuned.txt":   {0.90, 0},
		"heldout.txt": {0.90, 0},
	} {
		answered, sum, found := 0, 0.0, 0
		for _, j := range judgements(t, file) {
			for _, pattern := range j.right {
				if !slices.ContainsFunc(c.listed, func(tool *Tool) bool { return judgement{right: []string{pattern}}.is(t, tool.Path()) }) {
					t.Errorf("%s: no tool is %s", file, pattern)
				}
			}
			var first []string
			for _, e := range v.Search(SearchQuery{Query: j.query}).Tools {
				tool, _ := c.Lookup(e.Name)
				first = append(first, tool.Path())
			}
			all := len(first)
			first = first[:min(3, all)]
			if len(j.right) == 0 {
				if all > 0 {
					found++
					t.Logf("%s: %q finds %v", file, j.query, first)
				}
				continue
			}
			answered++
			right := 0
			for _, tool := range first {
				if j.is(t, tool) {
					right++
				}
			}
			if right < len(first) || right == 0 {
				t.Logf("%s: %q finds %d: %v, %d right", file, j.query, all, first, right)
			}
			sum += float64(right) / float64(max(1, len(first)))
		}
		precision := sum / float64(answered)
		t.Logf("%s: precision at 3 is %.3f over %d queries; %d without an answer find something", file, precision, answered, found)
		if precision < want.precision || found > want.found {
			t.Errorf("%s: precision at 3 is %.3f, want %.3f; %d queries without an answer find something, want %d", file, precision, want.precision, found, want.found)
		}
	}
}

// Of tools that fit alike, those come first whose server is named after the thing.
func TestSearchAtHome(t *testing.T) {
	v := Build(real(t, judgedServers...)).View(nil)
	for query, want := range map[string]string{"read a file": "filesystem__", "write a file": "filesystem__", "a file to read": "filesystem__", "read with desktop commander": "desktop_commander__"} {
		found := v.Search(SearchQuery{Query: query}).Tools
		if len(found) == 0 || !strings.HasPrefix(found[0].Name, want) {
			t.Errorf("%q finds %+v, want one of %s first", query, found, want)
		}
	}
}
