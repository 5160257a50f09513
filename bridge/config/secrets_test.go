package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/secrets"

	"github.com/google/go-cmp/cmp"
)

const secretive = `{
  "servers": {
    "github": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${keyring:GITHUB}", "X": "${exec:op read 'op://a/b'}"}},
    "shop": {"command": "shop", "args": ["--config", "${file:shop.key}"], "cwd": "${file:cwd}", "env": {"BOTH": "${GOOD}-${keyring:GITHUB}"}},
    "plain": {"command": "plain", "env": {"A": "b"}},
    "off": {"command": "off", "env": {"A": "${keyring:OFF}"}, "disabled": true}
  },
  "http": {"tokens": [{"name": "me", "token": "${keyring:ME}"}]},
  "approvals": {"approvers": [{"name": "ann", "token": "${exec:token ann}", "role": "admin"}]}
}`

func parseSecretive(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("c.json", []byte(text), func(name string) (string, bool) { return "good", name == "GOOD" })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ref(kind secrets.Kind, name string) secrets.Reference {
	return secrets.Reference{Kind: kind, Name: name}
}

// foundAll are the secrets of secretive.
func foundAll() map[secrets.Reference]secrets.Secret {
	return map[secrets.Reference]secrets.Secret{
		ref(secrets.Keyring, "GITHUB"):          secrets.Found("canary-github"),
		ref(secrets.Exec, "op read 'op://a/b'"): secrets.Found("canary-op"),
		ref(secrets.File, "shop.key"):           secrets.Found("canary-line-0123456789\ncanary-second-line"),
		ref(secrets.File, "cwd"):                secrets.Found("/canary-cwd"),
		ref(secrets.Keyring, "ME"):              secrets.Found("canary-of-me-0123456789"),
		ref(secrets.Exec, "token ann"):          secrets.Found("canary-of-ann-0123456789"),
	}
}

// Reading a configuration asks for no secret; what would need one cannot be used.
func TestSecretsAreNotAskedForInReading(t *testing.T) {
	t.Parallel()
	c := parseSecretive(t, secretive)
	want := []secrets.Reference{
		ref(secrets.Keyring, "GITHUB"), ref(secrets.Exec, "op read 'op://a/b'"), ref(secrets.File, "shop.key"), ref(secrets.File, "cwd"),
		ref(secrets.Keyring, "ME"), ref(secrets.Exec, "token ann"),
	}
	if diff := cmp.Diff(want, c.References()); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"op read 'op://a/b'", "token ann"}, c.Commands()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if got := c.References("/servers/shop/args", "/http"); len(got) != 2 {
		t.Errorf("below: %v", got)
	}
	for name, unready := range map[string]bool{"github": true, "shop": true, "plain": false, "off": false} {
		if got := c.Servers[name].Unready; (got != nil) != unready {
			t.Errorf("%s is unready: %v", name, got)
		}
	}
	if got := c.Servers["github"].Headers["Authorization"]; got.Reveal() != "" || got.Origin() != "Bearer ${keyring:GITHUB}" {
		t.Errorf("%q, %q", got.Reveal(), got.Origin())
	}
	if got := c.Servers["shop"].Env["BOTH"].Origin(); got != "good-${keyring:GITHUB}" {
		t.Errorf("%q", got)
	}
	if len(c.SecretTexts()) > 0 {
		t.Errorf("there are secrets: %d", len(c.SecretTexts()))
	}
	// Nobody gets in by a reference, nor by anything else.
	ann, me := c.Approvals.Approvers[0], c.HTTP.Tokens[0]
	for _, text := range []string{"", "${exec:token ann}", "${keyring:ME}", "token ann", "ME"} {
		if d := Digest(sha256.Sum256([]byte(text))); d == ann.Digest || d == me.Digest {
			t.Errorf("%q is a token", text)
		}
	}
	if ann.Digest == (Digest{}) || me.Digest == (Digest{}) {
		t.Error("they count as without a token")
	}
}

