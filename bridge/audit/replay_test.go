package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// written is a log of records, a minute apart.
func written(all ...ledger.Record) audit.Rows {
	b := &logbook{}
	for i, r := range all {
		r.Time = time.Date(2026, 1, 1, 12, i, 0, 0, time.UTC)
		if r.Session == "" {
			r.Session = "s1"
		}
		if r.Profile == "" {
			r.Profile = "p"
		}
		b.rows = append(b.rows, ledger.Row{Seq: int64(i + 1), Record: r})
	}
	return b.all()
}

// decided is a record about a call of mail__send.
func decided(event ledger.Event, call int, disposition, args, reason string) ledger.Record {
	return ledger.Record{Event: event, Run: "r1", Call: call, Server: "mail", Tool: "send", Args: json.RawMessage(args), Digest: "d" + args, Disposition: disposition, Reasons: []string{reason}}
}

func verdict(call int, answer, channel string) ledger.Record {
	r := decided(ledger.Verdict, call, "ask", `{"to":"ann"}`, "default: ask [profile p]")
	r.Answer, r.Channel, r.Approver, r.Counted = answer, channel, "ann", new(true)
	return r
}

// mailFacts are those of a server whose every call sends to whom "to" names, on another machine.
func mailFacts(server, tool string, args map[string]any) (profiles.Call, bool) {
	call := profiles.Call{Server: server, Tool: tool, Flow: &profiles.FlowFacts{Labels: profiles.Labels{Has: []string{"external"}}}}
	call.Meaning = &profiles.Meaning{Accepted: true, Effects: []string{"send"}, Where: "remote", Net: "fixed"}
	switch to := args["to"].(type) {
	case string:
		call.Meaning.Recipients = []profiles.RecipientFact{{Param: "to", Name: to, New: true}}
		call.Meaning.Hosts = []profiles.HostFact{{Param: "to", Name: to, New: true}}
	case profiles.Masked:
		call.Meaning.Unknown = []string{"to"}
	}
	return call, true
}

func replayed(t *testing.T, profile string, rows audit.Rows) (*audit.Replay, []audit.Replayed) {
	t.Helper()
	var each []audit.Replayed
	got, err := audit.ReplayLog(rows, audit.ReplayOptions{Policy: parsed(t, profile)[0], Facts: mailFacts, Each: func(one audit.Replayed) { each = append(each, one) }})
	if err != nil {
		t.Fatal(err)
	}
	return got, each
}

// What people had answered is counted with the change, and a question is one that no earlier yes answered.
func TestReplayCounts(t *testing.T) {
	const byDefault = "default: ask [profile p]"
	log := written(
		ledger.Record{Event: ledger.RunStarted, Run: "r1"},
		decided(ledger.Asked, 1, "ask", `{"to":"ann"}`, byDefault), verdict(1, "yes, once", "page"), decided(ledger.Intent, 1, "ask", `{"to":"ann"}`, byDefault),
		decided(ledger.Asked, 2, "ask", `{"to":"bob"}`, byDefault), verdict(2, "no", "page"), decided(ledger.Refusal, 2, "ask", `{"to":"bob"}`, byDefault),
		verdict(3, "yes, in this session", "grant"), decided(ledger.Intent, 3, "ask", `{"to":"ann"}`, byDefault),
		ledger.Record{Event: ledger.Refusal, Run: "r1", Call: 4, Tool: "nosuch"},
		ledger.Record{Event: ledger.RunEnded, Run: "r1", Outcome: ledger.Done},
	)
	got, each := replayed(t, `{"default": "allow"}`, log)
	if got.Calls != 3 || got.Others != 1 || len(got.Changes) != 1 || len(got.Undecided) != 0 {
		t.Fatalf("got %+v", got)
	}
	c := got.Changes[0]
	if c.Count != 3 || c.Yes != 1 || c.No != 1 || !c.Looser() || c.Was != "ask" || c.Is != "allow" || c.WasRule != byDefault || c.IsRule != "default: allow [profile p]" {
		t.Errorf("the change is %+v", c)
	}
	if q := got.Questions; q.Before != 2 || q.After != 0 || q.Most != 0 {
		t.Errorf("questions: %+v", q)
	}
	if !each[0].Yes || each[0].Answer != "yes, once" || !each[1].No || each[2].Yes {
		t.Errorf("answers: %+v", each)
	}
	same, _ := replayed(t, `{"default": "ask"}`, log)
	if q := same.Questions; same.Same != 3 || q.Before != 2 || q.After != 2 || q.AfterDaily != 2 {
		t.Errorf("by a policy like the one before: %+v", same)
	}
}

