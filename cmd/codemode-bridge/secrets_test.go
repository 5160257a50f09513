package main_test

// Secrets that a configuration names: a server that lacks one fails alone, and a command
// for one runs once somebody has confirmed it.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func privateFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServerWithoutItsSecretFailsAlone(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	lacks := fakeServer(t, effects, "${file:gone}")
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, effects, "${file:token}"), "lacks": lacks}})
	privateFile(t, filepath.Join(h.dir, "token"), "canary-token-0123456789\n")

	if got := h.says([]int{0}, "eval", `return String(await codemode.fake__write({})) + (await codemode.search_tools({query: "write"})).map(t => t.name)`); !strings.Contains(got, "canary-token") || strings.Contains(got, "lacks") {
		t.Errorf("a script got %s", got)
	}
	if n := countEffects(t, effects); n != 1 {
		t.Errorf("%d effects", n)
	}
	list := h.says([]int{0}, "servers", "list", "--json")
	for _, words := range []string{"FAKE_TOKEN", "there is no file", "parked", "connected"} {
		if !strings.Contains(list, words) {
			t.Errorf("the list does not say %s\n%s", words, list)
		}
	}
	h.says([]int{0}, "check")
	said := h.says([]int{3}, "check", "--secrets")
	if !strings.HasPrefix(said, h.config+":1:") || !strings.Contains(said, "there is no file") || strings.Contains(said, "canary") {
		t.Errorf("check --secrets says %s", said)
	}
	privateFile(t, filepath.Join(h.dir, "gone"), "found")
	h.says([]int{0}, "check", "--secrets")
}

// heldSecrets is a configuration whose approver has a token in a file.
func heldSecrets(servers string) string {
	return fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}%s},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [{"name": "ann", "role": "admin", "token": "${file:ann}"}]},
}`, servers)
}

// quietGo has the go command, which tests name as a program that there is everywhere, start
// no process of its own that writes into home after it has ended. Elsewhere than on Linux it
// looks for that in another folder.
func quietGo(t *testing.T, home string) {
	t.Helper()
	for _, config := range []string{home, filepath.Join(home, ".config")} { // with XDG_CONFIG_HOME, and without
		folder := filepath.Join(config, "go", "telemetry")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		privateFile(t, filepath.Join(folder, "mode"), "off\n")
	}
}

func TestCommandForASecretWaitsForAnApprover(t *testing.T) {
	t.Parallel()
	b := &heldBench{commandLine: newCommandLine(t, heldSecrets(""))}
	b.serving.file = b.commandLine.file
	ran := filepath.Join(b.home, "ran")
	b.env = []string{"GOENV=" + ran}
	quietGo(t, b.home)
	privateFile(t, filepath.Join(b.home, "ann"), annsToken+"\n")
	b.start()
	has := func() bool {
		_, err := os.Stat(ran)
		return err == nil
	}

	b.write(t, heldSecrets(`, "new": {"url": "http://127.0.0.1:1/mcp", "headers": {"X": "${exec:go env -w GONOPROXY=x}"}, "newTools": "quarantine", "changedTools": "quarantine"}`))
	eventually(t, "the command does not wait", func() bool {
		_, page := b.api(annsToken, "GET", "/api/config", nil)
		const why = "secrets: a command is run for one: go env -w GONOPROXY=x"
		return strings.Contains(b.pending(), why) && strings.Contains(page, why)
	})
	for _, args := range [][]string{{"check"}, {"config", "pending"}, {"profiles", "list"}, {"audit", "stats"}, {"approvers", "list"}} {
		b.does("", args...)
	}
	b.refuses("waits for an approver", "", "eval", "return 1")
	b.refuses("no approver's token", "${file:ann}-and-more", "config", "confirm", "--token-stdin")
	if out, _, code := b.run("", "check", "--secrets"); code != 3 || !strings.Contains(out, "not run before an approver confirms") {
		t.Errorf("check --secrets: exit code %d, %s", code, out)
	}
	b.kill()
	for _, args := range [][]string{{"servers", "test", "new"}, {"servers", "list"}, {"tools", "list"}, {"tools", "lock", "--check"}, {"doctor"}, {"servers", "test", "--all"}} {
		b.run("", args...)
		if has() {
			t.Fatalf("%v ran the command", args)
		}
	}
	b.start() // with what was confirmed last
	if has() {
		t.Fatal("the command ran before anybody confirmed it")
	}
	b.does(annsToken+"\n", "config", "confirm", "--token-stdin", "--reason", "agreed")
	eventually(t, "the command does not run", has)
}

// What is about some servers asks for their secrets, and for no others.
func TestCommandsAskForTheSecretsOfTheirServers(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	other := fakeServer(t, effects, "${exec:go env -w GONOPROXY=x}")
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, effects, "${file:token}"), "other": other}})
	privateFile(t, filepath.Join(h.dir, "token"), "canary-token-0123456789\n")
	ran := filepath.Join(h.dir, "ran")
	h.env = append(h.env, "GOENV="+ran)
	quietGo(t, h.dir)
	has := func() bool {
		_, err := os.Stat(ran)
		return err == nil
	}

	for _, args := range [][]string{{"tools", "show", "fake__write"}, {"profiles", "explain", "-", "fake.Write"}, {"servers", "test", "fake"}, {"tools", "list", "--server", "fake"}} {
		if said := h.says([]int{0}, args...); !strings.Contains(said, "fake") || strings.Contains(said, "no server lists") || has() {
			t.Fatalf("%q: another server's command ran: %v; %s", args, has(), said)
		}
	}
	if h.says([]int{1}, "tools", "show", "other__write"); !has() { // it prints nothing, so the server has no secret
		t.Error("the command of the tool's own server did not run")
	}
}
