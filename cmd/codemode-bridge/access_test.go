package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// accessText is a configuration with two tokens, an admin who confirms edits, and entries of access.
func accessText(entries string) string {
	token := func(name, text, more string) string {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf(`{"name": %q, "sha256": %q%s}`, name, hex.EncodeToString(sum[:]), more)
	}
	return fmt.Sprintf(`{
  "servers": {"utils": {"builtin": "utils"}, "time": {"builtin": "time"}},
  "evaluation": {"defaultProfile": "open", "profiles": {"open": {}, "safe": {"allowlist": ["time__*"]}}},
  "http": {"tokens": [%s, %s]},
  "approvals": {"listen": "off", "approvers": [%s]},
  "access": [
    %s
  ],
}
`, token("ann", annsToken, `, "groups": ["staff"]`), token("ci", bobsToken, ""), approverJSON("eve", "admin", mallorysToken), entries)
}

// What the configuration says of access holds in a bridge that runs: it is explained, an edit that takes
// something away counts at once, and one that gives more waits.
func TestAccessOfARunningBridge(t *testing.T) {
	t.Parallel()
	const staff, robots = `{"groups": ["staff"], "profiles": ["*"]},`, `{"tokens": ["c*"], "profiles": ["open"], "servers": ["utils"]},`
	c := newCommandLine(t, accessText(staff+"\n    "+robots))
	write := func(entries string) {
		t.Helper()
		if err := os.WriteFile(c.file, []byte(accessText(entries)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, words := range map[string][]string{
		"ann":            {`ann: entry 1 of access (config.json:7) holds, by group "staff"`, "codemode_eval_safe"},
		"ci":             {`ci: entry 2 of access (config.json:8) holds, by token "c*"`, "not about them: entry 1", "bound to the profile open"},
		"bob":            {"bob: nothing, since no entry of access holds", "They are shown no tools"},
		"bob -g staff":   {`bob: entry 1 of access (config.json:7) holds`},
		"- --json":       {`"principal":"","groups":[],"rules":true`, `"tools":[]`},
		"ci -g staff -g": {"flag needs an argument"},
	} {
		out, talk, _ := c.run("", append([]string{"access", "explain"}, strings.Fields(args)...)...)
		for _, w := range words {
			if !strings.Contains(out+talk, w) {
				t.Errorf("access explain %s does not say %q:\n%s%s", args, w, out, talk)
			}
		}
	}
	c.refuses("no entry of access holds for whoever has no name (local)", "", "eval", "return 1")
	c.refuses(`there is no profile "gone"`, "", "run", "--profile", "gone")
	if _, talk, _ := c.run("", "run", "--alone"); !strings.Contains(talk, "this window sees no tools") {
		t.Errorf("a window does not say why it sees nothing: %s", talk)
	}

	s := serving{file: c.file}
	s.start(t, c.program("", "serve", "--listen", "127.0.0.1:0"))
	as := func(token string) *mcp.ClientSession {
		t.Helper()
		client, err := s.connect(t, token)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	ann, ci := as(annsToken), as(bobsToken)
	sees := func(client *mcp.ClientSession, tool string) bool {
		t.Helper()
		res, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(res.Tools, func(one *mcp.Tool) bool { return one.Name == tool })
	}
	if !sees(ann, "codemode_eval_safe") || sees(ci, "codemode_eval_safe") || !sees(ci, "eval") {
		t.Error("somebody sees other tools than theirs")
	}
	const both = `const all = []; for (const f of [() => codemode.utils__hash({text: "x"}), () => codemode.time__now({})]) { try { await f(); all.push("sent") } catch (e) { all.push(e.reason) } } return all.join()`
	passes := func(want string) {
		t.Helper()
		if got, err := eval(t.Context(), ci, both); err != nil || got != want {
			t.Errorf("ci gets %s, %v, want %s", got, err, want)
		}
	}
	passes(`"sent,denied"`)

	write(staff + "\n    " + strings.Replace(robots, `["utils"]`, `["utils", "time"]`, 1))
	eventually(t, "an edit that gives more is not held", func() bool {
		out, _, _ := c.run("", "config", "pending", "--json")
		return strings.Contains(out, "access: entry 2: more servers are reached")
	})
	passes(`"sent,denied"`)

	write(staff)
	eventually(t, "an entry less does not count", func() bool { return !sees(ci, "eval") })
	if _, err := eval(t.Context(), ci, "return 1"); err == nil || !strings.Contains(err.Error(), `unknown tool "eval"`) {
		t.Errorf("a tool that is theirs no more: %v", err)
	}
	if !sees(ann, "eval") {
		t.Error("another one's tools are gone")
	}
}
