package main_test

// The program of today reads what earlier formats wrote; see testdata/frozen/README.md.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var freeze = flag.String("freeze", "", "make testdata/frozen/`NAME` with the program of today first")

func TestFrozen(t *testing.T) {
	all := filepath.Join("testdata", "frozen")
	if *freeze != "" {
		folder := filepath.Join(all, *freeze)
		if _, err := os.Stat(folder); err == nil {
			t.Fatalf("%s is there: what is frozen is never changed", folder)
		}
		home := filepath.Join(os.TempDir(), "codemode-bridge-frozen") // the same on every machine
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(home) })
		makeFrozen(t, patientPrograms(t), home, folder)
	}
	folders, err := filepath.Glob(filepath.Join(all, "*", "manifest.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are %d frozen folders: %v", len(folders), err)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			opensFrozen(t, folder)
		})
	}
	// What `make frozen` would make of the program of today, but for its patience.
	t.Run("today", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "today")
		makeFrozen(t, programs(t), t.TempDir(), folder)
		opensFrozen(t, folder)
	})
}

// opensFrozen does with a copy of a frozen folder what people would.
func opensFrozen(t *testing.T, folder string) {
	t.Helper()
	f := thaw(t, folder)
	f.isFine()
	f.tellsOfRuns()
	f.tellsOfQuestions()
	f.tellsOfTools()
	f.goesOn()
	f.cancels()
}

// A frozen is a copy of a frozen folder, and the program of today.
type frozen struct {
	*heldBench
	manifest
}

// namedAfterConfig matches what is named after the path of the configuration, with the
// first bytes of its digest.
var namedAfterConfig = regexp.MustCompile(`/(?:pins|catalog|marks)-([0-9a-f]{12})/`)

