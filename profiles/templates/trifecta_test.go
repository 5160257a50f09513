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

// With coding, what is private does not leave by a yes that was for other things: where it is found in a message or in what
// a host beyond this machine gets, each call is asked about, whatever the profile allows besides.
func TestCodingAsksWhereAPrivateThingLeaves(t *testing.T) {
	t.Parallel()
	p := load(t, `{"extends": "builtin:coding@1", "rules": [{"name": "ours", "effects": ["read", "write", "send"], "action": "allow"}]}`)
	one, _ := templates.Find("coding")
	if content, context := load(t, one.Profile()).Flows(); !content || context {
		t.Errorf("it looks at content %v, context %v", content, context)
	}
	private := []profiles.FlowFact{{Labels: profiles.Labels{Has: []string{"private"}}, Says: "notes"}}
	public := []profiles.FlowFact{{Labels: profiles.Labels{Has: []string{"untrusted"}}, Says: "a page"}}
	unknown := []profiles.FlowFact{{Labels: profiles.Labels{Unknown: true}, Says: "somebody"}}
	posts := at("api.example", false)
	posts.Meaning.Effects = []string{"send"}
	types, nowhere, locally := at("shop.example", false), at("", false), at("localhost", false)
	for _, c := range []*profiles.Call{&types, &nowhere, &locally} {
		c.Meaning.Effects = []string{"write"}
	}
	for _, row := range []struct {
		name  string
		call  profiles.Call
		found []profiles.FlowFact
		want  profiles.Disposition
	}{
		{"a message", sends(false), nil, profiles.Allow},
		{"a message with something private", sends(false), private, profiles.Ask},
		{"a message with something public", sends(false), public, profiles.Allow},
		{"a message with nobody knows what", sends(false), unknown, profiles.Ask},
		{"a request with a body", posts, private, profiles.Ask},
		{"an address", at("docs.example", false), private, profiles.Ask},
		{"an address with nothing", at("docs.example", false), nil, profiles.Allow},
		{"what is typed into a page", types, private, profiles.Ask},
		{"what is typed into nobody knows which", nowhere, private, profiles.Ask},
		{"what is typed into a page of this machine", locally, private, profiles.Allow},
		{"a file", does("workspace", "none", []string{"write"}, inside("a")), private, profiles.Allow},
		{"at the server's own endpoint", does("remote", "fixed", []string{"write"}), private, profiles.Allow},
	} {
		row.call.Flow = &profiles.FlowFacts{Labels: profiles.Labels{Has: []string{"external"}}, Content: row.found}
		if d := p.Decide(row.call); d.Disposition != row.want || d.Disposition == profiles.Ask && d.Remember {
			t.Errorf("%s: %s, remembered: %v, want %s (%v)", row.name, d.Disposition, d.Remember, row.want, d.Reasons)
		}
	}
}
