package clients

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFileChangedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "mcp.json")
	f, err := ReadFile(path)
	if err != nil || f.Existed {
		t.Fatal(f, err)
	}
	write(t, path, "theirs")
	if err := f.Write([]byte("ours")); !errors.Is(err, ErrChanged) {
		t.Errorf("over a new file: %v", err)
	}
	if f, err = ReadFile(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, "theirs again")
	if err := f.Write([]byte("ours")); !errors.Is(err, ErrChanged) {
		t.Errorf("over a changed file: %v", err)
	}
	if err := f.Remove(); !errors.Is(err, ErrChanged) {
		t.Errorf("removing a changed file: %v", err)
	}
	if content(t, path) != "theirs again" {
		t.Errorf("the file has %q", content(t, path))
	}
	if f, err = ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte("ours")); !errors.Is(err, ErrChanged) {
		t.Errorf("over a file that is gone: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestFileModeAndBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	write(t, path, "old")
	f, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Backup()
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Backup()
	if err != nil || first == second {
		t.Fatalf("%s %s %v", first, second, err)
	}
	if err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if content(t, path) != "new" || content(t, first) != "old" {
		t.Errorf("the file has %q, its copy %q", content(t, path), content(t, first))
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{path: 0o640, first: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
		}
	}
}

func TestFileLinks(t *testing.T) {
	folder := t.TempDir()
	real, link, nowhere := filepath.Join(folder, "dotfiles", "mcp.json"), filepath.Join(folder, "mcp.json"), filepath.Join(folder, "nowhere")
	write(t, real, "old")
	if err := errors.Join(os.Symlink(real, link), os.Symlink(filepath.Join(folder, "gone"), nowhere)); err != nil {
		t.Skipf("no links here: %v", err)
	}
	f, err := ReadFile(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != real || content(t, real) != "new" {
		t.Errorf("the link is %q: %v; the file has %q", target, err, content(t, real))
	}
	if _, err := ReadFile(nowhere); err == nil || !strings.Contains(err.Error(), "it is a link to a file that does not exist") {
		t.Errorf("a link to nothing: %v", err)
	}
}

func TestFileOddities(t *testing.T) {
	folder := t.TempDir()
	if _, err := ReadFile(folder); err == nil || !strings.Contains(err.Error(), "it is not a plain file") {
		t.Errorf("a folder: %v", err)
	}
	huge := filepath.Join(folder, "huge.json")
	write(t, huge, "")
	if err := os.Truncate(huge, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(huge); err == nil || !strings.Contains(err.Error(), "it is larger than 64 MB") {
		t.Errorf("a huge file: %v", err)
	}
	if err := os.Mkdir(filepath.Join(folder, "shut"), 0o500); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(filepath.Join(folder, "shut", "new.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte("x")); err == nil && os.Getuid() != 0 && runtime.GOOS != "windows" {
		t.Error("a folder that is shut was written to")
	}
}

func TestRecords(t *testing.T) {
	records := Records{filepath.Join(t.TempDir(), "installs")}
	c, _ := Find("claude-code")
	user, err := c.Place(ann, User)
	if err != nil {
		t.Fatal(err)
	}
	local, err := c.Place(ann, Local)
	if err != nil || local.File != user.File {
		t.Fatal(local, err)
	}
	if r, err := records.Load(user); r != nil || err != nil {
		t.Fatal(r, err)
	}
	want := &Record{Client: "claude-code", Name: "codemode", Moved: []Moved{{"a", "\"a\": 1"}}}
	if err := records.Save(user, want); err != nil {
		t.Fatal(err)
	}
	if r, err := records.Load(local); r != nil || err != nil {
		t.Errorf("another scope of the same file: %v %v", r, err)
	}
	if r, err := records.Load(user); err != nil || r.Moved[0] != want.Moved[0] {
		t.Errorf("%+v %v", r, err)
	}
	if err := records.Drop(user); err != nil {
		t.Fatal(err)
	}
	if r, err := records.Load(user); r != nil || err != nil {
		t.Error(r, err)
	}
}

func TestPlaces(t *testing.T) {
	env := func(vars map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	}
	linux := System{OS: "linux", Env: env(map[string]string{"HOME": "/home/ann"}), Folder: "/w"}
	xdg := System{OS: "linux", Env: env(map[string]string{"HOME": "/home/ann", "XDG_CONFIG_HOME": "/xdg", "CODEX_HOME": "/cx", "CLAUDE_CONFIG_DIR": "/cl", "OPENCODE_CONFIG": "/oc.json"}), Folder: "/w"}
	mac := System{OS: "darwin", Env: env(map[string]string{"HOME": "/Users/ann"}), Folder: "/w"}
	pc := System{OS: "windows", Env: env(map[string]string{"USERPROFILE": "/C/Users/ann", "APPDATA": "/C/Users/ann/AppData/Roaming"}), Folder: "/w"}
	for _, test := range []struct {
		client string
		scope  Scope
		system System
		want   string
	}{
		{"claude-code", User, linux, "/home/ann/.claude.json"},
		{"claude-code", Local, linux, "/home/ann/.claude.json"},
		{"claude-code", Project, linux, "/w/.mcp.json"},
		{"claude-code", User, xdg, "/cl/.claude.json"},
		{"claude-code", User, pc, "/C/Users/ann/.claude.json"},
		{"claude-desktop", User, linux, "/home/ann/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", User, mac, "/Users/ann/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", User, pc, "/C/Users/ann/AppData/Roaming/Claude/claude_desktop_config.json"},
		{"vscode", User, linux, "/home/ann/.config/Code/User/mcp.json"},
		{"vscode", User, mac, "/Users/ann/Library/Application Support/Code/User/mcp.json"},
		{"vscode", User, pc, "/C/Users/ann/AppData/Roaming/Code/User/mcp.json"},
		{"vscode", Project, linux, "/w/.vscode/mcp.json"},
		{"cursor", User, mac, "/Users/ann/.cursor/mcp.json"},
		{"cursor", Project, pc, "/w/.cursor/mcp.json"},
		{"codex", User, linux, "/home/ann/.codex/config.toml"},
		{"codex", User, xdg, "/cx/config.toml"},
		{"codex", Project, linux, "/w/.codex/config.toml"},
		{"gemini", User, linux, "/home/ann/.gemini/settings.json"},
		{"gemini", Project, linux, "/w/.gemini/settings.json"},
		{"opencode", User, linux, "/home/ann/.config/opencode/opencode.json"},
		{"opencode", User, mac, "/Users/ann/.config/opencode/opencode.json"},
		{"opencode", User, xdg, "/oc.json"},
		{"opencode", Project, linux, "/w/opencode.json"},
		{"zed", User, linux, "/home/ann/.config/zed/settings.json"},
		{"zed", User, xdg, "/xdg/zed/settings.json"},
		{"zed", User, mac, "/Users/ann/.config/zed/settings.json"},
		{"zed", User, pc, "/C/Users/ann/AppData/Roaming/Zed/settings.json"},
		{"zed", Project, linux, "/w/.zed/settings.json"},
		{"goose", User, linux, "/home/ann/.config/goose/config.yaml"},
		{"goose", User, mac, "/Users/ann/.config/goose/config.yaml"},
		{"goose", User, pc, "/C/Users/ann/AppData/Roaming/Block/goose/config/config.yaml"},
	} {
		if runtime.GOOS == "windows" {
			t.Skip("the paths above are absolute where / is the root")
		}
		c, _ := Find(test.client)
		p, err := c.Place(test.system, test.scope)
		if err != nil || p.File != test.want {
			t.Errorf("%s %s on %s: %s %v, want %s", test.client, test.scope, test.system.OS, p.File, err, test.want)
		}
	}
	c, _ := Find("cursor")
	if _, err := c.Place(linux, Local); err == nil || err.Error() != `Cursor has no scope "local"; it has: user, project` {
		t.Errorf("a scope that it does not have: %v", err)
	}
	if _, err := c.Place(System{OS: "linux"}, User); err == nil {
		t.Error("without a home folder there is a place")
	}
}

func TestPlaceThatExists(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "opencode.jsonc"), "{}")
	c, _ := Find("opencode")
	p, err := c.Place(System{OS: "linux", Folder: folder}, Project)
	if err != nil || filepath.Base(p.File) != "opencode.jsonc" {
		t.Errorf("%s %v", p.File, err)
	}
}

func TestAt(t *testing.T) {
	for _, test := range []struct{ file, text, client string }{
		{"/home/ann/.cursor/mcp.json", "{}", "cursor"},
		{"/x/a.json", `{"mcpServers": {}}`, "claude-code"},
		{"/x/a.json", `{"servers": {}}`, "vscode"},
		{"/x/a.json", `{"context_servers": {}}`, "zed"},
		{"/x/a.json", `{"mcp": {}}`, "opencode"},
		{"/x/a.toml", "", "codex"},
		{"/x/a.yml", "", "goose"},
	} {
		if p, err := At(ann, test.file, []byte(test.text)); err != nil || p.Client.Name != test.client {
			t.Errorf("%s %s: %s %v", test.file, test.text, p.Client.Name, err)
		}
	}
	for _, text := range []string{"{}", "[", "hello"} {
		if _, err := At(ann, "/x/a.json", []byte(text)); err == nil {
			t.Errorf("%q has servers", text)
		}
	}
}

// A bridge behind a bridge would wait for itself: an entry that starts one is known,
// however it does.
func TestBridgeIsKnown(t *testing.T) {
	for _, row := range []struct {
		bridge bool
		entry  string
	}{
		{true, `{"command": "/opt/codemode-bridge", "args": ["run"]}`},
		{true, `{"command": "C:\\Programs\\Codemode-Bridge.EXE"}`},
		{true, `{"command": "npx", "args": ["-y", "codemode-bridge", "run"]}`},
		{true, `{"command": "C:\\node\\npx.cmd", "args": ["-y", "codemode-bridge@1.2.3", "run"]}`},
		{true, `{"command": "cmd", "args": ["/c", "npx", "-y", "codemode-bridge", "run"]}`},
		{true, `{"command": "npx", "args": ["--package=codemode-bridge@latest", "--", "codemode-bridge", "run"]}`},
		{true, `{"command": "/usr/bin/node", "args": ["/usr/lib/node_modules/codemode-bridge/bin/codemode-bridge.js", "run"]}`},
		{false, `{"command": "npx", "args": ["-y", "codemode-bridges"]}`},
		{false, `{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/codemode-bridge"]}`},
		{false, `{"command": "node", "args": ["server.js", "codemode-bridge.js"]}`},
		{false, `{"command": "node"}`},
		{false, `{"command": "cmd", "args": ["/c"]}`},
	} {
		s, err := Entry(System{}, "a", []byte(row.entry))
		if err != nil || s.Bridge != row.bridge || (s.Problem != "") != row.bridge {
			t.Errorf("%s: bridge %t, problem %q, error %v", row.entry, s.Bridge, s.Problem, err)
		}
	}
}
