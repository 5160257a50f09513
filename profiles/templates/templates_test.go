package templates_test

import (
	"regexp"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/templates"

	"github.com/google/go-cmp/cmp"
)

// load makes a profile with this text, as a configuration does.
func load(t *testing.T, text string) *profiles.Profile {
	t.Helper()
	cfg, err := config.Parse("config.json", []byte(`{"evaluation": {"risk": {"unknown": "medium"}, "profiles": {"p": `+text+`}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := cfg.Profiles.Profile("p")
	return p
}

func TestEveryTemplateLoads(t *testing.T) {
	t.Parallel()
	all := templates.All()
	if len(all) < 5 {
		t.Fatalf("there are %d templates", len(all))
	}
	for _, one := range all {
		rules := load(t, one.Profile()).Effective().Rules
		if diff := cmp.Diff(rules, load(t, one.Text).Effective().Rules); diff != "" {
			t.Errorf("%s: what is extended is not what is printed:\n%s", one.Name, diff)
		}
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(one.Name) || !strings.HasSuffix(one.Summary, ".") || !strings.HasPrefix(one.Text, "{") {
			t.Errorf("%q, %q", one.Name, one.Summary)
		}
		for i, r := range rules {
			if r.Name == nil {
				t.Errorf("%s: rule %d has no name", one.Name, i)
			}
		}
		for _, name := range []string{one.Name, one.Key()} {
			if found, ok := templates.Find(name); !ok || found != one {
				t.Errorf("%s: found %v, %v", name, found, ok)
			}
		}
	}
	for _, name := range []string{"nosuch", "coding@99", ""} {
		if _, ok := templates.Find(name); ok {
			t.Errorf("there is a template %q", name)
		}
	}
}

// The calls of the table below, by what they mean.
var calls = map[string]profiles.Call{
	"list tools": {Tool: "search_tools"},

	"read a file of the workspace":           reads("workspace", "none", inside("src/a.go")),
	"read what a store on this machine has":  reads("local", "none"),
	"read at the server's own endpoint":      reads("remote", "fixed"),
	"read a file outside":                    reads("workspace", "none", outside),
	"read a file of secrets in it":           reads("workspace", "none", secret),
	"read a file and one of secrets":         reads("workspace", "none", inside("a"), secret),
	"read a hook":                            reads("workspace", "none", hook),
	"read a page of a new host":              at("new.example", true),
	"read a page of a host asked before":     at("old.example", false),
	"read a page whose host is doubtful":     at("", false),
	"ask the server's endpoint for a secret": carries(reads("remote", "fixed")),
	"read a database that is new here":       from(true),
	"read a database asked before":           from(false),

	"write in the workspace":                      does("workspace", "none", []string{"write"}, inside("src/a.go")),
	"write there, and it is said to destroy":      destructive(does("workspace", "none", []string{"write"}, inside("src/a.go"))),
	"write outside":                               does("workspace", "none", []string{"write"}, outside),
	"write a hook":                                does("workspace", "none", []string{"write"}, hook),
	"move a file out":                             does("workspace", "none", []string{"read", "write"}, inside("a"), outside),
	"add to a store on this machine":              does("local", "none", []string{"write"}),
	"open an issue":                               does("remote", "fixed", []string{"write", "send"}),
	"write to somebody new":                       sends(true),
	"write to somebody who was written to":        sends(false),
	"delete a file":                               does("workspace", "none", []string{"delete"}, inside("a")),
	"run a command":                               does("local", "none", []string{"execute"}),
	"pay":                                         does("remote", "fixed", []string{"spend"}),
	"run what may also delete":                    does("local", "none", []string{"read", "delete", "execute"}),
	"read with an argument that nobody knows":     unknown(reads("workspace", "none", inside("a"))),
	"read a secret, an argument nobody knows":     unknown(reads("workspace", "none", secret)),
	"call a tool of which nothing is known":       {Server: "s", Tool: "frobnicate"},
	"call one that is called a reading one":       {Server: "s", Tool: "get_issue"},
	"call one that is called a deleting one":      {Server: "s", Tool: "delete_issue"},
	"read, by a tool that has changed since":      changed(reads("workspace", "none", inside("a"))),
	"read, by facts that nobody accepted":         unaccepted(reads("remote", "fixed")),
	"write in the workspace, facts not accepted":  unaccepted(does("workspace", "none", []string{"write"}, inside("a"))),
	"read a secret, by facts that none accepted":  unaccepted(reads("workspace", "none", secret)),
	"look at a page in a browser, host not known": reads("remote", "chosen"),
}

func does(where, net string, effects []string, paths ...profiles.PathFact) profiles.Call {
	return profiles.Call{Server: "s", Tool: "do", Meaning: &profiles.Meaning{Accepted: true, Effects: effects, Where: where, Net: net, Paths: paths}}
}

func reads(where, net string, paths ...profiles.PathFact) profiles.Call {
	c := does(where, net, []string{"read"}, paths...)
	c.Tool = "get"
	return c
}

func inside(path string) profiles.PathFact {
	return profiles.PathFact{Param: "path", Path: "/ws/" + path, Inside: true}
}

var (
	outside = profiles.PathFact{Param: "path", Path: "/etc/hosts"}
	secret  = profiles.PathFact{Param: "path", Path: "/ws/.env", Inside: true, Secret: "passwords"}
	hook    = profiles.PathFact{Param: "path", Path: "/ws/.git/hooks/x", Inside: true, RunsLater: "git runs it"}
)

func at(host string, isNew bool) profiles.Call {
	c := reads("remote", "chosen")
	c.Meaning.Hosts = []profiles.HostFact{{Param: "url", Name: host, New: isNew}}
	if host == "" {
		c.Meaning.Hosts[0].Doubt = "it has a user name"
	}
	return c
}

func sends(isNew bool) profiles.Call {
	c := does("remote", "fixed", []string{"send"})
	c.Meaning.Recipients = []profiles.RecipientFact{{Param: "to", Name: "ann@example.com", New: isNew}}
	return c
}

func from(isNew bool) profiles.Call {
	c := reads("remote", "fixed")
	c.Meaning.Recipients = []profiles.RecipientFact{{Param: "database", Name: "hr", New: isNew}}
	return c
}

func destructive(c profiles.Call) profiles.Call {
	yes := true
	c.Annotations.Destructive = &yes
	return c
}

func carries(c profiles.Call) profiles.Call {
	c.Meaning.Carries = []profiles.CarriedFact{{Param: "query", What: "a secret", Secret: true}}
	return c
}

func unknown(c profiles.Call) profiles.Call {
	c.Meaning.Unknown = []string{"more"}
	return c
}

func changed(c profiles.Call) profiles.Call {
	c.Changed = "its description changed"
	return c
}

func unaccepted(c profiles.Call) profiles.Call {
	c.Meaning.Accepted = false
	return c
}

// What the templates do, each row a sentence: to read a file of the workspace is
// allowed. An ask that no wider answer is remembered of ends in "each time".
func TestTemplatesDecide(t *testing.T) {
	t.Parallel()
	const allow, ask, each, deny, manual = "allow", "ask", "ask each time", "deny", "manual"
	rows := []struct{ call, coding, research, operations, readOnly, paranoid string }{
		{"list tools", allow, allow, allow, allow, allow},
		{"read a file of the workspace", allow, allow, allow, allow, each},
		{"read what a store on this machine has", allow, allow, allow, allow, each},
		{"read at the server's own endpoint", allow, allow, allow, allow, each},
		{"read a hook", allow, allow, allow, allow, manual},
		{"read a file outside", ask, ask, ask, deny, each},
		{"read a file of secrets in it", each, each, each, deny, manual},
		{"read a file and one of secrets", each, each, each, deny, manual},
		{"read a page of a new host", ask, ask, ask, deny, each},
		{"read a page of a host asked before", ask, ask, ask, deny, each},
		{"read a page whose host is doubtful", ask, ask, ask, deny, each},
		{"look at a page in a browser, host not known", ask, ask, ask, deny, each},
		{"ask the server's endpoint for a secret", ask, ask, ask, deny, each},

		{"write in the workspace", ask, ask, ask, deny, each},
		{"write there, and it is said to destroy", ask, ask, ask, deny, each},
		{"add to a store on this machine", ask, ask, ask, deny, each},
		{"open an issue", ask, ask, ask, deny, each},
		{"write to somebody who was written to", ask, ask, ask, deny, each},
		{"write to somebody new", ask, ask, ask, deny, each},
		{"write outside", ask, ask, ask, deny, each},
		{"move a file out", ask, ask, ask, deny, each},
		{"write a hook", each, each, each, deny, manual},
		{"run a command", ask, each, ask, deny, manual},
		{"delete a file", each, deny, each, deny, manual},
		{"pay", each, each, each, deny, manual},
		{"run what may also delete", each, deny, each, deny, manual},

		{"read with an argument that nobody knows", ask, ask, ask, deny, each},
		{"read a database that is new here", ask, ask, ask, allow, each},
		{"read a database asked before", allow, allow, allow, allow, each},
		{"read a secret, an argument nobody knows", each, each, each, deny, each},
		{"call a tool of which nothing is known", ask, ask, ask, deny, each},
		{"call one that is called a reading one", allow, allow, allow, deny, each},
		{"call one that is called a deleting one", each, each, each, deny, each},
		{"read, by a tool that has changed since", ask, ask, ask, ask, each},
		{"read, by facts that nobody accepted", allow, allow, allow, deny, each},
		{"write in the workspace, facts not accepted", ask, ask, ask, deny, each},
		{"read a secret, by facts that none accepted", each, each, each, deny, each},
	}
	if len(rows) != len(calls) {
		t.Errorf("%d rows for %d calls", len(rows), len(calls))
	}
	for column, name := range []string{"coding", "research", "operations", "read-only", "paranoid"} {
		one, ok := templates.Find(name)
		if !ok {
			t.Fatalf("there is no template %s", name)
		}
		p := load(t, one.Profile())
		for _, row := range rows {
			call, ok := calls[row.call]
			if !ok {
				t.Fatalf("nobody says what it is to %s", row.call)
			}
			call.Flow = &profiles.FlowFacts{} // nothing was read
			d := p.Decide(call)
			got := d.Disposition.String()
			switch {
			case d.Manual:
				got = manual
			case d.Disposition == profiles.Ask && !d.Remember:
				got = each
			}
			if want := []string{row.coding, row.research, row.operations, row.readOnly, row.paranoid}[column]; got != want {
				t.Errorf("%s: to %s is %s, want %s (%v)", name, row.call, got, want, d.Reasons)
			}
		}
	}
}

// What a profile adds to a template can allow what the template asks by default, and
// nothing that it asks about by a rule.
func TestTemplatesAreExtended(t *testing.T) {
	t.Parallel()
	p := load(t, `{"extends": "builtin:coding@1", "rules": [{"effects": ["write", "delete"], "paths": ["/ws/*"], "action": "allow"}]}`)
	for call, want := range map[string]profiles.Disposition{
		"write in the workspace":         profiles.Allow,
		"delete a file":                  profiles.Ask,
		"write a hook":                   profiles.Ask,
		"write outside":                  profiles.Ask,
		"add to a store on this machine": profiles.Ask,
	} {
		if got := p.Decide(calls[call]).Disposition; got != want {
			t.Errorf("to %s is %s, want %s", call, got, want)
		}
	}
}
