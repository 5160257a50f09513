package main_test

// Tests of asking people, with the real binary.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// An asked is a request as the API lists it.
type asked struct {
	ID, Digest, Run string
	Until           time.Time
}

// starts starts a run through the API, as an approver.
func (b *heldBench) starts(token, code string) (run string) {
	b.Helper()
	status, text := b.api(token, "POST", "/api/runs?wait=0s", map[string]any{"code": code})
	var out struct{ Run string }
	if err := json.Unmarshal([]byte(text), &out); err != nil || out.Run == "" || status != http.StatusAccepted && status != http.StatusOK {
		b.Fatalf("starting a run: %d %s", status, text)
	}
	return out.Run
}

// asks waits until a run asks, and returns its first request.
func (b *heldBench) asks(run string) asked {
	b.Helper()
	q, ok := b.asksOrEnds(run)
	if !ok {
		state, result := b.ends(run)
		b.Fatalf("run %s asks nothing: %s, %s", run, state, result)
	}
	return q
}

// asksOrEnds waits until a run asks or ends, and reports whether it asks.
func (b *heldBench) asksOrEnds(run string) (first asked, asks bool) {
	b.Helper()
	eventually(b.T, "run "+run+" neither asks nor ends", func() bool {
		for _, q := range b.open() {
			if q.Run == run {
				first, asks = q, true
				return true
			}
		}
		status, _ := b.api(annsToken, "GET", "/api/result/"+run+"?wait=0s", nil)
		return status == http.StatusOK
	})
	return first, asks
}

func (b *heldBench) open() []asked { b.Helper(); return b.openTo(annsToken) }

// openTo returns the open requests, as the holder of token reads them.
func (b *heldBench) openTo(token string) []asked {
	b.Helper()
	status, text := b.api(token, "GET", "/api/pending", nil)
	var out struct{ Pending []asked }
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 {
		b.Fatalf("%d %s: %v", status, text, err)
	}
	return out.Pending
}

func (b *heldBench) approve(token string, q asked) (status int, text string) {
	b.Helper()
	return b.api(token, "POST", "/api/decide/"+q.ID, map[string]any{"decision": "approve", "digest": q.Digest})
}

// ends waits for a run to end, and returns its state and what its script returned.
func (b *heldBench) ends(run string) (state string, result json.RawMessage) {
	b.Helper()
	for range 10 {
		status, text := b.api(annsToken, "GET", "/api/result/"+run+"?wait=60s", nil)
		var out struct {
			State  string
			Result struct{ Result json.RawMessage }
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			b.Fatalf("%d %s: %v", status, text, err)
		}
		if status == http.StatusOK {
			return out.State, out.Result.Result
		}
	}
	b.Fatalf("run %s does not end", run)
	return "", nil
}

// Many calls wait, each too large to be asked about with others, and more than may be
// asked at a time: all are answered in turn, and the page and the status say how many
// there are.
func TestManyCallsWait(t *testing.T) {
	t.Parallel()
	const calls, open = 100, 5
	b := serves(t, fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "surface": "full",
  "sandbox": {"parallel": %d, "calls": %d},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue"}}},
  "approvals": {"listen": "127.0.0.1:0", "perRun": %d, "perSession": 1000, "perBridge": 1000, "budget": 10000, "approvers": [%s]},
}
`, calls, calls, open, approverJSON("ann", "admin", annsToken)))
	run := b.starts(annsToken, fmt.Sprintf(`
		const all = await Promise.allSettled(Array.from({length: %d}, (_, i) => codemode.utils__hash({text: "call " + i + " x".repeat(45000)})));
		return all.filter((one) => one.status === "fulfilled").length`, calls))
	var status struct {
		Asking struct{ Open, Queued int }
	}
	eventually(t, "the calls do not wait", func() bool {
		code, text := b.api(annsToken, "GET", "/api/servers", nil)
		return code == 200 && json.Unmarshal([]byte(text), &status) == nil && status.Asking.Open == open && status.Asking.Queued > 0
	})
	if n := len(b.open()); n != open || status.Asking.Open != open {
		t.Errorf("%d are on the page and %d in the status, want %d: %+v", n, status.Asking.Open, open, status)
	}
	done := make(chan struct{})
	var got json.RawMessage
	go func() { defer close(done); _, got = b.ends(run) }()
	for approved := 0; ; {
		select {
		case <-done:
			if string(got) != fmt.Sprint(calls) || approved <= open {
				t.Errorf("of %d calls %s were made, with %d yeses", calls, got, approved)
			}
			return
		case <-time.After(10 * time.Millisecond): // what is open now may be nothing
		}
		for _, q := range b.open() {
			status, text := b.approve(annsToken, q)
			switch status {
			case http.StatusOK:
				approved++
			case http.StatusConflict: // one more call had come to it
			default:
				t.Fatalf("%d %s", status, text)
			}
		}
	}
}

// An approval arrives at the very moment of something that ends its request: whichever
// comes first, the approver, the script and the log are told the same.
func TestDecisionAtTheSameInstant(t *testing.T) {
	t.Parallel()
	config := func(rule string) string {
		return fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"]%s}}},
  "approvals": {"listen": "127.0.0.1:0", "budget": 10000, "approvers": [%s]},
}
`, rule, approverJSON("ann", "admin", annsToken))
	}
	const patient, short = "", `, "timeout": "1s"`
	for name, row := range map[string]struct {
		rule string
		// meanwhile is what happens at the same time as the approval.
		meanwhile func(b *heldBench, run string, q asked)
		// lost says that the approval may count although nothing is sent.
		lost bool
	}{
		"the time-out": {short, func(*heldBench, string, asked) {}, false},
		"a stop": {patient, func(b *heldBench, run string, _ asked) {
			b.api(annsToken, "POST", "/api/runs/"+run+"/stop", map[string]any{})
		}, true},
		"a no": {patient, func(b *heldBench, _ string, q asked) {
			b.api(annsToken, "POST", "/api/decide/"+q.ID, map[string]any{"decision": "deny", "digest": q.Digest})
		}, false},
		"a stricter policy": {patient, func(b *heldBench, _ string, _ asked) {
			b.write(b.T, config(`, "denylist": ["utils__hash"]`))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serves(t, config(row.rule))
			for range 4 {
				run, q := b.asksOnceMore()
				if row.rule == short {
					time.Sleep(time.Until(q.Until) - 2*time.Millisecond)
				}
				var both sync.WaitGroup
				var status int
				var text string
				both.Go(func() { status, text = b.approve(annsToken, q) })
				both.Go(func() { row.meanwhile(b, run, q) })
				both.Wait()
				if status != 200 && status != 409 && status != 410 {
					t.Fatalf("the approver is told %d %s", status, text)
				}
				state, result := b.ends(run)
				log := b.does("", "audit", "query", "--run", run, "--event-type", "outcome", "--json")
				sent := strings.Contains(log, `"outcome":"done"`)
				if state != "stopped" && (string(result) == `"sent"`) != sent { // a stopped script returns nothing
					t.Errorf("the script says %s, the log %s", result, log)
				}
				if sent && status != 200 {
					t.Errorf("it was sent, though the approver was told %d %s", status, text)
				}
				if !sent && status == 200 && !row.lost {
					t.Errorf("the yes counted, and nothing was sent: %s %s", state, result)
				}
				b.write(t, config(row.rule)) // undoes what made it stricter
			}
			b.does("", "audit", "verify")
		})
	}
}

