package templates_test

import (
	"testing"

	"codemode-bridge/profiles"
	"codemode-bridge/profiles/templates"
)

// What is private does not leave unasked: neither where it is found, nor where it could be among what a
// script computes after it has read both private data and text by others. All other work goes on.
func TestTrifecta(t *testing.T) {
	t.Parallel()
	one, ok := templates.Find("trifecta")
	if !ok {
		t.Fatal("there is no such template")
	}
	p := load(t, one.Profile())
	private := profiles.FlowFact{Labels: profiles.Labels{Has: []string{"private"}}, Says: "notes"}
	untrusted := profiles.FlowFact{Labels: profiles.Labels{Has: []string{"untrusted"}}, Says: "a page"}
	unknown := profiles.FlowFact{Labels: profiles.Labels{Unknown: true}, Says: "somebody"}
	external := profiles.Labels{Has: []string{"external"}}
	both := []profiles.FlowFact{private, untrusted}
	send, page, write := does("remote", "fixed", []string{"send"}), at("docs.example", true), does("workspace", "none", []string{"write"}, inside("a"))
	for _, row := range []struct {
		name string
		call profiles.Call
		flow profiles.FlowFacts
		want profiles.Disposition
	}{
		{"sends, nothing was read", send, profiles.FlowFacts{Labels: external}, profiles.Allow},
		{"sends after private data", send, profiles.FlowFacts{Labels: external, Context: []profiles.FlowFact{private}}, profiles.Allow},
		{"sends what is private", send, profiles.FlowFacts{Labels: external, Content: []profiles.FlowFact{private}, Written: true}, profiles.Ask},
		{"sends what it computed after both", send, profiles.FlowFacts{Labels: external, Context: both}, profiles.Ask},
		{"sends what was written before", send, profiles.FlowFacts{Labels: external, Context: both, Written: true}, profiles.Allow},
		{"sends after nobody knows what", send, profiles.FlowFacts{Labels: external, Context: []profiles.FlowFact{unknown}}, profiles.Ask},
		{"sends by who knows whom", send, profiles.FlowFacts{Labels: profiles.Labels{Unknown: true}, Context: both}, profiles.Ask},
		{"opens a page", page, profiles.FlowFacts{Labels: external, Context: []profiles.FlowFact{untrusted}}, profiles.Allow},
		{"opens a page after both", page, profiles.FlowFacts{Labels: external, Context: both}, profiles.Ask},
		{"writes a file after both", write, profiles.FlowFacts{Context: both}, profiles.Allow},
		{"deletes a file", does("workspace", "none", []string{"delete"}, inside("a")), profiles.FlowFacts{}, profiles.Ask},
		{"reads a secret", reads("workspace", "none", secret), profiles.FlowFacts{}, profiles.Ask},
		{"calls who knows what", profiles.Call{Server: "s", Tool: "frobnicate"}, profiles.FlowFacts{}, profiles.Ask},
	} {
		row.call.Flow = &row.flow
		if d := p.Decide(row.call); d.Disposition != row.want {
			t.Errorf("%s: %s, want %s (%v)", row.name, d.Disposition, row.want, d.Reasons)
		}
	}
}
