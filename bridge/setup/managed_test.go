package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
)

// managed returns the file of a client for the whole machine, which lies below root.
func managed(t *testing.T, name, system, root string) (clients.Place, error) {
	t.Helper()
	c, ok := clients.Find(name)
	if !ok {
		t.Fatalf("there is no client %s", name)
	}
	return c.Place(clients.System{OS: system, Env: func(string) (string, bool) { return "", false }, Folder: "/work/shop", Root: root}, clients.Managed)
}

func TestManagedFiles(t *testing.T) {
	for _, row := range []struct{ client, system, want string }{
		{"claude-code", "linux", "/etc/claude-code/managed-mcp.json"},
		{"claude-code", "darwin", "/Library/Application Support/ClaudeCode/managed-mcp.json"},
		{"claude-code", "windows", `C:\Program Files\ClaudeCode\managed-mcp.json`},
		{"codex", "darwin", "/etc/codex/managed_config.toml"},
		{"codex", "windows", ""},
		{"gemini", "linux", "/etc/gemini-cli/settings.json"},
		{"cursor", "linux", ""},
		{"vscode", "linux", ""},
	} {
		p, err := managed(t, row.client, row.system, "")
		switch {
		case row.want == "" && (err == nil || !strings.Contains(err.Error(), "no settings for a whole machine") || !strings.Contains(err.Error(), "these have: claude-code, ")):
			t.Errorf("%s on %s: %q, %v", row.client, row.system, p.File, err)
		case row.want != "" && (err != nil || p.File != row.want):
			t.Errorf("%s on %s: %q, %v", row.client, row.system, p.File, err)
		}
	}
}

// install installs into a file as the commands do.
func installInto(t *testing.T, p clients.Place, records clients.Records, command ...string) (backup string, nothing bool) {
	t.Helper()
	in, err := Install(p, records)
	if err == nil {
		nothing, err = in.Prepare(command)
	}
	if err == nil && !nothing {
		backup, err = in.Write(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return backup, nothing
}

// What install makes for the whole machine, everybody can read, and uninstall takes it
// away without remains; what was there before stays.
func TestManaged(t *testing.T) {
	for name, old := range map[string]string{"claude-code": "{\"mcpServers\": {\"own\": {\"command\": \"own\"}}}\n", "codex": "model = \"o\"\n", "gemini": "{\n  // ours\n  \"ui\": {}\n}\n"} {
		root, records := t.TempDir(), clients.Records{Folder: t.TempDir()}
		p, err := managed(t, name, "linux", root)
		if err != nil {
			t.Fatal(err)
		}
		if _, nothing := installInto(t, p, records, "/opt/codemode-bridge", "run"); nothing {
			t.Errorf("%s: nothing was done", name)
		}
		if _, nothing := installInto(t, p, records, "/opt/codemode-bridge", "run"); !nothing {
			t.Errorf("%s: done twice", name)
		}
		if _, nothing := installInto(t, p, records, "/opt/codemode-bridge", "run", "--config", "/etc/codemode/config.json"); nothing {
			t.Errorf("%s: another command changed nothing", name)
		}
		info, err := os.Stat(p.File)
		folder, lost := os.Stat(filepath.Dir(p.File))
		if err != nil || lost != nil || info.Mode().Perm() != 0o644 || folder.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v %v, %v %v", name, info, err, folder, lost)
		}
		text, err := os.ReadFile(p.File)
		if err != nil || strings.Count(string(text), "/etc/codemode/config.json") != 1 {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		r, err := Uninstall(p, records)
		if err == nil {
			err = r.Write()
		}
		if left, _ := filepath.Glob(filepath.Join(root, "*")); err != nil || len(left) != 0 {
			t.Errorf("%s: %v: left are %v", name, err, left)
		}

		if err = os.MkdirAll(filepath.Dir(p.File), 0o755); err == nil {
			err = os.WriteFile(p.File, []byte(old), 0o640)
		}
		if err != nil {
			t.Fatal(err)
		}
		if backup, _ := installInto(t, p, records, "/opt/codemode-bridge", "run"); backup == "" {
			t.Errorf("%s: no copy was kept", name)
		}
		r, err = Uninstall(p, records)
		if err == nil {
			err = r.Write()
		}
		text, lost = os.ReadFile(p.File)
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(p.File), "*"))
		if err != nil || lost != nil || string(text) != old || len(left) != 1 {
			t.Errorf("%s: %v %v: %s, %v", name, err, lost, text, left)
		}
		if _, err := Uninstall(p, records); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("%s: once more: %v", name, err)
		}
	}
}
