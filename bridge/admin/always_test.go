package admin

import (
	"fmt"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// Whoever may edit the configuration sees what would always allow a call, and can have
// it written: the call is then allowed, and others like it in that run.
func TestAlways(t *testing.T) {
	b := newBench(t)
	cover := approval.Cover{Kind: "send", Bound: []approval.Bound{{Param: "to", Kind: approval.ToRecipient, Value: "finance@acme-corp.co"}}, Free: []string{"body"}}
	rule := &profiles.RuleSpec{Name: new("always-1"), Tools: []string{"mail__send"}, Action: new("allow")}
	e, verdicts := b.ask(question{decision: rememberable, always: rule, cover: cover})
	body := func(revision string) string { return fmt.Sprintf(`{"digest":%q,"revision":%q}`, e.Digest(), revision) }
	post := func(who, body string) response { return b.as(who).do("POST", "/api/always/"+e.ID, body) }

	if _, ok := b.as("bob").shown(e.ID)["always"]; ok {
		t.Error("a rule is proposed to somebody who may not write it")
	}
	shown, ok := b.as("ada").shown(e.ID)["always"].(map[string]any)
	if !ok || shown["profile"] != "supervised" || shown["revision"] != "one" || fmt.Sprint(shown["diff"]) != "[+ always-1]" {
		t.Fatalf("proposed: %v", shown)
	}
	b.atPage("ada").do("GET", "/r/"+e.ID, "").want(200).says("Always, in this project", "&#43; always-1", `data-revision="one"`)

	post("bob", body("one")).refused(403, "role")
	post("ada", body("zero")).refused(409, "changed")
	post("ada", `{"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","revision":"one"}`).refused(409, "changed")
	post("ada", `{"revision":"one"}`).refused(422, "invalid")
	if b.policy.saved != 0 || len(b.recorded(ledger.ConfigChanged)) > 0 {
		t.Fatal("what was refused was written")
	}
	post("ada", body("one")).want(200)
	if v := <-verdicts; !v.Approve || v.Scope != approval.RunScope || v.By != "ada" {
		t.Errorf("the call: %+v", v)
	}
	if b.policy.saved != 1 || b.policy.text != `{"with":"always-1"}` {
		t.Errorf("written %d times: %s", b.policy.saved, b.policy.text)
	}
	if rec := b.recorded(ledger.ConfigChanged); len(rec) != 1 || rec[0].Approver != "ada" {
		t.Errorf("recorded %+v", rec)
	}
	post("ada", body("one+")).refused(422, "invalid")
}

// No rule is written for a yes that could not count.
func TestAlwaysNeedsAYesThatCounts(t *testing.T) {
	b := newBench(t)
	needsReason := rememberable
	needsReason.RequireReason = true
	e, _ := b.ask(question{decision: needsReason, always: &profiles.RuleSpec{Name: new("always-1"), Action: new("allow")}})
	b.as("ada").do("POST", "/api/always/"+e.ID, fmt.Sprintf(`{"digest":%q,"revision":"one"}`, e.Digest())).refused(422, "invalid")
	if b.policy.saved != 0 || len(b.recorded(ledger.ConfigChanged)) > 0 {
		t.Error("the rule was written")
	}
}

// Where nothing can be written, the question is as any other.
func TestAlwaysIsNotProposed(t *testing.T) {
	b := newBench(t)
	rule := func(name string) *profiles.RuleSpec { return &profiles.RuleSpec{Name: new(name), Action: new("allow")} }
	e, _ := b.ask(question{decision: rememberable})
	if _, ok := b.as("ada").shown(e.ID)["always"]; ok {
		t.Error("a rule is proposed that there is not")
	}
	b.as("ada").do("POST", "/api/always/"+e.ID, fmt.Sprintf(`{"digest":%q,"revision":"one"}`, e.Digest())).refused(422, "invalid")
	for _, items := range [][]approval.Item{{{Always: rule("a")}, {Always: rule("b")}}, {{Always: rule("a")}, {}}, {{Always: &profiles.RuleSpec{}}}} {
		if got := (approval.Request{Items: items}).Proposed(); got != nil {
			t.Errorf("%+v propose %+v", items, got)
		}
	}
}
