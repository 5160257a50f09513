package main_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A machine is a home folder with a configuration.
type machine struct {
	t    *testing.T
	home string
}

func newMachine(t *testing.T, config string) *machine {
	m := &machine{t, t.TempDir()}
	serving{file: filepath.Join(m.home, "config.json")}.write(t, config)
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(programs(m.t), "codemode-bridge"), append(args, "--config", filepath.Join(m.home, "config.json"))...)
	cmd.Env = append(os.Environ(), "HOME="+m.home, "XDG_CONFIG_HOME="+m.home, "XDG_STATE_HOME="+m.home, "XDG_CACHE_HOME="+m.home, "CENTRE_KEY="+strings.Repeat("5e", 32))
	return cmd
}

// says runs a command that must end well, and returns what it prints.
func (m *machine) says(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			m.t.Fatalf("%q: %v\n%s%s", args, err, out, exit.Stderr)
		}
		m.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// fails runs a command that must fail, and returns everything that it prints.
func (m *machine) fails(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err == nil {
		m.t.Fatalf("%q ended well:\n%s", args, out)
	}
	return string(out)
}

func (m *machine) json(into any, args ...string) {
	m.t.Helper()
	if err := json.Unmarshal([]byte(m.says(append(args, "--json")...)), into); err != nil {
		m.t.Fatal(err)
	}
}

// A centre and two laptops, each with a home of its own: rows go up while a bridge runs
// there, and stay when the centre is away.
func TestACentreAndLaptops(t *testing.T) {
	centre := newMachine(t, `{"servers": {"time": {"builtin": "time"}}, "centre": {"signingKey": "${CENTRE_KEY}"}, "approvals": {"listen": "off"}}`)
	var at serving
	at.start(t, centre.command("serve", "--listen", "127.0.0.1:0"))
	address := strings.TrimSuffix(at.endpoint, "/mcp")
	ann, bob := newMachine(t, `{"servers": {"time": {"builtin": "time"}}, "approvals": {"listen": "off"}}`), newMachine(t, `{"servers": {"utils": {"builtin": "utils"}}, "approvals": {"listen": "off"}}`)

	if got := ann.says("enroll", "--status"); !strings.Contains(got, "enrolled at no centre") {
		t.Errorf("before: %s", got)
	}
	code := centre.says("laptops", "invite", "ann")
	if got := ann.fails("enroll", "http://centre.example.com", "--code", code); !strings.Contains(got, "is not encrypted") {
		t.Errorf("plain http: %s", got)
	}
	if got := ann.says("enroll", address, "--code", code); !strings.Contains(got, "as ann, of ann") {
		t.Errorf("enrolled: %s", got)
	}
	if got := bob.fails("enroll", address, "--code", code); !strings.Contains(got, "used by another machine") {
		t.Errorf("a stolen code: %s", got)
	}
	bob.says("enroll", address, "--code", centre.says("laptops", "invite", "bob@example.com", "--laptop", "bob"))
	for _, m := range []*machine{ann, bob} { // a bridge of theirs, whose records go up
		m.says("eval", `return "of `+filepath.Base(m.home)+`"`)
		var runs serving
		runs.start(t, m.command("serve", "--listen", "127.0.0.1:0"))
	}

	type laptop struct {
		Laptop, Person, State string
		Rows, Last, Waiting   int64
	}
	var all []laptop
	until := time.Now().Add(3 * time.Minute)
	for {
		if centre.json(&all, "laptops", "list"); len(all) == 2 && all[0].Rows >= 5 && all[1].Rows >= 5 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the rows do not arrive: %+v", all)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if all[1].Laptop != "bob" || all[1].Person != "bob@example.com" || all[1].State != "enrolled" {
		t.Errorf("%+v", all[1])
	}
	if got := centre.says("laptops", "show", "ann", "--limit", "100"); !strings.Contains(got, "run done") || strings.Count(got, "bridge started") != 1 {
		t.Errorf("ann's rows: %s", got)
	}
	if got := centre.says("laptops", "export", "bob"); !strings.Contains(got, `"event":"run_started"`) {
		t.Errorf("bob's rows: %s", got)
	}
	if got := centre.says("laptops", "verify"); strings.Count(got, ": whole, ") != 2 {
		t.Errorf("verify: %s", got)
	}
	var is struct {
		Enrolled      bool
		Sent, Waiting int64
		Problem       string
	}
	if ann.json(&is, "enroll", "--status"); !is.Enrolled || is.Sent < 5 || is.Problem != "" {
		t.Errorf("ann's status: %+v", is)
	}

	centre.says("laptops", "revoke", "ann")
	out, err := ann.command("enroll", "--leave").CombinedOutput()
	if got := string(out); err != nil || !strings.Contains(got, "no more") || !strings.Contains(got, "had ended it before: the centre refuses: the laptop ann was revoked") {
		t.Errorf("leaving once revoked: %v: %s", err, got)
	}

	// What the centre has not is not pruned.
	at.kill()
	bob.says("eval", "return 2")
	bob.says("audit", "prune", "--keep-rows", "1")
	if bob.json(&is, "enroll", "--status"); is.Waiting < 3 {
		t.Errorf("bob keeps %d rows that the centre has not", is.Waiting)
	}
	if got := bob.says("audit", "query", "--event-type", "run_started"); !strings.Contains(got, "run started") {
		t.Errorf("pruned: %s", got)
	}
	if got := bob.says("enroll", "--leave"); !strings.Contains(got, "no more") {
		t.Errorf("leave: %s", got)
	}
	if got := bob.says("audit", "query", "--event-type", "laptop"); !strings.Contains(got, `"what":"left"`) {
		t.Errorf("bob's own log: %s", got)
	}
	if got := centre.fails("laptops", "revoke", "ann"); !strings.Contains(got, "was revoked on") {
		t.Errorf("again: %s", got)
	}
	if got := centre.fails("laptops", "show", "zoe"); !strings.Contains(got, "there is no laptop") {
		t.Errorf("nobody: %s", got)
	}
	if got := bob.fails("laptops", "list"); !strings.Contains(got, "is no centre's") {
		t.Errorf("no centre: %s", got)
	}
}