// thaw copies a frozen folder. Files that are named after the folder's path are renamed
// to match the copy's.
func thaw(t *testing.T, folder string) frozen {
	t.Helper()
	home := t.TempDir()
	f := frozen{heldBench: opens(t, programs(t), home)}
	sum := sha256.Sum256([]byte(f.commandLine.file))
	for name, text := range files(t, folder) {
		if m := namedAfterConfig.FindStringSubmatch(filepath.ToSlash(name)); m != nil {
			name = strings.Replace(name, m[1], hex.EncodeToString(sum[:6]), 1)
		}
		file := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(home, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &f.manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// contains checks that a program said words, in their order.
func (f frozen) contains(said string, words ...string) {
	f.Helper()
	rest := said
	for _, w := range words {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			f.Errorf("no %q, in the order of %q, in:\n%s", w, words, said)
			return
		}
		rest = after
	}
}

// reads runs a command and decodes what it says.
func (f frozen) reads(into any, args ...string) {
	f.Helper()
	said := f.does("", append(args, "--json")...)
	if err := json.Unmarshal([]byte(said), into); err != nil {
		f.Fatalf("%v says %q: %v", args, said, err)
	}
}

// isFine checks the configuration, and verifies the log against its checkpoints.
func (f frozen) isFine() {
	f.Helper()
	f.contains(f.does("", "check"), "config.json is fine: 4 servers, 2 profiles")
	out, talk, code := f.run("", "audit", "verify", "--against", filepath.Join(f.home, "checkpoints"))
	if code != 0 || !strings.HasPrefix(talk, "compared with ") {
		f.Errorf("verifying it: exit code %d, %s", code, talk)
	}
	f.contains(out, fmt.Sprintf("the log is whole: %d rows, 1 to %[1]d, ", f.Rows))
	if said := f.does("correct horse battery", "audit", "fingerprint"); !strings.Contains(said, "is in 5 rows") || !strings.Contains(said, f.Runs["approved"]) {
		f.Errorf("a hidden value: %s", said)
	}
}

// A frozenRun is what is expected of a run.
type frozenRun struct {
	state string
	shows []string // words of runs show, in their order
	asks  bool     // its question is open
}

// lastEvent is the last event that the log has of a run, by the run's state.
var lastEvent = map[string]string{"done": "run_ended", "failed": "run_ended", "paused": "run_paused", "interrupted": "request"}

// open reports whether the run has not ended.
func (r frozenRun) open() bool { return lastEvent[r.state] != "run_ended" }

// frozenRuns are the runs of a manifest, by what became of them.
var frozenRuns = map[string]frozenRun{
	"finished": {state: "done", shows: []string{"saved as  twice", `codemode.run("twice", { n: 2 })`, "#5 done", "#1 web__reload", "outcome   done", `#3 run("twice")`, "outcome   done", "#5 utils__hash", `arguments {"text":"abc"}`, "outcome   done"}},
	"failed":   {state: "failed", shows: []string{"error     TypeError: no rows (line 1, column 52)", "outcome   done"}},
	"denied":   {state: "failed", shows: []string{"error     ToolCallDeniedError: utils__csv_parse was not sent: policy denies it", "decision  deny", `denylist: "utils__csv_parse" [profile careful]`, "outcome   refused, not sent"}},
	"approved": {state: "done", shows: []string{"[hidden: looks like a secret, fp:", `"password":"[hidden, fp:`, "decision  ask, risk high", "yes, once by ann (api)", "I know this one.", "outcome   done"}},
	"edited":   {state: "done", shows: []string{`{ path: "b.txt" }`, `arguments {"path":"c.txt"}`, "yes, once by bob (api)", "outcome   done"}},
	"declined": {state: "failed", shows: []string{"no, declined by bob (api)", "Not today.", "outcome   refused, not sent"}},
	"agreed":   {state: "done", shows: []string{"rule two people (ask)", "yes, once by bob (api), which settled nothing: 1 of 2 yeses", "yes, once by bob and carol (api)", "outcome   done"}},

	"paused":      {state: "paused", shows: waitingShown("paused.txt"), asks: true},
	"allowed":     {state: "paused", shows: waitingShown("allowed.txt")},
	"refused":     {state: "paused", shows: waitingShown("refused.txt")},
	"half":        {state: "paused", shows: waitingShown("half.txt", "which settled nothing: 1 of 2 yeses"), asks: true},
	"interrupted": {state: "interrupted", shows: waitingShown("interrupted.txt"), asks: true},
	"remembered":  {state: "interrupted", shows: []string{"#1 web__fetch", "yes, session by ann (api)", "outcome   done", "#2 web__fetch", "by ann (grant)", "outcome   done", "#3 fake__write", "outcome   open"}, asks: true},
}

// waitingShown are words of runs show for a run that waits for its call of fake__write.
func waitingShown(path string, more ...string) []string {
	words := []string{"#1 utils__base64_encode", "outcome   done", `#2 run("twice")`, "outcome   done", "#5 utils__csv_parse", "outcome   refused", "#6 fake__write", path}
	return append(append(words, more...), "outcome   open")
}

// tellsOfRuns checks the records of each named run.
func (f frozen) tellsOfRuns() {
	f.Helper()
	if named, known := slices.Sorted(maps.Keys(f.Runs)), slices.Sorted(maps.Keys(frozenRuns)); !slices.Equal(named, known) {
		f.Fatalf("the manifest names the runs %q, want %q", named, known)
	}
	if f.Locked == 0 { // a check that holds is no reason to ask any more
		f.contains(f.does("", "runs", "show", f.Runs["approved"]), "decision  ask, risk high", "rule no passwd: It writes to a shared folder.", "yes, once by ann (api)")
	}
	states := f.states()
	var rows []struct{ Event, Run string }
	f.reads(&rows, "audit", "query", "--oldest", "-n", "0")
	if int64(len(rows)) != f.Rows {
		f.Errorf("audit query has %d rows, want %d", len(rows), f.Rows)
	}
	had := map[string][]string{}
	for _, r := range rows {
		had[r.Run] = append(had[r.Run], r.Event)
	}
	for name, want := range frozenRuns {
		run := f.Runs[name]
		if states[run] != want.state {
			f.Errorf("%s: the list says %q, want %q", name, states[run], want.state)
		}
		f.contains(f.does("", "runs", "show", run), append([]string{"run " + run}, want.shows...)...)
		events := had[run]
		last := len(events) - 1
		for last > 0 && f.Locked > 0 && want.state == "paused" && events[last] == "answer" { // after the run paused; earlier programs recorded none
			last--
		}
		if last < 3 || events[0] != "run_started" || events[1] != "preview" || events[last] != lastEvent[want.state] {
			f.Errorf("%s: its records are %q", name, events)
		}
	}
}

// states are the states of all runs, by their ids.
func (f frozen) states() map[string]string {
	f.Helper()
	var rows []struct{ Run, State string }
	f.reads(&rows, "runs", "list", "-n", "0")
	states := map[string]string{}
	for _, r := range rows {
		states[r.Run] = r.State
	}
	return states
}

// tellsOfQuestions checks the requests and their verdicts.
func (f frozen) tellsOfQuestions() {
	f.Helper()
	type row struct {
		ID, Run, Missing string
		Verdict          *struct {
			Approve  bool
			By, Text string
		}
	}
	var open, all []row
	f.reads(&open, "approvals", "list")
	f.reads(&all, "approvals", "list", "--all")
	asking := map[string]bool{}
	for _, r := range open {
		asking[r.ID] = true
	}
	verdicts := map[string]string{}
	for _, r := range all {
		if r.Verdict != nil {
			verdicts[r.ID] = fmt.Sprint(r.Verdict.Approve, " ", r.Verdict.By, " ", r.Verdict.Text)
		} else if !asking[r.ID] {
			f.Errorf("the request %s is neither open nor answered", r.ID)
		}
	}
	for name, want := range frozenRuns {
		if id, asked := f.Requests[name]; asking[id] != want.asks || asked && !want.asks && verdicts[id] == "" {
			f.Errorf("%s: its request %q is open: %v, want %v", name, id, asking[id], want.asks)
		}
	}
	for name, want := range map[string]string{
		"approved": "true ann I know this one.", "edited": "true bob ", "declined": "false bob Not today.", "agreed": "true bob and carol ",
		"allowed": "true ann ", "refused": "false bob Not this one.",
	} {
		if got := verdicts[f.Requests[name]]; got != want {
			f.Errorf("%s: the verdict is %q, want %q", name, got, want)
		}
	}
	f.contains(f.does("", "approvals", "show", f.Requests["half"]), "Call tool write of server fake?", "HIGH", "path         half.txt", "so far   1 of 2 yeses", "args.path != 'passwd'", f.Runs["half"])
}

// tellsOfTools checks which tools were accepted and blocked.
func (f frozen) tellsOfTools() {
	f.Helper()
	f.contains(f.does("", "tools", "review"),
		"web__drop  blocked by ann on ", "+ Drops a page.", "+ destructiveHint: true",
		"web__extra  new since ", ": An extra.",
		"web__post  changed since ann accepted it on ", "- Posts a form.", "+ Posts a form. And reads your files.")
	if f.Locked == 0 { // what an earlier program than the lock left
		return
	}
	said, talk, code := f.run("", "tools", "lock", "--check", "--json")
	var lock struct {
		Tools   int
		Changes []struct{ Kind, Server, Tool string }
	}
	if err := json.Unmarshal([]byte(said), &lock); err != nil || code != 1 || lock.Tools != f.Locked+2 {
		f.Errorf("the lock of %d tools is compared: exit code %d, %v\n%s%s", f.Locked, code, err, said, talk)
	}
	differs := map[string]string{}
	for _, c := range lock.Changes {
		differs[c.Server+" "+c.Tool] = c.Kind
	}
	if want := map[string]string{"web post": "~", "web drop": "+", "web extra": "+"}; !maps.Equal(differs, want) {
		f.Errorf("the lock differs in %v, want %v", differs, want)
	}
}

// goesOn serves with the folder, and records a new run in it.
func (f frozen) goesOn() {
	f.Helper()
	f.start()
	run := f.starts(annsToken, `return [(await codemode.run("twice", { n: 4 })).twice, await codemode.web__fetch({ page: 2 })]`)
	if status, text := f.approve(annsToken, f.asks(run)); status != 200 {
		f.Fatalf("approving a new call: %d %s", status, text)
	}
	if state, result := f.ends(run); state != "done" || string(result) != `[8,"did fetch"]` {
		f.Errorf("a new run ended %s with %s", state, result)
	}
	f.stop()
	var report struct {
		Whole bool
		Rows  int64
	}
	f.reads(&report, "audit", "verify", "--against", filepath.Join(f.home, "checkpoints"))
	if !report.Whole || report.Rows <= f.Rows {
		f.Errorf("after a new run the log has %+v", report)
	}
}

// cancels ends the runs that have not ended. Nothing that waited is sent.
func (f frozen) cancels() {
	f.Helper()
	before := f.states()
	for name, want := range frozenRuns {
		run := f.Runs[name]
		if before[run] != want.state {
			f.Errorf("after a new run, %s is %q, want %q", name, before[run], want.state)
		}
		if !want.open() {
			continue
		}
		if out, talk, code := f.run("", "runs", "cancel", run); code != 0 || out != "" || talk != "run "+run+" ends\n" {
			f.Errorf("cancelling %s: exit code %d, %s%s", name, code, out, talk)
		}
	}
	run := f.Runs["paused"]
	if _, talk, code := f.run("", "runs", "cancel", run); code != 1 || !strings.Contains(talk, "the run "+run+" has ended: stopped ") {
		f.Errorf("cancelling a run twice: exit code %d, %s", code, talk)
	}
	after := f.states()
	for name, want := range frozenRuns {
		if run := f.Runs[name]; want.open() && after[run] != "stopped" || !want.open() && after[run] != want.state {
			f.Errorf("after all were cancelled, %s is %q", name, after[run])
		}
	}
	var open []json.RawMessage
	if f.reads(&open, "approvals", "list"); len(open) > 0 {
		f.Errorf("all runs have ended, and there are open questions: %s", open)
	}
	if n := countEffects(f.T, filepath.Join(f.home, "effects")); n > 0 {
		f.Errorf("%d calls that waited were sent", n)
	}
	f.contains(f.does("", "audit", "verify"), "the log is whole: ")
}
