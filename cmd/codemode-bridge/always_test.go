package main_test

import (
	"os"
	"strings"
	"testing"
)

// An admin who answers with "always" allows the rest of the run; the rule that is
// written counts once it is confirmed, as any edit that loosens.
func TestAlwaysAtTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, `{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"default": "ask", "elicitationFallback": "queue"}}},
}
`)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	jo := strings.TrimSpace(c.does("", "approvers", "add", "jo"))
	const twice = `for (const text of ["x", "y"]) await codemode.utils__hash({text}); return "done"`
	id, result := c.evaluates(twice)
	c.refuses("which takes the role admin", jo, "approvals", "always", id, "--token-stdin")
	if text, err := os.ReadFile(c.file); err != nil || strings.Contains(string(text), "always-") {
		t.Fatalf("jo has written a rule: %v\n%s", err, text)
	}
	if got := c.does(ann, "approvals", "always", id, "--token-stdin"); !strings.Contains(got, "approved") {
		t.Errorf("said %q", got)
	}
	if got := result(); got != `"done"` {
		t.Errorf("the script returned %s", got)
	}
	text, err := os.ReadFile(c.file)
	if err != nil || !strings.Contains(string(text), `"name": "always-`) {
		t.Fatalf("no rule is written: %v\n%s", err, text)
	}
	c.does(ann, "config", "confirm", "--token-stdin")
	if out, talk, code := c.run("", "eval", twice); code != 0 || !strings.Contains(out, "done") {
		t.Errorf("with the rule: %d\n%s%s", code, out, talk)
	}
	c.refuses("no rule is proposed", ann, "approvals", "always", id, "--token-stdin")
}
