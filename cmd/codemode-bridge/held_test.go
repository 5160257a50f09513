package main_test

// A configuration that loosens what is in force waits for an approver.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	annsToken     = "anns-token-long-enough"
	bobsToken     = "bobs-token-long-enough"
	mallorysToken = "mallorys-token-long-enough"
)

func approverJSON(name, role, token string) string {
	sum := sha256.Sum256([]byte(token))
	return fmt.Sprintf(`{"name": %q, "role": %q, "sha256": %q}`, name, role, hex.EncodeToString(sum[:]))
}

// heldConfigText is a configuration with approvers and a policy.
func heldConfigText(evaluation string, more ...string) string {
	people := append([]string{approverJSON("ann", "admin", annsToken), approverJSON("bob", "approver", bobsToken)}, more...)
	return fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}}, // kept
  "surface": "full",
  "evaluation": %s,
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}
`, evaluation, strings.Join(people, ", "))
}

const (
	strictPolicy = `{"defaultProfile": "p", "profiles": {"p": {"denylist": ["utils__*"]}}}`
	loosePolicy  = `{"defaultProfile": "p", "profiles": {"p": {"denylist": ["utils__uuid"]}}}`
)

// A heldBench is a bridge that serves, and the command line beside it.
type heldBench struct {
	commandLine
	serving
	client *mcp.ClientSession
}

func newHeldBench(t *testing.T) *heldBench {
	t.Helper()
	return serves(t, heldConfigText(strictPolicy))
}

// serves starts a bridge with a configuration.
func serves(t *testing.T, config string) *heldBench {
	t.Helper()
	b := &heldBench{commandLine: newCommandLine(t, config)}
	b.serving.file = b.commandLine.file
	b.start()
	return b
}

// start starts its bridge, until the test or kill ends it, and connects to it.
func (b *heldBench) start() {
	b.Helper()
	b.serving.start(b.T, b.program("", "serve", "--listen", "127.0.0.1:0"))
	client, err := b.connect(b.T, "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	b.client = client
}

// stop ends the session and the bridge in order.
func (b *heldBench) stop() {
	b.client.Close()
	b.serving.stop()
}

// passes reports whether a call that the strict policy denies is made.
func (b *heldBench) passes() bool {
	b.Helper()
	got, err := eval(b.Context(), b.client, `try { await codemode.utils__hash({text: "x"}); return "sent" } catch (e) { return e.reason }`)
	if err != nil || got != `"sent"` && got != `"denied"` {
		b.Fatalf("got %s, %v", got, err)
	}
	return got == `"sent"`
}

// pending is the pending configuration, as the command line shows it; "" if there is
// none.
func (b *heldBench) pending() string {
	b.Helper()
	out, _, code := b.run("", "config", "pending", "--json")
	if code != 0 {
		b.Fatalf("config pending: exit code %d: %s", code, out)
	}
	if out = strings.TrimSpace(out); out == "null" {
		return ""
	}
	return out
}

func (b *heldBench) isHeld(words ...string) {
	b.Helper()
	eventually(b.T, "it is not held: "+strings.Join(words, ", "), func() bool {
		_, page := b.api(annsToken, "GET", "/api/config", nil)
		all := b.pending() // the command reads the file itself, whether or not the bridge has
		for _, w := range words {
			if !strings.Contains(all, w) || !strings.Contains(page, w) {
				return false
			}
		}
		return true
	})
	if b.passes() {
		b.Error("what is held holds already")
	}
}

func (b *heldBench) status() string {
	b.Helper()
	res, err := b.client.CallTool(b.Context(), &mcp.CallToolParams{Name: "codemode_status"})
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(res)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

func TestLooserConfigurationIsHeld(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t)
	if b.passes() || b.pending() != "" || strings.Contains(b.status(), "config_held") {
		t.Fatal("it does not begin with the strict policy")
	}
	b.refuses("no configuration waits", annsToken, "config", "confirm", "--token-stdin")

	b.write(t, heldConfigText(loosePolicy))
	b.isHeld(`denylist: \"utils__*\" is gone`, `utils__uuid`)
	if !strings.Contains(b.status(), "config_held") {
		t.Error("codemode_status does not say that a configuration is held")
	}
	b.refuses("takes the role admin", bobsToken, "config", "confirm", "--token-stdin")
	b.refuses("no approver's token", "wrong-token-long-enough", "config", "confirm", "--token-stdin")

	// An approver whom the pending edit adds can answer neither it nor any request.
	b.write(t, heldConfigText(loosePolicy, approverJSON("mallory", "admin", mallorysToken)))
	b.isHeld("mallory is new: admin", `denylist: \"utils__*\" is gone`)
	b.refuses("no approver's token", mallorysToken, "config", "confirm", "--token-stdin")
	if b.passes() {
		t.Fatal("a refused confirmation let the change through")
	}

	b.write(t, heldConfigText(strictPolicy)) // back to what is in force
	eventually(t, "an edit back does not drop what is held", func() bool { return b.pending() == "" })
	if b.passes() {
		t.Fatal("an edit back loosens")
	}

	b.write(t, heldConfigText(loosePolicy))
	b.isHeld(`denylist: \"utils__*\" is gone`)
	b.refuses("needs a reason", annsToken, "config", "confirm", "--token-stdin")
	b.does(annsToken+"\n", "config", "confirm", "--token-stdin", "--reason", "agreed with ops")
	eventually(t, "a confirmed configuration is not taken over", b.passes)
	if strings.Contains(b.status(), "config_held") {
		t.Error("what was confirmed is still held")
	}
	log := b.does("", "audit", "query", "--json")
	for _, words := range []string{`"outcome":"held"`, `"approver":"ann"`, `"said":"agreed with ops"`} {
		if !strings.Contains(strings.ReplaceAll(log, `": "`, `":"`), words) {
			t.Errorf("the audit log has no %s\n%s", words, log)
		}
	}

	b.write(t, heldConfigText(strictPolicy)) // an edit that tightens does not wait
	eventually(t, "what tightens is not taken over", func() bool { return !b.passes() })
	// The same text was confirmed a minute ago at most. It is asked about again all the
	// same, because it now loosens something else.
	b.write(t, heldConfigText(`{"defaultProfile": "p", "profiles": {"p": {}}}`))
	b.isHeld(`denylist: \"utils__*\" is gone`)
}

