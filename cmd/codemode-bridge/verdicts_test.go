package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// manualCall is a configuration with one call that is critical and manual, which only an
// approver may allow.
const manualCall = `{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"], "elicitationFallback": "queue",
    "rules": [{"tools": ["utils__base64_encode"], "action": "manual", "risk": "critical"}]}}},
  "approvals": {"listen": "127.0.0.1:0", "separateApprover": %t, "approvers": [%s]},
}
`

const encodes = `try { return await codemode.utils__base64_encode({text: "x"}) } catch (e) { return e.reason }`

// beside is another configuration of the same user, in the same state folder.
func (c commandLine) beside(name, config string) *heldBench {
	c.Helper()
	c.file = filepath.Join(c.home, name)
	if err := os.WriteFile(c.file, []byte(config), 0o600); err != nil {
		c.Fatal(err)
	}
	return &heldBench{commandLine: c, serving: serving{file: c.file}}
}

// owner signs in by the page's link, and returns a function that makes requests there.
func (b *heldBench) owner() func(method, path string, body map[string]any) (status int, text string) {
	b.Helper()
	base, code, ok := strings.Cut(b.link, "/login#code=")
	if !ok {
		b.Fatalf("no link for the owner: %q", b.link)
	}
	header := http.Header{}
	res, text := request(b.T, http.DefaultClient, "POST", base+"/api/login", header, map[string]any{"code": code})
	var in struct{ Secret string }
	if err := json.Unmarshal([]byte(text), &in); err != nil || res.StatusCode != 200 {
		b.Fatalf("coming in by the link: %s %s", res.Status, text)
	}
	header.Set("X-Codemode-Secret", in.Secret)
	for _, cookie := range res.Cookies() {
		header.Add("Cookie", cookie.Name+"="+cookie.Value)
	}
	return func(method, path string, body map[string]any) (int, string) {
		b.Helper()
		res, text := request(b.T, http.DefaultClient, method, base+path, header, body)
		return res.StatusCode, text
	}
}

// A verdictRow is what the log has of a verdict.
type verdictRow struct {
	Approver, Comment, Risk, Answer, Outcome, Error, Configuration string
	Counted                                                        *bool
	Args                                                           json.RawMessage
}

// verdicts returns the rows of somebody's verdicts, the newest first.
func (b *heldBench) verdicts(by string) (rows []verdictRow) {
	b.Helper()
	text := b.does("", "audit", "query", "--event-type", "verdict", "--approver", by, "--json")
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		b.Fatalf("%s: %v", text, err)
	}
	return rows
}

// A configuration that somebody writes for themselves shares the log and the requests, but
// makes nobody an approver for the calls of another configuration.
func TestApproversOfAnotherConfiguration(t *testing.T) {
	a := serves(t, fmt.Sprintf(manualCall, false, approverJSON("ann", "admin", annsToken)))
	run := a.starts(annsToken, encodes)
	q := a.asks(run)

	mine := a.beside("mine.json", fmt.Sprintf(manualCall, false, ""))
	eves := mine.does("", "approvers", "add", "eve", "--role", "admin")
	whose := a.commandLine.file
	if list := mine.does("", "approvals", "list"); !strings.Contains(list, "CONFIGURATION") || !strings.Contains(list, whose) {
		t.Errorf("the list does not say whose request it is:\n%s", list)
	}
	if shown := mine.does("", "approvals", "show", q.ID); !strings.Contains(shown, "asked by "+whose+": its bridge judges whether an answer counts") {
		t.Errorf("nothing says who judges:\n%s", shown)
	}
	yes := []string{"approvals", "approve", q.ID, "--typed", "base64_encode", "--reason", "it is mine", "--token-stdin"}
	mine.refuses("this answer does not count: the configuration that asks, "+whose+", has no approver eve", eves, yes...)
	mine.refuses("has no approver eve", eves, "approvals", "deny", q.ID, "--token-stdin")
	if got := a.open(); len(got) != 1 {
		t.Fatalf("%d requests wait", len(got))
	}
	rows := a.verdicts("eve")
	if len(rows) != 2 {
		t.Fatalf("the log has %+v of her", rows)
	}
	void := verdictRow{Approver: "eve", Comment: "it is mine", Risk: "critical", Outcome: "refused", Counted: new(false), Args: json.RawMessage(`{"text":"x"}`)}
	if diff := cmp.Diff(void, rows[1], cmpopts.IgnoreFields(verdictRow{}, "Answer", "Error", "Configuration")); diff != "" || rows[1].Configuration == "" {
		t.Errorf("the log has, of configuration %q (-want +got)\n%s", rows[1].Configuration, diff)
	}

	// So does the owner of another configuration.
	own := a.beside("own.json", fmt.Sprintf(manualCall, false, ""))
	own.start()
	status, text := own.owner()("POST", "/api/decide/"+q.ID, map[string]any{"decision": "approve", "digest": q.Digest, "typed": "base64_encode", "reason": "it is mine"})
	if status != 422 || !strings.Contains(text, "is not the one whose owner says this") {
		t.Errorf("the owner of another: %d %s", status, text)
	}

	eventually(t, "its own approver's yes does not count", func() bool { // at first it comes too soon
		status, text = a.api(annsToken, "POST", "/api/decide/"+q.ID, map[string]any{"decision": "approve", "digest": q.Digest, "typed": "base64_encode", "reason": "as agreed"})
		return status == 200
	})
	if strings.Contains(text, "token:") {
		t.Errorf("how she proved who she is: %s", text)
	}
	if _, got := a.ends(run); !strings.Contains(string(got), "eA==") {
		t.Errorf("the script returned %s", got)
	}
	if rows := a.verdicts("ann"); len(rows) == 0 || rows[0].Counted == nil || !*rows[0].Counted || rows[0].Comment != "as agreed" {
		t.Errorf("the log has %+v of her", rows)
	}
	if log := a.does("", "audit", "query", "--json"); strings.Contains(log, "token:") || strings.Contains(log, "owner:") {
		t.Error("how somebody proved who they are is in the log")
	}
}

