package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/secretstest"
)

// canaries are secrets, one for each way in. Those without a telling name are
// recognised by their look.
var canaries = map[string]string{
	"a variable":                   "canary-variable-7f3a91c2",
	"a server's environment":       "canary-environment-7f3a91c2",
	"a server's argument":          "canary-flag-7f3a91c2",
	"a header":                     "canary-header-7f3a91c2",
	"a keyring":                    "canary-keyring-7f3a91c2",
	"a file":                       "canary-file-7f3a91c2",
	"a command":                    "canary-command-7f3a91c2",
	"an address's password":        "canary-password-7f3a91c2",
	"an address's query":           "canary-query-7f3a91c2",
	"an argument, by its name":     "canary-argument-7f3a91c2",
	"an argument, by its look":     "ghp_canary7f3a91c2canary7f3a91c2canary77",
	"an argument, deep":            "canary-deep-7f3a91c2",
	"an argument's address":        "canary-argurl-7f3a91c2",
	"the input":                    "canary-input-7f3a91c2",
	"a thrown error":               "canary-thrown-7f3a91c2",
	"a refused call":               "canary-refused-7f3a91c2",
	"a call that fits no tool":     "canary-misfit-7f3a91c2",
	"a name that no tool has":      "ghp_canary7f3a91c2canary7f3a91c2canary88",
	"a tool's error":               "canary-failed-7f3a91c2",
	"the token of the metrics":     "canary-metrics-7f3a91c2",
	"an edited configuration":      "canary-edited-7f3a91c2",
	"a configuration with a fault": "canary-faulty-7f3a91c2",
}

