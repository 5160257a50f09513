package main_test

// Questions of one process are answered in another.

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A commandLine is the real binary with a configuration of its own.
type commandLine struct {
	*testing.T
	bin, home, file string
	env             []string // besides what every process has
}

func newCommandLine(t *testing.T, config string) commandLine {
	t.Helper()
	home := t.TempDir()
	c := commandLine{T: t, bin: programs(t), home: home, file: filepath.Join(home, "config.json")}
	if err := os.WriteFile(c.file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// program is the binary with arguments, and with stdin as its standard input.
func (c commandLine) program(stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, "codemode-bridge"), append([]string{"-c", c.file}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.home, "USERPROFILE="+c.home, "XDG_CONFIG_HOME="+c.home, "XDG_STATE_HOME="+c.home, "XDG_CACHE_HOME="+c.home)
	cmd.Env = append(cmd.Env, c.env...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// run runs it to its end, and returns what it wrote and its exit code.
func (c commandLine) run(stdin string, args ...string) (stdout, stderr string, code int) {
	c.Helper()
	cmd := c.program(stdin, args...)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.Fatal(err)
	}
	return out.String(), talk.String(), cmd.ProcessState.ExitCode()
}

// does runs it and checks that it succeeds, with no log line beside its answer.
func (c commandLine) does(stdin string, args ...string) string {
	c.Helper()
	out, talk, code := c.run(stdin, args...)
	if code != 0 {
		c.Fatalf("%v: exit code %d\n%s%s", args, code, out, talk)
	}
	if strings.Contains(talk, `"level":"INFO"`) || strings.Contains(talk, `"level":"WARN"`) {
		c.Errorf("%v: a log stands beside the answer:\n%s%s", args, out, talk)
	}
	return out
}

// refuses runs it and checks that it fails with words on standard error.
func (c commandLine) refuses(words, stdin string, args ...string) {
	c.Helper()
	out, talk, code := c.run(stdin, args...)
	if code == 0 || !strings.Contains(talk, words) {
		c.Errorf("%v: exit code %d, want words %q\n%s%s", args, code, words, out, talk)
	}
}

// evaluates starts a script that asks, and returns the id of its request, and a function
// that waits for what it prints at its end.
func (c commandLine) evaluates(code string) (id string, result func() string) {
	c.Helper()
	cmd := c.program("", "eval", code)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { cmd.Process.Kill() })
	eventually(c.T, "nothing is asked", func() bool {
		list, _, code := c.run("", "approvals", "list", "--json")
		var rows []struct{ ID string }
		if code == 0 && json.Unmarshal([]byte(list), &rows) == nil && len(rows) == 1 {
			id = rows[0].ID
		}
		return id != ""
	})
	return id, func() string {
		cmd.Wait()
		lines := slices.DeleteFunc(strings.Split(out.String(), "\n"), func(l string) bool { return strings.HasPrefix(l, "waiting for an approver: ") })
		return strings.TrimSpace(strings.Join(lines, "\n"))
	}
}

const queueing = `{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {
    "asklist": ["utils__*"], "elicitationFallback": "queue",
    "rules": [
      {"tools": ["utils__csv_parse"], "risk": "high"},
      {"tools": ["utils__base64_encode"], "action": "manual"},
    ],
  }}},
}
`

func TestApprovalsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, queueing)
	for _, list := range []string{"approvals", "grants"} { // if nothing was ever asked, lists are empty
		if got := strings.TrimSpace(c.does("", list, "list", "--json")); got != "[]" {
			t.Errorf("%s list prints %q", list, got)
		}
	}
	c.refuses("nothing was ever asked", "", "approvals", "show", "q1")
	if out, _, _ := c.run("", "eval", `await codemode.utils__hash({text: "x"})`); out != "" {
		t.Errorf("without approvers the call was made: %s", out)
	}
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	jo := strings.TrimSpace(c.does("", "approvers", "add", "jo", "--risk", "medium"))
	guest := strings.TrimSpace(c.does("", "approvers", "add", "guest", "--role", "viewer"))
	c.refuses(`two approvers are called "ann"`, "", "approvers", "add", "ann")
	if text, err := os.ReadFile(c.file); err != nil || strings.Contains(string(text), ann) {
		t.Errorf("the file holds a token itself, %v", err)
	}

	const hash = `return JSON.stringify(await codemode.utils__hash({text: "x"})).includes("2d711642")`
	id, result := c.evaluates(hash)
	if shown := c.does("", "approvals", "show", id); !strings.Contains(shown, "text") || !strings.Contains(shown, "risk") {
		t.Errorf("shown is\n%s", shown)
	}
	c.refuses("no approver's token", "cmb_wrong\n", "approvals", "approve", id, "--token-stdin")
	c.refuses("may look and not decide", guest, "approvals", "approve", id, "--token-stdin")
	c.refuses("--token-stdin", "", "approvals", "approve", id)
	if got := c.does(ann, "approvals", "approve", id[:6], "--token-stdin"); !strings.Contains(got, "approved by ann") {
		t.Errorf("said %q", got)
	}
	if got := result(); got != "true" {
		t.Errorf("the script returned %s", got)
	}
	c.refuses("ann said yes", jo, "approvals", "deny", id, "--token-stdin")
	if log := c.does("", "audit", "query", "--event-type", "verdict", "--approver", "ann"); !strings.Contains(log, "terminal") {
		t.Errorf("the log says\n%s", log)
	}
	if log := c.does("", "audit", "query", "--event-type", "verdict", "--approver", "jo"); !strings.Contains(log, "jo") {
		t.Errorf("the log does not know who came too late:\n%s", log)
	}

	id, result = c.evaluates(`try { await codemode.utils__hash({text: "y"}) } catch (e) { return [e.reason, e.message] }`)
	c.does(jo, "approvals", "deny", id, "--token-stdin", "--reason", "wrong text")
	if got := result(); !strings.Contains(got, `"declined"`) || !strings.Contains(got, `they wrote: \"wrong text\"`) {
		t.Errorf("the script read %s", got)
	}

	id, result = c.evaluates(`try { await codemode.utils__csv_parse({text: "a,b"}) } catch (e) { return e.reason }`)
	c.refuses("may not allow calls of high risk", jo, "approvals", "approve", id, "--token-stdin")
	c.does("", "approvers", "delegate", "ann", "jo", "--until", "2999-12-31")
	c.refuses("may not allow calls of high risk", jo, "approvals", "approve", id, "--token-stdin") // nobody has confirmed the edit yet
	c.does(ann, "config", "confirm", "--token-stdin", "--reason", "ann is away")
	// The bridge uses what it read at its start, not what the file says now.
	c.refuses("may not allow calls of high risk", jo, "approvals", "approve", id, "--token-stdin")
	c.does(jo, "approvals", "deny", id, "--token-stdin")
	if got := result(); got != `"declined"` {
		t.Errorf("the script returned %s", got)
	}
	id, result = c.evaluates(`return await codemode.utils__csv_parse({text: "a,b"})`)
	if got := c.does(jo, "approvals", "approve", id, "--token-stdin"); !strings.Contains(got, "jo for ann") {
		t.Errorf("said %q", got)
	}
	if got := result(); !strings.Contains(got, "a") {
		t.Errorf("the script returned %s", got)
	}

	id, result = c.evaluates(`return await codemode.utils__base64_encode({text: "x"})`)
	c.refuses("typed", ann, "approvals", "approve", id, "--token-stdin")
	c.refuses("not what a tool takes", ann, "approvals", "approve", id, "--token-stdin", "--args", `{`)
	c.does(ann, "approvals", "approve", id, "--token-stdin", "--args", `{"text": "edited"}`)
	if got := result(); !strings.Contains(got, "ZWRpdGVk") {
		t.Errorf("the script returned %s", got)
	}

	// A run that is stopped leaves no open request, and its request says who stopped it.
	id, result = c.evaluates(hash)
	var asked struct{ Run string }
	if err := json.Unmarshal([]byte(c.does("", "approvals", "show", id, "--json")), &asked); err != nil {
		t.Fatal(err)
	}
	c.does("", "runs", "cancel", asked.Run)
	if got := result(); !strings.Contains(got, "the command line stopped the run") {
		t.Errorf("the script returned %s", got)
	}
	if shown := c.does("", "approvals", "show", id); !strings.Contains(shown, "settled  not answered: the command line stopped the run (") {
		t.Errorf("shown is\n%s", shown)
	}
	c.refuses("the command line stopped the run at ", jo, "approvals", "approve", id, "--token-stdin")

	c.does("", "approvers", "remove", "ann")
	if list := c.does("", "approvers", "list"); strings.Contains(list, "ann") || !strings.Contains(list, "jo") {
		t.Errorf("approvers are\n%s", list)
	}
	if out, _, code := c.run("", "audit", "verify"); code != 0 {
		t.Errorf("the log is not whole: %s", out)
	}
}

