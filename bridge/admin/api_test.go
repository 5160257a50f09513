package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rememberable = profiles.Decision{Risk: profiles.Medium, Remember: true}

// shownBy reads a request as the API shows it.
func (v visitor) shown(id string) map[string]any {
	v.b.t.Helper()
	var out map[string]any
	v.do("GET", "/api/pending/"+id, "").want(200).into(&out)
	return out
}

func TestPending(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{requester: "ci"})
	other, _ := b.ask(question{run: "r2"})
	bob := b.as("bob")
	var list struct{ Pending []map[string]any }
	bob.do("GET", "/api/pending", "").want(200).into(&list)
	if len(list.Pending) != 2 || list.Pending[0]["id"] != e.ID || list.Pending[0]["digest"] != e.Digest().String() {
		t.Fatalf("pending: %v", list)
	}
	one := bob.shown(e.ID)
	d := one["description"].(map[string]any)
	for name, want := range map[string]any{"status": "pending", "run": "r1", "profile": "supervised", "you_may_approve": true, "args_editable": true, "remember": false} {
		if one[name] != want {
			t.Errorf("%s is %v, want %v", name, one[name], want)
		}
	}
	for name, want := range map[string]any{"risk": "high", "tool": "mail__send", "server": "mail", "client": "claude-code", "requester": "ci", "done": 6.0} {
		if d[name] != want {
			t.Errorf("%s is %v, want %v", name, d[name], want)
		}
	}
	if same := one["identical"].([]any); len(same) != 1 || same[0].(map[string]any)["id"] != other.ID {
		t.Errorf("identical: %v", same)
	}
	if text := fmt.Sprint(d["calls"]); !strings.Contains(text, "finance@acme-corp.co") {
		t.Errorf("the arguments are missing: %v", text)
	}
	if may := b.as("vic").shown(e.ID); may["you_may_approve"] != false || !strings.Contains(fmt.Sprint(may["you_may_not"]), "vic may look and not decide") {
		t.Errorf("a viewer is told %v", may["you_may_not"])
	}
	if may := b.as("mia").shown(e.ID); !strings.Contains(fmt.Sprint(may["you_may_not"]), "mia may not allow calls of high risk") {
		t.Errorf("a low limit: %v", may["you_may_not"])
	}
	bob.do("POST", "/api/decide/"+e.ID, decision(e, "approve")).want(200)
	<-verdicts
	for _, event := range []ledger.Event{ledger.Intent, ledger.Outcome} {
		if now := bob.shown(e.ID); now["status"] != "approved" || now["by"] != "bob" || now["at"] == "" {
			t.Errorf("after a yes: %v", now)
		}
		outcome := map[ledger.Event]string{ledger.Outcome: ledger.Done}[event]
		if err := b.records.Record(t.Context(), ledger.Record{Event: event, Run: "r1", Call: 7, Server: "mail", Tool: "send", Outcome: outcome}); err != nil {
			t.Fatal(err)
		}
		want := map[ledger.Event]string{ledger.Intent: "sending", ledger.Outcome: "done"}[event]
		if state := bob.shown(e.ID)["calls"].([]any)[0].(map[string]any)["state"]; state != want {
			t.Errorf("after %s the call is %v", event, state)
		}
	}
	bob.do("GET", "/api/pending/q0000000000", "").refused(404, "not_found")
}

// A question whose run was stopped says so, and who did it, in the API and its
// events.
func TestStoppedRunIsShownAsStopped(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{})
	why := &approval.StoppedError{By: "ann\u202e"}
	if err := b.broker.Abandon(t.Context(), why, func(approval.StoredRequest) bool { return true }); err != nil {
		t.Fatal(err)
	}
	const ann = `ann\u{202E}`
	if one := b.as("bob").shown(e.ID); one["status"] != "stopped" || one["by"] != ann || one["verdict"].(map[string]any)["stopped"] != ann {
		t.Errorf("shown is %v", one)
	}
	b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve")).refused(410, "gone").says("stopped the run")
	settled, err := b.broker.Requests(t.Context(), approval.Filter{ID: e.ID})
	if err != nil || len(settled) != 1 {
		t.Fatal(settled, err)
	}
	if event := b.site.event("settled", settled[0]); event.Status != "stopped" || event.By != ann {
		t.Errorf("the event is %+v", event)
	}
}

