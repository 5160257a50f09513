package main_test

// How a folder of testdata/frozen is made: see the README there.

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// frozenConfig is the configuration of a frozen folder. It names no places: what differs
// between machines is in variables.
const frozenConfig = `{
  "id": "frozen",
  "servers": {
    "time": {"type": "builtin", "builtin": "time"},
    "utils": {"type": "builtin", "builtin": "utils"},
    "fake": {"command": "${FAKE_SERVER}", "env": {"` + effectsVariable + `": "${HOME}/effects", "FAKE_TOKEN": "token-of-the-fake-server"}},
    "web": {"command": "${FAKE_SERVER}", "env": {"` + listVariable + `": "${HOME}/tools.json"}, "quarantine": true},
  },
  "surface": "full",
  "scripts": {"dir": "saved"},
  "runs": {"keep": "365d"},
  "audit": {"checkpoint": "checkpoints", "keep": "36500d"},
  "evaluation": {
    "defaultProfile": "careful",
    "profiles": {
      "careful": {
        "asklist": ["fake__*"],
        "denylist": ["utils__csv_parse"],
        "elicitationFallback": "queue",
        "rules": [
          {"name": "two people", "tools": ["fake__write"], "when": "has(args.people) && args.people == 2", "action": "ask", "quorum": {"need": 2}},
          {"name": "remembered", "tools": ["web__fetch"], "action": "ask", "risk": "low"},
          {"name": "no passwd", "tools": ["fake__write"], "check": ["args.path != 'passwd'"], "reason": "It writes to a shared folder."},
        ],
      },
      "strict": {"extends": "careful", "allowlist": ["time__*"]},
    },
  },
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}
`

const (
	frozenTools = `[
  {"name": "fetch", "description": "Fetches a page.", "inputSchema": {"type": "object", "properties": {"page": {"type": "number"}}}, "annotations": {"readOnlyHint": true}},
  {"name": "post", "description": "Posts a form.%s", "inputSchema": {"type": "object"}},
  {"name": "drop", "description": "Drops a page.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}%s
]
`
	frozenScript = `// description: Twice a number.
// input: {"type": "object", "properties": {"n": {"type": "number"}}}
return { twice: input.n * 2, text: await codemode.utils__base64_encode({ text: String(input.n) }) };
`
	// waitingScript does something of every kind that a journal keeps, and then asks.
	waitingScript = `
const first = await codemode.utils__base64_encode({ text: "first" });
const saved = await codemode.run("twice", { n: 21 });
const [at, by] = [Date.now(), Math.random()];
await new Promise((resolve) => setTimeout(resolve, 5));
console.log("asking");
let denied;
try { await codemode.utils__csv_parse({ text: "a" }) } catch (e) { denied = e.reason }
const written = await codemode.fake__write({ path: %q, people: %d, by });
return { first, saved, at, by, denied, written, last: await codemode.utils__base64_encode({ text: "last" }) };`
)

// A manifest says what is in a frozen folder, according to the program that made it.
type manifest struct {
	Rows     int64             `json:"rows"`             // of the audit log
	Runs     map[string]string `json:"runs"`             // ids, by what became of them
	Requests map[string]string `json:"requests"`         // ids of their questions
	Locked   int               `json:"locked,omitempty"` // tools of codemode.lock
}

