package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"
)

// An asking is a call under way in a gate whose policy asks about it.
type asking struct {
	*testing.T
	g      *Gate
	r      *Run
	caller *fakeCaller
	book   *book
	cancel context.CancelCauseFunc
	done   chan error // of the call
}

var asksFs = profiles.ProfileSpec{Asklist: []string{"fs__*"}}

// deletion is the call that most of these tests make.
var deletion = Call{Number: 1, Name: "fs__delete", Args: json.RawMessage(`{"path":"/tmp/x"}`)}

// A host is one that a client may wait at, and that may be stopped.
type host struct {
	Unattended
	attended bool
	stop     func(error)
}

func (h host) Attended() bool { return h.attended }
func (h host) Stop(why error) { h.stop(why) }

// ask makes the call c under profile p of spec, up to the question or, if
// there is none, to its end. It must run in a bubble.
func ask(t *testing.T, spec profiles.Spec, b *book, reach Reach, c Call) *asking {
	t.Helper()
	caller := &fakeCaller{reply: okReply}
	return askAt(t, newGate(t, spec, caller, b), caller, b, reach, c)
}

// askAt is ask at a gate.
func askAt(t *testing.T, g *Gate, caller *fakeCaller, b *book, reach Reach, c Call) *asking {
	t.Helper()
	a := &asking{T: t, g: g, caller: caller, book: b, done: make(chan error, 1)}
	var ctx context.Context
	ctx, a.cancel = context.WithCancelCause(t.Context())
	var err error
	a.r, err = a.g.Begin(ctx, Origin{ID: "r1", Session: "s1", Client: "test", Profile: "p", Reach: reach}, host{attended: true, stop: a.cancel})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := a.g.Call(ctx, a.r, c)
		a.done <- err
	}()
	synctest.Wait()
	return a
}

// question is the one that is open.
func (a *asking) question() approval.Request {
	a.Helper()
	synctest.Wait()
	all := a.g.Broker().Take("r1")
	if len(all) != 1 {
		a.Fatalf("%d questions are open, want 1; %v", len(all), a.book.events())
	}
	return all[0]
}

// answer brings a verdict to the open question.
func (a *asking) answer(v approval.Verdict) {
	a.Helper()
	q := a.question()
	if _, err := a.g.Settle(a.Context(), q.ID, q.Digest(), v); err != nil {
		a.Fatal(err)
	}
	synctest.Wait()
}

// sent checks that the call was sent, once.
func (a *asking) sent() {
	a.Helper()
	select {
	case err := <-a.done:
		if err != nil || len(a.caller.calls) != 1 {
			a.Errorf("ended with %v, sent %q", err, a.caller.calls)
		}
	default:
		a.Fatal("the call has not ended")
	}
}

// refused checks that the call was not sent, for a reason.
func (a *asking) refused(want approval.Reason) *approval.DeniedError {
	a.Helper()
	synctest.Wait()
	select {
	case err := <-a.done:
		var denied *approval.DeniedError
		if !errors.As(err, &denied) || denied.Reason != want {
			a.Fatalf("ended with %v, want %s", err, want)
		}
		if len(a.caller.calls) > 0 {
			a.Errorf("sent %q", a.caller.calls)
		}
		return denied
	default:
		a.Fatal("the call has not ended")
		return nil
	}
}

// replace lets policy be another from now on.
func (a *asking) replace(spec profiles.Spec) {
	a.Helper()
	a.g.Replace(newGate(a.T, spec, a.caller, a.book).View())
}

var (
	agreed   = approval.Verdict{Approve: true, Scope: approval.Once, By: "ann", Channel: "elicitation"}
	declined = approval.Verdict{Reason: approval.ElicitationDeclined, By: "ann", Channel: "elicitation", Text: "not \x1btoday"}
)