// What something other than a profile refused, or asked about, is not for a profile to allow.
func TestReplayKeepsWhatNoProfileDecided(t *testing.T) {
	for _, row := range []struct{ disposition, reason, want string }{
		{"deny", "the argument path names a file of the bridge itself", "deny"},
		{"deny", "it is quarantined: it is new", "deny"},
		{"ask", "its description has changed since it was accepted", "ask"},
		{"deny", `denylist: "mail__*" [profile p]`, "allow"},
		{"deny", "not on the allowlist [profile p]", "allow"},
		{"deny", "default: deny", "allow"},
	} {
		event := ledger.Refusal
		if row.disposition == "ask" {
			event = ledger.Intent
		}
		_, each := replayed(t, `{"default": "allow"}`, written(decided(event, 1, row.disposition, `{"to":"ann"}`, row.reason)))
		if each[0].Is != row.want || each[0].Gap != "" {
			t.Errorf("%s: %s, %q; want %s", row.reason, each[0].Is, each[0].Gap, row.want)
		}
	}
}

// A session has met whom a person let a call go to, and nobody else.
func TestReplayKnowsWhomASessionHasMet(t *testing.T) {
	log := written(
		decided(ledger.Asked, 1, "ask", `{"to":"ann"}`, "default: ask [profile p]"), verdict(1, "yes, once", "page"), decided(ledger.Intent, 1, "ask", `{"to":"ann"}`, "default: ask [profile p]"),
		decided(ledger.Intent, 2, "allow", `{"to":"ann"}`, "default: allow [profile p]"), decided(ledger.Intent, 3, "allow", `{"to":"bob"}`, "default: allow [profile p]"),
	)
	for _, key := range []string{"recipients", "hosts"} {
		_, each := replayed(t, `{"default": "allow", "rules": [{"`+key+`": ["new"], "action": "ask"}]}`, log)
		var got []string
		for _, one := range each {
			got = append(got, one.Is)
		}
		if strings.Join(got, " ") != "allow allow ask" { // the yes to the first introduced ann before it was sent
			t.Errorf("%s: %v", key, got)
		}
	}
}

// Each cause for which a call cannot be decided, and nothing where the cause does not matter.
func TestReplaySaysWhatIsMissing(t *testing.T) {
	looks := func(looked string, written *bool) ledger.Record {
		r := decided(ledger.Intent, 2, "allow", `{"to":"ann","body":"hello"}`, "default: allow [profile p]")
		r.Looked, r.Written = looked, written
		return r
	}
	read := []ledger.Record{
		{Event: ledger.Intent, Run: "r1", Call: 1, Server: "notes", Tool: "read", Args: json.RawMessage(`{}`), Digest: "n", Disposition: "allow", Reasons: []string{"default: allow [profile p]"}},
		{Event: ledger.Outcome, Run: "r1", Call: 1, Server: "notes", Tool: "read", Outcome: ledger.Done, Received: 10},
	}
	plain := func(args string) []ledger.Record {
		return []ledger.Record{decided(ledger.Intent, 2, "allow", args, "default: allow [profile p]")}
	}
	long := `"` + strings.Repeat("x", 10) + `… 5,000 characters in all"`
	const body = `"default": "allow", "rules": [{"tools": ["mail__*"], "when": "args.body.contains('y')", "action": "deny"}]`
	const content = `"default": "allow", "flows": [{"from": "external", "to": "external", "action": "deny", "by": "content"}]`
	for _, row := range []struct {
		name, profile string
		log           []ledger.Record
		gap           string
	}{
		{"cut", body, plain(`{"to":"ann","body":` + long + `}`), audit.GapCut},
		{"cut within", body, plain(`{"to":"ann","body":["a",` + long + `]}`), audit.GapCut},
		{"hidden", body, plain(`{"to":"ann","body":"[hidden]"}`), audit.GapHidden},
		{"hidden by a rule's own text", `"default": "allow", "rules": [{"tools": ["mail__*"], "when": "args.body.contains('y')", "action": "deny", "hidden": {"body": "<text>"}}]`,
			plain(`{"to":"ann","body":"<text>"}`), audit.GapHidden},
		{"both, of which one matters", body, plain(`{"to":"[hidden]","body":` + long + `}`), audit.GapCut},
		{"it does not matter", `"default": "allow", "rules": [{"tools": ["mail__*"], "when": "args.to == 'ann'", "action": "deny"}]`, plain(`{"to":"ann","body":` + long + `}`), ""},
		{"members are left out", `"default": "allow", "rules": [{"tools": ["mail__*"], "when": "has(args.cc)", "action": "deny"}]`, plain(`{"to":"ann","…":"… 75 members in all"}`), audit.GapCut},
		{"a recipient is hidden", `"default": "ask", "rules": [{"recipients": ["*@acme.com"], "action": "allow"}]`, plain(`{"to":"[hidden]"}`), audit.GapHidden},
		{"there is no such profile", "", append(plain(`{}`), ledger.Record{}), audit.GapProfile},
		{"nobody looked", content, append(read, looks("", nil)), audit.GapContent},
		{"nobody looked as far as flows do", content, append(read, looks(ledger.LookedRuns, nil)), audit.GapContent},
		{"somebody looked", content, append(read, looks(ledger.LookedAll, nil)), ""},
		{"nothing was read that could be found", content, []ledger.Record{looks("", nil)}, ""},
		{"nobody looked what is written", `"default": "allow", "rules": [{"tools": ["mail__*"], "when": "flow.written", "action": "ask"}]`, []ledger.Record{looks("", nil)}, audit.GapWritten},
		{"it is written", `"default": "allow", "rules": [{"tools": ["mail__*"], "when": "flow.written", "action": "ask"}]`, []ledger.Record{looks("", new(true))}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			profile := "{" + row.profile + "}"
			if row.profile == "" {
				profile = "{}"
				for i := range row.log {
					row.log[i].Profile = "gone"
				}
			}
			_, each := replayed(t, profile, written(row.log...))
			if last := each[len(each)-1]; last.Gap != row.gap {
				t.Errorf("it cannot be decided because of %q, want %q; %s: %v", last.Gap, row.gap, last.Is, last.Decided.Reasons)
			}
		})
	}
}

