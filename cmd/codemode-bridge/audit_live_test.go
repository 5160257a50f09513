package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The log covers a bridge from its start to its end, other processes can read it
// meanwhile, and a checkpoint is left in the second place.
func TestLogOfALiveBridge(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"servers": map[string]any{"utils": map[string]any{"type": "builtin", "builtin": "utils"}},
		"audit":   map[string]any{"path": "records/audit.db", "checkpoint": "elsewhere/points", "keep": "90d", "durability": "all"},
	}
	h := newHome(t, config)
	log := filepath.Join(h.dir, "records", "audit.db")
	query := func(flags ...string) string {
		return h.says([]int{0}, append([]string{"audit", "query", "-n", "0", "--log", log}, flags...)...)
	}
	bridge := h.connect()
	follower := h.command("tail", "-n", "0", "--json")
	follower.Stderr = nil
	lines, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	talk, err := follower.StderrPipe()
	if err == nil {
		err = follower.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(talk).ReadString('\n'); !strings.HasPrefix(line, "following") {
		t.Fatalf("tail said %q, %v", line, err)
	}
	tailed := make(chan string)
	go func() {
		text, _ := io.ReadAll(lines) // it may end by a signal
		tailed <- string(text)
	}()
	bridge.call(t, "eval", map[string]any{"code": `return codemode.utils__hash({text: "abc"})`})
	if got := query("--event-type", "intent"); !strings.Contains(got, "utils__hash") {
		t.Errorf("while the bridge runs another process reads\n%s", got)
	}
	h.says([]int{0}, "audit", "verify", "--log", log)

	edit := func(text string) {
		if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(what string) {
		for deadline := time.Now().Add(3 * time.Minute); !strings.Contains(query("--event-type", "config"), what); {
			if time.Now().After(deadline) {
				t.Fatalf("no record of %q:\n%s", what, query("--event-type", "config"))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	edit(`{"servers": {"time": {"type": "builtin", "builtin": "time"}}, "audit": {"path": "records/audit.db"}, "evaluation": {"profiles": {"safe": {}}}}`)
	wait("configuration taken over: profile safe added; server time added; server utils removed; audit changed")
	edit(`{"servers": {}, "colour": 1}`)
	wait(`unknown key "colour"`)
	edit(`{"servers": {}, "audit": {"path": "records/audit.db", "checkpoint": "elsewhere/points"}}`)
	wait("configuration taken over: profile safe removed; server time removed")
	if err := bridge.Close(); err != nil {
		t.Logf("closing: %v", err)
	}
	if got := query("--event-type", "bridge_started,bridge_ended"); strings.Count(got, "bridge started ") != 1 || strings.Count(got, "bridge ended ") != 1 {
		t.Errorf("start and end of the bridge are\n%s", got)
	}
	if err := follower.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := <-tailed; strings.Count(got, `"event":"intent"`) != 1 || strings.Count(got, `"event":"run_ended"`) != 1 {
		t.Errorf("tail had\n%s", got)
	}
	if err := follower.Wait(); err != nil {
		t.Errorf("tail ended with %v", err)
	}
	points := filepath.Join(h.dir, "elsewhere", "points")
	h.says([]int{0}, "audit", "verify", "--log", log, "--against", points)
	for _, name := range []string{log, log + ".key", points} {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// A bridge removes rows beyond audit.keepRows, and what remains can be verified.
func TestLogKeepsSoManyRows(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{
		"servers": map[string]any{"utils": map[string]any{"type": "builtin", "builtin": "utils"}},
		"audit":   map[string]any{"keepRows": 100},
	})
	h.says([]int{0}, "eval", `for (let i = 0; i < 80; i++) await codemode.utils__hash({text: "abc"})`)
	if n := h.count(); n < 160 {
		t.Fatalf("80 calls wrote %d rows", n)
	}
	h.connect()
	left := h.count()
	for deadline := time.Now().Add(3 * time.Minute); left > 110; left = h.count() { // the bridge adds some rows at its start
		if time.Now().After(deadline) {
			t.Fatalf("%d rows are left", left)
		}
	}
	if left < 100 || h.count("--event-type", "pruned") != 1 || h.count("--event-type", "run_started") != 0 {
		t.Errorf("of the newest rows %d are left", left)
	}
	h.says([]int{0}, "audit", "verify", "--log", filepath.Join(h.dir, "state", "codemode-bridge", "audit.db"))
}

// With a damaged log the bridge starts, so that it can say why it makes no calls; once
// the log is repaired, it makes them without a restart.
func TestDamagedLogStopsCalls(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{"surface": "full", "servers": map[string]any{"utils": map[string]any{"type": "builtin", "builtin": "utils"}}})
	const script = `return codemode.utils__hash({text: "abc"})`
	h.says([]int{0}, "eval", script)
	log := filepath.Join(h.dir, "state", "codemode-bridge", "audit.db")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text[16:] { // all but the file type at its beginning
		text[16+i] ^= 0x55
	}
	if err := os.WriteFile(log, text, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(log + "-wal")
	os.Remove(log + "-shm")

	bridge := h.connect()
	eval := func() string {
		result, err := bridge.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": script}})
		if err != nil {
			return err.Error()
		}
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := eval(); !strings.Contains(got, "record could not be written") {
		t.Errorf("a script was answered with %s", got)
	}
	if got := bridge.call(t, "codemode_status", map[string]any{}); !strings.Contains(got, "audit_problem") {
		t.Errorf("the status is %s", got)
	}
	h.says([]int{1, 5}, "audit", "verify")
	if out := h.says([]int{0}, "audit", "repair"); !strings.Contains(out, ".damaged-") {
		t.Errorf("repair said %s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for strings.Contains(eval(), "record could not be written") {
		if ctx.Err() != nil {
			t.Fatal("the bridge does not go on after the repair")
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.says([]int{0}, "audit", "verify")
}

// A rule that profiles suggest proposes is written by --apply: then calls like the
// approved ones no longer ask, and others still do.
func TestSuggestionCanBeApplied(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{
		"servers":    map[string]any{"time": map[string]any{"type": "builtin", "builtin": "time"}},
		"evaluation": map[string]any{"defaultProfile": "work", "profiles": map[string]any{"work": map[string]any{"default": "ask"}}},
	})
	first := h.connect()
	first.call(t, "eval", map[string]any{"code": `for (let i = 0; i < 6; i++) await codemode.time__now({timezone: "UTC"});`})
	if len(first.asked) == 0 {
		t.Fatal("nobody was asked")
	}
	first.Close()
	var all []struct {
		Profile string `json:"profile"`
		Spared  int    `json:"would_have_spared"`
		Rule    struct {
			Name  string `json:"name"`
			Known bool   `json:"known"`
		} `json:"rule"`
	}
	if err := json.Unmarshal([]byte(h.says([]int{0}, "profiles", "suggest", "--json")), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d rules, %v:\n%s", len(all), err, h.says([]int{0}, "profiles", "suggest"))
	}
	if all[0].Profile != "work" || all[0].Spared != 6 || !all[0].Rule.Known {
		t.Errorf("proposed: %+v", all[0])
	}
	if text := h.says([]int{0}, "profiles", "suggest"); !strings.Contains(text, "time__now, profile work: would have spared 6 of 6 questions") {
		t.Errorf("it prints\n%s", text)
	}
	if text := h.says([]int{0}, "audit", "stats", "--json"); !strings.Contains(text, `"apply":"codemode-bridge profiles suggest `+all[0].Rule.Name+` --apply"`) {
		t.Errorf("stats does not say how to apply it: %s", text)
	}
	h.says([]int{2}, "profiles", "suggest", "suggested-none", "--apply")
	if out := h.says([]int{0}, "profiles", "suggest", all[0].Rule.Name, "--apply"); !strings.Contains(out, "+") || !strings.Contains(out, all[0].Rule.Name) {
		t.Errorf("applying shows\n%s", out)
	}
	if text := h.says([]int{0}, "profiles", "suggest", "--json"); strings.TrimSpace(text) != "[]" {
		t.Errorf("what is there is proposed again: %s", text)
	}
	second := h.connect()
	second.call(t, "eval", map[string]any{"code": `await codemode.time__now({timezone: "UTC"})`})
	if len(second.asked) != 0 {
		t.Errorf("a call like those that were approved is asked: %v", second.asked)
	}
	second.call(t, "eval", map[string]any{"code": `await codemode.time__now({timezone: "Europe/Berlin"})`})
	if len(second.asked) == 0 {
		t.Error("another call is not asked about")
	}
	second.Close()
}

// A rule that stats suggests can be pasted into the profile: then calls like the approved
// ones no longer ask, and others still do.
func TestSuggestionCanBePasted(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	policy := map[string]any{"default": "ask"}
	config := map[string]any{
		"servers":    map[string]any{"fake": fakeServer(t, effects, "x")},
		"evaluation": map[string]any{"defaultProfile": "work", "profiles": map[string]any{"work": policy}},
	}
	h := newHome(t, config)
	first := h.connect()
	// One after the other: calls of a loop that wait at the same time are one request.
	first.call(t, "eval", map[string]any{"code": `for (let i = 0; i < 6; i++) await codemode.fake__write({path: "/srv/notes/" + i + ".md", i});`})
	if len(first.asked) == 0 {
		t.Fatal("nobody was asked")
	}
	first.Close()
	var stats struct {
		Suggestions []struct {
			Profile string          `json:"profile"`
			Rule    json.RawMessage `json:"rule"`
			Cover   int             `json:"would_have_covered"`
		} `json:"suggestions"`
	}
	if err := json.Unmarshal([]byte(h.says([]int{0}, "audit", "stats", "--json")), &stats); err != nil || len(stats.Suggestions) != 1 {
		t.Fatalf("%d suggestions, %v:\n%s", len(stats.Suggestions), err, h.says([]int{0}, "audit", "stats"))
	}
	s := stats.Suggestions[0]
	if s.Profile != "work" || s.Cover != 6 || !strings.Contains(string(s.Rule), `/srv/notes/`) {
		t.Errorf("the suggestion is %+v", s)
	}
	if text := h.says([]int{0}, "audit", "stats"); !strings.Contains(text, "a rule for profile work that would have covered 6 of them") || !strings.Contains(text, "to decide") {
		t.Errorf("stats prints\n%s", text)
	}
	policy["rules"] = []json.RawMessage{s.Rule}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(h.config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	second := h.connect()
	second.call(t, "eval", map[string]any{"code": `await codemode.fake__write({path: "/srv/notes/other.md", i: 9})`})
	if len(second.asked) != 0 {
		t.Errorf("it was asked all the same: %q", second.asked)
	}
	second.call(t, "eval", map[string]any{"code": `await codemode.fake__write({path: "/srv/notes/../x", i: 9})`})
	if len(second.asked) != 1 {
		t.Errorf("another folder was asked %d times", len(second.asked))
	}
}
