package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Two configurations of one user share the audit log, by default. A run of one neither
// reaches the servers of the other nor is listed there, and the other says whose it is:
// after an approval, after a denial under a looser policy, and while the bridge that
// asked is alive.
func TestTwoConfigurationsOfOneUser(t *testing.T) {
	t.Parallel()
	const profile = `{"asklist": ["db__*"], "elicitationFallback": "queue"}`
	write := func(t *testing.T, file, db, profile string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"db": fakeServer(t, db, "t")})
		if err != nil {
			t.Fatal(err)
		}
		config := fmt.Sprintf(`{"servers": %s, "evaluation": {"defaultProfile": "p", "profiles": {"p": %s}},
			"approvals": {"listen": "127.0.0.1:0", "approvers": [%s]}}`, text, profile, approverJSON("ann", "admin", annsToken))
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ name, answer, result string }{
		{"yes", "approve", "write had {}"},
		{"no", "deny", "declined"},
		{"alive", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			staging, production := filepath.Join(dir, "staging"), filepath.Join(dir, "production")
			a := &heldBench{commandLine: newCommandLine(t, "{}")}
			a.serving.file = a.commandLine.file
			write(t, a.commandLine.file, staging, profile)
			a.start()
			b := a.commandLine
			b.file = filepath.Join(b.home, "other.json")
			others := profile
			if row.answer == "deny" {
				others = "{}"
			}
			write(t, b.file, production, others)

			run := a.starts(annsToken, `try { return await codemode.db__write({}) } catch (e) { return e.reason }`)
			q := a.asks(run)
			if row.answer != "" {
				a.kill()
				a.does(annsToken+"\n", "approvals", row.answer, q.ID, "--token-stdin")
			}
			whose := "belongs to another configuration, " + a.commandLine.file
			b.refuses(whose, "", "runs", "resume", run)
			b.refuses(whose, "", "runs", "cancel", run)
			b.refuses(whose, "", "runs", "replay", run)
			if list := b.does("", "runs", "list", "--json"); strings.Contains(list, run) {
				t.Errorf("the other lists it: %s", list)
			}
			if list := b.does("", "runs", "list", "--json", "--all"); !strings.Contains(list, run) {
				t.Errorf("asked for all, it does not: %s", list)
			}
			h := &home{t: t, dir: b.home, config: b.file, env: []string{"XDG_STATE_HOME=" + b.home, "XDG_CACHE_HOME=" + b.home}}
			c := h.connect("--alone")
			if got := c.call(t, "eval_resume", map[string]any{"run": run}); !strings.Contains(got, "could be resumed here") {
				t.Errorf("eval_resume of the other: %s", got)
			}
			if n := countEffects(t, production); n != 0 {
				t.Fatalf("%d calls reached the other's server", n)
			}
			if row.answer == "" {
				if status, text := a.approve(annsToken, q); status != 200 {
					t.Fatalf("%d %s", status, text)
				}
				a.ends(run)
			} else if got := a.does("", "runs", "resume", run); !strings.Contains(got, row.result) {
				t.Errorf("its own configuration goes on with %s, want %s", got, row.result)
			}
			want := 1
			if row.answer == "deny" {
				want = 0
			}
			if n, m := countEffects(t, staging), countEffects(t, production); n != want || m != 0 {
				t.Errorf("%d calls reached its own server and %d the other's, want %d and none", n, m, want)
			}
		})
	}
}

// A server without a cwd of its own runs in the folder of the window, and in another
// folder the same command may be another server. So a run is resumed in the folder in
// which it began: windows in other folders leave it alone, and the command line goes
// there.
func TestARunGoesOnInItsFolder(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"servers": map[string]any{"db": fakeServer(t, "effects", "t")},
		"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "100ms", "profiles": map[string]any{"p": map[string]any{
			"rules": []any{map[string]any{"tools": []string{"db__*"}, "action": "manual"}}}}},
		"approvals": map[string]any{"listen": "off", "approvers": []any{json.RawMessage(approverJSON("ann", "admin", annsToken))}},
	}
	h := newHome(t, config)
	staging, production := filepath.Join(h.dir, "staging"), filepath.Join(h.dir, "production")
	in := func(folder string, args ...string) *exec.Cmd {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := h.command(args...)
		cmd.Dir = folder
		return cmd
	}
	window := func(folder string) *client {
		c, err := h.connectBy(in(folder, "run", "--alone"))
		if err != nil {
			t.Fatalf("%v\n%s", err, h.talk.String())
		}
		return c
	}
	first := window(staging)
	var paused struct {
		StructuredContent struct{ Run, Resume string }
	}
	if err := json.Unmarshal([]byte(first.call(t, "eval", map[string]any{"code": `return await codemode.db__write({})`})), &paused); err != nil || paused.StructuredContent.Run == "" {
		t.Fatal(err)
	}
	run := paused.StructuredContent
	first.Close()
	second := window(production)
	var questions []struct{ ID string }
	list, err := in(production, "approvals", "list", "--json").Output()
	if err == nil {
		err = json.Unmarshal(list, &questions)
	}
	if err != nil || len(questions) != 1 {
		t.Fatalf("%d questions: %v\n%s", len(questions), err, h.talk.String())
	}
	approve := in(production, "approvals", "approve", questions[0].ID, "--typed", "write", "--token-stdin")
	approve.Stdin = strings.NewReader(annsToken + "\n")
	if err := approve.Run(); err != nil {
		t.Fatalf("%v\n%s", err, h.talk.String())
	}
	if got := second.call(t, "eval_resume", map[string]any{"run": run.Run, "resume": run.Resume}); !strings.Contains(got, "began in "+staging) {
		t.Errorf("a window in another folder: %s", got)
	}
	if got, err := in(production, "runs", "resume", run.Run).Output(); err != nil || !strings.Contains(string(got), "write had {}") {
		t.Errorf("the command line in another folder: %s, %v\n%s", got, err, h.talk.String())
	}
	if n, m := countEffects(t, filepath.Join(staging, "effects")), countEffects(t, filepath.Join(production, "effects")); n != 1 || m != 0 {
		t.Errorf("%d calls reached its own server and %d the other's, want one and none", n, m)
	}
}