// The bridge that asked is gone: the verdict is kept, and its author is told so.
func TestAnswerToABridgeThatIsGone(t *testing.T) {
	a := serves(t, fmt.Sprintf(manualCall, false, approverJSON("ann", "admin", annsToken)))
	q := a.asks(a.starts(annsToken, encodes))
	a.kill()
	mine := a.beside("mine.json", fmt.Sprintf(manualCall, false, ""))
	eves := mine.does("", "approvers", "add", "eve", "--role", "admin")
	out, talk, code := mine.run(eves, "approvals", "deny", q.ID, "--token-stdin")
	if code != 6 || !strings.Contains(out, "it is kept for the bridge that asked") {
		t.Errorf("exit code %d: %s%s", code, out, talk)
	}
	if got := a.does(annsToken, "approvals", "deny", q.ID, "--token-stdin"); !strings.Contains(got, "denied by ann") {
		t.Errorf("its own configuration says %q", got)
	}
	if rows := a.verdicts("eve"); len(rows) != 1 || rows[0].Counted == nil || *rows[0].Counted {
		t.Errorf("the log has %+v of her", rows)
	}
}

// The owner cannot stand in for a second person, and has no rights where there are
// approvers.
func TestOwnerIsNoSecondPerson(t *testing.T) {
	b := serves(t, fmt.Sprintf(manualCall, true, ""))
	owner := b.owner()
	var run struct {
		Run     string
		Pending []string
	}
	status, text := owner("POST", "/api/runs?wait=20s", map[string]any{"code": encodes})
	if err := json.Unmarshal([]byte(text), &run); err != nil || status != 202 || len(run.Pending) != 1 {
		t.Fatalf("starting a run: %d %s, %v", status, text, err)
	}
	status, text = owner("GET", "/api/pending/"+run.Pending[0], nil)
	var q struct {
		ID, Digest string
		MayNot     string `json:"you_may_not"`
	}
	if err := json.Unmarshal([]byte(text), &q); err != nil || status != 200 || !strings.Contains(q.MayNot, "the owner runs the bridge") {
		t.Fatalf("the request: %d %s, %v", status, text, err)
	}
	yes := map[string]any{"decision": "approve", "digest": q.Digest, "typed": "base64_encode", "reason": "mine"}
	eventually(t, "the owner's own yes is not refused as such", func() bool { // at first because it comes too soon
		status, text = owner("POST", "/api/decide/"+q.ID, yes)
		return status == 422 && strings.Contains(text, "the owner runs the bridge and counts as who asked")
	})

	config := strings.Replace(fmt.Sprintf(manualCall, true, approverJSON("ann", "admin", annsToken)), "\n", " ", -1)
	b.write(t, config)
	eventually(t, "the owner stays in where an approver may answer", func() bool {
		status, _ := owner("GET", "/api/me", nil)
		return status == 401
	})
	if status, text := b.api(annsToken, "POST", "/api/decide/"+q.ID, yes); status != 200 {
		t.Errorf("an approver: %d %s", status, text)
	}
	b.kill()
	b.start()
	if strings.Contains(b.link, "code=") {
		t.Errorf("where an approver may answer there is a link for the owner: %s", b.link)
	}
}
