package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialog is a question that a person saw, and what was answered.
type dialog struct {
	Text    string
	Choices []string // what could be answered
	Answer  string
}

// lines is how many lines a person reads.
func (d dialog) lines() int { return strings.Count(strings.TrimRight(d.Text, "\n"), "\n") + 1 }

// high reports whether a dialog says that the risk is high.
func (d dialog) high() bool {
	return strings.Contains(d.Text, "HIGH") || strings.Contains(d.Text, "CRITICAL")
}

// longDialog is how many lines a dialog may have.
const longDialog = 12

// A width says which of the offered yeses a person gives.
type width int

const (
	// narrowest: this call only.
	narrowest width = iota
	// natural: what holds for calls like this in the session, where that is offered: it
	// names what is bound, so it stays in this project; else for as many calls like
	// this in the run as are offered; else this call only. Never for any arguments.
	natural
	// looping: what a person says to a loop: calls like this in this run, as many as
	// can be chosen.
	looping
	// widest: whatever covers most.
	widest
	// refusing: a no, given to the form.
	refusing
	// dismissing: what a client without a person does: a no at once, without a form.
	dismissing
)

// The values of a form's field "decision" that are a yes, from the narrowest on.
var yeses = []string{"once", "run", "session", "session_any"}

// takes reports whether a person who answers so gives that yes.
func (w width) takes(choice string) bool {
	switch w {
	case narrowest:
		return choice == "once"
	case looping:
		return choice == "once" || choice == "run"
	case natural:
		return choice != "session_any"
	default:
		return true
	}
}

// choose answers a question: the form's content.
func (w width) choose(form *mcp.ElicitParams) (*mcp.ElicitResult, dialog, error) {
	d := dialog{Text: form.Message}
	fields := properties(form.RequestedSchema)
	d.Choices = choices(fields["decision"])
	if len(d.Choices) == 0 {
		return nil, d, fmt.Errorf("a dialog offers no decision: %s", form.Message)
	}
	if w == dismissing {
		d.Answer = "decline"
		return &mcp.ElicitResult{Action: "decline"}, d, nil
	}
	if w == refusing {
		d.Answer = "no"
	} else {
		for _, yes := range yeses {
			if w.takes(yes) && slices.Contains(d.Choices, yes) {
				d.Answer = yes
			}
		}
		if d.Answer == "" {
			return nil, d, fmt.Errorf("a dialog offers only %q", d.Choices)
		}
	}
	content := map[string]any{"decision": d.Answer, "reason": "as agreed"}
	if counts := choices(fields["count"]); d.Answer == "run" && len(counts) > 0 {
		content["count"] = counts[len(counts)-1]
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, d, nil
}

// properties returns the fields of a form by name.
func properties(schema any) map[string]map[string]any {
	all := map[string]map[string]any{}
	object, _ := schema.(map[string]any)
	fields, _ := object["properties"].(map[string]any)
	for name, field := range fields {
		all[name], _ = field.(map[string]any)
	}
	return all
}

// choices returns the values that a field offers, in either form in which clients know
// titles.
func choices(field map[string]any) (all []string) {
	values, _ := field["enum"].([]any)
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	titled, _ := field["oneOf"].([]any)
	for _, v := range titled {
		one, _ := v.(map[string]any)
		if text, ok := one["const"].(string); ok {
			all = append(all, text)
		}
	}
	return all
}
