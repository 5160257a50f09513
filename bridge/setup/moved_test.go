package setup

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/secrets"
)

// A server whose secret was moved out of the configuration is still the one that the
// client has with the secret in its file, and no other.
func TestMovedSecretIsTheSame(t *testing.T) {
	t.Parallel()
	text := []byte(`{"servers": {
		"search": {"command": "search-mcp", "env": {"KEY": "${file:secrets/KEY}"}},
		"docs":   {"command": "docs-mcp", "args": ["--api-key", "${keyring:DOCS}"]},
		"hub":    {"url": "https://hub.example/mcp", "headers": {"Authorization": "Bearer ${file:secrets/HUB}"}}}}`)
	unfilled, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	found := map[secrets.Reference]secrets.Secret{}
	for _, r := range unfilled.References() {
		found[r] = secrets.Found("the-" + r.Name)
	}
	cfg, err := unfilled.WithSecrets(found)
	if err != nil {
		t.Fatal(err)
	}
	client, _ := clients.Find("claude-desktop")
	place := clients.Place{Client: client, Scope: clients.User}
	for _, c := range []struct {
		server clients.Server
		there  string
	}{
		{clients.Server{Name: "a", Kind: clients.Stdio, Command: "search-mcp", Env: map[string]string{"KEY": "the-secrets/KEY"}}, "search"},
		{clients.Server{Name: "b", Kind: clients.Stdio, Command: "search-mcp", Env: map[string]string{"KEY": "another"}}, ""},
		{clients.Server{Name: "c", Kind: clients.Stdio, Command: "docs-mcp", Args: []string{"--api-key", "the-DOCS"}}, "docs"},
		{clients.Server{Name: "d", Kind: clients.HTTP, URL: "https://hub.example/mcp", Headers: map[string]string{"Authorization": "Bearer the-secrets/HUB"}}, "hub"},
	} {
		i, without := NewImport(clients.System{}), NewImport(clients.System{})
		if err := i.Configured(text, cfg); err != nil {
			t.Fatal(err)
		}
		if got := i.Add(c.server, place); got.There != (c.there != "") || got.There && got.As != c.there {
			t.Errorf("%s is there: %t, as %q, want %q", c.server.Name, got.There, got.As, c.there)
		}
		if err := without.Configured(text, unfilled); err != nil {
			t.Fatal(err)
		}
		if without.Add(c.server, place).There {
			t.Errorf("%s is there although nobody knows the secret", c.server.Name)
		}
	}
}

// Servers for one folder are left out for a reason that is true: a file in the folder may
// have come with it, and a client's own file for it has not.
func TestWhyServersAreLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "shop")
	for name, text := range map[string]string{
		filepath.Join(dir, ".claude.json"): `{"projects": {` + strconv.Quote(folder) + `: {"mcpServers": {"a": {"command": "a-mcp"}}}}}`,
		filepath.Join(folder, ".mcp.json"): `{"mcpServers": {"b": {"command": "b-mcp"}}}`,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	i := NewImport(clients.System{OS: "linux", Folder: folder, Env: func(name string) (string, bool) { return dir, name == "HOME" }})
	if err := i.Find(nil, func(clients.Place, error) {}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range i.LeftOut {
		got[l.From] = l.Why
	}
	want := map[string]string{"claude-code": "they are for this folder alone", ".mcp.json": "whoever wrote this folder may have named the programs"}
	if !maps.Equal(got, want) {
		t.Errorf("left out for %q, want %q", got, want)
	}
}
