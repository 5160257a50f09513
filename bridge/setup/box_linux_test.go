package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/jsonc"

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
		db     = `{"command": "npx", "args": ["@bytebase/dbhub", "--dsn", `
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
		{db + `"sqlite:///srv/shop/app.db"]}`, me, `{ "write": ["/srv/shop"], "net": "none" }`, ""},
		{db + `"sqlite:///ws/app.db"]}`, me, `{ "write": ["workspace"], "net": "none" }`, ""},
		{db + `"sqlite:///:memory:"]}`, me, `{ "write": [], "net": "none" }`, ""},
		{db + `"sqlite:///` + me + `/app.db"]}`, me, "", "which file is sqlite:////"},
		{db + `"sqlite://` + me + `/app.db"]}`, me, "", "more than a box may have"},
		{db + `"sqlite:///./app.db"]}`, me, "", "which file is sqlite:///./app.db cannot be told"},
		{db + `"sqlite:///${DB}"]}`, me, "", "a variable says which folder"},
		{db + `"sqlite:///a/a.db", "--dsn", "sqlite:///b/b.db"]}`, me, "", "not told once"},
		{db + `"postgres://db.example/shop"]}`, me, "", ""},
		{`{"command": "npx", "args": ["@bytebase/dbhub"]}`, me, "", "no box was tried without --dsn"},
		{`{"command": "npx", "args": ["@sentry/mcp-server"], "passEnv": ["SENTRY_ACCESS_TOKEN"]}`, me, `{ "write": [], "net": ["sentry.io", "*.sentry.io"] }`, ""},
		{`{"command": "npx", "args": ["@sentry/mcp-server"], "passEnv": ["OPENAI_API_KEY"]}`, me, "", "no box was tried with OPENAI_API_KEY"},
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
		p := (&Boxes{Workspace: []string{"/ws"}, Home: row.home}).Propose(jsonc.Text(row.text))
		if string(p.Box) != row.box || !strings.Contains(p.Why, row.why) || (p.Why != "") != (row.why != "") {
			t.Errorf("%s:\n got %s, %q\nwant %s, %q", row.text, p.Box, p.Why, row.box, row.why)
		}
		if p := (*Boxes)(nil).Propose(jsonc.Text(row.text)); len(p.Box) > 0 || p.Why != "" {
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

// A server that starts a browser has a box where there is a browser for it, along with the
// flags that make it start in there.
func TestBoxesOfBrowsers(t *testing.T) {
	t.Parallel()
	_, me := home(t, map[string]string{
		"snap/bin/chromium":    "#!/bin/sh\nexec /snap/bin/chromium",
		"plain/chromium":       "no program",
		"own/chromium":         "#!/bin/sh\nexec chromium-bin",
		"chrome/google-chrome": "#!/bin/sh\nexec chrome",
		"chrome/chrome":        "ELF",
		"cache/.cache/ms-playwright/chromium-900/chrome-linux/chrome":    "ELF",
		"cache/.cache/ms-playwright/chromium-1208/chrome-linux64/chrome": "ELF",
		"cache/.cache/ms-playwright/chromium-1300/chrome-linux64/other":  "ELF",
	})
	for _, program := range []string{"snap/bin/chromium", "own/chromium", "chrome/google-chrome", "chrome/chrome",
		"cache/.cache/ms-playwright/chromium-900/chrome-linux/chrome", "cache/.cache/ms-playwright/chromium-1208/chrome-linux64/chrome"} {
		if err := os.Chmod(filepath.Join(me, program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range [][2]string{{"../chrome/google-chrome", "links/google-chrome-stable"}, {"gone", "broken/chromium"}} {
		at := filepath.Join(me, link[1])
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link[0], at); err != nil {
			t.Fatal(err)
		}
	}
	const text = `{"servers": {"web": {"command": "npx", "args": ["-y", "@playwright/mcp@0.0.83", FLAGS]}}}`
	const both = `"--headless", "--isolated"`
	for _, row := range []struct {
		flags, path, home string
		browser, read     string // below me; "" for no box
		why               string
	}{
		{both, "own", "", "own/chromium", "own", ""},
		{both, "gone:snap/bin:plain:broken:own", "", "own/chromium", "own", ""},
		{both, "own:links", "", "chrome/chrome", "chrome", ""},
		{both, "snap/bin:plain:broken", "", "", "", "no Chrome or Chromium was found"},
		{both, "snap/bin", "cache", "cache/.cache/ms-playwright/chromium-1208/chrome-linux64/chrome", "cache/.cache/ms-playwright/chromium-1208/chrome-linux64", ""},
		{both, "own", "cache", "own/chromium", "own", ""},
		{`"--headless"`, "own", "", "", "", "shows no window and keeps no profile"},
		{both + `, "--browser", "firefox"`, "own", "", "", "", "no box was tried with --browser"},
	} {
		b := &Boxes{Workspace: []string{"/ws"}, Home: filepath.Join(me, row.home)}
		var path []string
		for _, dir := range strings.Split(row.path, ":") {
			path = append(path, filepath.Join(me, dir))
		}
		b.Path = strings.Join(path, ":")
		before := strings.Replace(text, "FLAGS", row.flags, 1)
		next, p, err := b.ConfineIn([]byte(before), "/servers/web")
		if err != nil {
			t.Fatal(err)
		}
		want := before
		if row.browser != "" {
			want = strings.Replace(before, row.flags, row.flags+`, "--executable-path=`+filepath.Join(me, row.browser)+`", "--no-sandbox"`, 1)
			want = strings.Replace(want, "]}}}", `], "confine": { "write": ["workspace"], "read": ["`+filepath.Join(me, row.read)+`"], "net": "any", "require": true } }}}`, 1)
		}
		if diff := cmp.Diff(want, strings.Join(strings.Fields(string(next)), " ")); diff != "" {
			t.Errorf("%v:\n%s", row, diff)
		}
		if !strings.Contains(p.Why, row.why) || (p.Why == "") != (row.why == "") || (p.Do == "") != (row.why == "") {
			t.Errorf("%v: %q, %q", row, p.Why, p.Do)
		}
		if row.browser == "" {
			continue
		}
		if says := "its browser is " + filepath.Join(me, row.browser) + " and has no sandbox of its own (--no-sandbox)"; !strings.Contains(p.Words, says) {
			t.Errorf("%v: it does not say what it does: %s", row, p.Words)
		}
		// It is the known server still, and the same as the one that a client starts.
		cfg, err := parse(next)
		if err != nil {
			t.Fatal(err)
		}
		if r := cfg.Servers["web"].Recognize(); r.Server.Name != "playwright" {
			t.Errorf("%v: in its box it is not known: %s", row, r.Why)
		}
		if accepted, _, says, err := AcceptIn(next, "/servers/web"); err != nil || says == "" {
			t.Errorf("%v: in its box it cannot be accepted: %s, %v", row, accepted, err)
		}
		found := NewImport(clients.System{OS: "linux", Env: func(string) (string, bool) { return "", false }})
		if err := found.Configured(next, cfg); err != nil {
			t.Fatal(err)
		}
		same := clients.Server{Name: "web", Kind: clients.Stdio, Command: "npx", Args: []string{"-y", "@playwright/mcp", "--headless", "--isolated"}}
		if s := found.Add(same, clients.Place{}); !s.There {
			t.Errorf("%v: the client's is another server", row)
		}
	}
}

// A line says why a server has no box, and what to do.
func TestUnconfined(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Proposal{
		"a is not confined: it is more than a box may have; codemode-bridge servers test --confined a tries a box": {Why: "it is more than a box may have"},
		"a is not confined: N is not set; set N, then: codemode-bridge servers accept a":                           {Why: "N is not set", Do: "set N"},
	} {
		if got := p.Unconfined("a"); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