// The question of a laptop is answered at its centre, by an approver whom its own
// configuration names too.
func TestALaptopAsksItsCentre(t *testing.T) {
	const token = "cmb_a-token-of-carols"
	carol := fmt.Sprintf(`"approvals": {"listen": "off", "approvers": [{"name": "carol", "role": "admin", "sha256": "%x"}]}`, sha256.Sum256([]byte(token)))
	centre := newMachine(t, `{"servers": {}, "centre": {"signingKey": "${CENTRE_KEY}"}, `+carol+`}`)
	var at, runs serving
	at.start(t, centre.command("serve", "--listen", "127.0.0.1:0"))
	ann := newMachine(t, `{"servers": {"time": {"builtin": "time"}}, `+carol+`, "evaluation": {"defaultProfile": "team", "profiles": {"team": {"asklist": ["time__*"], "elicitationFallback": "queue"}}}}`)
	ann.says("enroll", strings.TrimSuffix(at.endpoint, "/mcp"), "--code", centre.says("laptops", "invite", "ann"))
	runs.start(t, ann.command("serve", "--listen", "127.0.0.1:0"))

	script := ann.command("eval", `return (await codemode.time__now({timezone: "UTC"})).timezone`)
	var out strings.Builder
	script.Stdout = &out
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	var waits []struct {
		ID, Configuration, Tool string
		Calls                   []struct{ Fields []struct{ Lines []string } }
	}
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if centre.json(&waits, "approvals", "list"); len(waits) == 1 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the question does not arrive: %+v", waits)
		}
	}
	if waits[0].Configuration != "laptop ann of ann" || waits[0].Tool != "time__now" || len(waits[0].Calls) != 1 {
		t.Errorf("%+v", waits[0])
	}
	answer := func(m *machine, args ...string) string {
		cmd := m.command(append([]string{"approvals"}, append(args, "--token-stdin")...)...)
		cmd.Stdin = strings.NewReader(token + "\n")
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return string(said)
	}
	if got := answer(centre, "approve", waits[0].ID); !strings.Contains(got, "asked by laptop ann of ann") || !strings.Contains(got, waits[0].ID+": approved by carol") {
		t.Errorf("the approver is told: %s", got)
	}
	if err := script.Wait(); err != nil || !strings.Contains(out.String(), "UTC") {
		t.Errorf("the script: %v: %s", err, out.String())
	}
	if got := ann.says("audit", "query", "--event-type", "verdict"); !strings.Contains(got, "yes, once by carol") {
		t.Errorf("the laptop's log: %s", got)
	}
	if got := centre.says("audit", "query", "--event-type", "answer"); !strings.Contains(got, "request "+waits[0].ID+" yes, once by carol") {
		t.Errorf("the centre's log: %s", got)
	}
}