// A yes may have what was read before forgotten where people are asked because of it, and only there.
func TestDecideAndForget(t *testing.T) {
	for name, row := range map[string]struct {
		context     bool
		word, more  string
		wrong, says string
	}{
		"in a context":      {true, "approve", `"scope":"once","forget":true`, "", ""},
		"without one":       {false, "approve", `"scope":"once","forget":true`, "refused", "nothing is forgotten"},
		"with a wider yes":  {true, "approve", `"scope":"session","forget":true`, "refused", ""},
		"with a no":         {true, "deny", `"forget":true`, "invalid", "nothing else"},
		"with all the rest": {true, "stop", `"forget":true`, "invalid", "nothing else"},
	} {
		b := newBench(t)
		e, verdicts := b.ask(question{decision: profiles.Decision{Risk: profiles.Medium, Context: row.context}})
		got := b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, row.word, row.more))
		if row.wrong != "" {
			got.refused(422, row.wrong).says(row.says)
			continue
		}
		var shown struct {
			May bool `json:"may_forget"`
		}
		b.as("bob").do("GET", "/api/pending/"+e.ID, "").want(200).into(&shown)
		if got.want(200); !(<-verdicts).Forget || !shown.May {
			t.Errorf("%s: %+v", name, shown)
		}
	}
}

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		word, more string
		status     string
		want       approval.Verdict
	}{
		{"approve", `"scope":"once"`, "approved", approval.Verdict{Approve: true, Scope: approval.Once}},
		{"deny", `"reason":"wrong address, ask me"`, "denied", approval.Verdict{Reason: approval.Declined, Text: "wrong address, ask me"}},
		{"stop", `"reason":""`, "denied", approval.Verdict{Reason: approval.Declined, Stop: true}},
		{"approve", `"scope":"once","list":true`, "approved", approval.Verdict{Approve: true, Scope: approval.Once, List: true}},
		{"deny", `"list":true,"no_more":true`, "denied", approval.Verdict{Reason: approval.Declined, List: true, NoMore: true}},
		{"approve", `"args":{"to":"someone@acme-corp.co","n":9007199254740993}`, "approved", approval.Verdict{Approve: true, Args: json.RawMessage(`{"to":"someone@acme-corp.co","n":9007199254740993}`)}},
	} {
		b := newBench(t)
		e, verdicts := b.ask(question{})
		var out struct{ Status, By string }
		b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, row.word, row.more)).want(200).into(&out)
		if out.Status != row.status || out.By != "bob" {
			t.Errorf("%s: %+v", row.word, out)
		}
		want := row.want
		want.Request, want.By, want.Channel, want.Strong, want.Edited = e.ID, "bob", "api", true, want.Args != nil
		if diff := cmp.Diff(want, <-verdicts, cmpopts.IgnoreFields(approval.Verdict{}, "Roles", "Credential", "Time", "EditedArgs")); diff != "" {
			t.Errorf("%s %s: the verdict (-want +got):\n%s", row.word, row.more, diff)
		}
		// A second one is harmless, and told who was first.
		for _, name := range []string{"bob", "ada"} {
			b.as(name).do("POST", "/api/decide/"+e.ID, decision(e, "deny")).refused(409, "settled").says("bob said " + map[bool]string{true: "yes", false: "no"}[row.want.Approve])
		}
	}
}

func TestWhatADecisionNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		critical := profiles.Decision{Risk: profiles.Critical, RequireReason: true}
		e, verdicts := b.ask(question{run: "critical", decision: critical})
		post := func(name string, e approval.StoredRequest, word string, more ...string) response {
			return b.as(name).do("POST", "/api/decide/"+e.ID, decision(e, word, more...))
		}
		post("mia", e, "approve", `"reason":"x"`).refused(403, "role")
		post("bob", e, "approve", `"reason":"x"`).refused(403, "role")
		post("vic", e, "deny").refused(403, "role")
		var refused []string
		for _, rec := range b.recorded(ledger.Verdict) {
			refused = append(refused, fmt.Sprintf("%s by %s, %s", rec.Request, rec.Approver, rec.Outcome))
		}
		if diff := cmp.Diff([]string{e.ID + " by mia, refused", e.ID + " by bob, refused"}, refused); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
		post("ada", e, "approve", `"reason":"read it"`).refused(422, "refused").says("read it first")
		time.Sleep(3 * time.Second)
		post("ada", e, "approve").refused(422, "refused").says("reason")
		post("ada", e, "approve", `"reason":"  "`).refused(422, "refused")
		post("ada", e, "approve", `"reason":"read it","scope":"session"`).refused(422, "refused").says("only once")
		other, _ := b.ask(question{run: "other", tool: "draft"})
		b.as("ada").do("POST", "/api/decide/"+e.ID, decision(other, "approve", `"reason":"read it"`)).refused(409, "changed")
		post("ada", e, "approve", `"reason":"read it"`).want(200)
		if v := <-verdicts; !v.Approve || v.Text != "read it" {
			t.Errorf("the verdict is %+v", v)
		}

		e, verdicts = b.ask(question{run: "manual", decision: profiles.Decision{Manual: true}})
		post("bob", e, "approve").refused(422, "refused").says("typed")
		post("bob", e, "approve", `"typed":"mail__send"`).refused(422, "refused")
		post("bob", e, "approve", `"typed":"send"`).want(200)
		<-verdicts

		two := profiles.Decision{Quorums: []profiles.Quorum{{Need: 2}}}
		e, verdicts = b.ask(question{run: "two", requester: "ci", decision: two})
		post("bob", e, "approve", `"args":{}`).refused(422, "refused")
		post("bob", e, "approve", `"reason":"fine"`).want(200).says(`"status":"pending"`, "1 of 2 yeses")
		post("bob", e, "approve").refused(422, "refused").says("has said yes already")
		if now := b.as("bob").shown(e.ID); now["you_may_approve"] != false {
			t.Error("who has voted is told to vote")
		}
		post("ada", e, "approve").want(200).says(`"status":"approved"`, "bob and ada")
		if v := <-verdicts; v.By != "bob and ada" {
			t.Errorf("the verdict is %+v", v)
		}
		e, _ = b.ask(question{run: "own", requester: "bob", decision: two})
		post("bob", e, "approve").refused(422, "refused").says("somebody else")

		e, verdicts = b.ask(question{run: "late", decision: profiles.Decision{Timeout: time.Minute}})
		if v := <-verdicts; v.Reason != approval.Timeout {
			t.Errorf("the verdict is %+v", v)
		}
		post("bob", e, "approve").refused(410, "gone")
		if now := b.as("bob").shown(e.ID); now["status"] != "timeout" {
			t.Errorf("the status is %v", now["status"])
		}
		post("ada", approval.StoredRequest{Request: approval.Request{ID: "q0"}}, "approve").refused(404, "not_found")
		b.as("ada").do("POST", "/api/decide/q0", `{"decision":"approve","digest":"x"}`).refused(422, "invalid")
	})
}

