// Package forms asks a person by a form in their MCP client (an elicitation), and
// reads what the client answers. It keeps no questions and settles nothing: whoever
// asks passes the verdict to the broker.
//
//	New    a request as a form: what is asked, and the choices
//	Ask    puts it to a client with a session
//	Read   the answer: a verdict, or what it lacks for one
//	Reflex whether the client answers by itself, with nobody there
//
// A person decides by the form's field "decision": "no", "stop" (which ends the
// script too), or the scope of a yes: "once", and in a session, where the policy lets
// a yes count again, "session" and "session_any".
package forms

import (
	"fmt"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options say what the client can take.
type Options struct {
	Session bool // it has a session, in which a yes can be remembered
	Titles  bool // it understands choices with titles ("oneOf") instead of "enumNames"
}

// New makes a request into an elicitation: the prompt, described as how says, and a
// form whose one required field is the decision. "No" comes first. The form requires
// no reason even if a yes needs one: clients would not send a no without it.
func New(q approval.Request, how approval.DescribeOptions, o Options) *mcp.ElicitParams {
	choices := []choice{{"no", "No"}, {"stop", "No, and stop the script"}, {"once", "Yes, once"}}
	if q.Decision.Remember && o.Session {
		choices = append(choices, choice{string(approval.SessionScope), "Yes, and again in this session with the same arguments"},
			choice{string(approval.AnyArgs), "Yes, and again in this session with any arguments"})
	}
	decision := map[string]any{"type": "string", "title": "Decision"}
	if o.Titles {
		var one []any
		for _, c := range choices {
			one = append(one, map[string]any{"const": c.value, "title": c.title})
		}
		decision["oneOf"] = one
	} else {
		var values, titles []any
		for _, c := range choices {
			values, titles = append(values, c.value), append(titles, c.title)
		}
		decision["enum"], decision["enumNames"] = values, titles
	}
	reason := map[string]any{"type": "string", "title": "Reason", "description": "for a no: the script can read it"}
	if q.Decision.RequireReason {
		reason["title"], reason["description"] = "Reason (required for a yes)", "why this call is to be made; a no needs none, and the script can read it"
	}
	return &mcp.ElicitParams{Message: approval.Describe(q, how).Prompt(), RequestedSchema: map[string]any{"type": "object",
		"properties": map[string]any{"decision": decision, "reason": reason}, "required": []any{"decision"}}}
}

type choice struct{ value, title string }

// An Answer is what came of a question at a client: a verdict, or what is missing
// for one.
type Answer struct {
	Verdict   approval.Verdict
	Missing   string
	Dismissed bool // the question was closed and not answered
	AtOnce    bool // faster than a person could have read it
	Machine   bool // at once, and no yes: the client itself gave it, not a person
}

// instant is the least time that a person needs to say no to a question. Some
// clients say no by themselves, to every question.
const instant = 300 * time.Millisecond

// atOnce reports whether an answer came sooner after its question than a person
// could give it. A negative time says nothing: the clock was set back.
func atOnce(after time.Duration) bool { return after >= 0 && after < instant }

// Read reads the result of an elicitation; after is the time since the question was
// delivered. Only an accepted form with one of the choices that were offered can be
// a yes.
func Read(q approval.Request, res *mcp.ElicitResult, after time.Duration, session bool) Answer {
	got := Answer{Verdict: approval.Verdict{Reason: approval.ElicitationDeclined, Channel: "elicitation"}, AtOnce: atOnce(after)}
	reason, _ := res.Content["reason"].(string)
	text := canon.Escape(canon.Cut(reason, 500))
	switch {
	case res.Action == "accept":
		decision, _ := res.Content["decision"].(string)
		switch scope := approval.Scope(decision); {
		case decision == "no", decision == "stop":
			got.Verdict.Stop, got.Verdict.Text = decision == "stop", text
		case scope == approval.Once, session && q.Decision.Remember && (scope == approval.SessionScope || scope == approval.AnyArgs):
			got.Verdict = approval.Verdict{Approve: true, Scope: scope, Channel: "elicitation", Text: text}
		default:
			got.Missing = "the client sent no decision"
		}
	case got.AtOnce:
		got.Machine = true
		got.Verdict.Reason = approval.NoApprover
		got.Verdict.Text = fmt.Sprintf("the client answered by itself, %d ms after it was asked, before anybody could read the question", after.Milliseconds())
	case res.Action == "decline":
		got.Verdict.Text = text
	default:
		got.Missing, got.Dismissed = "the question was dismissed", true
	}
	return got
}