// A pending edit does not take effect at a start either: a bridge that serves starts with
// what was last confirmed, and a command that runs one script refuses to.
func TestHeldConfigurationIsNotStartedWith(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t)
	b.write(t, heldConfigText(loosePolicy))
	b.isHeld(`denylist: \"utils__*\" is gone`)
	refused := func(args ...string) {
		t.Helper()
		out, said, code := b.run("", args...)
		if code != 3 || !strings.Contains(said, "waits for an approver") || !strings.Contains(said, "config confirm takes it over") {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, said)
		}
	}
	refused("eval", "return 1")
	b.kill()
	refused("eval", "return 1") // also while no bridge holds it

	b.start()
	if b.passes() || b.pending() == "" || !strings.Contains(b.status(), "config_held") {
		t.Fatal("it was started with")
	}
	b.does(annsToken+"\n", "config", "confirm", "--token-stdin", "--reason", "agreed with ops")
	eventually(t, "a confirmed configuration is not taken over", b.passes)
	if out := b.does("", "eval", "return 1"); strings.TrimSpace(out) != "1" {
		t.Errorf("what is confirmed is answered with %s", out)
	}
	b.kill()
	b.start()
	if !b.passes() || b.pending() != "" {
		t.Error("what was confirmed is forgotten")
	}
}

// A configuration that is a symbolic link may be made to lead to another file: what waits
// is the same for the running bridge, for eval and for whoever confirms it.
func TestLinkIsLedElsewhere(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t)
	other := filepath.Join(filepath.Dir(b.serving.file), "v2.json")
	if err := os.WriteFile(other, []byte(heldConfigText(loosePolicy)), 0o600); err != nil {
		t.Fatal(err)
	}
	next := b.serving.file + ".next"
	for _, err := range []error{os.Symlink("v2.json", next), os.Rename(next, b.serving.file)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if out, said, code := b.run("", "eval", "return 1"); code != 3 || !strings.Contains(said, "waits for an approver") {
			t.Errorf("eval: exit code %d, %s%s", code, out, said)
		}
	}
	b.isHeld(`denylist: \"utils__*\" is gone`, `utils__uuid`)
	b.kill()
	b.start()
	b.isHeld(`denylist: \"utils__*\" is gone`, `utils__uuid`)
	b.does(annsToken+"\n", "config", "confirm", "--token-stdin", "--reason", "agreed with ops")
	eventually(t, "a confirmed configuration is not taken over", b.passes)
	if out := b.does("", "eval", "return 1"); strings.TrimSpace(out) != "1" {
		t.Errorf("what is confirmed is answered with %s", out)
	}
}

