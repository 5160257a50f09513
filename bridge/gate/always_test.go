package gate

import (
	"encoding/json"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// madeCall is a call that a profile with default: risk asks about.
func madeCall(t *testing.T, server, tool, args string, m profiles.Meaning) *call {
	t.Helper()
	frozen, err := canon.Parse([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	m.Accepted = true
	c := &call{tool: &catalog.Tool{Server: server, Definition: catalog.Definition{Name: tool}}, args: frozen, meaning: &m}
	c.decision = deciding(t, nil).Decide(factsOf(c))
	return c
}

func deciding(t *testing.T, rule *profiles.RuleSpec) *profiles.Profile {
	t.Helper()
	p := &profiles.ProfileSpec{Default: new("risk"), Rules: []profiles.RuleSpec{{Name: new("wider"), Known: new(true), Remember: new(true)}}}
	if rule != nil {
		text, err := json.Marshal(rule) // as it comes back from a file
		if err != nil {
			t.Fatal(err)
		}
		var read profiles.RuleSpec
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, read)
	}
	set, problems := profiles.Parse(profiles.Spec{DefaultProfile: new("p"), Profiles: map[string]*profiles.ProfileSpec{"p": p}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set.Default()
}

func factsOf(c *call) profiles.Call {
	return profiles.Call{Server: c.tool.Server, Tool: c.tool.Name, Args: c.args.Value(), Meaning: c.meaning}
}

// The rule that is proposed allows the call, those that a wider answer covers, and no
// others.
func TestAlways(t *testing.T) {
	t.Parallel()
	inside := func(path string) profiles.PathFact { return profiles.PathFact{Param: "path", Path: path, Inside: true} }
	writing := func(paths ...profiles.PathFact) profiles.Meaning {
		return profiles.Meaning{Effects: []string{"write"}, Where: "workspace", Net: "none", Paths: paths}
	}
	hook := inside("/work/a[b]/.git/hooks/x")
	hook.RunsLater = "git runs it"
	comment := profiles.Meaning{Effects: []string{"write", "send"}, Where: "remote", Net: "fixed"}
	fetch := func(host string) profiles.Meaning {
		return profiles.Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []profiles.HostFact{{Param: "url", Name: host}}}
	}
	mail := func(to string) profiles.Meaning {
		return profiles.Meaning{Effects: []string{"send"}, Where: "remote", Net: "fixed", Recipients: []profiles.RecipientFact{{Param: "to", Name: to}}}
	}
	carrying := comment
	carrying.Carries = []profiles.CarriedFact{{Param: "body", What: "a secret", Secret: true}}
	folder := approval.Bound{Param: "folder", Kind: approval.UnderFolder, Value: "/work/a[b]"}
	type one struct {
		server, tool, args string
		m                  profiles.Meaning
	}
	for _, test := range []struct {
		says    string
		call    one
		cover   approval.Cover
		covered []one
		not     []one
	}{
		{"writing under a folder",
			one{"fs", "write_file", `{"path":"x"}`, writing(inside("/work/a[b]/x"))},
			approval.Cover{Kind: "write", Bound: []approval.Bound{folder}, Free: []string{"content"}},
			[]one{{"fs", "edit_file", `{"path":"y","edits":[]}`, writing(inside("/work/a[b]/y/z"))}, {"fs", "create_directory", `{}`, writing(inside("/work/a[b]"))}},
			[]one{
				{"fs", "write_file", `{}`, writing(inside("/work/ab/x"))},
				{"fs", "write_file", `{}`, writing(inside("/work/a[b]c/x"))},
				{"fs", "write_file", `{}`, writing(profiles.PathFact{Param: "path", Path: "/work/a[b]/x"})},
				{"fs", "write_file", `{}`, writing(inside("/work/a[b]/x"), inside("/etc/x"))},
				{"fs", "write_file", `{}`, writing(hook)},
				{"fs2", "write_file", `{}`, writing(inside("/work/a[b]/x"))},
				{"fs", "delete_file", `{}`, profiles.Meaning{Effects: []string{"delete"}, Where: "workspace", Net: "none", Paths: []profiles.PathFact{inside("/work/a[b]/x")}}},
			}},
		{"commenting in one repository",
			one{"gh", "add_issue_comment", `{"owner":"ac\"me","repo":"web","body":"hello"}`, comment},
			approval.Cover{Kind: "add_issue_comment", Bound: []approval.Bound{{Param: "owner", Kind: approval.Exact, Value: `ac"me`}, {Param: "repo", Kind: approval.Exact, Value: "web"}}, Free: []string{"body"}},
			[]one{{"gh", "add_issue_comment", `{"owner":"ac\"me","repo":"web","body":"another"}`, comment}},
			[]one{
				{"gh", "add_issue_comment", `{"owner":"acme","repo":"web","body":"hello"}`, comment},
				{"gh", "add_issue_comment", `{"owner":"ac\"me","repo":"web","body":"hello","assignee":"x"}`, comment},
				{"gh", "create_issue", `{"owner":"ac\"me","repo":"web","body":"hello"}`, comment},
				{"gh", "add_issue_comment", `{"owner":"ac\"me","repo":"web","body":"hello"}`, carrying},
			}},
		{"reading from one host",
			one{"web", "fetch", `{"url":"https://go.dev/x"}`, fetch("go.dev")},
			approval.Cover{Kind: "fetch", Bound: []approval.Bound{{Param: "url", Kind: approval.AtHost, Value: "go.dev"}}},
			[]one{{"web", "fetch", `{"url":"https://go.dev/y"}`, fetch("go.dev")}},
			[]one{{"web", "fetch", `{"url":"https://go.dev.evil.net/y"}`, fetch("go.dev.evil.net")}}},
		{"writing to one person",
			one{"mail", "send", `{"to":"Ann@x.org","text":"hi"}`, mail("Ann@x.org")},
			approval.Cover{Kind: "send", Bound: []approval.Bound{{Param: "to", Kind: approval.ToRecipient, Value: "Ann@x.org"}}, Free: []string{"text"}},
			[]one{{"mail", "send", `{"to":"ann@x.org","text":"bye"}`, mail("ann@x.org")}},
			[]one{{"mail", "send", `{"to":"bob@x.org","text":"hi"}`, mail("bob@x.org")}}},
	} {
		made := func(o one) *call { return madeCall(t, o.server, o.tool, o.args, o.m) }
		rule := made(test.call).always(test.cover)
		if rule == nil {
			t.Errorf("%s: nothing is proposed", test.says)
			continue
		}
		p := deciding(t, rule)
		for _, o := range append(test.covered, test.call) {
			if d := p.Decide(factsOf(made(o))); d.Disposition != profiles.Allow {
				t.Errorf("%s: %+v is not allowed by %+v", test.says, o, rule)
			}
		}
		for _, o := range test.not {
			if d := p.Decide(factsOf(made(o))); d.Disposition == profiles.Allow {
				t.Errorf("%s: %+v is allowed by %+v", test.says, o, rule)
			}
		}
	}
}

// Nothing is proposed where a rule could not say what is bound, or should not stand.
func TestAlwaysIsNotProposed(t *testing.T) {
	t.Parallel()
	fine := profiles.Meaning{Effects: []string{"write"}, Where: "remote", Net: "fixed"}
	cover := approval.Cover{Kind: "do", Bound: []approval.Bound{{Param: "owner", Kind: approval.Exact, Value: "acme"}}}
	bound := func(b ...approval.Bound) approval.Cover { return approval.Cover{Kind: "do", Bound: b} }
	if madeCall(t, "s", "do", `{"owner":"acme"}`, fine).always(cover) == nil {
		t.Fatal("nothing is proposed though it could be")
	}
	for says, change := range map[string]func(c *call, cover *approval.Cover){
		"no wider answer":    func(_ *call, cover *approval.Cover) { cover.None = "it is the first" },
		"nothing remembered": func(c *call, _ *approval.Cover) { c.decision.Remember = false },
		"critical":           func(c *call, _ *approval.Cover) { c.decision.Risk = profiles.Critical },
		"asked by a rule": func(c *call, _ *approval.Cover) {
			c.decision.Reasons = []profiles.Reason{{Kind: profiles.KindRule, Disposition: profiles.Ask}}
		},
		"no profile":          func(c *call, _ *approval.Cover) { c.decision.Profile = "" },
		"nobody knows it":     func(c *call, _ *approval.Cover) { c.meaning = nil },
		"not accepted":        func(c *call, _ *approval.Cover) { c.meaning.Accepted = false },
		"an unknown argument": func(c *call, _ *approval.Cover) { c.meaning.Unknown = []string{"x"} },
		"carries something away": func(c *call, _ *approval.Cover) {
			c.meaning.Carries = []profiles.CarriedFact{{Param: "x", What: "a secret"}}
		},
		"deletes":           func(c *call, _ *approval.Cover) { c.meaning.Effects = []string{"delete"} },
		"runs code":         func(c *call, _ *approval.Cover) { c.meaning.Effects = []string{"write", "execute"} },
		"effects not known": func(c *call, _ *approval.Cover) { c.meaning.Effects = nil },
		"on both sides": func(c *call, _ *approval.Cover) {
			c.meaning.Where, c.meaning.Paths = "workspace", []profiles.PathFact{{Path: "/a", Inside: true}, {Path: "/b"}}
		},
		"nowhere": func(c *call, _ *approval.Cover) { c.meaning.Where = "workspace" },
		"outside": func(c *call, _ *approval.Cover) {
			c.meaning.Where, c.meaning.Paths = "workspace", []profiles.PathFact{{Path: "/b/x"}}
		},
		"two folders": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Kind: approval.UnderFolder, Value: "/a"}, approval.Bound{Kind: approval.UnderFolder, Value: "/b"})
		},
		"another port": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Kind: approval.AtHost, Value: "x.org:8080"})
		},
		"two hosts": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Kind: approval.AtHost, Value: "x.org"}, approval.Bound{Kind: approval.AtHost, Value: "y.org"})
		},
		"two people": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Kind: approval.ToRecipient, Value: "a"}, approval.Bound{Kind: approval.ToRecipient, Value: "b"})
		},
		"a host in a text": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Param: "body", Kind: approval.Mentions, Value: "x.org"})
		},
		"inside an object": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Param: "to.name", Kind: approval.Exact, Value: "x"})
		},
		"of a newer kind": func(_ *call, cover *approval.Cover) {
			*cover = bound(approval.Bound{Param: "n", Kind: "nearby", Value: "x"})
		},
	} {
		c, cover := madeCall(t, "s", "do", `{"owner":"acme"}`, fine), cover
		change(c, &cover)
		if rule := c.always(cover); rule != nil {
			t.Errorf("%s: %+v", says, rule)
		}
	}
}
