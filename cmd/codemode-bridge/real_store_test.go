//go:build real

package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/pgtest"
)

// The commands with a store in PostgreSQL: before there is one, with it, and when its
// server is gone. None of them, and no file that they write, has the password.
func TestRealDatabase(t *testing.T) {
	t.Parallel()
	bin, server, home := realPrograms(t), startPostgres(t), t.TempDir()
	config := filepath.Join(home, "config.json")
	address := storeAt(server, "team")
	mustWrite(t, config, `{"servers": {"time": {"builtin": "time"}}, "store": "`+address+`", "storeKey": "${STORE_KEY}"}`)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "codemode-bridge"), append([]string{"--config", config}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
		cmd.Env = append(cmd.Env, storeEnv...)
		return cmd
	}
	run := func(args ...string) (string, error) {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		if strings.Contains(string(out), pgtest.Password) {
			t.Errorf("%s shows the password:\n%s", strings.Join(args, " "), out)
		}
		return string(out), err
	}
	says := func(words string, args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil || !strings.Contains(out, words) {
			t.Errorf("%s should say %q: %v\n%s", strings.Join(args, " "), words, err, out)
		}
		return out
	}
	says("there is no audit log at postgres://bridge@127.0.0.1", "runs", "list")
	if out, _ := run("doctor"); !strings.Contains(out, "there is no store in it yet") {
		t.Errorf("doctor before there is a store:\n%s", out)
	}
	says("Z", "eval", "return await codemode.time__now({})")
	says("the log is whole", "audit", "verify")
	says("time__now", "audit", "query")
	says("done", "runs", "list")
	says("nothing waits", "approvals", "list")
	says("", "grants", "list")
	says("all of it was last verified on", "doctor")
	// To a file and back: the same log, whichever is looked at.
	copied := filepath.Join(t.TempDir(), "audit.db")
	head := lastLine(says("the log is whole", "store", "copy", address, copied))
	says("the log is whole", "audit", "verify", "--log", copied)
	if out, err := run("store", "copy", address, copied); err == nil || !strings.Contains(out, "is there already") {
		t.Errorf("a copy over another: %v\n%s", err, out)
	}
	back := strings.Replace(address, "team", "back", 1)
	if again := lastLine(says("the log is whole", "store", "copy", copied, back)); again != head {
		t.Errorf("the copy says %s, its copy %s", head, again)
	}
	// A backup, made while a bridge makes calls, whose key is encrypted as it is in the
	// database, restored into another one. What was done before it is in it.
	var bridge serving
	bridge.start(t, command("serve", "--listen", "127.0.0.1:0"))
	client, err := bridge.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	stop := keepsCalling(t, client)
	records := func(more ...string) int {
		t.Helper()
		return strings.Count(says("", append([]string{"audit", "query", "--json", "--limit", "0"}, more...)...), `"event"`)
	}
	before := records()
	saved := filepath.Join(t.TempDir(), "all.backup")
	says("the backup has all of it", "backup", saved)
	stop()
	bridge.stop()
	if out, err := run("restore", saved); err == nil || !strings.Contains(out, "the store has rows already") {
		t.Errorf("a backup over the store: %v\n%s", err, out)
	}
	elsewhere := filepath.Join(t.TempDir(), "config.json")
	mustWrite(t, elsewhere, strings.Replace(`{"servers": {"time": {"builtin": "time"}}, "store": "`+address+`", "storeKey": "${STORE_KEY}"}`, "team", "restored", 1))
	there := func(words string, args ...string) string { return says(words, append(args, "--config", elsewhere)...) }
	if there("the log is whole", "restore", saved); lastLine(there("the log is whole", "audit", "verify")) == "" {
		t.Error("audit verify says nothing of what was restored")
	}
	if in, after := records("--config", elsewhere), records(); before == 0 || in < before || after <= before {
		t.Errorf("%d records before the backup, %d in it, %d in the end", before, in, after)
	}
	there("done", "runs", "list", "--all")
	mustWrite(t, elsewhere, `{"servers": {"time": {"builtin": "time"}}, "audit": {"path": "`+filepath.ToSlash(filepath.Join(filepath.Dir(elsewhere), "audit.db"))+`"}}`)
	if out, err := run("restore", saved, "--config", elsewhere); err == nil || !strings.Contains(out, "hint: name that with storeKey, or with --key") {
		t.Errorf("a backup whose key is encrypted: %v\n%s", err, out)
	}
	there("the log is whole", "restore", saved, "--key", "${STORE_KEY}")
	there("the log is whole", "audit", "verify")
	if out, err := run("store", "copy", copied, strings.Replace(address, "${STORE_PASSWORD}", "tiger", 1)); err == nil || !strings.Contains(out, "a password may not stand") {
		t.Errorf("a password on the command line: %v\n%s", err, out)
	}
	mustWrite(t, config, `{"servers": {"time": {"builtin": "time"}}, "store": "`+back+`", "storeKey": "${STORE_KEY}"}`)
	says("the log is whole", "audit", "verify")
	says("Z", "eval", "return await codemode.time__now({})")
	if err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		name, isNote := entry.Name(), strings.HasPrefix(entry.Name(), "audit.db-bridges-note-") // what a bridge told the others here
		if strings.HasPrefix(name, "audit.db") && !isNote || strings.Contains(string(text), pgtest.Password) {
			t.Errorf("%s is there, and has the password: %t", path, strings.Contains(string(text), pgtest.Password))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server.Halt()
	for _, args := range [][]string{{"eval", "return 1"}, {"audit", "verify"}, {"approvals", "list"}, {"doctor"}} {
		if out, err := run(args...); err == nil || !strings.Contains(out, "cannot be reached") {
			t.Errorf("%s without the server: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