// The calls of a loop are decided on by row.
func TestRows(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{args: []string{`{"to":"a"}`, `{"to":"b"}`, `{"to":"c"}`}})
	b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"rows":[99]`)).refused(422, "refused")
	b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"rows":[]`)).refused(422, "refused")
	b.atPage("bob").do("GET", "/r/"+e.ID, "").want(200).says(`class="call" value="7"`, `class="call" value="9"`)
	b.as("bob").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"rows":[7,9]`)).want(200)
	yes := 0
	for range 3 {
		if v := <-verdicts; v.Approve {
			yes++
		}
	}
	if yes != 2 {
		t.Errorf("%d calls were allowed", yes)
	}
	states := b.as("bob").shown(e.ID)["calls"].([]any)
	if got := fmt.Sprint(states); !strings.Contains(got, "call:8 state:refused") {
		t.Errorf("the states are %v", got)
	}
	// Each has its own outcome, as far as the log has one.
	for _, r := range []ledger.Record{
		{Event: ledger.Intent, Call: 7}, {Event: ledger.Outcome, Call: 7, Outcome: ledger.Failed, Error: "no such person"}, {Event: ledger.Intent, Call: 9},
	} {
		r.Run = e.Run
		if err := b.records.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var settled Request
	b.as("bob").do("GET", "/api/pending/"+e.ID, "").want(200).into(&settled)
	want := []ledger.CallOutcome{
		{Call: 7, Answer: "approved", State: ledger.Failed, Error: "no such person"},
		{Call: 8, Answer: "denied", State: ledger.Refused},
		{Call: 9, Answer: "approved", State: ledger.Sending},
	}
	if !slices.Equal(settled.Calls, want) {
		t.Errorf("the calls are %+v, want %+v", settled.Calls, want)
	}
}

// What an approver sends in place of the script's arguments is shown as theirs,
// beside what was asked about, and as far as others may see it.
func TestEditedArgumentsAreShown(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{args: []string{`{"to":"bob"}`}})
	secret := "ghp_" + strings.Repeat("aB3d", 9)
	b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"args":{"to":"carol","note":"`+secret+`","password":"hunter2hunter2"}`)).want(200).says(`"edited":true`, "carol")
	if v := <-verdicts; !strings.Contains(string(v.Args), secret) {
		t.Errorf("the call has %s", v.Args)
	}
	answer := b.as("vic").do("GET", "/api/pending/"+e.ID, "").want(200)
	if strings.Contains(answer.body, secret) || strings.Contains(answer.body, "hunter2") {
		t.Errorf("a secret is shown: %s", answer.body)
	}
	var shown Request
	answer.into(&shown)
	was, edited := fmt.Sprint(shown.Description.Calls), shown.Edited
	want := &wording.EditedCall{By: "ada", Call: 7, Asked: e.Items[0].Key.Args, Hidden: 2}
	if diff := cmp.Diff(want, edited, cmpopts.IgnoreFields(wording.EditedCall{}, "Digest", "Args", "Fields")); diff != "" {
		t.Fatalf("edited (-want +got):\n%s", diff)
	}
	if edited.Digest == edited.Asked.String() || !strings.Contains(string(edited.Args), `"to":"carol"`) || !strings.Contains(fmt.Sprint(edited.Fields), "carol") {
		t.Errorf("edited %+v", edited)
	}
	if !strings.Contains(was, "bob") {
		t.Errorf("asked about %s", was)
	}
}

// What a person was not shown cannot be edited, and a mark is never sent.
func TestEditing(t *testing.T) {
	b := newBench(t)
	for _, args := range []string{`{"to":"x","password":"hunter2hunter2"}`, `{"to":"` + strings.Repeat("a", 5000) + `"}`, `{"to":"a\u202eb"}`} {
		e, _ := b.ask(question{run: args, args: []string{args}})
		if b.as("ada").shown(e.ID)["args_editable"] != false {
			t.Errorf("%.40s can be edited", args)
		}
		b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"args":{"to":["x [hidden: looks like a token]"]}`)).refused(422, "refused").says("[hidden]")
		b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"args":{"a…":1}`)).refused(422, "refused")
		b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"args":[1]`)).refused(422, "refused").says("cannot be read")
		b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"args":{"to":"whole"}`)).want(200)
	}
}

// The first verdict counts, and everybody else hears whose it was.
func TestTenApproversAtOnce(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{})
	var wait sync.WaitGroup
	answers := make(chan response, 10)
	for i := range 10 {
		word := []string{"approve", "deny"}[i%2]
		v := b.as([]string{"ada", "bob"}[i%2])
		wait.Go(func() { answers <- v.do("POST", "/api/decide/"+e.ID, decision(e, word)) })
	}
	wait.Wait()
	close(answers)
	won := 0
	for r := range answers {
		if r.status == 200 {
			won++
		} else {
			r.refused(409, "settled")
		}
	}
	if <-verdicts; won != 1 || len(verdicts) != 0 {
		t.Errorf("%d won, %d more verdicts", won, len(verdicts))
	}
	refused := 0
	for _, rec := range b.recorded(ledger.Verdict) {
		if rec.Outcome == ledger.Refused {
			refused++
		}
	}
	if refused != 9 {
		t.Errorf("%d refused verdicts are recorded", refused)
	}
}

func TestStartRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		bob := b.as("bob")
		b.runs.started = func(id string) { b.runs.end(id, Done, `{"result":42}`) }
		bob.do("POST", "/api/runs", `{"code":"return 42","profile":"supervised","input":{"n":1}}`).want(200).says(`"result":{"result":42}`, `"state":"done"`, `"requester":"bob"`)
		bob.do("POST", "/api/runs", `{"code":"1","profile":"nowhere"}`).refused(422, "invalid")
		bob.do("POST", "/api/runs", `{"profile":"supervised"}`).refused(422, "invalid")
		bob.do("POST", "/api/runs?wait=soon", `{"code":"1"}`).refused(422, "invalid")

		// One that asks is answered at once, and its result comes after the yes.
		asked := make(chan approval.StoredRequest, 1)
		var verdicts <-chan approval.Verdict
		b.runs.started = func(id string) {
			e, v := b.ask(question{run: id, requester: "bob"})
			verdicts = v
			asked <- e
		}
		begun := time.Now()
		res := bob.do("POST", "/api/runs?wait=30s", `{"code":"codemode.mail__send({})"}`).want(202)
		e := <-asked
		res.says(`"run":"r2"`, fmt.Sprintf(`"pending":[%q]`, e.ID))
		if res.header.Get("Location") != "/api/result/r2" || time.Since(begun) != 0 {
			t.Errorf("location %q after %v", res.header.Get("Location"), time.Since(begun))
		}
		bob.do("GET", "/api/result/r2", "").want(202)
		go func() {
			time.Sleep(time.Second)
			b.as("ada").do("POST", "/api/decide/"+e.ID, decision(e, "approve"))
			<-verdicts
			b.runs.end("r2", Done, `{"result":"sent"}`)
		}()
		bob.do("GET", "/api/result/r2?wait=10", "").want(200).says(`"result":"sent"`)
		if waited := time.Since(begun); waited != time.Second {
			t.Errorf("the result came after %v", waited)
		}

		// One that takes long is answered after a while.
		b.runs.started = nil
		begun = time.Now()
		bob.do("POST", "/api/runs", `{"code":"1"}`).want(202).says(`"pending":[]`)
		if waited := time.Since(begun); waited != 2*time.Second {
			t.Errorf("waited %v", waited)
		}
		begun = time.Now()
		bob.do("GET", "/api/result/r3?wait=3h", "").want(202)
		if waited := time.Since(begun); waited != maxWait {
			t.Errorf("waited %v", waited)
		}
		// The result is for who asked for it, and for admins.
		b.as("mia").do("GET", "/api/result/r2", "").refused(403, "role")
		b.as("ada").do("GET", "/api/result/r2", "").want(200)
		bob.do("GET", "/api/result/none", "").refused(404, "not_found")
		if list := bob.do("GET", "/api/runs", "").want(200).says(`"run":"r3"`); strings.Contains(list.body, "sent") {
			t.Errorf("the list has results: %s", list.body)
		}
		b.runs.set(append(b.runs.List(t.Context()), Run{ID: "r4", State: Paused}, Run{ID: "r5", State: Interrupted}))
		b.as("ada").do("GET", "/api/result/r5", "").want(202).says(`"state":"interrupted"`)
		b.atPage("ada").do("GET", "/runs", "").want(200).says(`data-do="resume-run" data-id="r4"`, `data-do="resume-run" data-id="r5"`)
		bob.do("POST", "/api/runs/r4/resume", `{}`).want(200)
		bob.do("POST", "/api/runs/r2/resume", `{}`).refused(409, "ended").says("the run has ended")
		bob.do("POST", "/api/runs/none/resume", `{}`).refused(404, "not_found")
		b.as("vic").do("POST", "/api/runs/r4/resume", `{}`).refused(403, "role")
		if !slices.Equal(b.runs.resumed, []string{"r4 by bob (api)"}) {
			t.Errorf("resumed %v", b.runs.resumed)
		}
		bob.do("POST", "/api/runs/r3/stop", `{}`).want(200)
		bob.do("POST", "/api/runs/r3/stop", `{}`).refused(404, "not_found")
		if !slices.Equal(b.runs.stopped, []string{"r3 by bob"}) || len(b.recorded(ledger.StopAsked)) != 1 {
			t.Errorf("stopped %v, recorded %v", b.runs.stopped, b.recorded(ledger.StopAsked))
		}
	})
}

