package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// An again is a gate at which one call is made again and again. It is its
// upstream and its recorder as well.
type again struct {
	*testing.T
	*gate.Gate
	view   *gate.View
	set    *profiles.Set
	reach  gate.Reach
	answer func() (string, error) // of the upstream
	broken error                  // why nothing can be recorded
	calls  int
	runs   int
}

func (a *again) Call(context.Context, string, string, string, json.RawMessage) (json.RawMessage, error) {
	text, err := a.answer()
	return json.RawMessage(text), err
}

func (a *again) Record(_ context.Context, all ...ledger.Record) error {
	if slices.ContainsFunc(all, func(r ledger.Record) bool { return r.Event == ledger.Intent }) {
		return a.broken
	}
	return nil
}

// with lets the gate have another list of tools and servers.
func (a *again) with(description, identity string) {
	a.view = &gate.View{Profiles: a.set, Complete: true, Identities: map[string]string{"fs": identity}, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{
		{Name: "write", Description: description, Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}}})}
	if a.Gate != nil {
		a.Replace(a.view)
	}
}

func (a *again) begin() *gate.Run {
	a.runs++
	r, err := a.Begin(a.Context(), gate.Origin{ID: "r" + string(rune('0'+a.runs)), Session: "s", Profile: "p", Reach: a.reach}, nil)
	if err != nil {
		a.Fatal(err)
	}
	return r
}

// made makes the call in a run, lets do happen while it waits, and returns what
// came of it: sent, asked, or refused. One that is asked in vain is over when its
// run is.
func (a *again) made(r *gate.Run, args string, do func()) (became string, err error) {
	a.calls++
	ctx, stop := context.WithCancel(a.Context())
	defer stop()
	done := make(chan error, 1)
	number := a.calls
	go func() {
		_, err := a.Gate.Call(ctx, r, gate.Call{Number: number, Name: "fs__write", Args: json.RawMessage(args)})
		done <- err
	}()
	synctest.Wait()
	select {
	case err = <-done:
		if e := r.Effects(); e[len(e)-1].State != ledger.Refused {
			return "sent", err
		}
		return "refused", err
	default: // also if its question has to wait for its turn
	}
	if do == nil {
		do = stop
	}
	do()
	return "asked", <-done
}

func (a *again) says(r *gate.Run, v approval.Verdict) {
	q := a.Broker().Take(r.ID)[0]
	if _, err := a.Settle(a.Context(), q.ID, q.Digest(), v); err != nil {
		a.Error(err)
	}
}

