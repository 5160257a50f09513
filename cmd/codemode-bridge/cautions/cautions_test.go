package cautions_test

import (
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/cmd/codemode-bridge/cautions"

	"github.com/google/go-cmp/cmp"
)

func of(t *testing.T, text string) []string {
	t.Helper()
	cfg, err := config.Parse("config.json", []byte(text), func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": "/home/me", "KEY": "canary-0123456789", "HOST": "169.254.169.254", "OPTIONS": "--require /tmp/canary.js"}[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range cautions.Of(cfg) {
		if c.Do == "" || strings.Contains(c.String(), "canary") {
			t.Errorf("%s: no hint, or a secret in it", c)
		}
		all = append(all, fmt.Sprintf("%d:%d: %s", c.Line, c.Column, c.Text))
	}
	return all
}

// Each is told of at its place, and where it is not meant otherwise.
func TestCautions(t *testing.T) {
	got := of(t, `{
  "servers": {
    "files": { "command": "npx", "args": ["-y", "files", "--db=postgres://me:canary@db/x"],
      "env": {
        "LD_PRELOAD": "/tmp/a.so",
        "dyld_insert_libraries": "/tmp/b",
        "NODE_OPTIONS": "${OPTIONS}" },
      "passEnv": ["HOME", "PYTHONPATH"] },
    "cloud": { "url": "http://169.254.169.254/latest" },
    "six":   { "url": "http://[fd00:ec2::254]/" },
    "named": { "url": "http://metadata.google.internal./x" },
    "whole": { "url": "http://2852039166/" },
    "hex":   { "url": "http://0xA9FEA9FE/" },
    "from":  { "url": "http://${HOST}/mcp" },
    "boxed": { "command": "x", "confine": { "net": ["api.example.com",
      "169.254.170.2:80"] } },
    "password": { "url": "https://me:canary@example.com/mcp" },
    "token":    { "url": "https://canary0123456789canary@example.com/mcp" },
    "query":    { "url": "https://example.com/mcp?a=1&tavilyApiKey=canary-1" },
    "shape":    { "url": "https://example.com/mcp?x=ghp_0123456789abcdefghijABCDEFGHIJ012345" },
    "api":      { "openapi": "https://example.com/api.json?sig=canary1", "url": "https://example.com" }
  },
  "evaluation": { "profiles": {
    "all":   { },
    "star":  { "allowlist": ["*"] },
    "rules": { "rules": [{ "tools": ["*"], "risk": "low" }], "default": "allow" },
    "more":  { "extends": "all" } } }
}`)
	const loads = " makes its program load code that is not its own"
	const cloud = " is of the network segment alone, where a machine in a cloud gets its own keys"
	const logs = " stands in an address, which ends up in logs"
	want := []string{
		"3:58: server files: a password" + logs,
		"5:23: server files: LD_PRELOAD" + loads,
		"6:34: server files: dyld_insert_libraries" + loads,
		"7:25: server files: NODE_OPTIONS" + loads,
		"8:27: server files: PYTHONPATH, which it gets as you have it, can make its program load code that is not its own",
		"9:23: server cloud: this address" + cloud,
		"10:23: server six: this address" + cloud,
		"11:23: server named: this address" + cloud,
		"12:23: server whole: this address" + cloud,
		"13:23: server hex: this address" + cloud,
		"14:23: server from: this address" + cloud,
		"16:7: server boxed: this address" + cloud,
		"17:26: server password: a password" + logs,
		"18:26: server token: a password" + logs,
		"19:26: server query: a value that looks like a key (tavilyApiKey)" + logs,
		"20:26: server shape: a value that looks like a key (x)" + logs,
		"21:30: server api: a value that looks like a key (sig)" + logs,
		"24:5: the profile all restricts nothing: every call passes unasked",
		"25:5: the profile star restricts nothing: every call passes unasked",
		"26:5: the profile rules restricts nothing: every call passes unasked",
		"27:5: the profile more restricts nothing: every call passes unasked",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing is said of what is as it should be.
func TestNoCautions(t *testing.T) {
	if got := of(t, `{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files@1.2.3", "postgres://me@localhost/db", "postgres://me:${KEY}@db/x"],
      "env": { "NODE_OPTIONS": "--max-old-space-size=4096 --no-warnings", "PATH": "/usr/bin", "API_KEY": "${KEY}" } },
    "query": { "url": "https://example.com/mcp?key=${KEY}&page=2&auth=true&keyboard=us" },
    "here":  { "url": "http://127.0.0.1:8080/mcp" },
    "lan":   { "url": "http://192.168.1.10/mcp", "headers": { "Authorization": "Bearer ${KEY}" } },
    "boxed": { "command": "x", "confine": { "net": ["api.example.com"] } }
  },
  "evaluation": { "profiles": {
    "deny":  { "denylist": ["a__*"] },
    "rule":  { "rules": [{ "tools": ["*"], "action": "ask" }] },
    "check": { "rules": [{ "tools": ["*"], "check": ["size(args) < 3"] }] },
    "some":  { "allowlist": ["a__*"] },
    "risk":  { "default": "risk" },
    "more":  { "extends": "builtin:coding@1" } } }
}`); len(got) > 0 {
		t.Errorf("there are cautions: %q", got)
	}
}

// A token that no entry of access holds for gives nothing.
func TestTokensWithoutAccess(t *testing.T) {
	const tokens = `{ "http": { "tokens": [
  { "name": "ann", "sha256": "1111111111111111111111111111111111111111111111111111111111111111", "groups": ["platform"] },
  { "name": "bob", "sha256": "2222222222222222222222222222222222222222222222222222222222222222" },
  { "name": "ci-a", "sha256": "3333333333333333333333333333333333333333333333333333333333333333" }
] }, "evaluation": { "profiles": { "safe": { "allowlist": ["a__*"] } } }`
	if got := of(t, tokens+"}"); len(got) > 0 {
		t.Errorf("without access: %q", got)
	}
	got := of(t, tokens+`, "access": [{ "groups": ["platform"], "profiles": ["*"] }, { "tokens": ["ci-*"], "profiles": ["safe"] }] }`)
	want := []string{"3:3: no entry of access holds for the token bob: whoever has it is shown no tool"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A store on another machine is to be reached encrypted, and shared by an id.
func TestCautionsOfStores(t *testing.T) {
	for address, want := range map[string]int{
		"postgres://me:${KEY}@db.example/x": 1, "postgres://me:${KEY}@db.example/x?sslmode=require": 0, "postgres://localhost/x": 0, "postgres://127.0.0.1:5432/x": 0,
		"postgres://[::1]/x": 0, "postgres:///x?host=/run/postgresql": 0, "postgres:///x?host=db.example": 1, "postgres://10.0.0.7/x": 1,
	} {
		if got := of(t, `{"id": "team", "store": "`+address+`"}`); len(got) != want || want > 0 && !strings.Contains(got[0], "encrypted only if") {
			t.Errorf("%s: %q", address, got)
		}
		if got := of(t, `{"store": "`+address+`"}`); len(got) != want+1 || !strings.Contains(got[0], "it has no id") {
			t.Errorf("%s without an id: %q", address, got)
		}
	}
}

// Where no caller has a name, no person has an account of their own.
func TestAccountsOfNobody(t *testing.T) {
	const server = `{ "servers": { "a": { "url": "https://a.example/mcp", "auth": { "per": "principal" } } }`
	got := of(t, server+"}")
	want := []string{"1:72: nobody can be told apart: there are no tokens and no issuer of tokens in http, so all calls use the account of the local user"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := of(t, server+`, "http": { "tokens": [{ "name": "ann", "sha256": "1111111111111111111111111111111111111111111111111111111111111111" }] } }`); len(got) > 0 {
		t.Errorf("with a token: %q", got)
	}
}