func TestGrants(t *testing.T) {
	b := newBench(t)
	e, verdicts := b.ask(question{decision: rememberable})
	b.as("mia").do("POST", "/api/decide/"+e.ID, decision(e, "approve", `"scope":"session"`)).want(200)
	<-verdicts
	var list struct{ Grants []Grant }
	b.as("vic").do("GET", "/api/grants", "").want(200).into(&list)
	want := []Grant{{Script: "mail__send", Server: "mail", Tool: "send", Profile: "supervised", Client: "claude-code", Covers: "send to finance@acme-corp.co; any body", Bound: []approval.Bound{{Param: "to", Kind: approval.ToRecipient, Value: "finance@acme-corp.co"}}, Free: []string{"body"}, By: "mia"}}
	if diff := cmp.Diff(want, list.Grants, cmpopts.IgnoreFields(Grant{}, "ID", "Session", "Made", "Until", "Left")); diff != "" {
		t.Fatalf("grants (-want +got):\n%s", diff)
	}
	b.atPage("ada").do("GET", "/grants", "").want(200).says("send to finance@acme-corp.co; any body", list.Grants[0].ID)
	id := list.Grants[0].ID
	b.as("bob").do("DELETE", "/api/grants/"+id, "").refused(403, "role")
	b.as("ada").do("DELETE", "/api/grants/"+id, "").want(200)
	b.as("ada").do("DELETE", "/api/grants/"+id, "").refused(404, "not_found")
	b.as("vic").do("GET", "/api/grants", "").want(200).says(`"grants":[]`)
	revoked := []ledger.Record{{Event: ledger.Revoked, Profile: "supervised", Approver: "ada", Channel: "api", Detail: fmt.Appendf(nil, `{"grant":%q}`, id)}}
	if diff := cmp.Diff(revoked, b.recorded(ledger.Revoked), cmpopts.IgnoreFields(ledger.Record{}, "Time", "Session", "Server", "Tool")); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestProfilesAndSessions(t *testing.T) {
	b := newBench(t)
	if res := b.as("bob").do("GET", "/api/profiles", "").want(200).says("codemode_eval_supervised"); strings.Contains(res.body, "source") {
		t.Errorf("who may not edit gets %s", res.body)
	}
	b.as("ada").do("GET", "/api/profiles", "").want(200).says(`"revision":"one"`)
	save := func(name, text, revision string) response {
		return b.as(name).do("PUT", "/api/profiles", fmt.Sprintf(`{"text":%q,"revision":%q}`, text, revision))
	}
	save("bob", "{}", "one").refused(403, "role")
	save("ada", "{,}", "one").refused(422, "invalid").says("config.json:3:7")
	tried := ledger.Record{Event: ledger.ConfigChanged, Approver: "ada", Channel: "api"}
	refused := tried
	refused.Outcome = ledger.Refused
	rec := b.recorded(ledger.ConfigChanged)
	if diff := cmp.Diff([]ledger.Record{tried, refused}, rec, cmpopts.IgnoreFields(ledger.Record{}, "Time", "Error", "Detail")); diff != "" {
		t.Fatalf("of a text that is wrong it is recorded (-want +got)\n%s", diff)
	}
	if !strings.Contains(rec[1].Error, "config.json:3:7") {
		t.Errorf("refused because of %q", rec[1].Error)
	}
	b.as("bob").do("POST", "/api/profiles/try", `{"text":"{}"}`).refused(403, "role")
	b.as("ada").do("POST", "/api/profiles/try", `{"text":"{,}"}`).refused(422, "invalid").says("config.json:3:7")
	b.as("ada").do("POST", "/api/profiles/try", `{"text":"{}"}`).want(200).says(`"calls":12`, `"looser":2`, "last 7 days")
	if b.policy.saved != 0 || len(b.recorded(ledger.ConfigChanged)) != 2 {
		t.Error("trying profiles has saved or recorded something")
	}
	save("ada", "{}", "zero").refused(409, "changed")
	b.as("ada").do("PUT", "/api/profiles", `{"text":"{}"}`).refused(422, "invalid")
	save("ada", "{}", "one").want(200)
	if rec := b.recorded(ledger.ConfigChanged); b.policy.saved != 1 || len(rec) == 0 || rec[0].Approver != "ada" {
		t.Errorf("saved %d times, recorded %+v", b.policy.saved, rec)
	}
	b.atPage("ada").do("GET", "/profiles", "").want(200).says(`id="policy"`, `data-do="try-policy"`, `data-revision="one&#43;"`, "claude-code")
	if res := b.atPage("vic").do("GET", "/profiles", "").want(200); strings.Contains(res.body, `id="policy"`) {
		t.Error("a viewer gets an editor")
	}

	b.as("vic").do("GET", "/api/sessions", "").want(200).says(`"session":"s1"`)
	tighten := func(id, body string) response { return b.as("ada").do("POST", "/api/sessions/"+id+"/profile", body) }
	tighten("s1", `{"profile":"supervised"}`).want(200)
	if rec := b.recorded(ledger.ConfigChanged); !slices.Equal(rec[len(rec)-1].Reasons, []string{"session s1 is put under profile supervised"}) {
		t.Errorf("recorded %+v", rec[len(rec)-1])
	}
	tighten("s1", `{}`).refused(422, "invalid")
	tighten("s1", `{"profile":"nowhere"}`).refused(422, "invalid")
	tighten("s2", `{"profile":"supervised"}`).refused(404, "not_found")
	if rec := b.recorded(ledger.ConfigChanged); rec[len(rec)-1].Outcome != ledger.Refused {
		t.Errorf("of what was not done the record says %+v", rec[len(rec)-1])
	}
	if b.session.profile["s1"] != "supervised" {
		t.Errorf("the session is under %q", b.session.profile["s1"])
	}
}

// What cannot be recorded and would loosen something is not done.
func TestUnrecordedIsNotDone(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Record = broken{} })
	b.as("ada").do("PUT", "/api/profiles", `{"text":"{}","revision":"one"}`).refused(503, "audit_unavailable")
	b.as("ada").do("POST", "/api/sessions/s1/profile", `{"profile":""}`).refused(503, "audit_unavailable")
	if b.policy.saved != 0 {
		t.Error("profiles were saved without a record")
	}
}