// makeFrozen makes a frozen folder with the programs in bin. Records name the home folder.
func makeFrozen(t *testing.T, bin, home, folder string) {
	t.Helper()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", fmt.Sprintf(frozenConfig, strings.Join([]string{
		approverJSON("ann", "admin", annsToken), approverJSON("bob", "approver", bobsToken), approverJSON("carol", "approver", mallorysToken),
	}, ", ")))
	write("tools.json", fmt.Sprintf(frozenTools, "", ""))
	write("saved/twice.ts", frozenScript)
	everything, err := os.ReadFile(filepath.Join("..", "..", "bridge", "config", "testdata", "good", "everything.json"))
	if err != nil {
		t.Fatal(err)
	}
	write("everything.json", string(everything))
	b := opens(t, bin, home)
	b.start()
	made := manifest{Runs: map[string]string{}, Requests: map[string]string{}}

	// Tools that were accepted, blocked, changed and new.
	eventually(t, "the server web lists no tools", func() bool {
		return strings.Contains(b.does("", "tools", "review", "--json"), "web__reload")
	})
	b.does(annsToken, "tools", "review", "--accept", "web__fetch", "web__post", "web__reload", "--yes", "--token-stdin")
	b.does(annsToken, "tools", "review", "--block", "web__drop", "--token-stdin")
	eventually(t, "what was accepted is not offered", func() bool {
		res, err := b.client.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_tools", Arguments: map[string]any{"server": "web"}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(res)
		return err == nil && strings.Contains(string(text), "web__reload")
	})
	var lock struct{ Tools int }
	if err := json.Unmarshal([]byte(b.does("", "tools", "lock", "--json")), &lock); err != nil {
		t.Fatal(err)
	}
	made.Locked = lock.Tools
	write("tools.json", fmt.Sprintf(frozenTools, " And reads your files.", `,
  {"name": "extra", "description": "An extra.", "inputSchema": {"type": "object"}}`))

	// Runs that end.
	ends := func(name, code string, answer func(asked)) {
		t.Helper()
		run := b.starts(annsToken, code)
		made.Runs[name] = run
		if answer != nil {
			q := b.asks(run)
			made.Requests[name] = q.ID
			answer(q)
		}
		b.ends(run)
	}
	decide := func(token string, q asked, more map[string]any) {
		t.Helper()
		body := map[string]any{"decision": "approve", "digest": q.Digest}
		for key, value := range more {
			body[key] = value
		}
		if status, text := b.api(token, "POST", "/api/decide/"+q.ID, body); status != 200 {
			t.Fatalf("deciding: %d %s", status, text)
		}
	}
	ends("finished", `
		console.log("begins");
		await codemode.web__reload({});
		return [await codemode.time__now({}), await codemode.run("twice", { n: 2 }), await codemode.utils__hash({ text: "abc" })]`, nil)
	ends("failed", `await codemode.utils__hash({ text: "abc" }); throw new TypeError("no rows")`, nil)
	ends("denied", `return await codemode.utils__csv_parse({ text: "a" })`, nil)
	ends("approved", `return await codemode.fake__write({ path: "a.txt", password: "correct horse battery" })`, func(q asked) {
		decide(annsToken, q, map[string]any{"reason": "I know this one."})
	})
	ends("edited", `return await codemode.fake__write({ path: "b.txt" })`, func(q asked) {
		decide(bobsToken, q, map[string]any{"args": map[string]any{"path": "c.txt"}})
	})
	ends("declined", `return await codemode.fake__fail({ path: "d.txt" })`, func(q asked) {
		decide(bobsToken, q, map[string]any{"decision": "deny", "reason": "Not today."})
	})
	ends("agreed", `return await codemode.fake__write({ path: "e.txt", people: 2 })`, func(q asked) {
		decide(bobsToken, q, nil)
		decide(mallorysToken, q, nil)
	})

	// Runs that wait, when their bridge ends.
	waits := func(name string, people int) asked {
		t.Helper()
		run := b.starts(annsToken, fmt.Sprintf(waitingScript, name+".txt", people))
		q := b.asks(run)
		made.Runs[name], made.Requests[name] = run, q.ID
		return q
	}
	waits("paused", 1)
	yes, no := waits("allowed", 1), waits("refused", 1)
	decide(bobsToken, waits("half", 2), nil)
	b.stop()

	// One waits when its bridge is killed; so does another one, which an approval for the
	// session lets go on to its next question: of a call that nobody could foresee.
	b.start()
	waits("interrupted", 1)
	run := b.starts(annsToken, `return [await codemode.web__fetch({ page: 1 }), await codemode.web__fetch({ page: 1 }), await codemode.fake__write({ path: "h.txt", by: Math.random() })]`)
	first := b.asks(run)
	decide(annsToken, first, map[string]any{"scope": "session"})
	eventually(t, "the run does not go on to its next question", func() bool {
		next, asks := b.asksOrEnds(run)
		made.Runs["remembered"], made.Requests["remembered"] = run, next.ID
		return asks && next.ID != first.ID
	})
	settles(t, filepath.Join(home, "codemode-bridge", "state", "audit.db"))
	b.kill()

	// Two of those that are paused are answered while no bridge runs.
	b.does(annsToken, "approvals", "approve", yes.ID, "--token-stdin")
	b.does(bobsToken, "approvals", "deny", no.ID, "--reason", "Not this one.", "--token-stdin")
	b.does("", "audit", "prune", "--older-than", "36500d") // the last to close the log empties its -wal
	var report struct{ Rows int64 }
	if err := json.Unmarshal([]byte(b.does("", "audit", "verify", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	made.Rows = report.Rows
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	write("manifest.json", string(text)+"\n")
	wal := filepath.Join(home, "codemode-bridge", "state", "audit.db-wal")
	if info, err := os.Stat(wal); err != nil || info.Size() > 0 {
		t.Fatalf("the log is not all in its file: %v", err)
	}
	// These belong to processes that ended, have no format of ours, or name the folder itself.
	ended := []string{"effects", "codemode-bridge/state/audit.db-wal", "codemode-bridge/state/audit.db-bridges", "codemode-bridge/state/audit.db-shm", "codemode-bridge/state/log", "codemode-bridge/state/windows", "codemode-bridge/state/serving", "codemode-bridge/state/confirmed"}
	notes, err := filepath.Glob(filepath.Join(home, "codemode-bridge", "state", "*-note-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ended {
		notes = append(notes, filepath.Join(home, name))
	}
	for _, name := range notes {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(folder, os.DirFS(home)); err != nil { // which overwrites nothing
		t.Fatal(err)
	}
}

// settles waits until rows have moved from the intake table to the indexed one, so that
// the file has rows in both.
func settles(t *testing.T, log string) {
	t.Helper()
	db, err := sql.Open("sqlite", log)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	eventually(t, "not all rows move", func() bool {
		var n int
		return db.QueryRow("SELECT count(*) FROM recent").Scan(&n) == nil && n == 0
	})
}

// patientPrograms builds both programs with one change, so that frozen runs do not
// expire: a paused run and its requests stay open for a hundred years, whatever the
// configuration says.
func patientPrograms(t *testing.T) string {
	t.Helper()
	const limit, longer = "return s.pausedFor }", "return 100 * 365 * 24 * time.Hour }"
	file, err := filepath.Abs(filepath.Join("..", "..", "profiles", "set.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), limit) != 1 {
		t.Fatalf("%s does not say %q once", file, limit)
	}
	dir := t.TempDir()
	patient, overlay := filepath.Join(dir, "set.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: patient}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{patient: strings.Replace(string(text), limit, longer, 1), overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-overlay", overlay, "-o", dir+string(filepath.Separator), ".", "../codemode-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	return dir
}

// opens is serves with a home folder that exists already, and without starting the
// bridge.
func opens(t *testing.T, bin, home string) *heldBench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &heldBench{commandLine: commandLine{T: t, bin: bin, home: home, file: filepath.Join(home, "config.json"), env: []string{"FAKE_SERVER=" + self}}}
	b.serving.file = b.commandLine.file
	return b
}
