package gate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
)

// covers makes covers of calls to known servers, and to one that nobody knows.
type covers struct {
	*testing.T
	view *View
	run  *Run
}

// shopFile is the file of a server.
const shopFile = `{
	"title": "Shop", "verified": "1.0.0", "launch": [{"npm": "shop"}],
	"tools": {
		"comment": {"effects": ["write", "send"], "where": "remote", "net": "fixed", "args": {"owner": "place", "repo": "place", "issue_number": "place", "body": "content"}},
		"update": {"effects": ["write", "send"], "where": "remote", "net": "fixed", "args": {"owner": "place", "repo": "place", "issue_number": "place", "title": "content", "body": "content", "state": "plain", "weight": "plain", "draft": "plain", "assignees": "recipient"}},
		"remove": {"effects": ["delete"], "where": "remote", "net": "fixed", "args": {"owner": "place", "issue_number": "place", "why": "content"}},
		"project": {"effects": ["write"], "where": "remote", "net": "fixed", "args": {"project": "place", "text": "content"}},
		"pay": {"effects": ["spend"], "where": "remote", "net": "fixed", "args": {"to": "recipient", "cents": "amount", "note": "content"}},
		"sql": {"effects": ["read", "write", "delete", "execute"], "where": "remote", "net": "fixed", "when": {"query": {"select": {"effects": ["read"]}}}, "args": {"query": "sql", "db": "store", "from": "path|host"}},
		"search": {"effects": ["read"], "where": "remote", "net": "fixed", "args": {"query": "plain", "page": "plain"}},
		"fetch": {"effects": ["read"], "where": "remote", "net": "chosen", "args": {"url": "host", "max": "plain"}},
		"run": {"effects": ["execute"], "where": "local", "args": {"command": "command", "timeout": "plain"}},
		"click": {"effects": ["write"], "where": "remote", "net": "chosen", "stateful": true, "args": {"target": "plain"}},
		"read_file": {"effects": ["read"], "where": "workspace", "args": {"path": "path", "head": "plain"}},
		"write_file": {"effects": ["write"], "where": "workspace", "args": {"path": "path", "content": "content"}},
		"edit_file": {"effects": ["write"], "where": "workspace", "args": {"path": "path", "edits": "content", "dryRun": "plain"}},
		"move_file": {"effects": ["write"], "where": "workspace", "args": {"from": "path", "to": "path"}},
		"remember": {"effects": ["write"], "where": "local", "args": {"entities": "content"}}
	}
}`

