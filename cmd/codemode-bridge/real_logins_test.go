//go:build real

package main_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/pgtest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// Two bridges with one store: whoever connects an account at one page, in two steps at two
// bridges, calls with it at both; it is renewed once, and disconnecting it at one ends it at both.
func TestRealSharedAccounts(t *testing.T) {
	t.Parallel()
	fake := newMirror(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	token := func(name, text string) string {
		return fmt.Sprintf(`{"name": %q, "sha256": "%x"}`, name, sha256.Sum256([]byte(text)))
	}
	const annSigns, bobSigns = "ann-signs-in-with-this-0123456789", "bob-signs-in-with-this-0123456789"
	config := fmt.Sprintf(`{
  "id": "team", "store": %q, "storeKey": "${STORE_KEY}",
  "servers": {"mirror": {"url": %q, "auth": {"per": "principal"}, "newTools": "allow"}},
  "evaluation": {"defaultProfile": "open", "profiles": {"open": {}}},
  "http": {"tokens": [%s, %s]},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s, %s]},
}`, strings.Replace(server.URL("postgres", "accounts"), pgtest.Password, "${STORE_PASSWORD}", 1), fake.URL,
		token("ann", annsToken), token("bob", bobsToken), approverJSON("ann", "viewer", annSigns), approverJSON("bob", "approver", bobSigns))
	type bridge struct {
		commandLine
		serving
		ann, bob     *visitor
		asAnn, asBob *mcp.ClientSession
	}
	begin := func() *bridge {
		t.Helper()
		b := &bridge{commandLine: newCommandLine(t, config)}
		b.env = append(b.env, "CODEMODE_LOGINS=file", "STORE_PASSWORD="+pgtest.Password, "STORE_KEY=the key of the store of two machines")
		b.serving.file = b.commandLine.file
		b.start(t, b.program("", "serve", "--listen", "127.0.0.1:0"))
		b.ann, b.bob = signIn(t, b.page, annSigns), signIn(t, b.page, bobSigns)
		for to, token := range map[**mcp.ClientSession]string{&b.asAnn: annsToken, &b.asBob: bobsToken} {
			client, err := b.connect(t, token)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			*to = client
		}
		return b
	}
	one, two := begin(), begin()
	whoami := func(client *mcp.ClientSession) (string, error) {
		return eval(t.Context(), client, `try { return await codemode.mirror__whoami({}) } catch (e) { return e.message }`)
	}
	says := func(what string, client *mcp.ClientSession, want string) {
		t.Helper()
		if got, err := whoami(client); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s, %v, want %s", what, got, err, want)
		}
	}

	// It begins at the first page, and the browser comes back to the second.
	back := one.ann.begin(fake, "ann-at-mirror")
	if status, text := two.bob.finish(back); status != http.StatusForbidden || !strings.Contains(text, "not begun by bob") {
		t.Errorf("bob finishes what ann began: %d %s", status, text)
	}
	if status, text := two.ann.finish(back); status != http.StatusOK {
		t.Fatalf("ann finishes elsewhere: %d %s", status, text)
	}
	for _, b := range []*bridge{one, two} {
		if status, _ := b.ann.finish(back); status != http.StatusForbidden {
			t.Errorf("again: %d", status)
		}
		eventually(t, "the server's tools are not listed", func() bool { got, err := whoami(b.asAnn); return err == nil && got == `"ann-at-mirror"` })
		says("bob, who has none", b.asBob, "the server needs an account of your own: connect it at "+b.page+"/accounts")
	}

	fake.Expired()
	renewed := len(fake.Requests("/token"))
	var all sync.WaitGroup
	for _, b := range []*bridge{one, two, one, two} {
		all.Go(func() { says("after the token ended", b.asAnn, "ann-at-mirror") })
	}
	all.Wait()
	if n := len(fake.Requests("/token")) - renewed; n != 1 {
		t.Errorf("it was renewed %d times, want once", n)
	}

	one.bob.connect(fake, "bob-at-mirror")
	says("bob at the other bridge", two.asBob, "bob-at-mirror")
	if status, text := one.ann.do("/api/accounts/disconnect", map[string]string{"server": "mirror"}); status != http.StatusOK || !strings.Contains(text, `"revoked":true`) {
		t.Errorf("disconnecting: %d %s", status, text)
	}
	for _, b := range []*bridge{two, one} {
		says("ann, who has disconnected", b.asAnn, "connect it at "+b.page+"/accounts")
		says("bob, beside that", b.asBob, "bob-at-mirror")
	}
	nowhere(t, server.Data(), fake.Secrets())
}
