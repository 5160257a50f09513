package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
)

// A client that is started from the desktop gets the person's PATH with the bridge if a
// server's program is only found there; the entry has it, and uninstall takes it away.
func TestPathForDesktopClients(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs of the desktop have the person's whole PATH on Windows")
	}
	system, dir := home(t, map[string]string{"own/my-npx": "", "Claude/claude_desktop_config.json": "{\n  \"a\": 1\n}"})
	own := filepath.Join(dir, "own")
	if err := os.Chmod(filepath.Join(own, "my-npx"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := system.Env
	system.Env = func(name string) (string, bool) {
		switch name {
		case "PATH":
			return strings.Join([]string{own, "relative", "/usr/bin", own}, ":"), true
		case "XDG_CONFIG_HOME":
			return dir, true
		}
		return env(name)
	}
	system.OS = "linux"
	desktop, _ := clients.Find("claude-desktop")
	code, _ := clients.Find("claude-code")
	path, missing := PathFor(system, desktop, []string{"my-npx", "/opt/x", "no-such-program", "my-npx", "sh", ""})
	if path != own+":/usr/bin" || !slices.Equal(missing, []string{"my-npx"}) {
		t.Fatalf("the path is %q, for %q", path, missing)
	}
	for _, row := range []struct {
		client   clients.Client
		programs []string
	}{{code, []string{"my-npx"}}, {desktop, []string{"sh", "no-such-program", own + "/my-npx", "${TOOL}"}}, {desktop, nil}} {
		if path, _ := PathFor(system, row.client, row.programs); path != "" {
			t.Errorf("%s with %q gets %q", row.client.Title, row.programs, path)
		}
	}

	place, err := desktop.Place(system, clients.User)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(place.File)
	if err != nil {
		t.Fatal(err)
	}
	command := []string{"/opt/codemode-bridge", "run"}
	records := clients.Records{Folder: filepath.Join(dir, "installs")}
	write := func(path string) (nothing bool) {
		t.Helper()
		in, err := Install(place, records)
		if err != nil {
			t.Fatal(err)
		}
		in.Place.Path = path
		if nothing, err = in.Prepare(command); err == nil && !nothing {
			_, err = in.Write(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return nothing
	}
	if write("") || write(path) || !write(path) || !write("") {
		t.Error("an entry without the PATH is written anew, one with it stays")
	}
	if text, err := os.ReadFile(place.File); err != nil || !strings.Contains(string(text), `"env": {"PATH": "`+path+`"}`) {
		t.Errorf("the entry is\n%s, %v", text, err)
	}
	r, err := Uninstall(place, records)
	if err == nil {
		err = r.Write()
	}
	if text, _ := os.ReadFile(place.File); err != nil || string(text) != string(before) {
		t.Errorf("in the end the file is\n%s, %v", text, err)
	}
}