// With --forget, what was read before is no reason any more to ask about later calls; a plain yes is for its call. It
// goes with a question that is asked because of that, and with a yes to this call alone.
func TestForgettingAtTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, `{
  "servers": {
    "utils": {"type": "builtin", "builtin": "utils", "labels": ["private"]},
    "time": {"type": "builtin", "builtin": "time", "labels": ["external"]},
  },
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {
    "default": "allow", "asklist": ["utils__csv_parse"], "elicitationFallback": "queue",
    "flows": [{"from": "private", "to": "external", "action": "ask", "by": "context"}],
  }}},
}
`)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	open := func() []struct{ ID string } {
		var rows []struct{ ID string }
		list, _, code := c.run("", "approvals", "list", "--json")
		if err := json.Unmarshal([]byte(list), &rows); code != 0 || err != nil {
			t.Fatalf("approvals list: exit code %d, %v", code, err)
		}
		return rows
	}
	const sends = `
		await codemode.utils__hash({text: "x"});
		const {timezone} = await codemode.time__now({});
		try { await codemode.time__now({timezone}) } catch (e) { return e.reason } // not known, so not asked about, before
		return "sent"`

	id, result := c.evaluates(sends)
	c.refuses("only a yes to this call alone", ann, "approvals", "approve", id, "--token-stdin", "--forget", "--scope", "run", "--count", "2")
	c.does(ann, "approvals", "approve", id, "--token-stdin")
	eventually(t, "a plain yes has it forgotten", func() bool { return len(open()) == 1 })
	c.does(ann, "approvals", "deny", open()[0].ID, "--token-stdin")
	if got := result(); got != `"declined"` {
		t.Errorf("the script returned %s", got)
	}

	id, result = c.evaluates(sends)
	if got := c.does(ann, "approvals", "approve", id, "--token-stdin", "--forget"); !strings.Contains(got, "approved by ann") {
		t.Errorf("said %q", got)
	}
	ended := make(chan string, 1)
	go func() { ended <- result() }()
	eventually(t, "it does not end", func() bool {
		select {
		case got := <-ended:
			if got != `"sent"` {
				t.Errorf("the script returned %s", got)
			}
			return true
		default:
			if rows := open(); len(rows) > 0 {
				t.Fatalf("it is not forgotten: %v is asked", rows)
			}
			return false
		}
	})
	if log := c.does("", "audit", "query", "--event-type", "verdict", "--approver", "ann", "--json"); strings.Count(log, `"counted":true,"channel":"terminal","answer":"yes, once, and what was read before is forgotten"`) != 1 {
		t.Errorf("the log says\n%s", log)
	}

	id, result = c.evaluates(`try { await codemode.utils__csv_parse({text: "a,b"}) } catch (e) { return e.reason }`)
	c.refuses("nothing is forgotten with it", ann, "approvals", "approve", id, "--token-stdin", "--forget")
	c.does(ann, "approvals", "deny", id, "--token-stdin")
	if got := result(); got != `"declined"` {
		t.Errorf("the script returned %s", got)
	}
}