func TestAskedCall(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(a *asking)
		reason approval.Reason // empty: it was sent
		events string
	}{
		{"yes", func(a *asking) { a.answer(agreed) }, "", "run_started request answer verdict intent outcome:done"},
		{"no", func(a *asking) { a.answer(declined) }, approval.ElicitationDeclined, "run_started request answer verdict refusal:refused"},
		{"silence", func(a *asking) { time.Sleep(a.question().Decision.Timeout) }, approval.Timeout, "run_started request verdict refusal:refused"},
		{"nobody reached", func(a *asking) { a.answer(approval.Verdict{Reason: approval.NoApprover}) }, approval.NoApprover, "run_started request verdict refusal:refused"},
		{"the run is stopped", func(a *asking) { a.cancel(errors.New("pressed stop")) }, approval.Expired, "run_started request verdict refusal:refused"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
				row.answer(a)
				synctest.Wait()
				if row.reason == "" {
					a.sent()
				} else {
					a.refused(row.reason)
				}
				if got := a.book.events(); got != row.events {
					t.Errorf("recorded %s, want %s", got, row.events)
				}
			})
		})
	}
}

func TestVerdictIsRecordedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
		a.answer(declined)
		denied := a.refused(approval.ElicitationDeclined)
		if !strings.Contains(denied.Message, "not") || !strings.Contains(denied.Message, "fs__delete was not sent") {
			t.Errorf("told %q", denied.Message)
		}
		rec := a.book.records[2]
		want := []string{"ann", "elicitation", "no, elicitation_declined", `not \u{1B}today`}
		if diff := cmp.Diff(want, []string{rec.Approver, rec.Channel, rec.Answer, rec.Comment}); diff != "" {
			t.Errorf("recorded is another verdict (-want +got):\n%s", diff)
		}
	})
}

// The person who is asked reads which checks follow a yes, and which of them would
// refuse the call as it is.
func TestQuestionNamesTheChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(profiles.ProfileSpec{Asklist: []string{"fs__*"}, Rules: []profiles.RuleSpec{
			{Tools: []string{"fs__*"}, Check: []string{`args.path != "/"`, `args.path.startsWith("/home/")`}},
		}}), &book{}, ByElicitation, deletion)
		want := []string{`args.path != "/"`, `fails as of now: args.path.startsWith("/home/")`, "arguments", "tool unchanged", "policy unchanged"}
		if got := a.question().Checks; !slices.Equal(got, want) {
			t.Errorf("the checks are %q, want %q", got, want)
		}
		a.answer(agreed)
		a.refused(approval.Denied)
	})
}

// The person who is asked reads how many calls were made before: what was refused
// was not.
func TestQuestionCountsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
		for i, row := range []struct {
			answer approval.Verdict
			made   int
		}{{declined, 0}, {agreed, 0}, {agreed, 1}} {
			if i > 0 {
				go func() {
					_, err := a.g.Call(t.Context(), a.r, Call{Number: i + 1, Name: "fs__delete", Args: fmt.Appendf(nil, `{"path":"/tmp/%d"}`, i)})
					a.done <- err
				}()
			}
			if got := a.question().Done; got != row.made {
				t.Errorf("call %d: %d made before, want %d", i+1, got, row.made)
			}
			a.answer(row.answer)
			<-a.done
		}
	})
}

// A yes can be for as many calls as the run may make: its profile's number, or the gate's
// if that is lower.
func TestQuestionKnowsHowManyCallsThereMayBe(t *testing.T) {
	fifty := 50
	for most, want := range map[int]int{0: 50, 200: 50, 30: 30} {
		synctest.Test(t, func(t *testing.T) {
			a := ask(t, supervised(profiles.ProfileSpec{Asklist: asksFs.Asklist, Limits: &profiles.Limits{Calls: &fifty}}), &book{}, ByElicitation, deletion)
			a.g.mostCalls = most
			a.answer(declined)
			a.refused(approval.ElicitationDeclined)
			go func() {
				_, err := a.g.Call(t.Context(), a.r, Call{Number: 2, Name: "fs__delete", Args: []byte(`{"path":"/tmp/2"}`)})
				a.done <- err
			}()
			if got := a.question().MostCalls; got != want {
				t.Errorf("beside %d of the gate: %d, want %d", most, got, want)
			}
			a.answer(declined)
			<-a.done
		})
	}
}

