package setupcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// An administrator's bridge installs for a machine whose files lie below a folder.
func administratorOf(t *testing.T, program string) (con *Bridge, root string, told *bytes.Buffer) {
	home, root, told := t.TempDir(), t.TempDir(), &bytes.Buffer{}
	env := func(name string) (string, bool) { return home, name == "HOME" || strings.HasPrefix(name, "XDG_") }
	return &Bridge{
		Console: &cli.Console{Out: &bytes.Buffer{}, Err: told, Env: env},
		File:    func() (string, error) { return "/etc/codemode/config.json", nil },
		Named:   func() bool { return true },
		Typed:   func(command string) string { return "codemode-bridge " + command },
		System:  func() clients.System { return clients.System{OS: "linux", Env: env, Root: root} },
		Entry:   func(path string) ([]string, error) { return []string{program, "run", "--config", path}, nil },
		Copy:    func() (*setup.Copy, error) { return nil, nil },
		Load:    func() (*config.Config, error) { return &config.Config{}, nil },
		Refuse:  func(err error, hint string) error { return fmt.Errorf("%w; hint: %s", err, hint) },
	}, root, told
}

// What a whole machine starts has to be there for everybody, and has to start.
func TestInstallManaged(t *testing.T) {
	file := func(root string) string { return filepath.Join(root, "etc", "claude-code", "managed-mcp.json") }
	install := func(con *Bridge) error {
		return con.installManaged("claude-code", installOptions{managed: true, yes: true})
	}

	con, root, told := administratorOf(t, "/usr/local/bin/codemode-bridge")
	if err := install(con); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file(root))
	if err != nil || !strings.Contains(string(text), `"command": "/usr/local/bin/codemode-bridge"`) || !strings.Contains(string(text), `["run", "--config", "/etc/codemode/config.json"]`) {
		t.Errorf("it has %s, %v", text, err)
	}
	if strings.Contains(told.String(), "somebody's home") {
		t.Errorf("of /usr/local/bin it says %s", told)
	}
	con.Named = func() bool { return false }
	if err := install(con); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(file(root)); err != nil || strings.Contains(string(text), "--config") {
		t.Errorf("without a named configuration it has %s, %v", text, err)
	}

	con, _, told = administratorOf(t, "/home/ann/bin/codemode-bridge")
	if err := install(con); err != nil || !strings.Contains(told.String(), "the program lies in somebody's home, /home/ann/bin/codemode-bridge: others may not be able to start it, and its owner can replace it") {
		t.Errorf("from a home: %v, %s", err, told)
	}

	for what, refuse := range map[string]struct {
		change func(*Bridge)
		want   string
	}{
		"a program in a cache": {func(con *Bridge) {
			con.Copy = func() (*setup.Copy, error) { return &setup.Copy{From: "/home/ann/.npm/_npx/1/codemode-bridge"}, nil }
		}, "is in a cache of one person, /home/ann/.npm/_npx/1/codemode-bridge"},
		"a configuration that does not load": {func(con *Bridge) {
			con.Load = func() (*config.Config, error) { return nil, errors.New("config.json:1:2: broken") }
		}, "config.json:1:2: broken"},
	} {
		con, root, _ := administratorOf(t, "/usr/local/bin/codemode-bridge")
		refuse.change(con)
		if err := install(con); err == nil || !strings.Contains(err.Error(), refuse.want) {
			t.Errorf("%s: %v", what, err)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
			t.Errorf("%s: left are %v, %v", what, left, err)
		}
	}
}

// Who may not write the settings of the machine is told what to do; other errors stay.
func TestAdministrator(t *testing.T) {
	con := &Bridge{Typed: func(command string) string { return "codemode-bridge " + command }, Refuse: func(err error, hint string) error { return fmt.Errorf("%w; hint: %s", err, hint) }}
	denied := fmt.Errorf("writing /etc/x: %w", fs.ErrPermission)
	err := installOptions{managed: true}.administrator(con, "install claude-code", denied)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "only an administrator may change it: writing /etc/x") || !strings.Contains(err.Error(), "hint: sudo codemode-bridge install claude-code --managed") {
		t.Error(err)
	}
	if err := (installOptions{}).administrator(con, "install claude-code", denied); err != denied {
		t.Error(err)
	}
	if other := errors.New("full"); (installOptions{managed: true}).administrator(con, "install claude-code", other) != other {
		t.Error("another error is changed")
	}
}
