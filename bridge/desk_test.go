package bridge

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asked waits until a run puts its question to people.
func (b *bench) asked(t *testing.T) approval.StoredRequest {
	t.Helper()
	for {
		changed := b.gate.Broker().Changed()
		open, err := b.gate.Broker().Requests(t.Context(), approval.Filter{Open: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if len(open) > 0 {
			return open[0]
		}
		select {
		case <-changed:
		case <-time.After(3 * time.Minute):
			t.Fatal("nobody is asked")
		}
	}
}

// decide brings an approver's verdict to a request.
func (b *bench) decide(t *testing.T, e approval.StoredRequest, v approval.Verdict) {
	t.Helper()
	v, err := (*approval.Approvers)(nil).Sign(approval.Owner, e.Request, v, "page", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.gate.Settle(t.Context(), e.ID, e.Digest(), v); err != nil {
		t.Fatal(err)
	}
}

// result waits until a run is over, and returns what it answers.
func (b *bench) result(t *testing.T, id string) string {
	t.Helper()
	for {
		changed := b.RunsChanged()
		st, ok := b.Run(t.Context(), id)
		switch {
		case !ok:
			t.Fatalf("run %s is not there", id)
		case st.Over():
			return string(st.Result)
		}
		select {
		case <-changed:
		case <-time.After(3 * time.Minute):
			t.Fatalf("run %s does not end: %+v", id, st)
		}
	}
}

const echoes = `try { return json(await codemode.a__echo({x: 1})).x } catch (e) { return [e.name, e.reason] }`

func TestRunOfTheAPIAsksApprovers(t *testing.T) {
	for answer, row := range map[string]struct {
		verdict approval.Verdict
		want    string
		calls   int
	}{
		"yes":          {approval.Verdict{Approve: true}, `"result":1`, 1},
		"no":           {approval.Verdict{Text: "not now"}, `"result":["ToolCallDeniedError","declined"]`, 0},
		"other values": {approval.Verdict{Approve: true, Args: json.RawMessage(`{"x":2}`)}, `"result":2`, 1},
		"no and stop":  {approval.Verdict{Stop: true}, `stopped the script`, 0},
	} {
		t.Run(answer, func(t *testing.T) {
			b := newBench(t, asks())
			b.approvers.Store(true)
			id, err := b.Start(t.Context(), "p", echoes, nil, "ann")
			if err != nil {
				t.Fatal(err)
			}
			e := b.asked(t)
			if st, ok := b.Run(t.Context(), id); !ok || st.State != lifecycle.RunWaiting || st.Calls != 1 || st.Requester != "ann" {
				t.Errorf("state %+v, %v", st, ok)
			}
			if e.Requester != "ann" || e.Run != id {
				t.Errorf("asked %+v", e)
			}
			b.decide(t, e, row.verdict)
			if got := b.result(t, id); !strings.Contains(got, row.want) {
				t.Errorf("answered %s, want %s", got, row.want)
			}
			if got := b.up.made(); len(got) != row.calls {
				t.Errorf("made %q", got)
			}
			if all := b.Runs(t.Context()); len(all) != 1 || !all[0].Over() || all[0].Result != nil {
				t.Errorf("runs %+v", all)
			}
		})
	}
}

func TestRunsThatCannotStart(t *testing.T) {
	b := newBench(t, asks())
	if _, err := b.Start(t.Context(), "nobody", "return 1", nil, "ann"); err == nil || !strings.Contains(err.Error(), `there is no profile "nobody"; there are p`) {
		t.Errorf("got %v", err)
	}
	if st, ok := b.Run(t.Context(), "r0"); ok {
		t.Errorf("got %+v", st)
	}
	if b.roster.stop("r0", "ann") {
		t.Error("a run that is not there was stopped")
	}
}

// A call that must be allowed by somebody who proves who they are is never put
// to the client, whatever it can do.
func TestManualCallIsForApproversAlone(t *testing.T) {
	manual := asks(func(p *profiles.ProfileSpec) {
		action := "manual"
		p.Asklist = nil
		p.Rules = []profiles.RuleSpec{{Tools: []string{"a__*"}, Action: &action}}
	})
	b := newBench(t, manual)
	p := &person{answer: says("once")}
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
	if got := eval(t, c, echoes); !strings.Contains(got, "no_approver") {
		t.Errorf("with no approvers: %s", got)
	}
	b.approvers.Store(true)
	done := make(chan string, 1)
	go func() { done <- eval(t, c, echoes) }()
	e := b.asked(t)
	if _, err := b.gate.Settle(t.Context(), e.ID, e.Digest(), approval.Verdict{Approve: true, Typed: "echo", Channel: "elicitation"}); err == nil {
		t.Error("a yes from the client counts")
	}
	b.decide(t, e, approval.Verdict{Approve: true, Typed: "echo"})
	if got := <-done; got != "1" {
		t.Errorf("got %s", got)
	}
	if n := len(p.questions()); n > 0 {
		t.Errorf("the client was asked %d times", n)
	}
}

// A person at the client who does not answer leaves the question to approvers.
func TestDismissedQuestionIsLeftToApprovers(t *testing.T) {
	b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = ptr("queue") }))
	b.approvers.Store(true)
	dismissed := make(chan struct{})
	c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		defer close(dismissed)
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}})
	done := make(chan string, 1)
	go func() { done <- eval(t, c, echoes) }()
	<-dismissed
	b.decide(t, b.asked(t), approval.Verdict{Approve: true})
	if got := <-done; got != "1" {
		t.Errorf("got %s", got)
	}
}

