package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
)

func TestFromFlags(t *testing.T) {
	for _, row := range []struct {
		flags Flags
		args  string // a | stands before what follows the "--"
		want  string // part of the text, or of the error
	}{
		{Flags{Env: []string{"TOKEN=a=b"}}, "files | npx -y files", `"command": "npx",` + "\n" + `  "args": ["-y", "files"],` + "\n" + `  "env": { "TOKEN": "a=b" }`},
		{Flags{Headers: []string{"X-Key: a b"}}, "web https://web.example/mcp", `"headers": { "X-Key": "a b" }`},
		{Flags{Transport: "sse"}, "web https://web.example/mcp", `"type": "sse"`},
		{Flags{Disabled: true}, "files | npx", `"disabled": true`},
		{Flags{}, "| npx files", `the name comes before the "--"`},
		{Flags{}, "files more | npx", "only flags may stand"},
		{Flags{}, "web https://web.example/mcp more", "an address has no arguments"},
		{Flags{Transport: "http"}, "files | npx", "goes with an address"},
		{Flags{Env: []string{"s3cret"}}, "files | npx", "--env takes NAME=VALUE"},
		{Flags{Env: []string{"A=b"}}, "web https://web.example/mcp", "are for programs"},
		{Flags{Headers: []string{"A=b"}}, "files | npx", "--header is for servers at an address"},
	} {
		dash := -1
		var args []string
		for _, arg := range strings.Fields(row.args) {
			if arg == "|" {
				dash = len(args)
				continue
			}
			args = append(args, arg)
		}
		s, err := FromFlags(row.flags, args, dash)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = string(s.Text())
		}
		if !strings.Contains(got, row.want) || err != nil && strings.Contains(got, "s3cret") {
			t.Errorf("%+v %s: %s, want %s", row.flags, row.args, got, row.want)
		}
	}
}

func TestFromJSON(t *testing.T) {
	system, _ := home(t, nil)
	for _, row := range []struct{ text, want string }{
		{`{"command": "npx" /* as it stands */}`, `{"command": "npx" /* as it stands */}`},
		{`{"mcpServers": {"x": {"command": "npx", "autoApprove": []}}}`, `"command": "npx"`},
		{`{"mcpServers": {"x": {"command": "npx"}, "y": {"command": "npx"}}}`, "the JSON has 2 servers, not one"},
		{`{"type": "local", "command": ["npx", "files"]}`, `"args": ["files"]`},
		{`{"args": []}`, "the server cannot be added: it has no address"},
		{`{`, "is not JSON"},
	} {
		text, _, err := FromJSON(system, "files", []byte(row.text))
		got := string(text)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.text, got, row.want)
		}
	}
}

func TestEdits(t *testing.T) {
	text := []byte("{\n  // ours\n  \"servers\": {\n    \"files\": {\"command\": \"npx\"}\n  }\n}\n")
	cfg, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	server := (&Server{Server: clients.Server{Kind: clients.Stdio, Command: "other"}}).Text()
	if _, there, err := AddServer(text, cfg, "files", server, false); !there || !errors.Is(err, ErrThere) {
		t.Errorf("a name that is taken: %t, %v", there, err)
	}
	for name, replaced := range map[string]bool{"files": true, "more": false} {
		next, there, err := AddServer(text, cfg, name, server, true)
		if err != nil || there != replaced {
			t.Fatalf("%s: %t, %v", name, there, err)
		}
		if cfg, err := parse(next); err != nil || cfg.Servers[name].Command.Reveal() != "other" || !strings.Contains(string(next), "// ours") {
			t.Errorf("%s: %v\n%s", name, err, next)
		}
	}

	off, err := Switch(text, "/servers/files", true)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := parse(off); err != nil || !cfg.Servers["files"].Disabled {
		t.Errorf("switched off: %v\n%s", err, off)
	}
	if same, err := Switch(text, "/servers/files", false); err != nil || string(same) != string(text) {
		t.Errorf("a server that is on is switched on: %v\n%s", err, same)
	}
	if on, err := Switch(off, "/servers/files", false); err != nil || strings.Contains(string(on), "disabled") {
		t.Errorf("switched on again: %v\n%s", err, on)
	}

	with, err := AddProfile(text, "a_b", `{"default": "ask"}`, parse)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := parse(with); err != nil || len(cfg.Profiles.Names()) != 1 {
		t.Errorf("with a profile: %v\n%s", err, with)
	}
	if _, err := AddProfile(with, "a_b", `{}`, parse); !errors.Is(err, ErrThere) {
		t.Errorf("a profile that is there: %v", err)
	}
	if added := strings.Join(Added("config.json", text, with), "\n"); !strings.HasPrefix(added, "--- config.json\n+++ config.json\n@@ -") || !strings.Contains(added, "\n+") {
		t.Errorf("added:\n%s", added)
	}
}

func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "config.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("this system has no links: %v", err)
	}
	to := func(text string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(text), nil }
	}
	agree := func(*config.Config) error { return nil }
	refused := errors.New("no")
	for _, row := range []struct {
		edit   func([]byte) ([]byte, error)
		before func(*config.Config) error
		want   error
	}{
		{func([]byte) ([]byte, error) { return nil, refused }, agree, refused},
		{to(`{"servers": {}}`), func(*config.Config) error { return refused }, refused},
		{to(`{"servers": {}}`), func(*config.Config) error { return os.WriteFile(path, []byte("{ }"), 0o600) }, ErrChanged},
	} {
		if err := Rewrite(link, row.edit, parse, row.before); !errors.Is(err, row.want) {
			t.Errorf("got %v, want %v", err, row.want)
		}
	}
	var problems config.Problems
	if err := Rewrite(link, to(`{"nonsense": 1}`), parse, agree); !errors.As(err, &problems) {
		t.Errorf("a mistake is written: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "{ }" || err != nil {
		t.Errorf("after edits that failed: %s, %v", text, err)
	}
	if err := Rewrite(link, to(`{"servers": {}}`), parse, agree); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != `{"servers": {}}` || err != nil {
		t.Errorf("in the end: %s, %v", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
