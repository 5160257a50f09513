package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"

	"github.com/google/go-cmp/cmp"
)

// What is proposed for a server goes by where it is started.
func TestPropose(t *testing.T) {
	t.Parallel()
	_, me := home(t, map[string]string{".claude-server-commander/config.json": "{}"})
	_, fresh := home(t, nil)
	const (
		files  = `{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", PATHS]`
		memory = `{"command": "npx", "args": ["@modelcontextprotocol/server-memory"]`
	)
	with := func(paths string) string { return strings.Replace(files, "PATHS", paths, 1) }
	for _, row := range []struct{ text, home, box, why string }{
		{with(`"/ws"`) + `}`, me, `{ "write": ["workspace"], "net": "none" }`, ""},
		{with(`"/ws/", "/srv/a"`) + `}`, me, `{ "write": ["workspace", "/srv/a"], "net": "none" }`, ""},
		{with(`"~/notes"`) + `}`, me, `{ "write": ["` + me + `/notes"], "net": "none" }`, ""},
		{with(`"a"`) + `, "cwd": "/srv"}`, me, `{ "write": ["/srv/a"], "net": "none" }`, ""},
		{with(`"a"`) + `}`, me, "", "starts at whichever folder"},
		{with(`"${DIR}"`) + `}`, me, "", "a variable says which folder"},
		{with(`"/"`) + `}`, me, "", "more than a box may have"},
		{with(`"~"`) + `}`, me, "", "more than a box may have"},
		{with(`"`+filepath.Dir(me)+`"`) + `}`, me, "", "more than a box may have"},
		{with(`"/ws"`) + `, "confine": {"net": "any"}}`, me, "", ""},
		{with(`"/ws", "--port"`) + `}`, me, "", ""},
		{memory + `}`, me, "", "MEMORY_FILE_PATH is not set in its env"},
		{memory + `, "env": {"MEMORY_FILE_PATH": "/srv/memory/m.jsonl"}}`, me, `{ "write": ["/srv/memory"], "net": "none" }`, ""},
		{memory + `, "env": {"MEMORY_FILE_PATH": "` + me + `/m.jsonl"}}`, me, "", "more than a box may have"},
		{memory + `, "passEnv": ["MEMORY_FILE_PATH"]}`, me, "", "MEMORY_FILE_PATH is not set in its env"},
		{`{"command": "npx", "args": ["@upstash/context7-mcp"]}`, me, `{ "write": [], "net": ["context7.com"] }`, ""},
		{`{"command": "npx", "args": ["@wonderwhy-er/desktop-commander"]}`, me, `{ "write": ["workspace", "~/.claude-server-commander"], "net": "none" }`, ""},
		{`{"command": "npx", "args": ["@wonderwhy-er/desktop-commander"]}`, fresh, `{ "write": ["workspace"], "net": "none" }`, ""},
		{`{"url": "https://mcp.context7.com/mcp"}`, me, "", ""},
		{`{"command": "mine"}`, me, "", ""},
		{`[]`, me, "", ""},
	} {
		p := (&Boxes{Workspace: []string{"/ws"}, Home: row.home}).Propose(config.JSONC(row.text))
		if string(p.Box) != row.box || !strings.Contains(p.Why, row.why) || (p.Why != "") != (row.why != "") {
			t.Errorf("%s:\n got %s, %q\nwant %s, %q", row.text, p.Box, p.Why, row.box, row.why)
		}
		if p := (*Boxes)(nil).Propose(config.JSONC(row.text)); len(p.Box) > 0 || p.Why != "" {
			t.Errorf("%s: a box where none can be: %+v", row.text, p)
		}
	}
	if NewBoxes(clients.System{OS: "darwin"}) != nil || NewBoxes(clients.System{OS: "windows"}) != nil {
		t.Error("boxes are proposed where nobody has tried them")
	}
}

// A new configuration has the boxes of servers that were accepted, but none that it could
// not have.
func TestBoxesOfAFirstConfiguration(t *testing.T) {
	t.Parallel()
	system, dir := home(t, nil)
	ws := filepath.Join(dir, "work")
	for _, row := range []struct {
		paths          []string
		accepted, box  bool
		confine, words string
	}{
		{[]string{ws}, true, true, `"confine": { "write": ["workspace"], "net": "none" }`, "files is confined: writes workspace, no network (--no-confine leaves that out)"},
		{[]string{ws}, false, true, "", ""},
		{[]string{ws}, true, false, "", ""},
		{[]string{"/run"}, true, true, "", "files is not confined: no box may write \"/run\""},
	} {
		found := NewFirst(system)
		if row.box {
			found.Boxes = NewBoxes(system, ws)
		}
		one := found.Add(clients.Server{Name: "files", Kind: clients.Stdio, Command: "npx",
			Args: append([]string{"-y", "@modelcontextprotocol/server-filesystem"}, row.paths...)}, clients.Place{})
		one.Accepted = row.accepted
		p := plan
		p.Workspace, p.NoWorkspace = ws, ""
		text, err := First(found, p, good)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), row.confine) || strings.Contains(string(text), `"confine"`) != (row.confine != "") {
			t.Errorf("%v:\n%s", row, text)
		}
		if words := strings.Join(BoxWords(found.New(), "--no-confine"), "\n"); !strings.HasPrefix(words, row.words) || (words == "") != (row.words == "") {
			t.Errorf("%v: %s", row, words)
		}
		if one.Problem != "" {
			t.Errorf("%v: it is left out: %s", row, one.Problem)
		}
		cfg, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		again := NewImport(system)
		if err := again.Configured(text, cfg); err != nil {
			t.Fatal(err)
		}
		if same := again.Add(one.Server, clients.Place{}); !same.There {
			t.Errorf("%v: the client's is another server", row)
		}
	}
}

// Accepting what is known of a server of the configuration confines it, too.
func TestConfineIn(t *testing.T) {
	t.Parallel()
	const text = `{"servers": {"x": {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem", "/srv"]}}}`
	next, p, err := (&Boxes{Home: "/home/me"}).ConfineIn([]byte(text), "/servers/x")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"servers": {"x": {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem", "/srv"], "confine": { "write": ["/srv"], "net": "none" } }}}`
	if diff := cmp.Diff(want, strings.Join(strings.Fields(string(next)), " ")); diff != "" {
		t.Error(diff)
	}
	if p.Words != "writes /srv, no network" {
		t.Errorf("%q", p.Words)
	}
}