// An approval for the session is kept as a grant, which other processes list and revoke.
func TestGrantsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, queueing)
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))
	jo := strings.TrimSpace(c.does("", "approvers", "add", "jo"))
	// The later call asks only because the grant of the first was revoked.
	id, result := c.evaluates(`
		await codemode.utils__hash({text: "x"});
		for (let i = 0; i < 900; i++) {
			await new Promise(r => setTimeout(r, 50));
			try { await codemode.utils__hash({text: "x"}) } catch (e) { return e.reason }
		}`)
	if _, said, code := c.run(ann, "approvals", "approve", id, "--token-stdin", "--scope", "foo"); code != 2 || !strings.Contains(said, `--scope must be one of once, run, session, not "foo"`) {
		t.Errorf("a scope that is none exits with %d: %s", code, said)
	}
	c.does(ann, "approvals", "approve", id, "--token-stdin", "--scope", "session")
	var grants []struct{ ID, Script, By string }
	eventually(t, "nothing is granted", func() bool {
		list := c.does("", "grants", "list", "--json")
		return json.Unmarshal([]byte(list), &grants) == nil && len(grants) == 1
	})
	if grants[0].Script != "utils__hash" || grants[0].By != "ann" {
		t.Fatalf("granted is %+v", grants)
	}
	c.refuses("no approver's token", "cmb_wrong\n", "grants", "revoke", grants[0].ID, "--token-stdin")
	c.refuses("takes the role admin", jo, "grants", "revoke", grants[0].ID, "--token-stdin")
	c.does(ann, "grants", "revoke", grants[0].ID, "--token-stdin")
	c.refuses("there is no grant", ann, "grants", "revoke", grants[0].ID, "--token-stdin")
	if log := c.does("", "audit", "query", "--event-type", "grant_revoked"); !strings.Contains(log, "ann") {
		t.Errorf("the log does not say who revoked it:\n%s", log)
	}
	eventually(t, "it is not asked again", func() bool {
		list, _, _ := c.run("", "approvals", "list", "--json")
		var rows []struct{ ID string }
		if json.Unmarshal([]byte(list), &rows) != nil || len(rows) == 0 {
			return false
		}
		c.does(ann, "approvals", "deny", rows[0].ID, "--token-stdin")
		return true
	})
	if got := result(); got != `"declined"` {
		t.Errorf("the script returned %s", got)
	}
}