// Who edits arguments so that the tool would not take them is told so, and the
// question stays open.
func TestEditedArgumentsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
		q := a.question()
		for _, args := range []string{`{"path":7}`, `{}`, `{"path":"x","pth":"y"}`} {
			_, err := a.g.Settle(t.Context(), q.ID, q.Digest(), approval.Verdict{Approve: true, Args: json.RawMessage(args), By: "ann", Channel: "page"})
			var refused *approval.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "do not fit the tool") {
				t.Errorf("%s: %v", args, err)
			}
		}
		a.answer(approval.Verdict{Approve: true, Args: json.RawMessage(`{"path":"/tmp/y"}`), By: "ann", Channel: "page"})
		a.sent()
		if !strings.Contains(a.caller.calls[0], "/tmp/y") {
			t.Errorf("sent %q", a.caller.calls)
		}
	})
}

// A script whose question came to nothing reads what was in the way.
func TestNobodyHasAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "and nobody could be reached. The same call may be made again: then a person is asked again",
		"a yes to this call needs a reason": "and nobody has: a yes to this call needs a reason. The same call may be made again: then a person is asked again",
	} {
		synctest.Test(t, func(t *testing.T) {
			a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
			a.answer(approval.Verdict{Reason: approval.NoApprover, Channel: "elicitation", Text: text})
			if got := a.refused(approval.NoApprover).Message; !strings.HasSuffix(got, want) {
				t.Errorf("it reads %q, want %q", got, want)
			}
		})
	}
}

// What the person was asked about, what was written down and what
// was sent have one digest.
func TestOneDigestFromQuestionToWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deletion
		c.Args = json.RawMessage(`{ "path": "\u002ftmp/\u0065", "n": 12345678901234567890 }`)
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, c)
		q := a.question()
		copy(c.Args, strings.Repeat(" ", len(c.Args))) // whatever becomes of the script's bytes
		a.answer(agreed)
		a.sent()
		_, wire, _ := strings.Cut(a.caller.calls[0], "|delete|")
		args, err := canon.Parse([]byte(wire))
		if err != nil || string(args.Bytes()) != wire {
			t.Fatalf("sent %s, %v", wire, err)
		}
		if got := q.Items[0].Key.Args; got != args.Digest() {
			t.Errorf("asked about %v, sent %v", got, args.Digest())
		}
		if prompt := wording.Describe(q, wording.DescribeOptions{}).Prompt(); !strings.Contains(prompt, "12345678901234567890") || !strings.Contains(prompt, "`\"/tmp/e\"`\n") {
			t.Errorf("the prompt is\n%s", prompt)
		}
		records := 0
		for _, rec := range a.book.records {
			if rec.Call == 1 {
				records++
				if rec.Digest != args.Digest().String() {
					t.Errorf("%s says %s, sent %v", rec.Event, rec.Digest, args.Digest())
				}
			}
		}
		if records != 5 {
			t.Errorf("%d records of the call: %s", records, a.book.events())
		}
	})
}

