package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// become makes this process continue as another user.
func become(user string) error {
	if user == "own" {
		return nil
	}
	id, err := strconv.Atoi(user)
	if err == nil {
		err = syscall.Setgroups(nil)
	}
	if err == nil {
		err = syscall.Setgid(id)
	}
	if err == nil {
		err = syscall.Setuid(id)
	}
	return err
}

// An upstream server that runs as another user finds nothing with which it could approve
// a call, even where no rule of the bridge is in its way.
func TestAnotherUserCannotApprove(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can start a server as another user")
	}
	const nobody = "65534"
	b := besiege(t, nobody)
	// The files of the bridge have to keep others out, not the test's own folder.
	for dir := b.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(b.dir, "config"), programs(t)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(b.config)
	if err != nil {
		t.Fatal(err)
	}

	text := b.attack(`
		const told = {}, go = "cd " + input.home + "; parent=$(sed -n 's/^PPid:\\t//p' /proc/$PPID/status); exec 2>&1; ";
		for (const [name, command] of Object.entries({
			who: "id -u; ls config; head -c 20 /proc/$parent/cmdline",
			read: "cat state/c*/* config/c*/*",
			write: "for f in state/c*/audit.db state/c*/audit-requests.db config/c*/config.json; do echo {} >> $f && echo written; done",
			remove: "rm -f state/c*/* config/c*/*; rmdir state/c* config/c* && echo removed",
			process: "cat /proc/$parent/environ /proc/$parent/mem /proc/$parent/maps /proc/$parent/fd/*",
			signals: "kill -STOP $parent && echo stopped",
			command: "yes | codemode-bridge -c config/codemode-bri''dge/conf''ig.json approvals approve " + input.requests[0].id,
			list: "export HOME=$PWD XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME=$PWD/config; codemode-bridge approvals list && echo listed",
		})) told[name] = await codemode.hands__shell({command: go + command});
		const decide = input.page + "/api/decide/" + input.requests[0].id, body = JSON.stringify({decision: "approve", digest: input.requests[0].digest, typed: "fail"});
		told.page = await codemode.hands__fetch({url: decide, method: "POST", headers: {"Content-Type": "application/json"}, body});
		return told`, nil)
	var answer struct{ Result map[string]string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	told := answer.Result
	for _, words := range []string{nobody, "codemode-bridge\n", programs(t)[:8]} {
		if !strings.Contains(told["who"], words) {
			t.Fatalf("the attack is not what it should be: %q", told["who"])
		}
	}
	for name, words := range map[string]string{"read": "approvers", "write": "written", "remove": "removed", "process": b.dir, "signals": "stopped", "command": "approved", "list": "listed"} {
		if got := told[name]; strings.Contains(got, words) || !strings.Contains(strings.ToLower(got), "permission denied") && !strings.Contains(got, "not permitted") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if !strings.HasPrefix(told["page"], "401 ") {
		t.Errorf("the page: %s", told["page"])
	}
	if strings.Contains(text, b.token) || strings.Contains(text, "SQLite") {
		t.Errorf("it read what it should not: %s", text)
	}
	b.unmoved("another user's attack")
	if now, err := os.ReadFile(b.config); err != nil || string(now) != string(config) {
		t.Errorf("the configuration is another: %v", err)
	}
	if n := b.count("--event-type", "intent", "--server", "hands"); n < len(told) {
		t.Errorf("%d tries are recorded, of %d", n, len(told))
	}
}