// A client that cannot ask queues its questions for approvers, for days.
func TestQueuedQuestion(t *testing.T) {
	b := newBench(t, asks(func(p *profiles.ProfileSpec) { queue := "queue"; p.ElicitationFallback = &queue }))
	c := b.connect(t, nil)
	if got := eval(t, c, echoes); !strings.Contains(got, "no_approver") {
		t.Errorf("with no approvers: %s", got)
	}
	b.approvers.Store(true)
	done := make(chan string, 1)
	go func() { done <- eval(t, c, echoes) }()
	e := b.asked(t)
	if left := e.Until.Sub(e.Asked); left != 168*time.Hour {
		t.Errorf("it waits for %v", left)
	}
	b.decide(t, e, approval.Verdict{Approve: true})
	if got := <-done; got != "1" {
		t.Errorf("got %s", got)
	}
}

// A session that was put under a second profile needs the leave of both.
func TestTightenedSession(t *testing.T) {
	spec := asks()
	spec.Profiles["strict"] = &profiles.ProfileSpec{Denylist: []string{"b__*"}}
	b := newBench(t, spec)
	c, other := b.connect(t, nil), b.connect(t, nil)
	const code = `try { return await codemode.b__echo({}) } catch (e) { return e.reason }`
	for _, c := range []*mcp.ClientSession{c, other} {
		if got := eval(t, c, code); got != `"b{}"` {
			t.Fatalf("before: %s", got)
		}
	}
	sessions := b.Sessions()
	if len(sessions) != 2 {
		t.Fatalf("sessions %+v", sessions)
	}
	id := sessions[0].ID
	if err := b.Tighten(id, "nobody"); err == nil {
		t.Error("a profile that is not there binds")
	}
	if err := b.Tighten("s0", "strict"); err != ErrNoSession {
		t.Errorf("a session that is not there: %v", err)
	}
	if err := b.Tighten(id, "strict"); err != nil {
		t.Fatal(err)
	}
	results := []string{eval(t, c, code), eval(t, other, code)}
	if slices.Sort(results); !slices.Equal(results, []string{`"b{}"`, `"denied"`}) {
		t.Errorf("afterwards: %q", results)
	}
	if err := b.Tighten(id, ""); err != nil {
		t.Fatal(err)
	}
	if got := []string{eval(t, c, code), eval(t, other, code)}; got[0] != got[1] {
		t.Errorf("in the end: %q", got)
	}
}

// A session is there as soon as its client is, so that it can be tightened
// before its first script.
func TestSessionIsListedBeforeItsFirstCall(t *testing.T) {
	spec := asks()
	spec.Profiles["strict"] = &profiles.ProfileSpec{Denylist: []string{"b__*"}}
	b := newBench(t, spec)
	c := b.connect(t, nil)
	if err := c.Ping(t.Context(), nil); err != nil { // what came before it has been read
		t.Fatal(err)
	}
	var sessions []SessionState
	for len(sessions) == 0 { // notifications are handled beside requests
		sessions = b.Sessions()
		runtime.Gosched()
	}
	if sessions[0].Client == "" || len(sessions) != 1 {
		t.Fatalf("sessions %+v", sessions)
	}
	if err := b.Tighten(sessions[0].ID, "strict"); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, c, `try { return await codemode.b__echo({}) } catch (e) { return e.reason }`); got != `"denied"` {
		t.Errorf("its first call: %s", got)
	}
	if again := b.Sessions(); len(again) != 1 || again[0].ID != sessions[0].ID {
		t.Errorf("after it: %+v", again)
	}
}

// Whatever binds eval has a name, and that is the one which people see.
func TestRunNamesTheProfileThatBindsIt(t *testing.T) {
	spec := asks()
	for want, b := range map[string]*bench{*spec.DefaultProfile: newBench(t, spec), "": newBench(t, profiles.Spec{})} {
		id, err := b.Start(t.Context(), "", `return 1`, nil, "ann")
		if err != nil {
			t.Fatal(err)
		}
		b.result(t, id)
		if st, ok := b.Run(t.Context(), id); !ok || st.Profile != want {
			t.Errorf("the run is under %q, want %q", st.Profile, want)
		}
	}
}

func TestRunIsStoppedFromTheDesk(t *testing.T) {
	b := newBench(t, profiles.Spec{})
	id, err := b.Start(t.Context(), "", `await codemode.a__wait({})`, nil, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if !b.roster.stop(id, "bob") {
		t.Fatal("there was no such run")
	}
	if got := b.result(t, id); !strings.Contains(got, "bob stopped the run") {
		t.Errorf("got %s", got)
	}
}