func newCovers(t *testing.T, ws string) covers {
	t.Helper()
	file, err := known.Parse("shop", []byte(shopFile))
	if err != nil {
		t.Fatal(err)
	}
	shop := catalog.Server{Name: "shop"}
	for name, tool := range file.Tools {
		properties := map[string]any{"extra": map[string]any{}}
		for arg := range tool.Args {
			properties[arg] = map[string]any{}
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		shop.Tools = append(shop.Tools, catalog.Definition{Name: name, Input: schema})
	}
	other := json.RawMessage(`{"type":"object","properties":{"chat_id":{},"text":{},"body":{},"issue_number":{},"page":{},"amount":{},"force":{},"owner":{},"path":{},"options":{"type":"object","properties":{"deep":{}}}}}`)
	odd := catalog.Server{Name: "odd", Tools: []catalog.Definition{{Name: "post", Input: other}, {Name: "delete_issue", Input: other}, {Name: "run_query", Input: other}, {Name: "free", Input: json.RawMessage(`{"type":"object"}`)}}}
	w, err := workspace.New([]string{ws}, nil)
	if err != nil {
		t.Fatal(err)
	}
	view := &View{Catalog: catalog.Build([]catalog.Server{shop, odd}), Meanings: map[string]Meant{"shop": {Server: file, Accepted: true, Folder: ws}}}
	return covers{t, view, &Run{Origin: Origin{Surroundings: Surroundings{Workspace: w, Accepted: map[string]bool{"shop": true}}}, gate: &Gate{}}}
}

// of returns the cover of a call.
func (s covers) of(tool, args string) approval.Cover {
	s.Helper()
	is, ok := s.view.Catalog.Lookup(tool)
	if !ok {
		s.Fatalf("there is no tool %s", tool)
	}
	parsed, err := canon.Parse([]byte(args))
	if err != nil {
		s.Fatal(err)
	}
	c := &call{tool: is, args: parsed}
	c.meaning = s.run.meaning(s.view, c)
	return coverOf(s.run, s.view, c)
}

func TestCoverOfACall(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newCovers(t, ws)
	issue := `"owner":"acme","repo":"web","issue_number":7`
	jwt := "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJzYW1pciJ9.c2lnbmF0dXJlLW9mLXNhbWly"
	for _, row := range []struct{ name, tool, args, want string }{
		{"a comment", "shop__comment", `{` + issue + `,"body":"done"}`, "comment with owner acme, repo web; any body, issue_number"},
		{"a comment with a key in it", "shop__comment", `{` + issue + `,"body":"the key is AKIAIOSFODNN7EXAMPLE"}`, "there is something like a secret in it"},
		{"a comment with a token in it", "shop__comment", `{` + issue + `,"body":"kubectl --token ` + jwt + `"}`, "there is something like a secret in it"},
		{"a comment that names hosts", "shop__comment", `{` + issue + `,"body":"see https://a.example/x, ann@b.example and c.dev"}`,
			"comment with owner acme, repo web; any body, issue_number that names no host but a.example, b.example, c.dev"},
		{"a comment that names a host behind many", "shop__comment", `{` + issue + `,"body":"` + strings.Repeat("see https://a.example/x ", maxMentions) + `and https://evil.example"}`, "body names more hosts than anybody would read"},
		{"a comment that names one host often", "shop__comment", `{` + issue + `,"body":"` + strings.Repeat("see https://a.example/x ", maxMentions) + `"}`,
			"comment with owner acme, repo web; any body, issue_number that names no host but a.example"},
		{"hosts in an object", "shop__comment", `{` + issue + `,"body":{"d":"d.example","b":"b.example","c":"c.example","a":"a.example"}}`,
			"comment with owner acme, repo web; any body, issue_number that names no host but a.example, b.example, c.example, d.example"},
		{"a comment that names a doubtful host", "shop__comment", `{` + issue + `,"body":"see https://2130706433/x"}`, "body: the host is a number that readers take differently"},
		{"a comment that names a host behind a name", "shop__comment", `{` + issue + `,"body":"see https://a.example@b.example/x"}`, "there is something like a secret in it"},
		{"a command in a name", "shop__comment", `{"owner":"acme","repo":"web$(id)","issue_number":7,"body":"x"}`, "nobody has said what the argument repo means"},
		{"a flag in a name", "shop__comment", `{"owner":"acme","repo":"--force","issue_number":7,"body":"x"}`, "nobody has said what the argument repo means"},
		{"a number with nothing beside it", "shop__comment", `{"issue_number":7,"body":"x"}`, "comment with issue_number 7; any body"},
		{"what is written", "shop__update", `{` + issue + `,"title":"x"}`, "update with owner acme, repo web; any issue_number, title"},
		{"a choice", "shop__update", `{` + issue + `,"state":"closed"}`, "update with owner acme, repo web, state closed; any issue_number"},
		{"a switch", "shop__update", `{` + issue + `,"draft":false}`, "update with draft false, owner acme, repo web; any issue_number"},
		{"a number", "shop__update", `{` + issue + `,"weight":3}`, "update with owner acme, repo web; any issue_number, weight"},
		{"people", "shop__update", `{` + issue + `,"assignees":["bob","ann"]}`, "update to bob, to ann, owner acme, repo web; any issue_number"},
		{"an argument that the file does not have", "shop__update", `{` + issue + `,"extra":1}`, "nobody has said what the argument extra means"},
		{"an argument that the schema does not have", "shop__update", `{` + issue + `,"more":1}`, "the tool's schema has no argument more"},
		{"a deletion", "shop__remove", `{"owner":"acme","issue_number":7,"why":"old"}`, "remove with issue_number 7, owner acme, why old; nothing may differ"},
		{"a project with a number for its name", "shop__project", `{"project":41,"text":"x"}`, "project with project 41; any text"},
		{"a payment", "shop__pay", `{"to":"ann","cents":500,"note":"lunch"}`, "pay to ann, cents 500, note lunch; nothing may differ"},
		{"a search", "shop__search", `{"query":"rust","page":2}`, "search; any page, query"},
		{"a search with a command in it", "shop__search", `{"query":"$(id)"}`, "query has signs that a shell would read"},
		{"an address", "shop__fetch", `{"url":"https://docs.example/a/b","max":9}`, "fetch at docs.example; any max"},
		{"an address with a port", "shop__fetch", `{"url":"http://localhost:5173/","max":9}`, "fetch at http://localhost:5173; any max"},
		{"an address that looks like another", "shop__fetch", `{"url":"https://docs.example@evil.example/"}`, "there is something like a secret in it"},
		{"an address with a query", "shop__fetch", `{"url":"https://a.example/seen?server=10.20.0.5#x?y"}`, `fetch at a.example, query of url "server=10.20.0.5"; any path there`},
		{"an address with a fragment", "shop__fetch", `{"url":"https://a.example/seen#x?y"}`, "fetch at a.example; any path there"},
		{"an address of no web", "shop__fetch", `{"url":"file:///etc/passwd"}`, "url: the URL has no host"},
		{"a host with a port", "shop__fetch", `{"url":"docs.example:9000"}`, "fetch at docs.example:9000; any path there"},
		{"a command", "shop__run", `{"command":"ls; rm x","timeout":5}`, `run with command "ls; rm x"; any timeout`},
		{"a list of words", "shop__run", `{"command":["rm","x"]}`, `run with command "[\"rm\",\"x\"]"; nothing may differ`},
		{"a digest in place of a command", "shop__run", `{"command":"sha256:00"}`, `run with command "sha256:00"; nothing may differ`},
		{"a statement", "shop__sql", `{"db":"shop","query":"INSERT INTO a VALUES (1)"}`, `sql to shop, query "INSERT INTO a VALUES (1)"; nothing may differ`},
		{"a statement that reads", "shop__sql", `{"db":"shop","query":"SELECT 1"}`, `sql to shop, query "SELECT 1"; nothing may differ`},
		{"a click", "shop__click", `{"target":"e1"}`, "what it does depends on the calls before it"},
		{"reading", "shop__read_file", `{"path":"src/a.ts","head":3}`, "read under WS; any path there"},
		{"writing", "shop__write_file", `{"path":"` + ws + `/src/a.ts","content":"x"}`, "write under WS by any known server; any content"},
		{"editing", "shop__edit_file", `{"path":"src/b.ts","edits":[{"oldText":"see https://a.example"}],"dryRun":true}`, "write under WS by any known server; any content"},
		{"moving", "shop__move_file", `{"from":"a.ts","to":"src/b.ts"}`, "write under WS by any known server; any content"},
		{"writing in .git/hooks", "shop__write_file", `{"path":".git/hooks/pre-commit","content":"x"}`, "path: "},
		{"reading a secret", "shop__read_file", `{"path":".env"}`, "path names "},
		{"writing in a folder that is too wide", "shop__write_file", `{"path":"/hosts","content":"x"}`, "the folder of path is too wide"},
		{"remembering", "shop__remember", `{"entities":[{"name":"ann"}]}`, "write with store shop; any content"},
		{"a tool that nobody knows", "odd__post", `{"chat_id":12,"text":"hello all","page":2,"force":true}`, "post with chat_id 12, force true; any page, text"},
		{"whose text names a host", "odd__post", `{"chat_id":12,"text":"hello at x.example"}`, "post with chat_id 12; any text that names no host but x.example"},
		{"whose text is a statement", "odd__post", `{"text":"DROP TABLE users"}`, `post with text "DROP TABLE users"; nothing may differ`},
		{"whose text is another statement", "odd__post", `{"text":"(select 1 from users"}`, `post with text "(select 1 from users"; nothing may differ`},
		{"whose text begins like a statement", "odd__post", `{"text":"Update the docs, please"}`, "post; any text"},
		{"which runs what it is given", "odd__run_query", `{"text":"anything"}`, "run_query with text anything; nothing may differ"},
		{"whose text is a path", "odd__post", `{"text":"/etc/passwd"}`, "post with text /etc/passwd; nothing may differ"},
		{"whose text is an address", "odd__post", `{"text":"ann@b.example"}`, "post with text ann@b.example; nothing may differ"},
		{"whose path is a path", "odd__post", `{"path":"/a/b"}`, "post with path /a/b; nothing may differ"},
		{"whose number is an amount", "odd__post", `{"amount":5}`, "post with amount 5; nothing may differ"},
		{"which deletes", "odd__delete_issue", `{"owner":"acme","issue_number":5}`, "delete_issue with issue_number 5, owner acme; nothing may differ"},
		{"which deletes what a text selects", "odd__delete_issue", `{"text":"all of it"}`, `delete_issue with text "all of it"; nothing may differ`},
		{"with an argument that is not in the schema", "odd__post", `{"more":1}`, "the tool's schema has no argument more"},
		{"with an inner argument that is not in the schema", "odd__post", `{"options":{"deep":1,"force":1}}`, "the tool's schema has no argument options.force"},
		{"without a schema", "odd__free", `{"a":1}`, "the tool's schema has no argument a"},
		{"a number as text", "odd__post", `{"owner":"12"}`, `post with owner "12"; nothing may differ`},
		{"a long text", "odd__post", `{"owner":"` + strings.Repeat("a", 300) + `"}`, "post with owner as it is; nothing may differ"},
	} {
		c := s.of(row.tool, row.args)
		got := c.None
		if c.Offered() {
			got = strings.ReplaceAll(c.String(), ws, "WS")
		}
		if got != row.want && (!strings.HasSuffix(row.want, " ") || !strings.HasPrefix(got, row.want)) {
			t.Errorf("%s:\n%q, want\n%q", row.name, got, row.want)
		}
	}
}

// A long text is bound by its digest. A yes to a short one that reads like that digest is not for the long one.
func TestCoverOfADigest(t *testing.T) {
	t.Parallel()
	s := newCovers(t, t.TempDir())
	long := "echo " + strings.Repeat("a", maxExact)
	had := s.of("shop__run", `{"command":"`+long+`"}`)
	if len(had.Bound) != 1 || had.Bound[0].Value != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(long))) {
		t.Fatalf("a long command is bound by %+v", had.Bound)
	}
	if like := s.of("shop__run", `{"command":"`+had.Bound[0].Value+`"}`); !like.Offered() || reflect.DeepEqual(like.Bound, had.Bound) {
		t.Errorf("a command that is the digest of another one is bound by %+v", like.Bound)
	}
}

