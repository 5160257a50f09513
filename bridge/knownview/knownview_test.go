package knownview_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/knownview"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/profiles/known"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
)

const file = `{
  "title": "Notes", "verified": "1.2.3",
  "launch": [{"npm": "notes-mcp", "args": ["path"], "flags": ["--port="], "env": ["NOTES"]}, {"docker": "mcp/notes"}],
  "tools": {
    "read": {"effects": ["read"], "where": "workspace", "repeatable": true, "labels": ["private"], "args": {"path": "path", "range.from": "plain", "range.to": "plain"}},
    "query": {"effects": ["read", "write"], "where": "local", "when": {"sql": {"select": {"effects": ["read"]}}}, "adds": {"file": {"effects": ["write"], "where": "workspace"}},
      "values": {"mode": ["a", "b", "c", "d", "e"]}, "under": {"file": "dir"}, "args": {"sql": "sql", "file": "path", "dir": "path", "mode": "place"}},
    "save": {"effects": ["write"], "where": "workspace", "args": {"text": "content", "path": "path"}},
    "share": {"effects": ["send"], "where": "remote", "net": "fixed", "stateful": true, "args": {"to": "recipient"}}
  }
}`

func notes(t *testing.T) known.Server {
	t.Helper()
	s, err := known.Parse("notes", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A person reads all that the file says.
func TestTools(t *testing.T) {
	t.Parallel()
	s := notes(t)
	want := [][]string{
		{"tool", "where", "net", "effects and arguments"},
		{"query", "local", "none", "read, write\npath: dir, file; sql: sql; place: mode\nmode only a, b, c, d and 1 more, file starts at dir"},
		{"  if sql is select", "", "", "read"},
		{"  with file also", "workspace", "", "write"},
		{"read", "workspace", "none", "read\npath: path; plain: range.from, range.to\nrepeatable, private"},
		{"save", "workspace", "none", "write\npath: path; content: text"},
		{"share", "remote", "fixed", "send\nrecipient: to\nstateful"},
	}
	if diff := cmp.Diff(want, knownview.Tools(s)); diff != "" {
		t.Error(diff)
	}
	head := []string{
		"Notes (notes)",
		`  verified with what version 1.2.3 lists; you accept it for a server by "known": "notes@1.2.3"`,
		"  started as  npx -y notes-mcp PATH",
		"    and with no flags and variables but --port NOTES",
		"  started as  docker run -i --rm mcp/notes  (not verified in this form)",
	}
	if diff := cmp.Diff(head, knownview.Head(s)); diff != "" {
		t.Error(diff)
	}
}

// Every role of an argument is shown.
func TestEveryRole(t *testing.T) {
	t.Parallel()
	for _, s := range known.All() {
		for i, row := range knownview.Tools(s)[1:] {
			for arg := range s.Tools[row[0]].Args {
				if !strings.Contains(row[3], arg) {
					t.Errorf("%s, row %d: %s is not shown in %q", s.Name, i, arg, row[3])
				}
			}
		}
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	accepted := known.Recognition{Match: known.Match{Server: notes(t), Verified: true}, Said: "notes", Accepted: true}
	yes := true
	query := knownview.Listed{Name: "query", Input: json.RawMessage(`{"properties": {"sql": {}, "file": {}, "dir": {}, "mode": {}}}`)}
	read := knownview.Listed{Name: "read", Input: json.RawMessage(`{"properties": {"path": {}, "range": {}}, "required": ["path"]}`)}
	save := knownview.Listed{Name: "save", Input: json.RawMessage(`{"properties": {"path": {}, "text": {}}}`)}
	share := knownview.Listed{Name: "share", Input: json.RawMessage(`{"properties": {"to": {}}}`), Destructive: &yes}
	many := []knownview.Listed{query, read, save, share}
	for i := range 9 {
		many = append(many, knownview.Listed{Name: fmt.Sprint("more", i)})
	}
	with := func(l knownview.Listed, schema string) knownview.Listed {
		l.Input = json.RawMessage(schema)
		return l
	}
	for name, row := range map[string]struct {
		listed []knownview.Listed
		part   bool
		want   string // the texts, or parts of them, a line each
	}{
		"nobody knows what it lists": {nil, false, ""},
		"all as it is known":         {[]knownview.Listed{query, read, save, share}, false, ""},
		"one is gone":                {[]knownview.Listed{query, read, save}, false, "it does not list tools that it is known to have: share"},
		"one is hidden by us":        {[]knownview.Listed{query, read, save}, true, ""},
		"many are strange":           {many, false, "it lists tools that are not known: more0, more1, more2, more3 and 5 more; their calls are guessed"},
		"an argument is new":         {[]knownview.Listed{query, read, with(save, `{"properties": {"path": {}, "text": {}, "url": {}}}`), share}, false, "arguments that are not known, or lack some that are: save (url);"},
		"an argument is gone":        {[]knownview.Listed{query, read, with(save, `{"properties": {"text": {}}}`), share}, false, "save (no path);"},
		"no schema":                  {[]knownview.Listed{query, read, with(save, `[`), share}, false, "save (a schema that cannot be read);"},
		"it says it destroys":        {[]knownview.Listed{query, read, {Name: "save", Input: save.Input, Destructive: &yes}, share}, false, "(destructiveHint): save; their risk stays high"},
		"a name that is a message":   {[]knownview.Listed{query, read, save, share, {Name: "\x1b[31m" + strings.Repeat("x", 500)}}, false, `\u{1B}[31mxxx`},
	} {
		found := knownview.Findings("files", accepted, row.listed, row.part)
		var texts []string
		for _, f := range found {
			if len(f.Text) > 400 || f.Do == "" {
				t.Errorf("%s: %+v", name, f)
			}
			texts = append(texts, f.Text)
		}
		if got := strings.Join(texts, "\n"); (got == "") != (row.want == "") || !strings.Contains(got, row.want) || len(found) > 1 {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// That a tool is missing which a server lists to some clients only says nothing; what is
// strange about it when it is listed does.
func TestOptionalTools(t *testing.T) {
	t.Parallel()
	s, err := known.Parse("notes", []byte(strings.Replace(file, `"share": {`, `"share": {"optional": true, `, 1)))
	if err != nil || !s.Tools["share"].Optional {
		t.Fatal(s.Tools["share"], err)
	}
	accepted := known.Recognition{Match: known.Match{Server: s, Verified: true}, Said: "notes", Accepted: true}
	texts := func(listed ...knownview.Listed) (all []string) {
		for _, f := range knownview.Findings("files", accepted, listed, false) {
			all = append(all, f.Text)
		}
		return all
	}
	read := knownview.Listed{Name: "read", Input: json.RawMessage(`{"properties": {"path": {}, "range": {}}, "required": ["path"]}`)}
	query := knownview.Listed{Name: "query", Input: json.RawMessage(`{"properties": {"sql": {}, "file": {}, "dir": {}, "mode": {}}}`)}
	share := knownview.Listed{Name: "share", Input: json.RawMessage(`{"properties": {"to": {}, "as": {}}}`)}
	if got := texts(read, query); len(got) != 1 || !strings.HasSuffix(got[0], "known to have: save") {
		t.Errorf("of missing tools it says %q", got)
	}
	if got := strings.Join(texts(read, query, share), "\n"); !strings.Contains(got, "share (as)") {
		t.Errorf("of an optional tool that differs it says %q", got)
	}
}

// Who starts the version that was compared is not told to start it.
func TestVersionThatWasCompared(t *testing.T) {
	t.Parallel()
	s, _ := known.Find("everything")
	for version, want := range map[string]string{
		s.Verified: "servers known everything",
		"":         "start version " + s.Verified + ", with which it was compared, or see what is known: servers known everything",
		"2020.1.1": "start version " + s.Verified + ", with which it was compared, or see what is known: servers known everything",
	} {
		r := known.Recognition{Match: known.Match{Server: s, Version: version, Verified: true}, Accepted: true}
		found := knownview.Findings("every", r, []knownview.Listed{{Name: "new"}}, true)
		if len(found) != 1 || found[0].Do != want {
			t.Errorf("of version %q it says %+v, want %q", version, found, want)
		}
	}
}

// What a verified server listed when it was verified differs in nothing.
func TestVerifiedServersDoNotDiffer(t *testing.T) {
	t.Parallel()
	for _, s := range known.All() {
		if s.Verified == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "profiles", "known", "testdata", "lists", s.Name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var is struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
				Annotations struct{ DestructiveHint *bool }
			}
		}
		if err := json.Unmarshal(text, &is); err != nil {
			t.Fatal(err)
		}
		var listed []knownview.Listed
		for _, tool := range is.Tools {
			listed = append(listed, knownview.Listed{Name: tool.Name, Input: tool.InputSchema, Destructive: tool.Annotations.DestructiveHint})
		}
		for _, f := range knownview.Findings("files", known.Recognition{Match: known.Match{Server: s, Verified: true}, Accepted: true}, listed, false) {
			if !f.Notice {
				t.Errorf("%s: %s", s.Name, f.Text)
			}
		}
	}
}

// Of a server that nobody has accepted, a person is told how to.
func TestFindingsOfAcceptance(t *testing.T) {
	t.Parallel()
	files, _ := known.Find("filesystem")
	started := func(version string) known.Started {
		return known.Started{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem" + version, "/ws"}}
	}
	steered := started("")
	steered.Env = []string{"NODE_OPTIONS"}
	for name, row := range map[string]struct {
		r      known.Recognition
		notice bool
		text   string
		do     string
	}{
		"accepted":          {known.Recognize("filesystem", started("")), false, "", ""},
		"nobody said":       {known.Recognize("", started("@"+files.Verified)), true, "it is started like filesystem, which is known", "servers accept files"},
		"nobody pinned":     {known.Recognize("", started("")), true, "is not accepted", "servers accept files"},
		"another is pinned": {known.Recognize("", started("@0.1.0")), true, "is not accepted", "start version " + files.Verified},
		"as it was":         {known.Recognize("memory", started("@"+files.Verified)), false, "it is started like filesystem", `write "known": "filesystem@` + files.Verified},
		"by documentation":  {known.Recognize("memory", known.Started{Command: "uvx", Args: []string{"mcp-server-git"}}), false, "it is started like git", `leave "known" out; servers known git`},
		"no longer so":      {known.Recognize("filesystem@0.1.0", started("@"+files.Verified)), false, "version 0.1.0 was accepted", `write "known": "filesystem@` + files.Verified},
		"another version":   {known.Recognize("filesystem@0.1.0", started("")), false, "it is not accepted as filesystem@0.1.0", "start version " + files.Verified},
		"another program":   {known.Recognize("filesystem", known.Started{Command: "mine"}), false, "it is not started in a way", "start it as it is known, or leave"},
		"nearly the same":   {known.Recognize("", steered), true, "NODE_OPTIONS is not one that it is known with: its calls are guessed", ""},
		"nothing to do":     {known.Recognize("", known.Started{Command: "mine"}), false, "", ""},
		"without a program": {known.Recognition{}, false, "", ""},
	} {
		found := knownview.Findings("files", row.r, nil, false)
		if row.text == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Notice != row.notice || !strings.Contains(found[0].Text, row.text) || !strings.Contains(found[0].Do, row.do) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// What is known of any server fits a terminal.
func TestToolsFit(t *testing.T) {
	t.Parallel()
	for _, s := range known.All() {
		for _, width := range []int{80, 120} {
			for line := range strings.Lines(lines.Table(knownview.Tools(s), width)) {
				if got := lipgloss.Width(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("%s: %d columns of %d: %s", s.Name, got, width, line)
				}
			}
		}
	}
}
