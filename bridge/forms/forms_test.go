package forms

import (
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRead(t *testing.T) {
	choose := func(decision string) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision, "reason": "because"}}
	}
	no := func(stop bool, text string) Answer {
		return Answer{Verdict: approval.Verdict{Reason: approval.ElicitationDeclined, Channel: "elicitation", Stop: stop, Text: text}}
	}
	lacks := func(what string, dismissed bool) Answer {
		a := no(false, "")
		a.Missing, a.Dismissed = what, dismissed
		return a
	}
	yes := func(s approval.Scope) Answer {
		return Answer{Verdict: approval.Verdict{Approve: true, Scope: s, Channel: "elicitation", Text: "because"}}
	}
	byItself := Answer{AtOnce: true, Machine: true, Verdict: approval.Verdict{Reason: approval.NoApprover, Channel: "elicitation",
		Text: "the client answered by itself, 7 ms after it was asked, before anybody could read the question"}}
	with := func(res *mcp.ElicitResult, field, value string) *mcp.ElicitResult {
		res.Content[field] = value
		return res
	}
	yesTo := func(n int) Answer {
		a := yes(approval.RunScope)
		a.Verdict.Count = n
		return a
	}
	forgets := yes(approval.Once)
	forgets.Verdict.Forget = true
	noMore := no(false, "because")
	noMore.Verdict.NoMore = true
	for name, row := range map[string]struct {
		res               *mcp.ElicitResult
		after             time.Duration
		remember, session bool
		context           bool
		want              Answer
	}{
		"yes, in this run":                   {res: with(choose("run"), "count", "100"), after: time.Second, remember: true, want: yesTo(100)},
		"yes, in this run, without a number": {res: choose("run"), after: time.Second, remember: true, want: yesTo(20)},
		"yes, in this run, another number":   {res: with(choose("run"), "count", "100000"), after: time.Second, remember: true, want: lacks("the client sent no number of calls", false)},
		"yes, in this run, not offered":      {res: with(choose("run"), "count", "100"), after: time.Second, want: lacks("the client sent no decision", false)},
		"yes, and what a no would mean":      {res: with(choose("once"), "if_no", "stop"), after: time.Second, want: yes(approval.Once)},
		"no, and stop":                       {res: with(choose("no"), "if_no", "stop"), after: time.Second, remember: true, session: true, want: no(true, "because")},
		"no, and no more":                    {res: with(choose("no"), "if_no", "no_more"), after: time.Second, remember: true, session: true, want: noMore},
		"no, and a yes beside it":            {res: with(choose("no"), "if_no", "once"), after: time.Second, remember: true, session: true, want: no(false, "because")},
		"no more":                            {res: choose("no_more"), after: time.Second, want: noMore},
		"yes":                                {res: choose("once"), after: time.Second, want: yes(approval.Once)},
		"yes, again":                         {res: choose("session"), after: time.Second, remember: true, session: true, want: yes(approval.SessionScope)},
		"yes, again, without a session":      {res: choose("session"), after: time.Second, remember: true, want: lacks("the client sent no decision", false)},
		"yes, again, which was not offered":  {res: choose("session_any"), after: time.Second, session: true, want: lacks("the client sent no decision", false)},
		"no":                                 {res: choose("no"), after: time.Second, want: no(false, "because")},
		"stop":                               {res: choose("stop"), after: time.Second, want: no(true, "because")},
		"no decision":                        {res: &mcp.ElicitResult{Action: "accept"}, after: time.Second, want: lacks("the client sent no decision", false)},
		"yes, and forget":                    {res: choose("forget"), after: time.Second, context: true, want: forgets},
		"yes, and forget, beside it":         {res: with(choose("once"), "if_yes", "forget"), after: time.Second, remember: true, session: true, context: true, want: forgets},
		"yes, and nothing beside it":         {res: with(choose("once"), "if_yes", "call"), after: time.Second, remember: true, session: true, context: true, want: yes(approval.Once)},
		"yes, again, and forget":             {res: with(choose("session"), "if_yes", "forget"), after: time.Second, remember: true, session: true, context: true, want: lacks("the client sent two decisions: only a yes to this call forgets what was read before", false)},
		"yes, and forget, not offered":       {res: choose("forget"), after: time.Second, want: lacks("the client sent no decision", false)},
		"beside it, not offered":             {res: with(choose("once"), "if_yes", "forget"), after: time.Second, want: yes(approval.Once)},
		"no, and forget":                     {res: with(choose("no"), "if_yes", "forget"), after: time.Second, context: true, want: no(false, "because")},
		"declined":                           {res: &mcp.ElicitResult{Action: "decline"}, after: time.Second, want: no(false, "")},
		"declined, the clock was set back":   {res: &mcp.ElicitResult{Action: "decline"}, after: -time.Second, want: no(false, "")},
		"dismissed":                          {res: &mcp.ElicitResult{Action: "cancel"}, after: time.Second, want: lacks("the question was dismissed", true)},
		"declined before anybody can read":   {res: &mcp.ElicitResult{Action: "decline"}, after: 7 * time.Millisecond, want: byItself},
		"dismissed before anybody can read":  {res: &mcp.ElicitResult{Action: "cancel"}, after: 7 * time.Millisecond, want: byItself},
		"declined as fast as somebody reads": {res: &mcp.ElicitResult{Action: "decline"}, after: instant, want: no(false, "")},
	} {
		q := question(row.remember)
		q.Before, q.Decision.Context = 1, row.context
		if diff := cmp.Diff(row.want, Read(q, row.res, row.after, row.session)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// question is about one call, which further ones may be like.
func question(remember bool) approval.Request {
	return approval.Request{Script: "github__add_issue_comment", Items: []approval.Item{{Call: 1, Cover: approval.Cover{Kind: "add_issue_comment",
		Bound: []approval.Bound{{Param: "owner", Kind: approval.Exact, Value: "acme"}, {Param: "repo", Kind: approval.Exact, Value: "web"}}, Free: []string{"body", "issue_number"}}}},
		Decision: profiles.Decision{Remember: remember, Disposition: profiles.Ask, Risk: profiles.Medium}}
}

// A form has at most four decisions, "No" first, and no field that it does not need.
func TestForms(t *testing.T) {
	again := question(true)
	again.Before = 2
	spent := question(false)
	spent.Before, spent.Spent = 20, 20
	inContext := func(q approval.Request) approval.Request { q.Decision.Context = true; return q }
	for name, row := range map[string]struct {
		q    approval.Request
		o    Options
		want map[string][]string // of each field with choices, the titles
	}{
		"a call of its own":           {question(false), Options{Session: true, Titles: true}, map[string][]string{"decision": {"No", "No, and stop the script", "Yes, this call"}}},
		"the second of a run":         {func() approval.Request { q := question(false); q.Before = 1; return q }(), Options{}, map[string][]string{"decision": {"No", "No to every further call of this tool in this script", "No, and stop the script", "Yes, this call"}}},
		"without a session":           {question(true), Options{}, map[string][]string{"decision": {"No", "No, and stop the script", "Yes, this call", "Yes, and calls like this in this run, up to a number"}, "count": {"20", "100", "1000"}}},
		"in a session":                {question(true), Options{Session: true}, map[string][]string{"decision": {"No", "Yes, this call", "Yes, and calls like this in this run, up to a number", "Yes, for this session: add_issue_comment owner acme, repo web"}, "count": {"20", "100", "1000"}, "if_no": {"Only this time", "No, and stop the script"}}},
		"the second one in a session": {again, Options{Session: true, Titles: true}, map[string][]string{"decision": {"No", "Yes, this call", "Yes, and calls like this in this run, up to a number", "Yes, for this session: add_issue_comment owner acme, repo web"}, "count": {"20", "100", "1000"}, "if_no": {"Only this time", "No to every further call of this tool in this script", "No, and stop the script"}}},
		"in a context":                {inContext(question(false)), Options{Session: true}, map[string][]string{"decision": {"No", "No, and stop the script", "Yes, this call", "Yes, and forget what was read before"}}},
		"in a context, in a run":      {inContext(question(true)), Options{}, map[string][]string{"decision": {"No", "Yes, this call", "Yes, and forget what was read before", "Yes, and calls like this in this run, up to a number"}, "count": {"20", "100", "1000"}, "if_no": {"Only this time", "No, and stop the script"}}},
		"in a context, in a session":  {inContext(again), Options{Session: true, Titles: true}, map[string][]string{"decision": {"No", "Yes, this call", "Yes, and calls like this in this run, up to a number", "Yes, for this session: add_issue_comment owner acme, repo web"}, "count": {"20", "100", "1000"}, "if_no": {"Only this time", "No to every further call of this tool in this script", "No, and stop the script"}, "if_yes": {"What was read before still counts", "Yes, and forget what was read before"}}},
		"when there were enough":      {spent, Options{Session: true}, map[string][]string{"decision": {"No", "No to every further call of this tool in this script", "No, and stop the script", "Yes, this call"}, "rest": {"Go on asking", "Collect it, and ask about it as one list"}}},
	} {
		schema := New(row.q, "", row.o).RequestedSchema.(map[string]any)
		got := map[string][]string{}
		for name, field := range schema["properties"].(map[string]any) {
			field := field.(map[string]any)
			for _, one := range list(field["oneOf"]) {
				got[name] = append(got[name], one.(map[string]any)["title"].(string))
			}
			titles := list(field["enumNames"])
			if titles == nil {
				titles = list(field["enum"])
			}
			for _, title := range titles {
				got[name] = append(got[name], title.(string))
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]any{"decision"}, schema["required"]); diff != "" || len(got["decision"]) > 4 {
			t.Errorf("%s: required are %v", name, schema["required"])
		}
	}
	decision := New(question(true), "", Options{}).RequestedSchema.(map[string]any)["properties"].(map[string]any)["decision"].(map[string]any)
	if want := "a yes to more than this covers: add_issue_comment with owner acme, repo web; any body, issue_number"; decision["description"] != want {
		t.Errorf("described as %q", decision["description"])
	}
}

// What others wrote in the choices is in code spans, in both forms in which clients take
// them: no client makes a link or a heading of it.
func TestFormsInMarkdown(t *testing.T) {
	q := question(true)
	q.Items[0].Cover = approval.Cover{Kind: "fetch", Bound: []approval.Bound{{Param: "url", Kind: approval.AtHost, Value: "www.acme.example"}}}
	for _, titles := range []bool{true, false} {
		decision := New(q, "", Options{Session: true, Titles: titles}).RequestedSchema.(map[string]any)["properties"].(map[string]any)["decision"].(map[string]any)
		last := ""
		for _, title := range list(decision["enumNames"]) {
			last = title.(string)
		}
		for _, one := range list(decision["oneOf"]) {
			last = one.(map[string]any)["title"].(string)
		}
		got := []string{last, decision["description"].(string)}
		want := []string{"Yes, for this session: fetch at `\"www.acme.example\"`", "a yes to more than this covers: fetch at `\"www.acme.example\"`; any path there"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// Two answers in a row that nobody can have given show a client without a person,
// until one comes that somebody can have given.
func TestReflex(t *testing.T) {
	machine, fast, slow := Answer{AtOnce: true, Machine: true}, Answer{AtOnce: true}, Answer{}
	for name, row := range map[string]struct {
		answers []Answer
		want    bool
	}{
		"none":                        {nil, false},
		"one":                         {[]Answer{machine}, false},
		"two":                         {[]Answer{machine, machine}, true},
		"a fast yes between":          {[]Answer{machine, fast, machine}, true},
		"a person's answer between":   {[]Answer{machine, slow, machine}, false},
		"a person's answer afterward": {[]Answer{machine, machine, slow}, false},
	} {
		var x Reflex
		for _, a := range row.answers {
			x.Note(a)
		}
		if got := x.ByItself(); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	var x Reflex
	x.NoteServerForm(&mcp.ElicitResult{Action: "decline"}, 0)
	x.NoteServerForm(&mcp.ElicitResult{Action: "accept"}, 0) // fast, and no reflex
	if x.ByItself() {
		t.Error("one reflex and a fast yes")
	}
	if x.NoteServerForm(&mcp.ElicitResult{Action: "cancel"}, 0); !x.ByItself() {
		t.Error("two reflexes at a server's forms")
	}
}
