//go:build real

package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A keptMachine is a machine: a home of its own, with a configuration that others have as well.
type keptMachine struct {
	t         *testing.T
	bin, home string
}

func (m keptMachine) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.bin, "codemode-bridge"), append(args, "--config", m.config())...)
	cmd.Env = append(os.Environ(), "HOME="+m.home, "XDG_CONFIG_HOME="+filepath.Join(m.home, "config"), "XDG_STATE_HOME="+filepath.Join(m.home, "state"), "XDG_CACHE_HOME="+filepath.Join(m.home, "cache"))
	cmd.Env = append(cmd.Env, storeEnv...)
	return cmd
}

func (m keptMachine) config() string { return filepath.Join(m.home, "config.json") }

func (m keptMachine) run(args ...string) string {
	m.t.Helper()
	out, _ := m.command(args...).CombinedOutput() // what it says tells
	return string(out)
}

// says waits until a command says the words.
func (m keptMachine) says(words string, args ...string) {
	m.t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; {
		out := m.run(args...)
		if strings.Contains(out, words) {
			return
		}
		if time.Now().After(until) {
			m.t.Fatalf("%s should say %q:\n%s", strings.Join(args, " "), words, out)
		}
	}
}

// serves starts a bridge that ends with the test.
func (m keptMachine) serves() {
	m.t.Helper()
	cmd := m.command("serve")
	said := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if m.t.Failed() {
			m.t.Logf("serve in %s said:\n%s", m.home, said)
		}
	})
}

const petDocument = `{"openapi": "3.0.0", "info": {"title": "pets", "version": "1"}, "paths": {"/pets": {"get": {"operationId": "list", "description": "DESCRIPTION", "responses": {"200": {"description": "ok"}}}}}}`

// keptMachines returns bridges with one store. Every machine has the text as its
// configuration, in which ADDRESS is the store's.
func keptMachines(t *testing.T, text string, n int) (all []keptMachine) {
	t.Helper()
	bin, address := realPrograms(t), storeAt(startPostgres(t), "team")
	for range n {
		m := keptMachine{t, bin, t.TempDir()}
		mustWrite(t, m.config(), strings.Replace(text, "ADDRESS", address, 1))
		mustWrite(t, filepath.Join(m.home, "pets.json"), petDocument)
		all = append(all, m)
	}
	return all
}

const sharedText = `{"id": "team", "servers": {"pets": {"openapi": "pets.json", "url": "http://127.0.0.1:1/"}}, "store": "ADDRESS", "storeKey": "${STORE_KEY}", "http": {"listen": "127.0.0.1:0"}, "approvals": {"listen": "off"}}`

// A tool that is accepted on one machine is accepted on all with the store and the id, and
// on a fresh one; without the id, nothing is shared.
func TestRealKeptPins(t *testing.T) {
	t.Parallel()
	all := keptMachines(t, sharedText, 4)
	a, b, fresh, other := all[0], all[1], all[2], all[3]
	const look = `return Object.keys(codemode).join()`
	a.says("pets__list", "eval", look)
	b.says("pets__list", "eval", look)
	b.says("no tool waits", "tools", "review")
	for _, m := range all {
		mustWrite(t, filepath.Join(m.home, "pets.json"), strings.Replace(petDocument, "DESCRIPTION", "Another one.", 1))
	}
	a.serves()
	b.says("Another one.", "tools", "review") // a, which runs, has seen it
	b.says("accepted", "tools", "review", "--accept", "--all", "--yes")
	a.says("no tool waits", "tools", "review")
	fresh.says("pets__list", "eval", look)
	fresh.says("no tool waits", "tools", "review")
	mustWrite(t, filepath.Join(fresh.home, "pets.json"), strings.Replace(petDocument, "DESCRIPTION", "A third.", 1))
	fresh.serves()
	fresh.says("A third.", "tools", "review")

	// Without the id the machine is alone.
	text, err := os.ReadFile(other.config())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, other.config(), strings.Replace(string(text), `"id": "team", `, "", 1))
	other.says("pets__list", "eval", look)
	other.says("no tool waits", "tools", "review")
	if found, _ := filepath.Glob(filepath.Join(other.home, "state", "codemode-bridge", "pins-*", "server-pets.json")); len(found) != 1 {
		t.Errorf("its pins are in %q", found)
	}
	if found, _ := filepath.Glob(filepath.Join(a.home, "state", "codemode-bridge", "pins-*")); len(found) != 0 {
		t.Errorf("what is shared is in %q too", found)
	}
}

// A loosening edit waits on every machine, is confirmed once, on any of them, and is in
// force on a fresh one.
func TestRealKeptConfirmations(t *testing.T) {
	t.Parallel()
	text := strings.Replace(sharedText, `"approvals": {"listen": "off"}`, fmt.Sprintf(`"approvals": {"listen": "off", "approvers": [{"name": "ann", "role": "admin", "sha256": "%x"}]}`, sha256.Sum256([]byte("ann-token"))), 1)
	all := keptMachines(t, text, 3)
	a, b, fresh := all[0], all[1], all[2]
	a.serves()
	b.serves()
	a.says("no configuration waits", "config", "pending")
	a.says("pets", "servers", "list") // it has begun
	b.says("pets", "servers", "list")
	edited := mustRead(t, a.config())
	edited = strings.Replace(edited, `"servers": {`, `"servers": {"another": {"openapi": "pets.json", "url": "http://127.0.0.1:2/"}, `, 1)
	for _, m := range all[:2] {
		mustWrite(t, m.config(), edited)
	}
	a.says("id team", "config", "pending")
	b.says("id team", "config", "pending")
	confirm := b.command("config", "confirm", "--token-stdin", "--reason", "the test edits it")
	confirm.Stdin = strings.NewReader("ann-token\n")
	if out, err := confirm.CombinedOutput(); err != nil {
		t.Fatalf("confirming: %v\n%s", err, out)
	}
	for _, m := range all[:2] {
		m.says("no configuration waits", "config", "pending")
		m.says("another", "servers", "list")
	}
	mustWrite(t, fresh.config(), edited)
	fresh.says("no configuration waits", "config", "pending")
	fresh.says("1", "eval", "return 1")
	mustWrite(t, fresh.config(), strings.Replace(edited, "127.0.0.1:2", "127.0.0.1:3", 1))
	fresh.says("waits", "config", "pending")
}
