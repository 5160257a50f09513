package main

import (
	"testing"

	"codemode-bridge/bridge/config"
)

// The parts of a configuration that take effect only at the next start are compared by
// value: reading the same text again is no change.
func TestWhatTakesEffectAtTheNextStart(t *testing.T) {
	t.Parallel()
	read := func(more string) fixed {
		t.Helper()
		cfg, err := config.Parse("config.json", []byte(`{"approvals": {"oidc": {"issuer": "https://login.example", "clientId": "page"}}`+more+`}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return fixedOf(cfg)
	}
	first := read("")
	for more, differs := range map[string]bool{
		``: false,
		`, "evaluation": {"defaultProfile": "p", "profiles": {"p": {}}}`: false,
		`, "http": {"allowedHosts": ["a.example"]}`:                      false,
		`, "http": {"listen": "127.0.0.1:9"}`:                            true,
		`, "http": {"tokens": [{"name": "a", "sha256": "0000000000000000000000000000000000000000000000000000000000000001"}]}`: true,
		`, "http": {"auth": {"issuer": "https://login.example", "resource": "https://bridge.example/mcp"}}`:                   true,
		`, "id": "work"`:               true,
		`, "runs": {"keep": "1h"}`:     true,
		`, "surface": "full"`:          true,
		`, "sandbox": {"calls": 5}`:    true,
		`, "audit": {"keep": "1h"}`:    true,
		`, "scripts": {"dir": "/tmp"}`: true,
	} {
		if got := !read(more).equals(first); got != differs {
			t.Errorf("%s: differs is %t", more, got)
		}
	}
}