type broken struct{}

func (broken) Record(context.Context, ...ledger.Record) error {
	return fmt.Errorf("writing: %w", ledger.ErrUnavailable)
}

func TestHistory(t *testing.T) {
	b := newBench(t)
	for i := range 150 {
		r := ledger.Record{Event: ledger.Intent, Run: "r1", Call: i + 1, Server: "mail", Tool: "send", Risk: "high", Time: time.Now().Add(time.Duration(i-150) * time.Minute)}
		if i%10 == 0 {
			r.Run, r.Tool, r.Risk, r.Event, r.Approver = "r2", "drop", "critical", ledger.Verdict, "bob"
		}
		if err := b.records.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	count := func(query string) (n int, first int64) {
		var out struct{ Rows []Row }
		b.as("vic").do("GET", "/api/history"+query, "").want(200).into(&out)
		if len(out.Rows) > 0 {
			first = out.Rows[0].Seq
		}
		return len(out.Rows), first
	}
	for query, want := range map[string]int{"": 100, "?limit=1000": 150, "?risk=critical&limit=1000": 15, "?tool=mail__dr*&limit=1000": 15, "?run=r2&event=verdict": 15,
		"?approver=bob": 15, "?since=30m30s": 30, "?since=2001-01-01T00:00:00Z&limit=1000": 150, "?until=2001-01-01T00:00:00Z": 0, "?before=11": 10, "?after=145": 5, "?outcome=done": 0} {
		if n, _ := count(query); n != want {
			t.Errorf("%s: %d rows, want %d", query, n, want)
		}
	}
	if _, first := count(""); first != 150 {
		t.Errorf("the first row is %d", first)
	}
	for _, query := range []string{"?since=yesterday", "?limit=0", "?limit=5000", "?before=x", "?after=-1"} {
		b.as("vic").do("GET", "/api/history"+query, "").refused(422, "invalid")
	}
	if n, _ := count("?run=r1&run=r2&limit=1000"); n != 150 {
		t.Errorf("of two runs there are %d rows", n)
	}
	for query, want := range map[string]string{
		"?runs=r2":           "there is no filter \\\"runs\\\"; there are after, approver, before, channel, client, disposition, event, limit, outcome, profile, risk, run, server, session, since, tool, until",
		"?Risk=high":         "there is no filter",
		"?risk=hihg":         "risk must be one of low, medium, high, critical, not \\\"hihg\\\"",
		"?tool=a&tool=b":     "the filter tool is given twice",
		"?disposition=maybe": "disposition must be one of allow, ask, deny",
	} {
		b.as("vic").do("GET", "/api/history"+query, "").refused(422, "invalid").says(want)
	}
	b.atPage("vic").do("GET", "/history?risk=&run=&limit=100", "").want(200).says("/history?before=52", "mail__send")
	b.atPage("vic").do("GET", "/history?colour=red", "").want(200).says("there is no filter")
	b.atPage("vic").do("GET", "/history?since=yesterday", "").want(200).says("since must be a time")
}

// A site whose bridge has less to show says so, and shows the rest.
func TestPartsMayBeMissing(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Runs, o.Records, o.Sessions, o.Policy, o.Config, o.Status = nil, nil, nil, nil, nil, nil
	})
	e, _ := b.ask(question{})
	v := b.atPage("ada")
	for _, path := range []string{"/api/result/r1", "/api/history", "/api/sessions", "/api/profiles", "/api/servers", "/api/config"} {
		v.do("GET", path, "").refused(404, "not_found")
	}
	v.do("POST", "/api/runs", `{"code":"1"}`).refused(404, "not_found")
	for _, path := range []string{"/", "/r/" + e.ID, "/runs", "/grants"} {
		v.do("GET", path, "").want(200)
	}
	for _, path := range []string{"/servers", "/profiles", "/history"} {
		v.with("Accept", "text/html").do("GET", path, "").want(404).says("<h1>This bridge has no ", `<a href="/">`)
	}
}