// What is found is judged by the labels of today: of the tool that read it, as the record says only of what it had no row of.
func TestReplayJudgesFindsByTheLabelsOfToday(t *testing.T) {
	rows := func(found ledger.SourceMatch) audit.Rows {
		sent := decided(ledger.Intent, 2, "allow", `{"to":"ann"}`, "default: allow [profile p]")
		sent.Looked, sent.Sources = ledger.LookedAll, []ledger.SourceMatch{found}
		return written(ledger.Record{Event: ledger.Intent, Run: "r1", Call: 1, Server: "notes", Tool: "read", Args: json.RawMessage(`{}`), Digest: "n", Disposition: "allow", Reasons: []string{"default: allow [profile p]"}}, sent)
	}
	for _, row := range []struct {
		name  string
		from  string
		found ledger.SourceMatch
		want  string
	}{
		{"what the tool is labelled now", "external", ledger.SourceMatch{Call: 1, Argument: "body", Length: 30, Labels: []string{"private"}}, "deny"},
		{"what it was labelled then", "private", ledger.SourceMatch{Call: 1, Argument: "body", Length: 30, Labels: []string{"private"}}, "allow"},
		{"a call that the log does not have", "private", ledger.SourceMatch{Call: 9, Argument: "body", Length: 30, Labels: []string{"private"}}, "deny"},
		{"nobody had labelled it", "private", ledger.SourceMatch{Call: 9, Argument: "body", Length: 30, Unlabelled: true}, "deny"},
		{"what is not remembered", "private", ledger.SourceMatch{Kind: ledger.Lost, Unlabelled: true}, "deny"},
		{"a name alone", "private", ledger.SourceMatch{Kind: "name", Call: 9, Argument: "body", Length: 9, Labels: []string{"private"}}, "allow"},
	} {
		_, each := replayed(t, `{"default": "allow", "flows": [{"from": "`+row.from+`", "to": "external", "action": "deny", "by": "content"}]}`, rows(row.found))
		if last := each[len(each)-1]; last.Is != row.want || last.Gap != "" {
			t.Errorf("%s: %s %s, want %s: %v", row.name, last.Is, last.Gap, row.want, last.Decided.Reasons)
		}
	}
}

// What a tool had that no server lists now, since its server is gone or has another name, is as the record of the find says;
// and whatever was read from it may be anything.
func TestReplayKeepsTheLabelsOfServersThatAreGone(t *testing.T) {
	facts := func(server, tool string, args map[string]any) (profiles.Call, bool) {
		if server == "notes" {
			return profiles.Call{Server: server, Tool: tool}, false
		}
		return mailFacts(server, tool, args)
	}
	read := ledger.Record{Event: ledger.Intent, Run: "r1", Call: 1, Server: "notes", Tool: "read", Args: json.RawMessage(`{}`), Digest: "n", Disposition: "allow", Reasons: []string{"default: allow [profile p]"}}
	answered := read
	answered.Event, answered.Outcome, answered.Received = ledger.Outcome, ledger.Done, 9
	for _, row := range []struct {
		by, from string
		labels   []string
		want     string
	}{
		{"content", "private", []string{"private"}, "deny"},
		{"content", "untrusted", []string{"private"}, "allow"},
		{"context", "private", nil, "deny"},
	} {
		sent := decided(ledger.Intent, 2, "allow", `{"to":"ann"}`, "default: allow [profile p]")
		sent.Looked, sent.Written = ledger.LookedAll, new(false)
		if row.labels != nil {
			sent.Sources = []ledger.SourceMatch{{Call: 1, Argument: "body", Length: 30, Labels: row.labels}}
		}
		var each []audit.Replayed
		_, err := audit.ReplayLog(written(read, answered, sent), audit.ReplayOptions{Facts: facts, Each: func(one audit.Replayed) { each = append(each, one) },
			Policy: parsed(t, `{"default": "allow", "flows": [{"from": "`+row.from+`", "to": "external", "action": "deny", "by": "`+row.by+`"}]}`)[0]})
		if err != nil {
			t.Fatal(err)
		}
		if last := each[len(each)-1]; last.Is != row.want || last.Gap != "" {
			t.Errorf("by %s from %s: %s %s, want %s: %v", row.by, row.from, last.Is, last.Gap, row.want, last.Decided.Reasons)
		}
	}
}
