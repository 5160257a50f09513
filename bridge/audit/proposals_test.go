package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
)

// A rule is proposed where it would have spared questions and nothing speaks against it.
func TestProposals(t *testing.T) {
	const byDefault = "the profile asks by default [profile work]"
	asks := func(n int, tool, risk, answer string, reasons ...string) (all []ledger.Record) {
		for i := range n {
			records := asked(i, tool, fmt.Sprintf(`{"path":"/home/me/notes/%d"}`, i), answer, "page", time.Second, reasons...)
			for j := range records {
				records[j].Risk = risk
			}
			all = append(all, records...)
		}
		return all
	}
	nothing := func(string, string) Meaning { return Meaning{} }
	does := func(effects ...string) func(string, string) Meaning {
		return func(server, tool string) Meaning {
			if server != "fs" {
				t.Errorf("asked of %s__%s", server, tool)
			}
			return Meaning{Effects: effects, Where: "workspace"}
		}
	}
	for _, row := range []struct {
		says    string
		records []ledger.Record
		known   func(server, tool string) Meaning
		want    bool
	}{
		{"a tool that writes", asks(6, "edit", "medium", "yes, once", byDefault), does("write"), true},
		{"one that reads and writes", asks(6, "edit", "low", "yes, once", byDefault), does("read", "write"), true},
		{"one that nobody knows", asks(6, "edit", "medium", "yes, once", byDefault), nothing, true},
		{"too few answers", asks(4, "edit", "medium", "yes, once", byDefault), does("write"), false},
		{"a no", append(asks(12, "edit", "medium", "yes, once", byDefault), asks(1, "edit", "medium", "no, declined", byDefault)...), does("write"), false},
		{"an asklist", asks(6, "edit", "medium", "yes, once"), does("write"), false},
		{"a rule that asks", asks(6, "edit", "medium", "yes, once", "rule careful (ask) [profile work]"), does("write"), false},
		{"high risk", asks(6, "edit", "high", "yes, once", byDefault), does("write"), false},
		{"a tool that sends", asks(6, "edit", "medium", "yes, once", byDefault), does("write", "send"), false},
		{"one that deletes", asks(6, "edit", "medium", "yes, once", byDefault), does("delete"), false},
		{"one that runs code", asks(6, "edit", "medium", "yes, once", byDefault), does("execute"), false},
		{"one that spends", asks(6, "edit", "medium", "yes, once", byDefault), does("spend"), false},
		{"a name that says it sends", asks(6, "reply_all", "medium", "yes, once", byDefault), nothing, false},
		{"a name that says it pays", asks(6, "bookFlight", "medium", "yes, once", byDefault), nothing, false},
	} {
		got := measure(t, row.records).Proposals(row.known)
		if len(got) > 0 != row.want {
			t.Errorf("%s: proposed %v, want %v", row.says, got, row.want)
		}
	}

	p := measure(t, asks(6, "edit", "medium", "yes, once", byDefault)).Proposals(does("write"))[0]
	if p.Profile != "work" || p.Tool != "fs__edit" || p.Asked != 6 || p.Yes != 6 || p.Spared != 6 || len(p.Examples) != maxExamples || p.First.IsZero() || p.Last.Before(p.First) {
		t.Errorf("the evidence: %+v", p)
	}
	want := profiles.RuleSpec{Name: p.Rule.Name, Tools: []string{"fs__edit"}, Effects: []string{"write"}, Where: []string{"workspace"}, Known: new(true), Action: new("allow"),
		When: &profiles.When{Expr: `args.all(name, name in ["path"]) && clean(args.path).startsWith("/home/me/notes/")`}}
	if diff := cmp.Diff(want, p.Rule); diff != "" {
		t.Errorf("the rule (-want +got):\n%s", diff)
	}
	again := measure(t, asks(7, "edit", "medium", "yes, once", byDefault)).Proposals(does("write"))[0]
	if !strings.HasPrefix(*p.Rule.Name, "suggested-") || *again.Rule.Name != *p.Rule.Name {
		t.Errorf("the same rule has the names %s and %s", *p.Rule.Name, *again.Rule.Name)
	}
	var text strings.Builder
	if err := p.Write(&text, 1); err != nil {
		t.Fatal(err)
	}
	day, last := p.First.Local().Format(time.DateOnly), p.Examples[2]
	if after := p.Last.Local().Format(time.DateOnly); after != day {
		day += " to " + after
	}
	for _, want := range []string{
		"1. fs__edit, profile work: would have spared 6 of 6 questions, " + day + "; 6 were answered yes\n   {",
		` && clean(args.path).startsWith(`,
		"\n   " + last.Time.Local().Format(time.DateTime) + "  " + last.Run + fmt.Sprintf(" #%d  ", last.Call) + string(last.Args) + "\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}
