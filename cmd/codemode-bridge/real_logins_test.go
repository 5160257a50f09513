//go:build real

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/pgtest"
)

// Two machines with one store: the login that one has in a file moves to the store, is good
// at the other, ends at both, and is made anew at the other without a restart.
func TestRealSharedLogins(t *testing.T) {
	t.Parallel()
	fake := newTracker(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	config := map[string]any{"surface": "full", "servers": map[string]any{"tracker": map[string]any{"url": fake.URL, "newTools": "allow"}},
		"evaluation": map[string]any{"defaultProfile": "open", "profiles": map[string]any{"open": map[string]any{}}}}
	env := []string{"CODEMODE_LOGINS=file", "STORE_PASSWORD=" + pgtest.Password, "STORE_KEY=the key of the store of two machines"}
	one, two := newHome(t, config, env...), newHome(t, config, env...)
	pasted := func(back string) string { return back }
	if out, code := one.logInByHand(fake, pasted); code != 0 || strings.Contains(out, "in the store") {
		t.Fatalf("the login ends with %d and says %q\n%s", code, out, one.talk.String())
	}
	config["id"], config["storeKey"] = "team", "${STORE_KEY}"
	config["store"] = strings.Replace(server.URL("postgres", "team"), pgtest.Password, "${STORE_PASSWORD}", 1)
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*home{one, two} {
		if err := os.WriteFile(h.config, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(h *home) bool {
		all, err := filepath.Glob(filepath.Join(h.dir, "state", "codemode-bridge", "logins", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all) > 0
	}
	if got := one.says([]int{0}, "servers", "test", "tracker"); !file(one) {
		t.Errorf("a command that only looks moved the login: %s", got)
	}
	script := map[string]any{"code": "return await codemode.tracker__list_issues({})"}
	first := one.connect()
	eventually(t, "the login is of no use with the store", func() bool { return strings.Contains(first.call(t, "eval", script), "two issues") })
	if file(one) {
		t.Error("the login is still in the file")
	}
	second := two.connect()
	eventually(t, "the other machine has no login", func() bool { return strings.Contains(second.call(t, "eval", script), "two issues") })

	fake.Expired()
	renewed := len(fake.Requests("/token"))
	for _, bridge := range []*client{first, second} {
		if got := bridge.call(t, "eval", script); !strings.Contains(got, "two issues") {
			t.Errorf("after the token ended: %s", got)
		}
	}
	if n := len(fake.Requests("/token")) - renewed; n != 1 {
		t.Errorf("it was renewed %d times, want once", n)
	}

	if got := two.says([]int{0}, "servers", "logout", "tracker"); got != "logged out of tracker\n" {
		t.Errorf("the logout says %q", got)
	}
	for _, bridge := range []*client{first, second} {
		if got := bridge.call(t, "eval", script); !strings.Contains(got, "the server needs a login: run codemode-bridge servers login tracker") {
			t.Errorf("after the logout, a call says %s", got)
		}
	}
	if out, code := two.logInByHand(fake, pasted); code != 0 || !strings.Contains(out, "kept in the store") {
		t.Fatalf("the login ends with %d and says %q\n%s", code, out, two.talk.String())
	}
	eventually(t, "the other machine does not notice the login", func() bool { return strings.Contains(first.call(t, "eval", script), "two issues") })
	if got := one.says([]int{0, 1}, "doctor"); !strings.Contains(got, "kept in the store") {
		t.Errorf("doctor does not say where the login is: %s", got)
	}
}
