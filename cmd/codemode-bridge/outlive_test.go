package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What the README promises first of a paused run: the bridge is killed, the person
// approves the next day, and the script ends as it would have; calls that were made are
// not made again.
func TestARunOutlivesItsBridge(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"verdict", "command line"} {
		t.Run(how, func(t *testing.T) {
			b := serves(t, fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "surface": "full",
  "runs": {"keep": "1h"},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__hash"], "elicitationFallback": "queue"}}},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}
`, approverJSON("ann", "admin", annsToken)))
			run := b.starts(annsToken, `
				const first = await codemode.utils__base64_encode({text: "b"});
				const at = Date.now(), by = Math.random();
				const [a, c] = await Promise.all([codemode.utils__hash({text: "a" + by}), codemode.utils__base64_encode({text: "c"})]);
				return {first, at, by, a, c, last: await codemode.utils__base64_encode({text: "d"})}`)
			q := b.asks(run)
			eventually(t, "the free calls are not made", func() bool {
				return strings.Count(b.does("", "runs", "show", run), "outcome   done") == 2
			})
			before := b.does("", "runs", "show", run)
			b.kill()
			if list := b.does("", "runs", "list"); !strings.Contains(list, "interrupted") {
				t.Errorf("after the kill the list says\n%s", list)
			}
			if how == "command line" { // no bridge runs when the answer comes
				b.does(annsToken+"\n", "approvals", "approve", q.ID, "--token-stdin")
			}
			b.start()
			if _, runs := b.api(annsToken, "GET", "/api/runs", nil); !strings.Contains(runs, `"state":"interrupted"`) {
				t.Errorf("the list says interrupted, and the API %s", runs)
			}
			if !strings.Contains(b.status(), `"paused":1`) {
				t.Errorf("the status does not count it: %s", b.status())
			}
			if how == "verdict" {
				if status, text := b.approve(annsToken, q); status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
			}
			var result string
			if how == "verdict" {
				_, raw := b.ends(run)
				result = string(raw)
				if status, text := b.api(annsToken, "POST", "/api/runs/"+run+"/resume", map[string]any{}); status != http.StatusConflict || !strings.Contains(text, "the run has ended") {
					t.Errorf("going on with what has ended: %d %s", status, text)
				}
			} else {
				result = b.does("", "runs", "resume", run[:6]) // the beginning is enough
			}
			for _, key := range []string{"first", "at", "by", `"digest"`, `"text":"Yw=="`, `"text":"ZA=="`} {
				if !strings.Contains(strings.ReplaceAll(result, " ", ""), key) {
					t.Errorf("the result has no %s: %s", key, result)
				}
			}
			after := b.does("", "runs", "show", run)
			if n := strings.Count(after, "outcome   done"); n != 4 || strings.Count(before, "outcome   done") != 2 {
				t.Errorf("%d calls were made:\n%s", n, after)
			}
			if n := strings.Count(after, "resumed"); n != 1 {
				t.Errorf("it was resumed %d times:\n%s", n, after)
			}
			if rows := b.does("", "audit", "query", "--run", run, "--event-type", "verdict", "--json"); strings.Contains(rows, "wait_ns") || !strings.Contains(rows, "ann") {
				t.Errorf("the wait is counted from when it was gone on with: %s", rows)
			}
			if said := b.does("", "audit", "verify"); !strings.Contains(said, "whole") {
				t.Errorf("the log: %s", said)
			}
			if again := b.does("", "runs", "replay", run, "--json"); strings.Count(again, `"state":"done"`) != 4 {
				t.Errorf("replayed: %s", again)
			}
			b.refuses("the run "+run+" has ended: done", "", "runs", "resume", run)
			b.refuses("has ended: done", "", "runs", "cancel", run[:6])
			b.refuses("the log has no run", "", "runs", "resume", "nosuch")
		})
	}
}