// Every page renders for every role, with the buttons that the role has.
func TestPagesRender(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{})
	b.ask(question{run: "loop", args: []string{`{"to":"a","body":"1\n2"}`, `{"to":"b"}`}})
	b.ask(question{run: "critical", tool: "drop", decision: profiles.Decision{Risk: profiles.Critical, RequireReason: true, Manual: true, Quorums: []profiles.Quorum{{Need: 2}}}})
	b.records.Record(t.Context(), ledger.Record{Event: ledger.RunStarted, Run: "r1", Script: "const a = 1;\nreturn a;"})
	for name, buttons := range map[string]bool{"ada": true, "bob": true, "vic": false} {
		v := b.atPage(name)
		for _, path := range []string{"/", "/r/" + e.ID, "/runs", "/grants", "/servers", "/profiles", "/history", "/login", "/assets/page.css", "/assets/page.js", "/assets/icon.svg"} {
			v.do("GET", path, "").want(200)
		}
		page := v.do("GET", "/r/"+e.ID, "").says("Exactly what is sent", "finance@acme-corp.co", "Why it is asked", "asklist", "What a yes covers",
			"means no.", "Written by the model, unchecked", "claude-code", "const a = 1;", e.Digest().String())
		if got := strings.Contains(page.body, `data-do="approve"`); got != buttons {
			t.Errorf("%s has a button: %v", name, got)
		}
	}
	for _, path := range []string{"/assets/page.html", "/assets/../admin.go", "/assets/"} {
		if res := b.atPage("ada").do("GET", path, ""); res.status == 200 {
			t.Errorf("%s is served", path)
		}
	}
	b.as("ada").do("GET", "/r/none", "").refused(404, "not_found")
	(visitor{b: b}).with("Accept", "text/html").do("GET", "/<b>x", "").want(404).says("<h1>There is nothing here")
}

// Every route of the API is documented, and nothing else.
func TestOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Summary     string
			OperationID string `yaml:"operationId"`
			Responses   map[string]any
		}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			documented[strings.ToUpper(method)+" "+path] = true
			if op.Summary == "" || op.OperationID == "" || len(op.Responses) < 2 {
				t.Errorf("%s %s has no summary, id or responses", method, path)
			}
		}
	}
	for _, rt := range new(Site).routes() {
		if key := rt.method + " " + rt.path; rt.api() && !documented[key] {
			t.Errorf("%s is not documented", key)
		} else {
			delete(documented, key)
		}
	}
	for key := range documented {
		t.Errorf("%s is documented and not there", key)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") {
		t.Errorf("openapi %q", doc.OpenAPI)
	}
}
