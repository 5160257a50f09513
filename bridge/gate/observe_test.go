package gate

import (
	"slices"
	"testing"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// intent is the record of the first call of a tool that was sent.
func intent(t *testing.T, b *book, tool string) ledger.Record {
	t.Helper()
	i := slices.IndexFunc(b.records, func(r ledger.Record) bool { return r.Event == ledger.Intent && r.Tool == tool })
	if i < 0 {
		t.Fatalf("no call of %s was sent", tool)
	}
	return b.records[i]
}

// A flow that is only observed has its facts gathered and is recorded; the call is sent.
func TestObservedFlow(t *testing.T) {
	for _, by := range []string{"content", "context"} {
		b := &book{}
		f := aFlow("deny", by)
		f.Observe = new(true)
		g := flowing(t, f, b)
		r := begin(t, g, "p")
		if err := callTo(t, g, r, 1, "fs__read", map[string]any{"path": "salaries.md"}); err != nil {
			t.Fatal(err)
		}
		if err := callTo(t, g, r, 2, "mail__send", sends("FYI: "+salary)); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"content": "would deny: flows/0: private: 53 characters of fs__read salaries.md, line 2, go to mail__send [profile p]",
			"context": "would deny: flows/0: private: fs__read was read before, and mail__send is external [profile p]"}[by]
		if rec := intent(t, b, "send"); rec.Disposition != "allow" || rec.Would != "deny" || !slices.Contains(rec.Reasons, want) {
			t.Errorf("by %s: %s, would %q: %q", by, rec.Disposition, rec.Would, rec.Reasons)
		}
		if read := intent(t, b, "read"); read.Would != "" {
			t.Errorf("by %s: what was read would %s", by, read.Would)
		}
	}
}

// A run judges by the policy that it began with and by today's: what only one of them
// observes and the other enforces counts.
func TestObservedThenEnforced(t *testing.T) {
	b := &book{}
	rule := profiles.RuleSpec{Name: new("no"), Tools: []string{"fs__*"}, Action: new("deny"), Observe: new(true)}
	g := newGate(t, supervised(profiles.ProfileSpec{Rules: []profiles.RuleSpec{rule}}), &fakeCaller{reply: okReply}, b)
	r := begin(t, g, "p")
	if err := callTo(t, g, r, 1, "fs__read", map[string]any{"path": "a"}); err != nil {
		t.Fatal(err)
	}
	rule.Observe = nil
	next := *g.View()
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Rules: []profiles.RuleSpec{rule}}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	next.Profiles = set
	g.Replace(&next)
	if err := callTo(t, g, r, 2, "fs__read", map[string]any{"path": "a"}); err == nil {
		t.Error("the call passed")
	}
	last := b.records[len(b.records)-1]
	if last.Would != "" || last.Disposition != "deny" || intent(t, b, "read").Would != "deny" {
		t.Errorf("%s, would %q; before, would %q", last.Disposition, last.Would, intent(t, b, "read").Would)
	}
}