func TestToolThatChangedIsNotSent(t *testing.T) {
	for name, tools := range map[string][]catalog.Definition{
		"described otherwise": {{Name: "delete", Description: "deletes everything", Input: json.RawMessage(`{"type":"object"}`)}},
		"gone":                {{Name: "read", Input: json.RawMessage(`{"type":"object"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
				a.question()
				a.g.Replace(&View{Profiles: a.g.View().Profiles, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: tools}})})
				a.answer(agreed)
				a.refused(approval.Stale)
			})
		})
	}
	t.Run("another tool changed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
			a.question()
			view := newGate(t, supervised(asksFs), a.caller, a.book).View()
			var servers []catalog.Server
			fs := catalog.Server{Name: "fs"}
			for _, tool := range view.Catalog.Tools() {
				if tool.Server == "fs" {
					fs.Tools = append(fs.Tools, catalog.Definition{Name: tool.Name, Title: tool.Title, Description: tool.Description, Input: tool.Input, Annotations: tool.Annotations})
				}
			}
			servers = append(servers, fs, catalog.Server{Name: "new", Tools: fs.Tools})
			a.g.Replace(&View{Profiles: view.Profiles, Catalog: catalog.Build(servers)})
			a.answer(agreed)
			a.sent()
		})
	})
}

// A yes holds unless policy has become stricter about this call.
func TestPolicyThatChangedBetweenQuestionAndYes(t *testing.T) {
	critical, high, low := "critical", "high", "low"
	with := func(r profiles.RuleSpec) profiles.ProfileSpec {
		r.Tools = []string{"fs__delete"}
		return profiles.ProfileSpec{Asklist: []string{"fs__*"}, Rules: []profiles.RuleSpec{r}}
	}
	reasoned, unreasoned := true, false
	for _, row := range []struct {
		name   string
		now    profiles.Spec
		asked  int             // how often in all
		reason approval.Reason // empty: it was sent
	}{
		{"stays as it was", supervised(asksFs), 1, ""},
		{"denies now", supervised(profiles.ProfileSpec{Denylist: []string{"fs__*"}}), 1, approval.Denied},
		{"lists other tools only now", supervised(profiles.ProfileSpec{Allowlist: []string{"mail__*"}}), 1, approval.Denied},
		{"has no such profile any more", profiles.Spec{}, 1, approval.PolicyError},
		{"calls it critical now", supervised(with(profiles.RuleSpec{Risk: &critical})), 2, ""},
		{"calls it critical now, and wants no reason", supervised(with(profiles.RuleSpec{Risk: &critical, RequireReason: &unreasoned})), 2, ""},
		{"wants a reason now", supervised(with(profiles.RuleSpec{Risk: &high, RequireReason: &reasoned})), 2, ""},
		{"allows it now", supervised(profiles.ProfileSpec{}), 1, ""},
		{"calls it low now", supervised(with(profiles.RuleSpec{Risk: &low})), 1, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
				a.question()
				a.replace(row.now)
				reasoned := agreed
				reasoned.Text = "ticket 7"
				for range row.asked {
					time.Sleep(2 * time.Second) // as long as a critical call is to be read
					a.answer(reasoned)
				}
				if row.reason != "" {
					a.refused(row.reason)
				} else {
					a.sent()
				}
				if got := strings.Count(a.book.events(), "request"); got != row.asked {
					t.Errorf("asked %d times, want %d: %s", got, row.asked, a.book.events())
				}
				if left := a.g.Broker().Waiting("r1"); left != 0 {
					t.Errorf("%d calls still wait", left)
				}
			})
		})
	}
}

// What takes a stronger channel by now cannot be agreed to at the client, by
// the yes that was under way or by another.
func TestCallThatBecameManualIsNotSent(t *testing.T) {
	manual, two := "manual", 2
	for name, rule := range map[string]profiles.RuleSpec{
		"manual": {Action: &manual},
		"quorum": {Quorum: &profiles.QuorumSpec{Need: &two}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
				a.question()
				rule.Tools = []string{"fs__delete"}
				a.replace(supervised(profiles.ProfileSpec{Asklist: []string{"fs__*"}, Rules: []profiles.RuleSpec{rule}}))
				a.answer(agreed)
				for _, q := range a.g.Broker().Take("r1") {
					if _, err := a.g.Settle(t.Context(), q.ID, q.Digest(), agreed); err == nil {
						t.Error("a yes at the client was accepted")
					}
					if _, err := a.g.Settle(t.Context(), q.ID, q.Digest(), approval.Verdict{Reason: approval.NoApprover}); err != nil {
						t.Error(err)
					}
				}
				a.refused(approval.NoApprover)
			})
		})
	}
}

// Loosening while a person is asked changes nothing about a no.
func TestLooserPolicyDoesNotTurnANo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
		a.question()
		a.replace(supervised(profiles.ProfileSpec{}))
		a.answer(declined)
		a.refused(approval.ElicitationDeclined)
	})
}

func TestAskedCallThatCannotBeRecordedIsNotSent(t *testing.T) {
	for _, event := range []ledger.Event{ledger.Asked, ledger.Verdict, ledger.Intent} {
		t.Run(string(event), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := ask(t, supervised(asksFs), &book{refuse: event}, ByElicitation, deletion)
				if event == ledger.Asked {
					if n := len(a.g.Broker().Take("r1")); n > 0 {
						t.Errorf("%d questions were put without a record", n)
					}
				} else {
					a.answer(agreed)
				}
				if denied := a.refused(approval.AuditUnavailable); denied.Err == nil || !denied.Retryable() {
					t.Errorf("got %+v", denied)
				}
			})
		})
	}
	t.Run("of a fallback", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			allow := "allow"
			p := asksFs
			p.ElicitationFallback = &allow
			a := ask(t, supervised(p), &book{refuse: ledger.Verdict}, NoElicitation, deletion)
			a.refused(approval.AuditUnavailable)
		})
	})
}

// Only a client that declared no elicitation is let through, and only where
// the profile says so.
func TestFallback(t *testing.T) {
	critical, manual, two := "critical", "manual", 2
	rules := func(r profiles.RuleSpec) []profiles.RuleSpec {
		r.Tools = []string{"fs__delete"}
		return []profiles.RuleSpec{r}
	}
	for _, row := range []struct {
		name, fallback string
		rules          []profiles.RuleSpec
		reach          Reach
		reason         approval.Reason // empty: it was sent
	}{
		{"unset", "", nil, NoElicitation, approval.ElicitationUnsupported},
		{"deny", "deny", nil, NoElicitation, approval.ElicitationUnsupported},
		{"allow", "allow", nil, NoElicitation, ""},
		{"queue", "queue", nil, NoElicitation, approval.NoApprover},
		{"allow, in a pipeline", "allow", nil, Nobody, approval.NoApprover},
		{"deny, in a pipeline", "deny", nil, Nobody, approval.NoApprover},
		{"allow, a critical call", "allow", rules(profiles.RuleSpec{Risk: &critical}), NoElicitation, approval.ElicitationUnsupported},
		{"allow, a manual call", "allow", rules(profiles.RuleSpec{Action: &manual}), NoElicitation, approval.NoApprover},
		{"a manual call where a person can be asked", "", rules(profiles.RuleSpec{Action: &manual}), ByElicitation, approval.NoApprover},
		{"a call for a quorum where a person can be asked", "", rules(profiles.RuleSpec{Quorum: &profiles.QuorumSpec{Need: &two, Of: []string{"a", "b"}}}), ByElicitation, approval.NoApprover},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := asksFs
				p.Rules = row.rules
				if row.fallback != "" {
					p.ElicitationFallback = &row.fallback
				}
				a := ask(t, supervised(p), &book{}, row.reach, deletion)
				if n := a.g.Broker().Waiting("r1"); n > 0 {
					t.Errorf("%d calls wait for a person", n)
				}
				if row.reason != "" {
					a.refused(row.reason)
					return
				}
				a.sent()
				i := slices.IndexFunc(a.book.records, func(r ledger.Record) bool { return r.Event == ledger.Verdict })
				if i < 0 {
					t.Fatalf("recorded %s", a.book.events())
				}
				rec := a.book.records[i]
				if diff := cmp.Diff([]string{"fallback", "yes, by fallback", ""}, []string{rec.Channel, rec.Answer, rec.Approver}); diff != "" {
					t.Errorf("recorded is another verdict (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Approvers change nothing for a client that cannot be asked, unless the profile
// queues or nobody else may answer.
func TestFallbackBesideApprovers(t *testing.T) {
	manual := "manual"
	for _, row := range []struct {
		fallback string
		reach    Reach
		action   *string
		reason   approval.Reason // empty: it was sent
		waits    bool
	}{
		{"deny", NoElicitation, nil, approval.ElicitationUnsupported, false},
		{"allow", NoElicitation, nil, "", false},
		{"queue", NoElicitation, nil, "", true},
		{"deny", ByAddress, nil, approval.ElicitationUnsupported, false},
		{"allow", ByAddress, nil, approval.ElicitationUnsupported, false},
		{"queue", ByAddress, nil, "", true},
		{"deny", NoElicitation, &manual, "", true},
		{"allow", NoElicitation, &manual, "", true},
	} {
		t.Run(fmt.Sprint(row.fallback, row.reach, row.action != nil), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := asksFs
				p.ElicitationFallback = &row.fallback
				if row.action != nil {
					p.Rules = []profiles.RuleSpec{{Tools: []string{"fs__delete"}, Action: row.action}}
				}
				caller, b := &fakeCaller{reply: okReply}, &book{}
				g := newGate(t, supervised(p), caller, b)
				g.approvers, g.settler.Approvers = yesThereAre, yesThereAre
				a := askAt(t, g, caller, b, row.reach, deletion)
				if waits := a.g.Broker().Waiting("r1") > 0; waits != row.waits {
					t.Fatalf("waits for approvers: %v", waits)
				}
				if row.waits {
					a.answer(approval.Verdict{Approve: true, By: "ann", Channel: "page", Strong: true, Typed: "delete"})
				}
				if row.reason != "" {
					a.refused(row.reason)
				} else {
					a.sent()
				}
			})
		})
	}
}

func yesThereAre() bool { return true }

// That nobody answers at the client ends a question, unless it is approvers' then.
func TestNobodyAtTheClientBesideApprovers(t *testing.T) {
	for fallback, waits := range map[string]bool{"deny": false, "allow": false, "queue": true} {
		t.Run(fallback, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := asksFs
				p.ElicitationFallback = &fallback
				caller, b := &fakeCaller{reply: okReply}, &book{}
				g := newGate(t, supervised(p), caller, b)
				g.approvers, g.settler.Approvers = yesThereAre, yesThereAre
				a := askAt(t, g, caller, b, ByElicitation, deletion)
				a.answer(approval.Verdict{Reason: approval.NoApprover, Channel: "elicitation", Text: "the question was dismissed"})
				synctest.Wait()
				if left := a.g.Broker().Waiting("r1") > 0; left != waits {
					t.Errorf("waits for approvers: %v", left)
				}
				if waits {
					a.answer(approval.Verdict{Approve: true, By: "ann", Channel: "page", Strong: true})
					a.sent()
				} else {
					a.refused(approval.NoApprover)
				}
			})
		})
	}
}

// Silence ends a run that no client holds any more, rather than letting it go
// on alone.
func TestSilenceEndsARunThatNobodyHolds(t *testing.T) {
	for attached, want := range map[bool]approval.Reason{true: approval.Timeout, false: approval.Expired} {
		synctest.Test(t, func(t *testing.T) {
			caller := &fakeCaller{reply: okReply}
			g := newGate(t, supervised(asksFs), caller, &book{})
			var stopped error
			r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Profile: "p", Reach: ByElicitation},
				host{attended: attached, stop: func(err error) { stopped = err }})
			if err != nil {
				t.Fatal(err)
			}
			_, err = g.Call(t.Context(), r, deletion) // nobody answers, so this takes as long as people have
			var denied *approval.DeniedError
			if !errors.As(err, &denied) || denied.Reason != want || (stopped == nil) != attached || len(caller.calls) > 0 {
				t.Errorf("attached %v: got %v, stopped with %v, sent %q", attached, err, stopped, caller.calls)
			}
		})
	}
}

// Bad arguments are refused before a person is asked in vain.
func TestNobodyIsAskedAboutArgumentsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deletion
		c.Args = json.RawMessage(`{"path":7}`)
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, c)
		var wrong *ArgumentError
		if err := <-a.done; !errors.As(err, &wrong) || strings.Contains(a.book.events(), "asked") {
			t.Errorf("got %v, recorded %s", err, a.book.events())
		}
	})
}

// A run that asks and asks in vain is stopped, with the reason.
func TestFloodStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, b := &fakeCaller{reply: okReply}, &book{}
		g := newGate(t, supervised(asksFs), caller, b)
		var stopped error
		r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Profile: "p", Reach: ByElicitation}, host{attended: true, stop: func(err error) { stopped = err }})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 51 {
			if stopped != nil {
				t.Fatalf("stopped after %d refusals", i)
			}
			done := make(chan error, 1)
			go func() {
				_, err := g.Call(t.Context(), r, deletion)
				done <- err
			}()
			synctest.Wait()
			for _, q := range g.Broker().Take("r1") {
				if _, err := g.Settle(t.Context(), q.ID, q.Digest(), declined); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err == nil {
				t.Fatal("a call went through")
			}
		}
		if !errors.Is(stopped, approval.ErrFlood) || len(caller.calls) > 0 {
			t.Errorf("stopped with %v, sent %q", stopped, caller.calls)
		}
	})
}

// A grant is recorded as what it is, and does not outlive the tool. It is used with the
// intent of the call that it allows.
func TestGrantInTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		low, remember := "low", true
		spec := supervised(profiles.ProfileSpec{Asklist: []string{"fs__*"}, Rules: []profiles.RuleSpec{{Tools: []string{"fs__delete"}, Risk: &low, Remember: &remember}}})
		a := ask(t, spec, &book{}, ByElicitation, deletion)
		q := a.question()
		if !q.Decision.Remember {
			t.Fatalf("policy does not remember risk %v", q.Decision.Risk)
		}
		a.answer(approval.Verdict{Approve: true, Scope: approval.RunScope, Count: 3, By: "ann", Channel: "elicitation"})
		a.sent()
		again := deletion
		again.Number = 2
		if _, err := a.g.Call(t.Context(), a.r, again); err != nil {
			t.Fatal(err)
		}
		grants, err := a.g.Broker().Grants(t.Context())
		if err != nil || len(grants) != 1 || grants[0].Left != 1 || grants[0].Covers != "delete with path /tmp/x; nothing may differ" {
			t.Fatalf("the grants are %+v, %v", grants, err)
		}
		for _, rec := range a.book.records {
			if used := rec.GrantUses > 0; used != (rec.Event == ledger.Intent && rec.Call == 2) || used && (rec.Grant != grants[0].ID || rec.GrantUses != 2) {
				t.Errorf("recorded %+v", rec)
			}
		}
		i := slices.IndexFunc(a.book.records, func(r ledger.Record) bool { return r.Call == 2 && r.Event == ledger.Verdict })
		if i < 0 || a.book.records[i].Channel != "grant" || a.book.records[i].Approver != "ann" {
			t.Errorf("recorded %+v", a.book.records)
		}
		if slices.ContainsFunc(a.book.records, func(r ledger.Record) bool { return r.Call == 2 && r.Event == ledger.Asked }) {
			t.Error("a question is recorded that was put to nobody")
		}
		a.g.Replace(&View{Profiles: a.g.View().Profiles, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{
			{Name: "delete", Description: "deletes everything", Input: json.RawMessage(`{"type":"object"}`)}}}})})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		again.Number = 3
		go a.g.Call(ctx, a.r, again)
		a.question()
		cancel()
		synctest.Wait()
	})
}

// A use that does not count, because its record is refused, is asked about after all;
// one whose call is not sent is given back.
func TestUseThatDoesNotCount(t *testing.T) {
	spec := supervised(profiles.ProfileSpec{Asklist: []string{"fs__*"}, Rules: []profiles.RuleSpec{{Tools: []string{"fs__delete"}, Risk: new("low"), Remember: new(true)}}})
	for name, row := range map[string]struct {
		refuse error
		asked  bool
		left   int
	}{
		"used up":         {ledger.ErrUsedUp, true, 0},
		"not written":     {errors.New("the disk is full"), false, 2},
		"written as ever": {nil, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := ask(t, spec, &book{}, ByElicitation, deletion)
				a.answer(approval.Verdict{Approve: true, Scope: approval.RunScope, Count: 3, By: "ann", Channel: "elicitation"})
				a.sent()
				a.book.uses = row.refuse
				again := deletion
				again.Number = 2
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := a.g.Call(ctx, a.r, again)
					ended <- err
				}()
				synctest.Wait()
				if asked := len(a.g.Broker().Take(a.r.ID)) == 1; asked != row.asked {
					t.Errorf("asked: %v", asked)
				}
				if !row.asked {
					if err := <-ended; (err == nil) != (row.refuse == nil) {
						t.Errorf("it ended with %v", err)
					}
				}
				left := 0
				grants, err := a.g.Broker().Grants(t.Context())
				for _, g := range grants {
					left += g.Left
				}
				if left != row.left || err != nil {
					t.Errorf("%d uses are left, want %d; %v", left, row.left, err)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