// Outside of the workspace a yes covers the folder of the file. Facts that nobody accepted bind, and free nothing.
func TestCoverOutside(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, elsewhere := filepath.Join(dir, "ws"), filepath.Join(dir, "other")
	for _, folder := range []string{ws, filepath.Join(ws, "src"), elsewhere} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(ws, "link")); err != nil {
		t.Skip("no links here:", err)
	}
	s := newCovers(t, ws)
	under := func(param, folder string) approval.Bound {
		return approval.Bound{Param: param, Kind: approval.UnderFolder, Value: folder}
	}
	for _, row := range []struct {
		name, tool, args string
		want             []approval.Bound
	}{
		{"a file", "shop__write_file", `{"path":"` + elsewhere + `/a.txt","content":"x"}`, []approval.Bound{under("folder", elsewhere)}},
		{"a folder", "shop__read_file", `{"path":"` + elsewhere + `"}`, []approval.Bound{under("folder", elsewhere)}},
		{"through a link", "shop__write_file", `{"path":"link/a.txt","content":"x"}`, []approval.Bound{under("folder", elsewhere)}},
		{"by ..", "shop__write_file", `{"path":"src/../../other/a.txt","content":"x"}`, []approval.Bound{under("folder", elsewhere)}},
		{"out of the workspace", "shop__move_file", `{"from":"a.txt","to":"` + elsewhere + `/a.txt"}`, []approval.Bound{under("from", ws), under("to", elsewhere)}},
	} {
		got := s.of(row.tool, row.args)
		if diff := cmp.Diff(row.want, got.Bound); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
		if got.Shared {
			t.Errorf("%s: it is %q", row.name, got)
		}
	}
	s.run.Accepted = nil
	got := s.of("shop__comment", `{"owner":"acme","repo":"web","issue_number":7,"body":"done"}`)
	if want := "comment with issue_number 7, owner acme, repo web; any body"; got.String() != want {
		t.Errorf("by facts that nobody accepted: %q, want %q", got, want)
	}
	if got := s.of("shop__write_file", `{"path":"a.txt","content":"x"}`); got.Across || got.String() != "write_file with path a.txt; any content" {
		t.Errorf("by facts that nobody accepted: %q", got)
	}
}
