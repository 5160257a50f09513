package pending

import (
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/secrets"
)

// A command for a secret is a way to run code, so that it waits like the command of a
// server; what a secret is called makes a server another, what it holds does not.
func TestSecretsLoosen(t *testing.T) {
	t.Parallel()
	read := func(servers, approvers string) *config.Config {
		t.Helper()
		cfg, err := config.Parse("c.json", []byte(`{"servers": {`+servers+`}, "approvals": {"approvers": [`+approvers+`]}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	filled := func(cfg *config.Config, text string) *config.Config {
		t.Helper()
		found := map[secrets.Reference]secrets.Secret{}
		for _, r := range cfg.References() {
			found[r] = secrets.Found(text)
		}
		cfg, err := cfg.WithSecrets(found)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const ann = `{"name": "ann", "token": "${keyring:ANN}", "role": "admin"}`
	server := func(value string) string {
		return `"a": {"command": "x", "env": {"T": "` + value + `"}, "newTools": "quarantine", "changedTools": "quarantine"}`
	}
	for name, row := range map[string]struct {
		was, is, people string
		why             []string
	}{
		"the same":                  {server("${keyring:A}"), server("${keyring:A}"), ann, nil},
		"another name":              {server("${keyring:A}"), server("${keyring:B}"), ann, []string{"server a: it runs or reaches something else, or in another way"}},
		"another file":              {server("${file:a}"), server("${file:b}"), ann, []string{"server a: it runs or reaches something else, or in another way"}},
		"another command":           {server("${exec:op a}"), server("${exec:op b --token=ghp_canary7f3a91c2canary7f3a91c2canary77}"), ann, []string{"secrets: a command is run for one: op b --token=[hidden: looks like a secret]", "server a: it runs or reaches something else, or in another way"}},
		"a command in a new server": {"", server("${exec:op a}"), ann, []string{"secrets: a command is run for one: op a", "server a: it is new, and is given the secret ${exec:op a}"}},
		"a secret in a new server":  {"", server("${keyring:A}"), ann, []string{"server a: it is new, and is given the secret ${keyring:A}"}},
		"a secret for another":      {server("${file:a}"), server("${file:a}") + `, "b": {"url": "https://b.example.com/mcp", "headers": {"T": "${file:a}"}, "newTools": "quarantine", "changedTools": "quarantine"}`, ann, []string{"server b: it is new, and is given the secret ${file:a}"}},
		"a command twice":           {server("${exec:op a}"), server("${exec:op a}") + `, "b": {"command": "x", "env": {"T": "${exec:op a}"}, "newTools": "quarantine", "changedTools": "quarantine"}`, ann, []string{"server b: it is new, and is given the secret ${exec:op a}"}},
		"no command any more":       {server("${exec:op a}") + `, "b": {"command": "x", "env": {"T": "${exec:op b}"}, "newTools": "quarantine"}`, server("${exec:op a}"), ann, nil},
		"an approver's token":       {"", "", `{"name": "ann", "token": "${keyring:EVE}", "role": "admin"}`, []string{"approvals: ann is changed: admin, token ${keyring:EVE}"}},
		"an approver's token by a command": {"", "", `{"name": "ann", "token": "${exec:eve}", "role": "admin"}`, []string{
			"approvals: ann is changed: admin, token ${exec:eve}", "secrets: a command is run for one: eve"}},
	} {
		was, is := read(row.was, ann), read(row.is, row.people)
		// The one in force may have its secrets, the edit never does.
		for _, old := range []*config.Config{was, filled(was, "0123456789abcdef one"), filled(was, "0123456789abcdef two")} {
			why := looserBeside(old, is)
			slices.Sort(why)
			if got := strings.Join(why, "; "); got != strings.Join(row.why, "; ") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}

	// While an edit waits, who may answer is known by the token that was asked for.
	old, is := filled(read("", ann), "0123456789abcdef"), read(server("${exec:op}"), ann)
	if both := meanwhile(old.Approvals, is.Approvals); both.Approvers[0].Digest != old.Approvals.Approvers[0].Digest || both.Approvers[0].Role != config.RoleAdmin {
		t.Errorf("%+v", both.Approvers)
	}
}
