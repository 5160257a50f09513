package setup

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/profiles"
)

// home is a folder with files of clients, and a system that looks there.
func home(t *testing.T, files map[string]string, variables ...string) (clients.System, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": dir}
	for _, name := range variables {
		env[name] = "a value"
	}
	return clients.System{OS: "linux", Folder: filepath.Join(dir, "work"), Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, dir
}

func parse(text []byte) (*config.Config, error) {
	none := map[string]*profiles.ProfileSpec{"coding@1": {}}
	return config.Parse("config.json", text, func(string) (string, bool) { return "x", true }, profiles.Options{Builtins: none})
}

func good(text []byte) error {
	_, err := parse(text)
	return err
}

const cursor = `{"mcpServers": {
	"files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "s3cret-value"}},
	"Issue Tracker": {"url": "https://issues.example/mcp", "headers": {"Authorization": "Bearer ${ISSUES_TOKEN}"}},
	"broken": {"args": ["x"]}
}}`

func TestImport(t *testing.T) {
	system, _ := home(t, map[string]string{
		".cursor/mcp.json":      cursor,
		".claude.json":          `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "s3cret-value"}}, "time": {"command": "clock"}}}`,
		".gemini/settings.json": `{"mcpServers": `,
		"work/.mcp.json":        `{"mcpServers": {"evil": {"command": "evil"}}}`,
	})
	found := NewFirst(system)
	var passedOver []string
	if err := found.Find(nil, func(p clients.Place, err error) { passedOver = append(passedOver, p.Client.Name) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(passedOver, []string{"gemini"}) {
		t.Errorf("passed over %q", passedOver)
	}
	if len(found.LeftOut) != 1 || found.LeftOut[0].From != ".mcp.json" || found.LeftOut[0].Servers != 1 {
		t.Errorf("left out %+v", found.LeftOut)
	}
	got := map[string]string{}
	for _, s := range found.Servers {
		got[s.Name] = s.Remark()
	}
	want := map[string]string{
		"files": "", "time": "as time-claude-code", // a server of the bridge has the name
		"Issue Tracker": "as Issue-Tracker; off until you set ISSUES_TOKEN", "broken": "not taken over: it has no address",
	}
	for name, remark := range want {
		if got[name] != remark {
			t.Errorf("%s: %q, want %q", name, got[name], remark)
		}
	}
	if files := found.Servers[0]; len(files.From) != 2 || !strings.Contains(string(files.Text()), "from Claude Code (user), Cursor (user)") {
		t.Errorf("two clients have it: %q\n%s", files.From, files.Text())
	}
	if err := found.Find([]string{"nowhere"}, nil); !errors.Is(err, ErrNoSource) || !strings.Contains(err.Error(), "claude-code, ") {
		t.Errorf("neither a file nor a client: %v", err)
	}
	rows, err := json.Marshal(Rows(found.Servers))
	if err != nil || strings.Contains(string(rows), "s3cret") {
		t.Errorf("the rows show a secret: %s, %v", rows, err)
	}
}

// plan is for a configuration that has a profile of its own.
var plan = Plan{Profile: "coding", Extends: "builtin:coding@1", NoWorkspace: "a test has none"}

func TestFirst(t *testing.T) {
	system, _ := home(t, map[string]string{".cursor/mcp.json": cursor}, "ISSUES_TOKEN")
	found := NewFirst(system)
	if err := found.Find(nil, nil); err != nil {
		t.Fatal(err)
	}
	refused := 0
	text, err := First(found, plan, func(text []byte) error {
		if strings.Contains(string(text), `"files": {`) {
			refused++
			return config.Problems{&config.FieldError{Path: "/servers/files/command", Message: "not that one"}}
		}
		return good(text)
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if names := cfg.ServerNames(); refused != 1 || !slices.Equal(names, []string{"Issue-Tracker", "time", "utils"}) {
		t.Errorf("refused %d times, with %q:\n%s", refused, names, text)
	}
	if s := found.Servers[0]; s.Problem != "not that one" || len(found.New()) != 1 {
		t.Errorf("%s: %q", s.Name, s.Problem)
	}
	broken := errors.New("no configuration at all")
	if _, err := First(found, plan, func([]byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A configuration that replaces another keeps its id, or that there is none.
func TestIdentify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		old  string
		kept bool
		want string // "new" for a new one
	}{
		{``, true, "new"},
		{`{"id": "mine", /* a note */ "servers": {},}`, true, "mine"},
		{`{"servers": {}}`, true, ""},
		{`{"id": "mine", `, false, "new"},
		{`{"id": 7}`, false, "new"},
		{`{"id": "not one"}`, false, "new"},
	} {
		p := plan
		kept := p.Identify(jsonc.Text(test.old))
		text, err := First(NewFirst(clients.System{}), p, good)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := cfg.ID
		if strings.HasPrefix(got, "config-") {
			got = "new"
		}
		if kept != test.kept || got != test.want {
			t.Errorf("%s: kept %v, %q, want %v, %q", test.old, kept, cfg.ID, test.kept, test.want)
		}
	}
}

// What an installation does, a removal undoes to the byte.
func TestInstallAndUninstall(t *testing.T) {
	system, dir := home(t, map[string]string{".cursor/mcp.json": cursor}, "ISSUES_TOKEN")
	client, _ := clients.Find("cursor")
	place, err := client.Place(system, clients.User)
	if err != nil {
		t.Fatal(err)
	}
	records := clients.Records{Folder: filepath.Join(dir, "installs")}
	if _, err := Uninstall(place, records); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("before it was installed: %v", err)
	}
	in, err := Install(place, records)
	if err == nil {
		err = in.TakeOver(system, false, []byte("{\"servers\": {\"issue-tracker\": {\"url\": \"https://other.example/mcp\"}}}\n"), parse, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	command := []string{"/opt/codemode-bridge", "run"}
	if nothing, err := in.Prepare(command); nothing || err != nil {
		t.Fatal(nothing, err)
	}
	if cfg, err := parse(in.After); err != nil || cfg.Servers["files"] == nil || cfg.Servers["Issue-Tracker-cursor"] == nil {
		t.Errorf("our configuration: %v\n%s", err, in.After)
	}
	configuration, file := in.Diffs("config.json", "mcp.json")
	if shown := strings.Join(append(configuration, file...), "\n"); strings.Contains(shown, "s3cret") || !strings.Contains(shown, "+") {
		t.Errorf("it shows\n%s", shown)
	}
	if why, own := in.Staying(); len(why) != 1 || !strings.HasPrefix(why[0], "broken stays with Cursor: ") || len(own) != 0 {
		t.Errorf("staying: %q, %q", why, own)
	}

	failed := errors.New("somebody else was quicker")
	if _, err := in.Write(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the configuration was not written: %v", err)
	}
	if text, err := os.ReadFile(place.File); string(text) != cursor || err != nil {
		t.Errorf("then the client's file is\n%s, %v", text, err)
	}
	if in, err = Install(place, records); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Prepare(command); err != nil {
		t.Fatal(err)
	}
	backup, err := in.Write(func() error { return failed }) // nothing moves, so nothing is rewritten
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(backup); string(text) != cursor || err != nil {
		t.Errorf("the copy is\n%s, %v", text, err)
	}
	again, err := Install(place, records)
	if err != nil {
		t.Fatal(err)
	}
	if nothing, err := again.Prepare(command); !nothing || err != nil {
		t.Errorf("a second time: %t, %v", nothing, err)
	}

	r, err := Uninstall(place, records)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(); !r.Whole || err != nil {
		t.Errorf("whole %t, %v", r.Whole, err)
	}
	if text, err := os.ReadFile(place.File); string(text) != cursor || err != nil {
		t.Errorf("in the end the client's file is\n%s, %v", text, err)
	}
	if _, err := os.Stat(backup); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is left behind: %v", err)
	}
}

func TestMasked(t *testing.T) {
	for _, row := range [][3]string{
		{"s3cret-value", `"TOKEN": "s3cret-value", # s3cret-value`, `"TOKEN": "[hidden]", # [hidden]`},
		{"abc", `key: abc`, `key: [hidden]`},
		{"abc", `alphabet: abcdef, "abc", 'abc'`, `alphabet: abcdef, "[hidden]", '[hidden]'`},
	} {
		if got := masked(row[1], row[:1]); got != row[2] {
			t.Errorf("%s is shown as %s, want %s", row[1], got, row[2])
		}
	}
}