// No secret is in anything that the bridge writes or shows: its files, its log, the
// questions to the person, the status, the audit log and what is printed of it. Only what
// a server was sent and what it answered reaches the script as it is.
func TestCanaries(t *testing.T) {
	t.Parallel()
	c := canaries
	effects := filepath.Join(t.TempDir(), "effects")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(c["a file"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inKeyring, bus := "${file:"+secret+"}", ""
	if runtime.GOOS == "linux" { // elsewhere it would be the person's own
		inKeyring, bus = "${keyring:CANARY}", keyringWith(t, "CANARY", c["a keyring"])
	}
	// The server repeats each of them; nothing but its reference says that it is secret.
	fake := fakeServer(t, effects, "${SECRET_ENVIRONMENT}")
	fake["args"] = []string{"--api-key", c["a server's argument"], "--colour", inKeyring, "--shape", "${file:" + secret + "}", "--size", "of ${exec:go env GONOPROXY}"}
	servers := map[string]any{
		"fake":  fake,
		"utils": map[string]any{"type": "builtin", "builtin": "utils"},
		"web": map[string]any{"url": "http://me:" + c["an address's password"] + "@127.0.0.1:1/mcp?api_key=" + c["an address's query"],
			"headers": map[string]string{"Authorization": "Bearer ${SECRET_HEADER}", "X-Other": "${SECRET_VARIABLE}"}},
	}
	config := map[string]any{
		"metrics": map[string]any{"listen": "127.0.0.1:0", "token": c["the token of the metrics"], "tools": 100},
		"surface": "full", "log": map[string]any{"level": "debug", "format": "json"}, "servers": servers,
		"evaluation": map[string]any{"defaultProfile": "work", "profiles": map[string]any{"work": map[string]any{
			"asklist": []string{"fake__*"},
			"rules":   []any{map[string]any{"tools": []string{"fake__write"}, "when": "has(args.never)", "action": "deny", "reason": "never"}},
		}}},
	}
	h := newHome(t, config, "SECRET_ENVIRONMENT="+c["a server's environment"], "SECRET_HEADER="+c["a header"], "SECRET_VARIABLE="+c["a variable"],
		"DBUS_SESSION_BUS_ADDRESS="+bus, "GONOPROXY="+c["a command"])
	quietGo(t, h.dir)

	bridge := h.connect()
	script := fmt.Sprintf(`
		const said = await codemode.fake__write({token: %q, text: %q, list: [{name: "API_KEY", value: %q}], url: "https://x.example/?access_token=%s"});
		try { await codemode.fake__write({never: true, password: %q}) } catch {}
		try { await codemode.utils__hash({text: 1, api_key: %q}) } catch {}
		try { await codemode[%q]({}) } catch {}
		try { await codemode.fake__fail({secret: %q}) } catch {}
		console.log(said);
		throw new Error("password=" + input.password + " token: %s");`,
		c["an argument, by its name"], c["an argument, by its look"], c["an argument, deep"], c["an argument's address"],
		c["a refused call"], c["a call that fits no tool"], c["a name that no tool has"], c["a tool's error"], c["a thrown error"])
	answered := bridge.call(t, "eval", map[string]any{"code": script, "input": map[string]any{"password": c["the input"]}})
	for _, what := range []string{"a server's environment", "a keyring", "a file", "a command"} {
		if !strings.Contains(answered, c[what]) && (what != "a keyring" || bus != "") {
			t.Errorf("the server was not given %s: %s", what, answered)
		}
	}
	shown := map[string]string{
		"codemode_status": bridge.call(t, "codemode_status", map[string]any{}),
		"search_tools":    bridge.call(t, "search_tools", map[string]any{"query": "write"}),
		"get_tools":       bridge.call(t, "get_tools", map[string]any{}),
	}
	for i, question := range bridge.asked {
		shown[fmt.Sprintf("question %d", i+1)] = question
	}
	if len(bridge.asked) < 2 {
		t.Errorf("the person was asked %d times", len(bridge.asked))
	}

	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(h.talk.String())
	counted := readMetrics(t, at, c["the token of the metrics"])
	shown["metrics"] = counted

	// Two edits of the configuration while it runs, one of them wrong.
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(text string) {
		if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(strings.Replace(string(text), c["an address's query"], c["an edited configuration"], 1))
	h.await("config", 1)
	edit(strings.Replace(string(text), c["an address's query"], c["a configuration with a fault"]+`","fault":"`, 1))
	h.await("config", 2)
	shown["codemode_status with a problem"] = bridge.call(t, "codemode_status", map[string]any{})
	edit(string(text))
	h.await("config", 3)
	if err := bridge.Close(); err != nil {
		t.Logf("closing: %v", err)
	}

	for _, args := range []string{
		"audit query --json -n 0", "audit query -n 0", "audit query --format csv -n 0", "audit export", "audit export --format csv", "audit export --format cef",
		"audit stats", "audit stats --json", "audit report", "audit verify", "audit checkpoint", "runs list", "runs list --json",
		"tail --no-follow --all -n 1000", "tail --no-follow --all --json -n 1000", "servers list", "servers list --json", "tools list", "profiles show work", "check", "check --secrets", "check --secrets --json",
		"__complete runs show r",
	} {
		shown[args] = h.says([]int{0}, strings.Fields(args)...)
	}
	run := regexp.MustCompile(`"run":"([a-z0-9]+)"`).FindStringSubmatch(h.says([]int{0}, "audit", "query", "--json", "--tool", "fake__write", "-n", "1"))
	if run == nil {
		t.Fatal("the log has no call of fake__write")
	}
	shown["runs show"] = h.says([]int{0}, "runs", "show", run[1])
	shown["runs show --json"] = h.says([]int{0}, "runs", "show", run[1], "--json")
	shown["standard error of all"] = h.talk.String()
	for name, text := range files(t, filepath.Join(h.dir, "state")) {
		shown["file "+name] = text
	}
	for name, text := range files(t, filepath.Join(h.dir, "cache")) {
		shown["file "+name] = text
	}
	for where, text := range shown {
		for what, secret := range canaries {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s is in %s: %q", what, where, text[max(0, i-80):min(len(text), i+len(secret)+40)])
			}
		}
	}

	// No label of a metric is a run, a session, a client or a request, either.
	for _, field := range []string{"run", "session", "client", "request", "digest", "trace", "principal"} {
		for _, found := range regexp.MustCompile(`"`+field+`":"([^"]+)"`).FindAllStringSubmatch(shown["audit query --json -n 0"], -1) {
			if strings.Contains(counted, `"`+found[1]+`"`) {
				t.Errorf("the metrics have the %s %s", field, found[1])
			}
		}
	}
	if strings.Contains(counted, "codemode_decision_duration_seconds_count 0\n") {
		t.Error("no decision is in the metrics")
	}
	for _, want := range []string{`codemode_tool_calls_total{outcome="done",server="fake",tool="write"} 1`, `codemode_calls_total{disposition="deny",outcome="refused",profile="work",server="fake"} 1`} {
		if !strings.Contains(counted, want) {
			t.Errorf("the metrics have no %s:\n%s", want, counted)
		}
	}

	// The log does have the calls, and a secret can be found there by its fingerprint:
	// otherwise the test would prove nothing.
	for _, want := range []string{"fake__write", "hidden", "refused", "fp:"} {
		if !strings.Contains(shown["runs show"], want) {
			t.Errorf("%q is missing from\n%s", want, shown["runs show"])
		}
	}
	find := h.command("audit", "fingerprint")
	find.Stdin = strings.NewReader(c["an argument, by its name"] + "\n")
	found, err := find.Output()
	if err != nil || !strings.Contains(string(found), "fake__write") {
		t.Errorf("the fingerprint of an argument: %s, %v", found, err)
	}
	if n, intents := countEffects(t, effects), h.count("--event-type", "intent", "--server", "fake"); n != intents || n != 2 {
		t.Errorf("%d effects, %d intents", n, intents)
	}
}

// keyringWith starts a keyring with one secret, and returns the address of its bus.
func keyringWith(t *testing.T, name, secret string) string {
	t.Helper()
	service, err := secretstest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	service.Put(secrets.Service, name, secret)
	return service.Address()
}

// await waits until the log has so many rows of an event.
func (h *home) await(event string, n int) {
	h.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); h.count("--event-type", event) < n; {
		if time.Now().After(deadline) {
			h.t.Fatalf("the log has no %d rows of %s\n%s", n, event, h.talk.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Whatever happens to the bridge, the log is whole and has an intent from before every
// effect on a server: here the bridge is killed while calls are under way.
func TestKilledBridgeHasAnnouncedEveryEffect(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	h := newHome(t, map[string]any{"servers": map[string]any{"fake": fakeServer(t, effects, "x")}})
	for round := range 4 {
		bridge := h.connect("--alone")
		before := countEffects(t, effects)
		go bridge.CallTool(t.Context(), callParams(`for (;;) await Promise.all(Array.from({length: 8}, (_, i) => codemode.fake__write({i})))`))
		eventually(t, "the bridge makes no calls", func() bool { return countEffects(t, effects) >= before+10*(round+1) })
		if err := bridge.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		bridge.Close()
		if n, intents := countEffects(t, effects), h.count("--event-type", "intent"); n > intents {
			t.Errorf("%d effects, %d intents", n, intents)
		}
		h.says([]int{0}, "audit", "verify")
	}
	if list := h.says([]int{0}, "runs", "list"); strings.Count(list, " interrupted ") != 4 {
		t.Errorf("killed runs are shown as\n%s", list)
	}
}

// readMetrics scrapes a bridge.
func readMetrics(t *testing.T, at, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("reading metrics at %s: %s, %v\n%s", at, answer.Status, err, text)
	}
	return string(text)
}
