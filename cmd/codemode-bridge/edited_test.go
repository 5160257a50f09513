package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// askingCall is a configuration in which ann is asked about every call.
func askingCall() string {
	return fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue"}}},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}
`, approverJSON("ann", "admin", annsToken))
}

// wants checks that a text has all of the parts.
func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is missing from\n%s", what, part, text)
		}
	}
}

// Where a call whose arguments an approver edited is shown, it says what was asked about,
// what was sent, and who edited it: to the approver, to others, to the model, and in the
// log.
func TestEditedArgumentsAreTold(t *testing.T) {
	t.Parallel()
	b := serves(t, askingCall())
	run := b.starts(annsToken, `return await codemode.utils__base64_encode({text: "scripts"})`)
	q := b.asks(run)
	out, talk, code := b.run(annsToken, "approvals", "approve", q.ID, "--token-stdin", "--args", `{"text": "anns"}`)
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, talk)
	}
	wants(t, "before ann says yes", talk, "scripts", "edited by you", "anns")
	wants(t, "once she did", out, "approved by ann, with edited arguments")
	if _, result := b.ends(run); !strings.Contains(string(result), "YW5ucw==") {
		t.Errorf("the script returned %s", result)
	}

	_, text := b.api(annsToken, "GET", "/api/result/"+run, nil)
	wants(t, "the answer", text, `utils__base64_encode (call 1): ann edited the arguments before the call was sent. The script wrote {\"text\":\"scripts\"}; sent was {\"text\":\"anns\"}`)
	_, text = b.api(annsToken, "GET", "/api/pending/"+q.ID, nil)
	wants(t, "the request", text, `"edited":{"by":"ann","call":1`, `"args":{"text":"anns"}`, "scripts")
	wants(t, "approvals show", b.does("", "approvals", "show", q.ID), "scripts", "edited by ann", "anns", "yes, with edited arguments (ann", "approved, done")
	wants(t, "approvals list", b.does("", "approvals", "list", "--all"), "yes, with edited arguments (ann")
	var rows []struct {
		Edited struct {
			By   string
			Args json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(b.does("", "approvals", "list", "--all", "--json")), &rows); err != nil || len(rows) != 1 || rows[0].Edited.By != "ann" {
		t.Errorf("the list has %+v, %v", rows, err)
	}
	wants(t, "runs show", b.does("", "runs", "show", run), `arguments {"text":"anns"}`, `edited    by ann; asked about was {"text":"scripts"}`)
	wants(t, "the verdict", b.does("", "audit", "query", "--event-type", "verdict", "--json"), `"edited_args":{"text":"anns"}`, `"edited_digest":"sha256:`)
}

// After an approval of some calls of a loop, each call has its own outcome.
func TestEachRowHasItsOwnOutcome(t *testing.T) {
	t.Parallel()
	b := serves(t, askingCall())
	run := b.starts(annsToken, `
		const all = [];
		for (const text of ["a", "b", "c"]) all.push(codemode.utils__hash({text}));
		return (await Promise.allSettled(all)).map(r => r.status)`)
	q := b.asks(run)
	eventually(t, "the calls are not asked about together", func() bool {
		var shown struct{ Calls []any }
		return json.Unmarshal([]byte(b.does("", "approvals", "show", q.ID, "--json")), &shown) == nil && len(shown.Calls) == 3
	})
	b.does(annsToken, "approvals", "approve", q.ID, "--token-stdin", "--rows", "1,3")
	if _, result := b.ends(run); string(result) != `["fulfilled","rejected","fulfilled"]` {
		t.Errorf("the script returned %s", result)
	}
	shown := b.does("", "approvals", "show", q.ID)
	for _, line := range []string{`call 1 +approved, done`, `call 2 +denied, refused`, `call 3 +approved, done`, `settled +yes to 2 of 3 calls \(ann`} {
		if !regexp.MustCompile(line).MatchString(shown) {
			t.Errorf("%q is missing from\n%s", line, shown)
		}
	}
	var row struct {
		Outcomes []struct {
			Call          int
			Answer, State string
		}
	}
	text := b.does("", "approvals", "show", q.ID, "--json")
	if err := json.Unmarshal([]byte(text), &row); err != nil || fmt.Sprint(row.Outcomes) != "[{1 approved done} {2 denied refused} {3 approved done}]" {
		t.Errorf("the request has %+v, %v", row.Outcomes, err)
	}
	_, text = b.api(annsToken, "GET", "/api/pending/"+q.ID, nil)
	wants(t, "the API", text, `{"call":2,"answer":"denied","state":"refused"`, `{"call":3,"answer":"approved","state":"done"}`)
}

// A grant belongs to a session: once its bridge is killed, it is no longer listed.
func TestGrantOfABridgeThatWasKilled(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, queueing)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	cmd := c.program("", "eval", `await codemode.utils__hash({text: "x"}); await codemode.utils__csv_parse({text: "y" + Date.now()})`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	var rows []struct{ ID string }
	eventually(t, "nothing is asked", func() bool {
		list, _, _ := c.run("", "approvals", "list", "--json")
		return json.Unmarshal([]byte(list), &rows) == nil && len(rows) == 1
	})
	c.does(ann, "approvals", "approve", rows[0].ID, "--token-stdin", "--scope", "session")
	eventually(t, "nothing is granted", func() bool {
		list := c.does("", "grants", "list")
		return strings.Contains(list, "anything in it") && strings.Contains(list, "command line")
	})
	cmd.Process.Kill()
	cmd.Wait()
	if list := strings.TrimSpace(c.does("", "grants", "list", "--json")); list != "[]" {
		t.Errorf("still in force: %s", list)
	}
}