func TestSecretsFilledIn(t *testing.T) {
	t.Parallel()
	before := parseSecretive(t, secretive)
	c, err := before.WithSecrets(foundAll())
	if err != nil {
		t.Fatal(err)
	}
	shop := c.Servers["shop"]
	for got, want := range map[string]string{
		c.Servers["github"].Headers["Authorization"].Reveal(): "Bearer canary-github",
		c.Servers["github"].Headers["X"].Reveal():             "canary-op",
		shop.Args[1].Reveal():                                 "canary-line-0123456789\ncanary-second-line",
		shop.Cwd.Reveal():                                     "/canary-cwd",
		shop.Env["BOTH"].Reveal():                             "good-canary-github",
		c.Servers["github"].WhyUnready() + shop.WhyUnready():  "",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if shop.Cwd.Origin() != before.Servers["shop"].Cwd.Origin() || shop.Env["BOTH"].Origin() != before.Servers["shop"].Env["BOTH"].Origin() {
		t.Error("the origins differ")
	}
	if c.Approvals.Approvers[0].Digest != sha256.Sum256([]byte("canary-of-ann-0123456789")) || c.HTTP.Tokens[0].Digest != sha256.Sum256([]byte("canary-of-me-0123456789")) {
		t.Error("the tokens do not count")
	}
	if a, b := c.Approvals.Approvers[0], before.Approvals.Approvers[0]; !a.SameToken(b) || a.Digest == b.Digest {
		t.Error("the token with the same name is another one")
	}
	want := []string{"/canary-cwd", "canary-github", "canary-line-0123456789", "canary-line-0123456789\ncanary-second-line", "canary-of-ann-0123456789", "canary-of-me-0123456789", "canary-op", "canary-second-line"}
	if diff := cmp.Diff(want, c.SecretTexts()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if got := c.SecretTexts("/servers/github"); !slices.Equal(got, []string{"canary-github", "canary-op"}) {
		t.Errorf("of one server: %q", got)
	}
	for _, text := range []string{c.String(), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%+v", *c.Servers["shop"]), fmt.Sprintf("%#v", *c.Servers["github"])} {
		if strings.Contains(text, "canary") {
			t.Errorf("shown: %s", text)
		}
	}
	key := []byte("key")
	is := func(c *Config, name string) string {
		return c.Servers[name].Identity(key, nil, func(string) bool { return false })
	}
	found := foundAll()
	found[ref(secrets.Keyring, "GITHUB")] = secrets.Found("another")
	other, err := before.WithSecrets(found)
	if err != nil {
		t.Fatal(err)
	}
	if is(c, "shop") == is(other, "shop") || is(c, "plain") != is(other, "plain") {
		t.Error("the value does not count in the identity, or in that of a server without it")
	}
}

// A server whose secret is missing fails alone; anywhere else that is a mistake.
func TestSecretsThatAreMissing(t *testing.T) {
	t.Parallel()
	before := parseSecretive(t, secretive)
	missing := secrets.Secret{Err: &secrets.Error{Message: "the keyring has no secret", Hint: "set it"}}
	found := foundAll()
	found[ref(secrets.Keyring, "GITHUB")] = missing
	c, err := before.WithSecrets(found)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Servers["github"].WhyUnready(), `c.json:3:85: "Authorization": the keyring has no secret (hint: set it)`; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := c.Servers["shop"].WhyUnready(); !strings.HasPrefix(got, `c.json:4:122: "BOTH": the keyring`) {
		t.Errorf("%q", got)
	}
	if c.Servers["plain"].Unready != nil || c.Servers["shop"].Env["BOTH"].Reveal() != "" || c.Servers["shop"].Env["BOTH"].Origin() != "good-${keyring:GITHUB}" {
		t.Errorf("%+v", c.Servers)
	}

	found = foundAll()
	found[ref(secrets.Exec, "op read 'op://a/b'")] = secrets.Found("canary\nline") // no header
	if c, err = before.WithSecrets(found); err != nil {
		t.Fatal(err)
	}
	if got := c.Servers["github"].WhyUnready(); !strings.Contains(got, "holds a control character") || strings.Contains(got, "canary") || c.Servers["shop"].Unready != nil {
		t.Errorf("%q", got)
	}

	found = foundAll()
	found[ref(secrets.Keyring, "ME")] = secrets.Found("canary-short")
	found[ref(secrets.Exec, "token ann")] = missing
	_, err = before.WithSecrets(found)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 2 || strings.Contains(err.Error(), "canary") ||
		!strings.Contains(err.Error(), "c.json:8:47: the token is shorter than 16 characters") || !strings.Contains(err.Error(), `c.json:9:57: "token": the keyring has no secret`) {
		t.Errorf("%v", err)
	}

	// A part of them can be asked for.
	if c, err = before.WithSecrets(map[secrets.Reference]secrets.Secret{ref(secrets.Exec, "token ann"): secrets.Found("canary-of-ann-0123456789")}); err != nil {
		t.Fatal(err)
	}
	if c.Servers["github"].Unready == nil || c.Approvals.Approvers[0].Digest != sha256.Sum256([]byte("canary-of-ann-0123456789")) {
		t.Errorf("%v", c.Servers["github"].Unready)
	}
}

func TestSecretsInTheWrongPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"servers": {"a": {"command": "x", "timeout": "${keyring:A}"}}}`:                                      `c.json:1:47: "timeout" can be no secret`,
		`{"servers": {"a": {"command": "x", "type": "${file:a}"}}}`:                                            `"type" can be no secret`,
		`{"servers": {"a": {"command": "x", "env": {"B": "ab${keyring:-}"}}}}`:                                 `c.json:1:52: "B": "${keyring:...}" does not name a secret`,
		`{"servers": {"a": {"command": "x", "env": {"B": "${exec:a ${B}}"}}}}`:                                 "a variable inside a variable",
		`{"servers": {"a": {"command": "x", "env": {"B": "${exec:a | b}"}}}}`:                                  "no shell runs the command",
		`{"http": {"tokens": [{"name": "a", "token": "x${keyring:A}"}]}}`:                                      "a token may not stand in the file",
		`{"http": {"tokens": [{"name": "a", "sha256": "${keyring:A}"}]}}`:                                      `"sha256" is no secret`,
		`{"http": {"tokens": [{"name": "a", "token": "${file:A}"}, {"name": "b", "token": "${file:A}"}]}}`:     "the same token is there twice",
		`{"servers": {"a": {"url": "https://x", "auth": {"clientId": "a", "clientSecret": "x${keyring:A}"}}}}`: "a secret may not stand in the file",
	} {
		if _, err := Parse("c.json", []byte(text), goodEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	c := mustParse(t, "c.json", `{"evaluation": {"profiles": {"p": {"allowlist": ["a__b"], "rules": [{"tools": ["a__${keyring:x}"], "action": "deny", "reason": "${file:x}"}]}}}}`)
	if c.References() != nil {
		t.Error("secrets are read where no variable is")
	}
}

// An overlay is read again, too.
func TestSecretsWithAnOverlay(t *testing.T) {
	t.Parallel()
	c, err := ParseOverlaid("c.json", []byte(secretive), Overlay{"c.prod.json", []byte(`{"evaluation": {"profiles": {"p": {"allowlist": ["*"]}}}}`)},
		func(name string) (string, bool) { return "good", name == "GOOD" })
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.WithSecrets(foundAll()); err != nil || c.Overlay == "" || c.Servers["github"].Unready != nil || len(c.Profiles.Names()) != 1 {
		t.Errorf("%v, %v", c, err)
	}
}