// The policy of a centre comes down when a laptop enrols, and is in force there, also while
// the centre is away; what was recorded meanwhile comes up in order.
func TestACentresPolicy(t *testing.T) {
	t.Parallel()
	const token = "cmb_a-token-of-carols"
	carol := fmt.Sprintf(`"approvals": {"listen": "off", "approvers": [{"name": "carol", "role": "admin", "sha256": "%x"}]}`, sha256.Sum256([]byte(token)))
	centre := newMachine(t, `{"servers": {}, "centre": {"signingKey": "${CENTRE_KEY}", "policy": "laptops.json"}, `+carol+`}`)
	policy := filepath.Join(centre.home, "laptops.json")
	serving{file: policy}.write(t, `{"evaluation": {"defaultProfile": "team", "profiles": {"team": {"denylist": ["utils__*"], "asklist": ["time__now"], "elicitationFallback": "queue"}}}, `+carol+`}`)
	centre.says("policy", "keygen", filepath.Join(centre.home, "policy.key"))
	centre.says("policy", "sign", policy, "--key", filepath.Join(centre.home, "policy.key"), "--serial", "7")
	var at, runs serving
	at.start(t, centre.command("serve", "--listen", "127.0.0.1:0"))
	address := strings.TrimSuffix(at.endpoint, "/mcp")
	ann := newMachine(t, `{"servers": {"time": {"builtin": "time"}, "utils": {"builtin": "utils"}}, "approvals": {"listen": "off"}}`)

	const script = `const say = async f => { try { await f(); return "yes" } catch (e) { return e.message } }
return [await say(() => codemode.utils__hash({text: "a"})), await say(() => codemode.time__parse({text: "1 March 2026"}))].join("\n")`
	if got := ann.says("eval", script); got != `"yes\nyes"` {
		t.Errorf("before: %s", got)
	}
	ann.says("enroll", address, "--code", centre.says("laptops", "invite", "ann"))
	inForce := func(when string) {
		t.Helper()
		if got := ann.says("eval", script); !strings.Contains(got, "was not sent: policy denies it") || !strings.HasSuffix(got, `\nyes"`) {
			t.Errorf("%s: %s", when, got)
		}
		if got := ann.says("policy", "list"); !strings.Contains(got, "serial 7") {
			t.Errorf("%s: %s", when, got)
		}
	}
	inForce("enrolled")
	runs.start(t, ann.command("serve", "--listen", "127.0.0.1:0"))
	list := func(has func(laptopRow) bool) laptopRow {
		t.Helper()
		for until := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			var all []laptopRow
			if centre.json(&all, "laptops", "list"); len(all) == 1 && has(all[0]) {
				return all[0]
			}
			if time.Now().After(until) {
				t.Fatalf("the rows do not arrive: %+v", all)
			}
		}
	}
	before := list(func(l laptopRow) bool { return l.Rows >= 5 && l.Policy == 7 })

	at.kill()
	inForce("without the centre")
	runs.kill()
	runs.start(t, ann.command("serve", "--listen", "127.0.0.1:0"))
	inForce("started again without the centre")
	if got := ann.fails("eval", `return await codemode.time__now({})`); !strings.Contains(got, "an approver must allow it, and the centre at "+address+" cannot be asked") {
		t.Errorf("asking without the centre: %s", got)
	}
	runs.kill()
	var is struct{ Last, Sent, Waiting int64 }
	if ann.json(&is, "enroll", "--status"); is.Waiting < 10 {
		t.Errorf("kept for later: %+v", is)
	}

	at.start(t, centre.command("serve", "--listen", strings.TrimPrefix(address, "http://")))
	runs.start(t, ann.command("serve", "--listen", "127.0.0.1:0"))
	list(func(l laptopRow) bool { return l.Rows >= before.Rows+is.Waiting })
	if got := centre.says("laptops", "verify"); !strings.Contains(got, ": whole, ") {
		t.Errorf("verify: %s", got)
	}
	ours, theirs := runsIn(t, ann.says("audit", "query", "--json", "--limit", "0")), runsIn(t, centre.says("laptops", "export", "ann"))
	slices.Reverse(ours)                                     // the newest was first
	if len(theirs) != 4 || !slices.Equal(ours[1:], theirs) { // the first was before it enrolled
		t.Errorf("the runs of the laptop are %q, and at the centre %q", ours, theirs)
	}
}

// A laptopRow is a laptop as the commands of its centre have it.
type laptopRow struct{ Rows, Last, Waiting, Policy int64 }

// runsIn returns the runs that began in some rows, in their order there: JSON lines, or an
// array.
func runsIn(t *testing.T, rows string) (runs []string) {
	t.Helper()
	type row struct{ Event, Run string }
	var all []row
	if strings.HasPrefix(rows, "[") {
		if err := json.Unmarshal([]byte(rows), &all); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range strings.Split(rows, "\n") {
		if strings.HasPrefix(line, "{") {
			var one row
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
	}
	for _, one := range all {
		if one.Event == "run_started" {
			runs = append(runs, one.Run)
		}
	}
	return runs
}
