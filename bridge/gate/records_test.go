package gate

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A secret that is written everywhere a script can write one.
const secretToken = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"

func TestRecordsHideSecretsAndTellEqualOnesApart(t *testing.T) {
	caller, b := &fakeCaller{reply: `{"isError":true,"content":[{"type":"text","text":"bad token: ` + secretToken + `"}]}`}, &book{}
	g := newGate(t, profiles.Spec{}, caller, b)
	g.prints = []byte("key")
	r, err := g.Begin(t.Context(), Origin{ID: "r1", Script: "codemode.mail__send({token: \"" + secretToken + "\"})", Input: json.RawMessage(`{"token":"` + secretToken + `"}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := analysis.Report{Calls: []analysis.CallSite{
		{Name: "mail__send", Args: `{"token":"` + secretToken + `"}`},
		{Name: secretToken, Args: `["--password","` + secretToken + `"]`},
		{Name: "mail__send", Args: `undefined ` + secretToken},
	}}
	if err := r.Preview(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if report.Calls[0].Args == "" || !strings.Contains(report.Calls[0].Args, secretToken) {
		t.Error("the report that was given was changed")
	}
	if _, err := g.Call(t.Context(), r, Call{Number: 1, Name: "mail__send", Args: json.RawMessage(`{"token":"` + secretToken + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Call(t.Context(), r, Call{Number: 2, Name: secretToken}); err == nil {
		t.Error("there is a tool with the secret's name")
	}
	if err := r.End(t.Context(), "failed", "it said "+secretToken, Entries{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Effects() {
		if strings.Contains(e.Tool, secretToken) {
			t.Errorf("the secret is among the effects: %+v", e)
		}
	}
	for _, site := range r.preview.Calls {
		if strings.Contains(site.Name+site.Args, secretToken) {
			t.Errorf("the secret is in the preview that persons are shown: %+v", site)
		}
	}
	text, err := json.Marshal(b.records)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secretToken) {
		t.Errorf("the secret is in %s", text)
	}
	// script, input, two literals, a name, arguments, the tool's error, the name and
	// the refusal of a tool that there is none of, the run's error
	if n := strings.Count(string(text), canon.Fingerprint([]byte("key"), secretToken)); n != 10 {
		t.Errorf("its fingerprint is there %d times in %s", n, text)
	}
}

// What a rule hides is hidden in the preview too, where nothing is decided yet.
func TestPreviewHidesWhatRulesHide(t *testing.T) {
	b := &book{}
	g := newGate(t, supervised(profiles.ProfileSpec{Rules: []profiles.RuleSpec{
		{Tools: []string{"mail__*"}, When: &profiles.When{Expr: "run.calls > 5"}, Action: new("ask"), Hidden: profiles.Hidden{"ssn": "<number>", "pin": ""}},
	}}), &fakeCaller{reply: okReply}, b)
	r := begin(t, g, "p")
	report := analysis.Report{Calls: []analysis.CallSite{{Name: "mail__send", Args: `{"a":{"ssn":"123-45-6789"},"pin":4711,"to":"bob"}`}}}
	if err := r.Preview(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	const want = `{"a":{"ssn":"<number>"},"pin":"[hidden]","to":"bob"}`
	if got := r.preview.Calls[0].Args; got != want {
		t.Errorf("persons are shown %s", got)
	}
	if got := string(b.records[len(b.records)-1].Preview); strings.Contains(got, "6789") || strings.Contains(got, "4711") || !strings.Contains(got, "bob") {
		t.Errorf("recorded is %s", got)
	}
}

func TestRecordsNameTheProfileThatBindsEval(t *testing.T) {
	b := &book{}
	spec := supervised(profiles.ProfileSpec{})
	spec.DefaultProfile = new("p")
	g := newGate(t, spec, &fakeCaller{reply: okReply}, b)
	begin(t, g, "")
	if got := b.records[0].Profile; got != "p" {
		t.Errorf("the run's profile is recorded as %q", got)
	}
}

// A withholding host lets records wait.
type withholding struct{ Unattended }

func (withholding) Withholds() bool { return true }

// The outcome of a call waits for the next record, unless the call leads to a place where
// other runs act.
func TestPlacesAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		g, _, b := meantGate(t, ws)
		r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Profile: "p", Reach: ByElicitation, Surroundings: Surroundings{Workspace: inWorkspace(t, ws)}}, withholding{})
		if err != nil {
			t.Fatal(err)
		}
		run := &meantRun{T: t, g: g, r: r}
		outcomes := func() (n int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, rec := range b.records {
				if rec.Event == ledger.Outcome {
					n++
				}
			}
			return n
		}
		run.asks(true, "s__open", `{"url":"https://example.com"}`)
		if n := outcomes(); n != 1 {
			t.Errorf("a page is open, and %d outcomes are recorded", n)
		}
		run.asks(false, "s__click", `{"target":"Buy"}`)
		if n := outcomes(); n != 1 {
			t.Errorf("a call that leads nowhere is recorded at once: %d outcomes", n)
		}
		if err := r.Flush(t.Context()); err != nil || outcomes() != 2 {
			t.Errorf("%d outcomes are recorded, %v", outcomes(), err)
		}
	})
}