// asksOnceMore starts runs until one asks: earlier ones may be denied by a policy that is
// about to be replaced, or expire before the test sees their request.
func (b *heldBench) asksOnceMore() (run string, q asked) {
	b.Helper()
	eventually(b.T, "no run asks", func() bool {
		var held struct{ Held struct{ Digest string } }
		_, text := b.api(annsToken, "GET", "/api/config", nil)
		if json.Unmarshal([]byte(text), &held) == nil && held.Held.Digest != "" {
			b.api(annsToken, "POST", "/api/config/confirm", map[string]string{"digest": held.Held.Digest, "reason": "a test"})
		}
		run = b.starts(annsToken, `try { await codemode.utils__hash({text: "x"}); return "sent" } catch (e) { return e.reason }`)
		var ok bool
		q, ok = b.asksOrEnds(run)
		return ok
	})
	return run, q
}

// Whoever asks for a call cannot approve it, through whatever channel.
func TestRequesterIsNoApprover(t *testing.T) {
	t.Parallel()
	b := serves(t, fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue",
    "rules": [{"tools": ["utils__base64_encode"], "action": "ask", "quorum": {"need": 2}}]}}},
  "approvals": {"listen": "127.0.0.1:0", "separateApprover": true, "approvers": [%s, %s, %s]},
}
`, approverJSON("ann", "admin", annsToken), approverJSON("bob", "approver", bobsToken), approverJSON("eve", "approver", mallorysToken)))
	run := b.starts(annsToken, `return JSON.stringify(await codemode.utils__hash({text: "x"})).length > 5`)
	q := b.asks(run)
	if status, text := b.approve(annsToken, q); status != 422 || !strings.Contains(text, "somebody else must allow it") {
		t.Errorf("through the API: %d %s", status, text)
	}
	b.refuses("somebody else must allow it", annsToken, "approvals", "approve", q.ID, "--token-stdin")
	if got := b.open(); len(got) != 1 {
		t.Fatalf("%d requests wait", len(got))
	}
	if status, text := b.approve(bobsToken, q); status != 200 {
		t.Errorf("somebody else: %d %s", status, text)
	}
	if _, got := b.ends(run); string(got) != "true" {
		t.Errorf("the script returned %s", got)
	}

	run = b.starts(annsToken, `return (await codemode.utils__base64_encode({text: "x"})) !== undefined`)
	q = b.asks(run)
	for _, row := range []struct {
		token string
		want  int
	}{{annsToken, 422}, {bobsToken, 200}, {annsToken, 422}, {bobsToken, 422}, {mallorysToken, 200}} {
		if status, text := b.approve(row.token, q); status != row.want {
			t.Errorf("of a quorum: %d %s, want %d", status, text, row.want)
		}
	}
	if _, got := b.ends(run); string(got) != "true" {
		t.Errorf("the script returned %s", got)
	}
}

// A script on the command line that waits for an approver says so, and where.
func TestEvalSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue"}}},
  "approvals": {"approvers": [%s]},
}
`, approverJSON("ann", "admin", annsToken)))
	cmd := c.program("", "eval", `return (await codemode.utils__hash({text: "x"})).digest.length`)
	var out strings.Builder
	cmd.Stdout = &out
	talk, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(talk).ReadString('\n')
	said := regexp.MustCompile(`^waiting for an approver: utils__hash; answer in another terminal: codemode-bridge approvals approve (q\w+) --config \S+config.json\n$`).FindStringSubmatch(line)
	if said == nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("it says %q, %v", line, err)
	}
	c.does(annsToken+"\n", "approvals", "approve", said[1], "--token-stdin")
	if err := cmd.Wait(); err != nil || strings.TrimSpace(out.String()) != "64" {
		t.Errorf("it ended with %q, %v", out.String(), err)
	}
}
