// Package forms asks a person by a form in their MCP client (an elicitation), and
// reads what the client answers. It keeps no questions and settles nothing: whoever
// asks passes the verdict to the broker.
//
//	New    a request as a form: what is asked, and the choices
//	Ask    puts it to a client with a session
//	Read   the answer: a verdict, or what it lacks for one
//	Reflex whether the client answers by itself, with nobody there
//
// A person decides by the form's field "decision", whose values are those of
// [approval.Request.Choices]. It has at most four: if there are more, what a no may
// mean besides is in a field "if_no", and then what a yes to this call may is in a field
// "if_yes". A yes to calls like this one in this run says
// in the field "count" to how many.
package forms

import (
	"fmt"
	"slices"
	"strconv"
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

// maxDecisions bounds the choices of the field "decision": as many as a person takes
// in at a glance.
const maxDecisions = 4

// New makes a request into an elicitation: the prompt, as package wording writes it, and a
// form whose one required field is the decision. "No" comes first. The form requires
// no reason even if a yes needs one: clients would not send a no without it.
func New(q approval.Request, prompt string, o Options) *mcp.ElicitParams {
	decisions := q.Choices(o.Session)
	var noes []approval.Choice
	if len(decisions) > maxDecisions {
		noes = slices.DeleteFunc(slices.Clone(decisions), func(c approval.Choice) bool { return c.Yes() || !c.NoMore && !c.Stop })
		decisions = slices.DeleteFunc(decisions, func(c approval.Choice) bool { return c.NoMore || c.Stop })
	}
	var forgets []approval.Choice
	if len(decisions) > maxDecisions {
		forgets = slices.DeleteFunc(slices.Clone(decisions), func(c approval.Choice) bool { return !c.Forget })
		decisions = slices.DeleteFunc(decisions, func(c approval.Choice) bool { return c.Forget })
	}
	reason := map[string]any{"type": "string", "title": "Reason", "description": "for a no: the script can read it"}
	if q.Decision.RequireReason {
		reason["title"], reason["description"] = "Reason (required for a yes)", "why this call is to be made; a no needs none, and the script can read it"
	}
	fields := map[string]any{"decision": o.choose("Decision", decisions), "reason": reason}
	if words := q.WiderInDialog(); words != "" && len(q.Counts()) > 0 {
		fields["decision"].(map[string]any)["description"] = "a yes to more than this covers: " + words
		var counts []any
		for _, n := range q.Counts() {
			counts = append(counts, strconv.Itoa(n))
		}
		fields["count"] = map[string]any{"type": "string", "title": "Number of calls", "enum": counts, "default": counts[0],
			"description": "for a yes to calls like this in this run: how many in all"}
	}
	if len(noes) > 0 {
		fields["if_no"] = o.choose("If no", append([]approval.Choice{{Value: "call", Dialog: "Only this time"}}, noes...))
	}
	if len(forgets) > 0 {
		fields["if_yes"] = o.choose("If yes to this call", append([]approval.Choice{{Value: "call", Dialog: "What was read before still counts"}}, forgets...))
	}
	if q.Spent > 0 {
		fields["rest"] = o.choose("What comes next", []approval.Choice{{Value: "ask", Dialog: "Go on asking"}, {Value: "list", Dialog: "Collect it, and ask about it as one list"}})
	}
	return &mcp.ElicitParams{Message: prompt, RequestedSchema: map[string]any{"type": "object",
		"properties": fields, "required": []any{"decision"}}}
}

// choose makes a field with choices.
func (o Options) choose(title string, choices []approval.Choice) map[string]any {
	field := map[string]any{"type": "string", "title": title}
	var one, values, titles []any
	for _, c := range choices {
		one = append(one, map[string]any{"const": c.Value, "title": c.Dialog})
		values, titles = append(values, c.Value), append(titles, c.Dialog)
	}
	if o.Titles {
		field["oneOf"] = one
	} else {
		field["enum"], field["enumNames"] = values, titles
	}
	return field
}

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
	text := canon.Escape(canon.Cut(chosen(res, "reason"), 500))
	switch {
	case res.Action == "accept":
		decision := chosen(res, "decision")
		choices := q.Choices(session)
		i := slices.IndexFunc(choices, func(c approval.Choice) bool { return c.Value == decision })
		if i < 0 {
			got.Missing = "the client sent no decision"
			break
		}
		if decision == "no" { // what it means besides may be in a field of its own
			i = max(i, slices.IndexFunc(choices, func(c approval.Choice) bool { return !c.Yes() && c.Value == chosen(res, "if_no") }))
		}
		if decision == string(approval.Once) { // in the same way
			i = max(i, slices.IndexFunc(choices, func(c approval.Choice) bool { return c.Forget && c.Value == chosen(res, "if_yes") }))
		} else if choices[i].Yes() && !choices[i].Forget && chosen(res, "if_yes") == "forget" {
			got.Missing = "the client sent two decisions: only a yes to this call forgets what was read before"
			break
		}
		list := q.Spent > 0 && chosen(res, "rest") == "list"
		if c := choices[i]; !c.Yes() {
			got.Verdict.Stop, got.Verdict.NoMore, got.Verdict.List, got.Verdict.Text = c.Stop, c.NoMore, list, text
			break
		}
		yes := approval.Verdict{Approve: true, Scope: choices[i].Scope, Forget: choices[i].Forget, List: list, Channel: "elicitation", Text: text}
		if yes.Scope == approval.RunScope {
			if yes.Count = count(q, res); yes.Count == 0 {
				got.Missing = "the client sent no number of calls"
				break
			}
		}
		got.Verdict = yes
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

// chosen returns what a field of an answer holds, if it is text.
func chosen(res *mcp.ElicitResult, field string) string {
	text, _ := res.Content[field].(string)
	return text
}

// count returns the number of calls that was chosen, if it was offered; 0 if not.
// Clients may leave out what is as the form has it.
func count(q approval.Request, res *mcp.ElicitResult) int {
	if offered := q.Counts(); res.Content["count"] == nil && len(offered) > 0 {
		return offered[0]
	}
	n, err := strconv.Atoi(chosen(res, "count"))
	if err != nil || !slices.Contains(q.Counts(), n) {
		return 0
	}
	return n
}
