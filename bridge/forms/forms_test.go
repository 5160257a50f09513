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
	for name, row := range map[string]struct {
		res               *mcp.ElicitResult
		after             time.Duration
		remember, session bool
		want              Answer
	}{
		"yes":                                {res: choose("once"), after: time.Second, want: yes(approval.Once)},
		"yes, again":                         {res: choose("session"), after: time.Second, remember: true, session: true, want: yes(approval.SessionScope)},
		"yes, again, without a session":      {res: choose("session"), after: time.Second, remember: true, want: lacks("the client sent no decision", false)},
		"yes, again, which was not offered":  {res: choose("session_any"), after: time.Second, session: true, want: lacks("the client sent no decision", false)},
		"no":                                 {res: choose("no"), after: time.Second, want: no(false, "because")},
		"stop":                               {res: choose("stop"), after: time.Second, want: no(true, "because")},
		"no decision":                        {res: &mcp.ElicitResult{Action: "accept"}, after: time.Second, want: lacks("the client sent no decision", false)},
		"declined":                           {res: &mcp.ElicitResult{Action: "decline"}, after: time.Second, want: no(false, "")},
		"declined, the clock was set back":   {res: &mcp.ElicitResult{Action: "decline"}, after: -time.Second, want: no(false, "")},
		"dismissed":                          {res: &mcp.ElicitResult{Action: "cancel"}, after: time.Second, want: lacks("the question was dismissed", true)},
		"declined before anybody can read":   {res: &mcp.ElicitResult{Action: "decline"}, after: 7 * time.Millisecond, want: byItself},
		"dismissed before anybody can read":  {res: &mcp.ElicitResult{Action: "cancel"}, after: 7 * time.Millisecond, want: byItself},
		"declined as fast as somebody reads": {res: &mcp.ElicitResult{Action: "decline"}, after: instant, want: no(false, "")},
	} {
		q := approval.Request{Decision: profiles.Decision{Remember: row.remember}}
		if diff := cmp.Diff(row.want, Read(q, row.res, row.after, row.session)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
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