// An edit that would leave nobody who may confirm can still be confirmed by those who may
// now, who may do nothing else meanwhile. If they reject it, they have all their rights
// again.
func TestNobodyWouldBeLeft(t *testing.T) {
	b := newHeldBench(t)
	me := func(token string) string {
		t.Helper()
		code, text := b.api(token, "GET", "/api/me", nil)
		return fmt.Sprint(code, " ", text)
	}
	alone := strings.Replace(heldConfigText(strictPolicy), approverJSON("ann", "admin", annsToken)+", "+approverJSON("bob", "approver", bobsToken), "", 1)
	b.write(t, alone)
	b.isHeld("nobody would be left who may answer", "nobody would be left who may confirm")
	eventually(t, "ann may more than confirm", func() bool { return strings.Contains(me(annsToken), `"may":["look","confirm"]`) })
	if got := me(bobsToken); !strings.HasPrefix(got, "401") {
		t.Errorf("bob is let in: %s", got)
	}
	b.refuses("no approver's token", bobsToken, "config", "reject", "--token-stdin")
	b.does(annsToken+"\n", "config", "reject", "--token-stdin", "--reason", "bob stays")
	eventually(t, "what was rejected still takes rights away", func() bool {
		return strings.HasPrefix(me(bobsToken), "200") && strings.Contains(me(annsToken), `"edit"`)
	})
	if got := b.pending(); !strings.Contains(got, "bob stays") {
		t.Errorf("that it was rejected is not shown: %s", got)
	}
	b.kill()
	b.start() // with what was rejected
	if got := me(bobsToken); !strings.HasPrefix(got, "200") {
		t.Errorf("after the next start bob is refused: %s", got)
	}
	b.write(t, heldConfigText(strictPolicy))
	eventually(t, "an edit back does not drop what is held", func() bool { return b.pending() == "" })
}

// api makes a request of the page's API as an approver.
func (b *heldBench) api(token, method, path string, body any) (int, string) {
	b.Helper()
	res, text := request(b.T, http.DefaultClient, method, b.page+path, http.Header{"Authorization": {"Bearer " + token}}, body)
	return res.StatusCode, text
}

// A pending configuration can also be confirmed through the API, by an admin.
func TestHeldConfigurationIsConfirmedThroughTheAPI(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t)
	b.write(t, heldConfigText(loosePolicy, approverJSON("mallory", "admin", mallorysToken)))
	b.isHeld("mallory is new: admin")
	var got struct {
		Held struct {
			Digest string
			Why    []string
			Reason bool `json:"reason_needed"`
		}
	}
	code, text := b.api(bobsToken, "GET", "/api/config", nil)
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 || got.Held.Digest == "" {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if diff := cmp.Diff([]string{"profile p: denylist: \"utils__*\" is gone", "approvals: mallory is new: admin, token 96fe188b..."}, got.Held.Why); diff != "" || !got.Held.Reason {
		t.Errorf("what waits (a reason is needed: %t; -want +got):\n%s", got.Held.Reason, diff)
	}
	if code, text := b.api(bobsToken, "GET", "/api/servers", nil); code != 200 || !strings.Contains(text, "config_held") {
		t.Errorf("the status says nothing of it: %d %s", code, text)
	}
	confirm := func(token, digest, reason string, want int) {
		t.Helper()
		if code, text := b.api(token, "POST", "/api/config/confirm", map[string]string{"digest": digest, "reason": reason}); code != want {
			t.Errorf("%d %s, want %d", code, text, want)
		}
	}
	confirm(bobsToken, got.Held.Digest, "me too", 403)
	confirm(mallorysToken, got.Held.Digest, "me too", 401)
	confirm(annsToken, got.Held.Digest, "", 422)
	confirm(annsToken, "another", "why not", 409)
	if b.passes() {
		t.Fatal("a refused confirmation let the change through")
	}
	confirm(annsToken, got.Held.Digest, "mallory is one of us", 200)
	eventually(t, "a confirmed configuration is not taken over", b.passes)
	eventually(t, "who the change brings cannot come in", func() bool { code, _ := b.api(mallorysToken, "GET", "/api/me", nil); return code == 200 })
	log := strings.ReplaceAll(b.does("", "audit", "query", "--json"), `": "`, `":"`)
	for _, words := range []string{`"approver":"ann"`, `"channel":"api"`, `"said":"mallory is one of us"`} {
		if !strings.Contains(log, words) {
			t.Errorf("the audit log has no %s\n%s", words, log)
		}
	}
}