// One truth about making a call again, for every way in which it can end that is
// no answer: the flag, the sentence in the error and the one in the effects say
// what then happens, in the same run and in another.
func TestWhatBecomesOfTheSameCall(t *testing.T) {
	const refuses, safe = "Refused, so don't make it again", "Safe to run again."
	no := func(reason approval.Reason) func(*again, *gate.Run) {
		return func(a *again, r *gate.Run) { a.says(r, approval.Verdict{Reason: reason, By: "ann", Channel: "page"}) }
	}
	yes := approval.Verdict{Approve: true, Scope: approval.Once, By: "ann", Channel: "page"}
	for _, row := range []struct {
		name      string
		limits    approval.Limits
		policy    string // the profile; {"asklist": ["*"]} unless set
		args      string
		change    func(*again, *gate.Run)
		meanwhile func(*again, *gate.Run)
		reason    approval.Reason // of a denial
		retryable bool
		says      string // in the error
		effects   string
		inRun     string // what becomes of the same call there, if the run goes on
		inAnother string
	}{
		{name: "policy", policy: `{"denylist": ["*"]}`, reason: approval.Denied, says: "is denied again", effects: refuses, inRun: "refused", inAnother: "refused"},
		{name: "deciding fails", change: func(a *again, _ *gate.Run) { a.set, _ = profiles.Parse(profiles.Spec{}); a.with("", "1") },
			reason: approval.PolicyError, says: "is denied again", effects: refuses, inRun: "refused"},
		{name: "the person says no", meanwhile: no(approval.ElicitationDeclined), reason: approval.ElicitationDeclined, says: "refused without asking in this run", effects: refuses, inRun: "refused", inAnother: "asked"},
		{name: "an approver says no", meanwhile: no(approval.Declined), reason: approval.Declined, says: "refused without asking in this run", effects: refuses, inRun: "refused", inAnother: "asked"},
		{name: "the client cannot ask", change: func(a *again, _ *gate.Run) { a.reach = gate.NoElicitation }, reason: approval.ElicitationUnsupported, says: "refused again until", effects: refuses, inRun: "refused", inAnother: "refused"},
		{name: "there is nobody", change: func(a *again, _ *gate.Run) { a.reach = gate.Nobody }, reason: approval.NoApprover, says: "refused again until", effects: refuses, inRun: "refused", inAnother: "refused"},
		{name: "nobody is reached", meanwhile: no(approval.NoApprover), reason: approval.NoApprover, retryable: true, says: "may be made again: then a person is asked", effects: safe, inRun: "asked", inAnother: "asked"},
		{name: "silence", meanwhile: func(*again, *gate.Run) { time.Sleep(300 * time.Second) }, reason: approval.Timeout, says: "refused without asking in this run; another run asks again", effects: safe, inRun: "refused", inAnother: "asked"},
		{name: "the run ends", meanwhile: func(a *again, r *gate.Run) { _ = r.End(a.Context(), ledger.Stopped, "", gate.Entries{}) }, reason: approval.Expired, says: "Another run may make the call", effects: safe, inAnother: "asked"},
		{name: "too many questions", limits: approval.Limits{PerSession: 1, Refuse: true}, change: func(a *again, _ *gate.Run) {
			go func(r *gate.Run) { // nobody answers
				_, _ = a.Gate.Call(a.Context(), r, gate.Call{Number: 1, Name: "fs__write", Args: json.RawMessage(`{"path": "other"}`)})
			}(a.begin())
			synctest.Wait()
		}, reason: approval.RateLimited, retryable: true, says: "may be made again later", effects: safe, inRun: "asked", inAnother: "asked"},
		{name: "after three noes", args: `{"path": "4"}`, change: func(a *again, r *gate.Run) {
			for _, path := range []string{"1", "2", "3"} {
				_, _ = a.made(r, `{"path": "`+path+`"}`, func() { no(approval.Declined)(a, r) })
			}
		}, reason: approval.RateLimited, says: "refused without asking in this run", effects: refuses, inRun: "refused", inAnother: "asked"},
		{name: "the tool changes", meanwhile: func(a *again, r *gate.Run) { a.with("another", "1"); a.says(r, yes) }, reason: approval.Stale, retryable: true, says: "is judged anew", effects: safe, inRun: "asked", inAnother: "asked"},
		{name: "the server is another one", meanwhile: func(a *again, _ *gate.Run) { a.with("", "2") }, reason: approval.Stale, says: "Run the script again to make the call", effects: safe, inRun: "refused", inAnother: "asked"},
		{name: "no record", policy: `{}`, change: func(a *again, _ *gate.Run) { a.broken = errors.New("disk full") }, reason: approval.AuditUnavailable, retryable: true, says: "may be made again later", effects: safe, inRun: "sent", inAnother: "sent"},
		{name: "ArgumentError", policy: `{}`, args: `{"path": 1}`, says: "was not sent: ", effects: "Safe to run again once the call that was refused is corrected.", inRun: "refused", inAnother: "refused"},
		{name: "UnknownOutcomeError", policy: `{}`, change: func(a *again, _ *gate.Run) {
			a.answer = func() (string, error) { return "", errors.New("broken pipe") }
		},
			says: "check before making it again", effects: "Sent with no answer, check before repeating", inRun: "sent", inAnother: "sent"},
		{name: "UnknownOutcomeError of what may be repeated", policy: `{"rules": [{"tools": ["*"], "repeatable": true}]}`, change: func(a *again, _ *gate.Run) {
			a.answer = func() (string, error) { return "", errors.New("broken pipe") }
		},
			says: "does no harm to make it again", effects: safe, inRun: "sent", inAnother: "sent"},
		{name: "CallError", policy: `{}`, change: func(a *again, _ *gate.Run) { a.answer = func() (string, error) { return "", unsent{} } }, says: "is down", effects: safe, inRun: "sent", inAnother: "sent"},
		{name: "ToolError", policy: `{}`, change: func(a *again, _ *gate.Run) {
			a.answer = func() (string, error) { return `{"isError": true, "content": [{"type": "text", "text": "full"}]}`, nil }
		}, effects: safe, inRun: "sent", inAnother: "sent"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if row.policy == "" {
					row.policy = `{"asklist": ["*"]}`
				}
				if row.args == "" {
					row.args = `{}`
				}
				var p profiles.ProfileSpec
				if err := json.Unmarshal([]byte(row.policy), &p); err != nil {
					t.Fatal(err)
				}
				a := &again{T: t, reach: gate.ByElicitation, answer: func() (string, error) { return `{"content": []}`, nil }}
				a.set, _ = profiles.Parse(profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"p": &p}})
				a.with("", "1")
				a.Gate = gate.New(a.view, gate.Options{Caller: a, Recorder: a, Broker: approval.New(approval.Options{Limits: row.limits})})
				r := a.begin()
				if row.change != nil {
					row.change(a, r)
				}
				if row.reason == approval.ElicitationUnsupported || row.reason == approval.NoApprover || row.name == "too many questions" {
					r = a.begin() // as the client is now
				}
				_, err := a.made(r, row.args, func() { row.meanwhile(a, r) })
				var denied *approval.DeniedError
				if errors.As(err, &denied) != (row.reason != "") || denied != nil && (denied.Reason != row.reason || denied.Retryable() != row.retryable) {
					t.Fatalf("ended with %#v", err)
				}
				if row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
					t.Errorf("it says %v, want %q", err, row.says)
				}
				effects := effectsText(r.Effects())
				if !strings.Contains(effects, row.effects) || strings.Contains(effects, safe) != (row.effects == safe) {
					t.Errorf("the effects say %q, want %q", effects, row.effects)
				}
				// What was in the way for the moment has gone.
				a.broken = nil
				if row.reason == approval.RateLimited {
					time.Sleep(time.Hour)
				}
				if row.inRun != "" {
					if got, _ := a.made(r, row.args, nil); got != row.inRun || denied != nil && row.retryable != (got != "refused") {
						t.Errorf("in the same run it is %s, want %s", got, row.inRun)
					}
				}
				if row.inAnother != "" {
					another := a.begin()
					got, _ := a.made(another, row.args, nil)
					if got != row.inAnother {
						t.Errorf("in another run it is %s, want %s", got, row.inAnother)
					}
					if denied != nil && denied.Rerunnable() && got == "refused" {
						t.Error("another run was to do better")
					}
				}
			})
		})
	}
}

// unsent is why a call did not leave.
type unsent struct{}

func (unsent) Error() string { return "server fs is down" }
func (unsent) WasSent() bool { return false }
