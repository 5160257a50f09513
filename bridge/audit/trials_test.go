package audit

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// tried is the intent of a call of which something else would have come.
func tried(run string, n int, would string, reasons ...string) ledger.Record {
	return ledger.Record{Event: ledger.Intent, Run: run, Call: n, Server: "fs", Tool: "write", Disposition: "allow", Would: would, Reasons: append([]string{"default: allow [profile work]"}, reasons...)}
}

func TestMeasureWhatIsObserved(t *testing.T) {
	const big, flow = "would ask: rule big (ask): it is much [profile work]", "would ask: flows/1: private: 312 characters of notes__read hr/a.md, line %s, go to mail__send [profile work]"
	at := func(line string) string { return strings.Replace(flow, "%s", line, 1) }
	s := measure(t, []ledger.Record{
		{Event: ledger.RunStarted, Run: "r"}, {Event: ledger.RunStarted, Run: "s"},
		tried("r", 1, "ask", big), tried("s", 1, "ask", big), tried("r", 2, "ask", big, at("1")), tried("r", 3, "ask", at("2")), tried("r", 4, ""),
		tried("r", 5, "manual", "would manual: rule hand (manual) [profile work]"),
		{Event: ledger.RunEnded, Run: "r", Outcome: ledger.Done},
		{Event: ledger.RunStarted, Run: "u"}, tried("u", 1, "ask", big),
		// What was asked and what came of it are no calls of their own.
		{Event: ledger.Asked, Run: "u", Call: 2, Would: "deny", Reasons: []string{"would deny: denylist: \"fs__*\" [profile work]"}},
		{Event: ledger.Refusal, Run: "u", Call: 2, Disposition: "ask", Would: "deny", Reasons: []string{asklist, "would deny: denylist: \"fs__*\" [profile work]"}},
		{Event: ledger.Outcome, Run: "u", Call: 1, Would: "ask", Reasons: []string{big}},
	})
	want := []Observed{
		{"rule big [profile work]", "ask", Trial{4, 3}}, {"flows/1 [profile work]", "ask", Trial{2, 1}},
		{`denylist: "fs__*" [profile work]`, "deny", Trial{1, 1}}, {"rule hand [profile work]", "manual", Trial{1, 1}},
	}
	if !slices.Equal(s.Observed, want) {
		t.Errorf("got %v, want %v", s.Observed, want)
	}
	if said := s.wouldSay(); said != "asked 5 calls in 3 runs, asked 1 call in 1 run by hand, denied 1 call in 1 run" {
		t.Errorf("would have %s", said)
	}
	var out bytes.Buffer
	if err := s.Write(&out, nil, func(rows [][]string) error { _, err := out.WriteString(strings.Join(rows[1], "|") + "\n"); return err }); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "would have asked 5 calls in 3 runs") || !strings.Contains(text, "rules that are only observed\nrule big [profile work]|ask|4|3\n") {
		t.Errorf("written:\n%s", text)
	}
	// A rule that is only observed is none that nothing needed.
	unused := s.Unused(profiles.Spec{Profiles: map[string]*profiles.ProfileSpec{"work": {Rules: []profiles.RuleSpec{{Name: new("big"), Action: new("ask"), Observe: new(true)}, {Name: new("idle"), Action: new("ask")}}}}})
	if !slices.Equal(unused, []string{"rule idle [profile work]"}) {
		t.Errorf("unused: %q", unused)
	}
}

func TestWhatWouldHaveComeIsSaid(t *testing.T) {
	r := tried("r", 1, "ask", "would ask: rule big (ask) [profile work]")
	if line := Line(r); !strings.HasSuffix(line, ", would ask") {
		t.Errorf("intent: %q", line)
	}
	refused := r
	refused.Event, refused.Error, refused.Would = ledger.Refusal, "no", "allow"
	if line := Line(refused); line != "  #1 fs__write refused, would allow: no" {
		t.Errorf("refusal: %q", line)
	}
	r.Would = "manual"
	line, err := ReadTimeline(rowsOf(ledger.Record{Event: ledger.RunStarted, Run: "r"}, r, ledger.Record{Event: ledger.Outcome, Run: "r", Call: 1, Outcome: ledger.Done}))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := line.Write(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "decision  allow, would ask by hand\n") || !strings.Contains(text, "- would ask: rule big (ask) [profile work]\n") {
		t.Errorf("timeline:\n%s", text)
	}
}