func TestProfilesAreEditedThroughTheAPI(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t)
	code, text := b.api(annsToken, "GET", "/api/profiles", nil)
	var got struct {
		Profiles []struct {
			Name, Tool string
			Default    bool
		}
		Source struct{ Text, Revision string }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if len(got.Profiles) != 1 || got.Profiles[0].Tool != "eval" || !got.Profiles[0].Default || got.Source.Text != strictPolicy {
		t.Fatalf("got %s", text)
	}
	save := func(token, policy, revision string, want int, words string) {
		t.Helper()
		code, text := b.api(token, "PUT", "/api/profiles", map[string]string{"text": policy, "revision": revision})
		if code != want || !strings.Contains(text, words) {
			t.Errorf("saving %s: %d %s, want %d %s", policy, code, text, want, words)
		}
	}
	unchanged := func() {
		t.Helper()
		file, err := os.ReadFile(b.serving.file)
		if err != nil || string(file) != heldConfigText(strictPolicy) {
			t.Errorf("the file was changed: %s, %v", file, err)
		}
	}
	save(bobsToken, loosePolicy, got.Source.Revision, 403, "")
	save(annsToken, `{"profiles": {"p": {"denylst": []}}}`, got.Source.Revision, 422, "config.json:4:")
	save(annsToken, `{}, "servers": {}`, got.Source.Revision, 422, "")
	save(annsToken, loosePolicy, strings.Repeat("0", 64), 409, "changed")
	unchanged()

	// What the text would change of the calls so far can be seen before: of this
	// configuration's, not of another one's that shares the log.
	if b.passes() {
		t.Fatal("the strict policy lets the call pass")
	}
	other := b.commandLine
	other.file = filepath.Join(b.home, "other.json")
	if err := os.WriteFile(other.file, []byte(heldConfigText(loosePolicy)), 0o600); err != nil {
		t.Fatal(err)
	}
	other.does("", "eval", `return codemode.utils__hash({text: "y"})`)
	if runs := b.does("", "runs", "list", "--all", "--json"); strings.Count(runs, `"run":`) != 2 {
		t.Fatalf("the log is not shared: %s", runs)
	}
	try := func(token, policy string, want int, words ...string) {
		t.Helper()
		code, text := b.api(token, "POST", "/api/profiles/try", map[string]string{"text": policy})
		for _, words := range words {
			if code != want || !strings.Contains(text, words) {
				t.Errorf("trying %s: %d %s, want %d %s", policy, code, text, want, words)
			}
		}
	}
	try(bobsToken, loosePolicy, 403, "")
	try(annsToken, `{"profiles": {"p": {"denylst": []}}}`, 422, "config.json:4:")
	try(annsToken, strictPolicy, 200, `"calls":1,"unchanged":1,"looser":0,"stricter":0,"unknown":0`)
	try(annsToken, loosePolicy, 200, `"days":7,"calls":1,"unchanged":0,"looser":1,"stricter":0,"unknown":0`, "looser than before", "  deny  allow  ", "#1  utils__hash {")
	unchanged()

	// Whoever may confirm a looser policy need not confirm their own edit.
	policy := strings.Replace(loosePolicy, `"profiles"`, "// said ann\n  \"profiles\"", 1)
	save(annsToken, policy, got.Source.Revision, 200, "saved")
	file, err := os.ReadFile(b.serving.file)
	if err != nil || string(file) != heldConfigText(policy) {
		t.Errorf("beside the section something was changed: %s, %v", file, err)
	}
	eventually(t, "what was saved does not hold", b.passes)
	if held := b.pending(); held != "" {
		t.Errorf("it is held: %s", held)
	}
	save(annsToken, strictPolicy, got.Source.Revision, 409, "changed")
}
