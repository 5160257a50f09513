package gate

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"
)

// The records, the request and the model are told of an edited call
// what was asked about, what was sent, and who wrote it, with both digests and
// no secret.
func TestEditedArgumentsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
		q := a.question()
		secret := "ghp_" + strings.Repeat("aB3d", 9)
		wrote := `{"path":"/tmp/` + secret + `"}`
		a.answer(approval.Verdict{Approve: true, Args: json.RawMessage(wrote), By: "ann", Channel: "page"})
		a.sent()
		args, err := canon.Parse([]byte(wrote))
		if err != nil || !strings.Contains(a.caller.calls[0], secret) {
			t.Fatalf("sent %q, %v", a.caller.calls, err)
		}
		asked, sent := q.Items[0].Key.Args.String(), args.Digest().String()

		seen := map[ledger.Event]bool{}
		for _, rec := range a.book.records {
			seen[rec.Event] = true
			switch rec.Event {
			case ledger.Answered, ledger.Verdict:
				if diff := cmp.Diff([]string{asked, sent, ""}, []string{rec.Digest, rec.EditedDigest, rec.EditedBy}); diff != "" {
					t.Errorf("%s says something else (-want +got):\n%s", rec.Event, diff)
				}
				if !strings.Contains(string(rec.EditedArgs), "[hidden") {
					t.Errorf("%s is edited to %s", rec.Event, rec.EditedArgs)
				}
				if rec.Event == ledger.Verdict && string(rec.Args) != `{"path":"/tmp/x"}` {
					t.Errorf("the verdict is on %s", rec.Args)
				}
			case ledger.Intent:
				if rec.Digest != sent || rec.EditedBy != "ann" || !strings.Contains(string(rec.Detail), asked) {
					t.Errorf("the intent is %+v", rec)
				}
			case ledger.Outcome:
				if rec.Digest != sent || rec.EditedBy != "ann" {
					t.Errorf("the outcome is %+v", rec)
				}
			}
		}
		if !seen[ledger.Answered] || !seen[ledger.Verdict] || !seen[ledger.Outcome] {
			t.Errorf("recorded %s", a.book.events())
		}

		effects := a.r.Effects()
		if len(effects) != 1 || effects[0].Edited == nil || effects[0].Edited.By != "ann" || string(effects[0].Edited.From) != `{"path":"/tmp/x"}` {
			t.Fatalf("the effects are %+v", effects)
		}
		kept, err := a.g.Broker().Requests(t.Context(), approval.Filter{ID: q.ID})
		if err != nil || len(kept) != 1 {
			t.Fatal(kept, err)
		}
		edited := wording.Edited(&kept[0])
		want := &wording.EditedCall{By: "ann", Call: 1, Asked: q.Items[0].Key.Args, Digest: sent, Hidden: 1}
		if diff := cmp.Diff(want, edited, cmpopts.IgnoreFields(wording.EditedCall{}, "Args", "Fields")); diff != "" {
			t.Errorf("the request has (-want +got)\n%s", diff)
		}
		if kept[0].Verdict.Args != nil {
			t.Errorf("the request still has %s", kept[0].Verdict.Args)
		}
		all, err := json.Marshal([]any{a.book.records, effects, kept})
		if err != nil || strings.Contains(string(all), secret) {
			t.Errorf("the secret is in %s, %v", all, err)
		}
	})
}

// A model is not told of a secret of the configuration that somebody wrote.
func TestEditedArgumentsAreConcealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, deletion)
		a.g.conceal = func(text string) string { return strings.ReplaceAll(text, "swordfish", "[hidden]") }
		a.question()
		a.answer(approval.Verdict{Approve: true, Args: json.RawMessage(`{"path":"/swordfish/x"}`), By: "ann", Channel: "page"})
		a.sent()
		if effects := a.r.Effects(); len(effects) != 1 || string(effects[0].Edited.To) != `{"path":"/[hidden]/x"}` {
			t.Errorf("the model is told %+v", effects)
		}
	})
}

// What a rule hides of the arguments that somebody writes is hidden, also where it
// matches them alone, and not those that were asked about.
func TestEditedArgumentsAreHidden(t *testing.T) {
	policy := asksFs
	policy.Rules = []profiles.RuleSpec{{Tools: []string{"fs__*"}, When: &profiles.When{Expr: `args.path == "/etc/pin"`}, Hidden: profiles.Hidden{"path": ""}}}
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(policy), &book{}, ByElicitation, deletion)
		q := a.question()
		a.answer(approval.Verdict{Approve: true, Args: json.RawMessage(`{"path":"/etc/pin"}`), By: "ann", Channel: "page"})
		a.sent()
		kept, err := a.g.Broker().Requests(t.Context(), approval.Filter{ID: q.ID})
		if err != nil || len(kept) != 1 || wording.Edited(&kept[0]) == nil {
			t.Fatal(kept, err)
		}
		for what, told := range map[string]any{"the records": a.book.records, "the model": a.r.Effects(), "the request": kept, "the approvers": wording.Edited(&kept[0])} {
			text, err := json.Marshal(told)
			if err != nil || strings.Contains(string(text), "/etc/pin") || !strings.Contains(string(text), "[hidden") {
				t.Errorf("%s have %s, %v", what, text, err)
			}
		}
	})
}

// A call whose arguments somebody edited so that more is wanted is asked about
// again, and says whose they are.
func TestEditedArgumentsAreAskedAbout(t *testing.T) {
	risky := profiles.ProfileSpec{Asklist: []string{"fs__*"}, Rules: []profiles.RuleSpec{
		{Tools: []string{"fs__*"}, When: &profiles.When{Expr: `args.path == "/etc"`}, Risk: new("critical")},
		{Tools: []string{"fs__*"}, Risk: new("high")},
	}}
	synctest.Test(t, func(t *testing.T) {
		a := ask(t, supervised(risky), &book{}, ByElicitation, deletion)
		a.answer(approval.Verdict{Approve: true, Args: json.RawMessage(`{"path":"/etc"}`), By: "ann", Channel: "page"})
		again := a.question()
		if got := strings.Join(again.Items[0].Sources, "; "); !strings.Contains(got, "ann has edited the arguments") {
			t.Errorf("the second question says %q", got)
		}
		a.answer(approval.Verdict{Reason: approval.Declined, By: "bob", Channel: "page"})
		a.refused(approval.Declined)
		effects := a.r.Effects()
		if len(effects) != 1 || effects[0].State != ledger.Refused || effects[0].Edited == nil || string(effects[0].Edited.To) != `{"path":"/etc"}` {
			t.Errorf("the effects are %+v", effects)
		}
	})
}
