package profiles

import (
	"strings"
	"testing"
)

// means gives a call a meaning that somebody accepted.
func means(m Meaning) func(*Call) {
	return func(c *Call) {
		m.Accepted = true
		c.Meaning = &m
	}
}

func read(where string, paths ...PathFact) Meaning {
	return Meaning{Effects: []string{"read"}, Where: where, Net: "none", Paths: paths}
}

func write(where string, paths ...PathFact) Meaning {
	return Meaning{Effects: []string{"write"}, Where: where, Net: "none", Paths: paths}
}

func inside(path string) PathFact { return PathFact{Param: "path", Path: "/ws/" + path, Inside: true} }

func outside(path string) PathFact { return PathFact{Param: "path", Path: path} }

func TestRulesByMeaning(t *testing.T) {
	t.Parallel()
	secret, hook, doubt := inside(".env"), inside(".git/hooks/x"), inside("a")
	secret.Secret, hook.RunsLater, doubt.Doubt = "passwords", "git runs it", "~"
	host := func(name string, isNew bool) Meaning {
		return Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Name: name, New: isNew}}}
	}
	command := func(texts ...string) Meaning {
		return Meaning{Effects: []string{"execute"}, Where: "local", Commands: texts}
	}
	unnamed := func(m Meaning) Meaning { m.Unknown = []string{"flag"}; return m }
	for _, test := range []struct {
		rule              string // without its action
		fits, not, cannot []Meaning
	}{
		{
			`"effects": ["read"]`,
			[]Meaning{read("local"), read("remote")},
			[]Meaning{write("local"), {Effects: []string{"send"}}},
			[]Meaning{{Effects: []string{"read", "write"}}, unnamed(read("local"))},
		},
		{
			`"where": ["workspace"]`,
			[]Meaning{read("workspace", inside("a")), read("workspace", inside("a"), inside("b")), read("workspace", hook)},
			[]Meaning{read("local"), read("remote"), read("workspace", outside("/etc/passwd")), read("workspace", secret), write("workspace", hook), read("workspace", doubt), read("workspace")},
			[]Meaning{read("workspace", inside("a"), outside("/b")), unnamed(read("workspace", inside("a")))},
		},
		{
			`"where": ["workspace", "local"], "effects": ["read"]`,
			[]Meaning{read("local"), read("workspace", inside("a"))},
			[]Meaning{write("workspace", inside("a")), read("remote")},
			[]Meaning{read("workspace", inside("a"), outside("/b"))},
		},
		{
			`"paths": ["secret"]`,
			[]Meaning{read("workspace", secret)},
			[]Meaning{read("workspace", inside("a")), read("local")},
			[]Meaning{read("workspace", secret, inside("a")), unnamed(read("workspace", inside("a"))), unnamed(read("local"))},
		},
		{
			`"paths": ["/ws/docs/*"]`,
			[]Meaning{write("workspace", inside("docs/a/b"))},
			[]Meaning{write("workspace", inside("src/a")), write("workspace", outside("/ws-evil/docs/a"))},
			[]Meaning{write("workspace", PathFact{Path: "/ws/docs/../x", Doubt: "it is doubtful"}), write("workspace", inside("docs/a"), inside("src/a"))},
		},
		{
			`"hosts": ["*.example.com", "example.com"]`,
			[]Meaning{host("example.com", true), host("api.example.com", false)},
			[]Meaning{host("example.com.evil.net", true), host("evil-example.com", true), read("local")},
			[]Meaning{{Effects: []string{"read"}, Hosts: []HostFact{{Doubt: "two hosts"}}}},
		},
		{
			`"hosts": ["new"]`,
			[]Meaning{host("example.com", true)},
			[]Meaning{host("example.com", false), read("local")},
			[]Meaning{unnamed(read("local"))},
		},
		{
			`"hosts": ["localhost"]`,
			[]Meaning{host("localhost", true), host("127.0.0.1", true), host("::1", true)},
			[]Meaning{host("localhost.evil.net", true), host("10.0.0.1", true)},
			nil,
		},
		{
			`"hosts": ["beyond"]`,
			[]Meaning{host("example.com", false), host("localhost.evil.net", true), {Effects: []string{"read"}, Hosts: []HostFact{{Doubt: "nobody knows which page is open"}}}, {Effects: []string{"read"}, Hosts: []HostFact{{Name: "localhost", Beyond: true}}}},
			[]Meaning{host("localhost", true), host("127.0.0.1", true), read("local")},
			[]Meaning{{Effects: []string{"read"}, Hosts: []HostFact{{Name: "localhost"}, {Name: "example.com"}}}},
		},
		{
			`"recipients": ["*@example.com"]`,
			[]Meaning{{Recipients: []RecipientFact{{Name: "Ann@Example.com"}}}},
			[]Meaning{{Recipients: []RecipientFact{{Name: "ann@example.com.evil.net"}}}, read("local")},
			[]Meaning{{Recipients: []RecipientFact{{Name: "ann@example.com"}, {Name: "bob@evil.net"}}}},
		},
		{
			`"commands": ["git status*", "git log*"]`,
			[]Meaning{command("git status --short"), command("git log", "git status")},
			[]Meaning{command("git push"), read("local")},
			[]Meaning{command("git status; rm -r /"), command("git log $(x)"), command("git log\nrm x"), command("git log", "rm x")},
		},
		{
			`"net": ["fixed"]`,
			[]Meaning{{Net: "fixed"}},
			[]Meaning{{Net: "chosen"}, {Net: "none"}},
			nil,
		},
	} {
		allows := profile(t, `{"default": "ask", "rules": [{`+test.rule+`, "action": "allow"}]}`)
		denies := profile(t, `{"rules": [{`+test.rule+`, "action": "deny"}]}`)
		try := func(meanings []Meaning, allowed, denied bool) {
			for _, m := range meanings {
				c := call(t, "s__x", `{}`)
				means(m)(&c)
				if got := allows.Decide(c).Disposition == Allow; got != allowed {
					t.Errorf("{%s} allows %+v: %v", test.rule, m, got)
				}
				if got := denies.Decide(c).Disposition == Deny; got != denied {
					t.Errorf("{%s} denies %+v: %v", test.rule, m, got)
				}
				c.Meaning.Accepted = false
				if allows.Decide(c).Disposition == Allow || denies.Decide(c).Disposition != Deny {
					t.Errorf("{%s}: %+v counts though nobody accepted it", test.rule, m)
				}
			}
		}
		try(test.fits, true, true)
		try(test.not, false, false)
		try(test.cannot, false, true)
		c := call(t, "s__x", `{}`)
		if allows.Decide(c).Disposition == Allow || denies.Decide(c).Disposition != Deny {
			t.Errorf("{%s} is decided for a tool of which nothing is known", test.rule)
		}
	}
}

func TestRiskByMeaning(t *testing.T) {
	t.Parallel()
	p := profile(t, `{"default": "risk"}`)
	secret, hook := inside(".env"), inside(".git/hooks/x")
	secret.Secret, hook.RunsLater = "passwords", "git runs it"
	destructive := true
	for _, test := range []struct {
		want    Risk
		m       Meaning
		because string
	}{
		{Low, read("workspace", inside("a")), "only reads"},
		{Low, read("local"), "only reads"},
		{Low, Meaning{Effects: []string{"read"}, Where: "remote", Net: "fixed"}, "only reads"},
		{Low, read("workspace", hook), "only reads"},
		{Medium, read("workspace", outside("/etc/hosts")), "outside the workspace"},
		{Medium, Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Name: "example.com"}}}, "a host"},
		{Medium, write("workspace", inside("a")), "changes"},
		{Medium, Meaning{Effects: []string{"send"}, Where: "remote", Recipients: []RecipientFact{{Name: "ann"}}}, "changes"},
		{High, Meaning{Effects: []string{"send"}, Where: "remote", Recipients: []RecipientFact{{Param: "to", Name: "bob", New: true}}}, "recipient"},
		{Medium, Meaning{Effects: []string{"read"}, Where: "remote", Recipients: []RecipientFact{{Param: "database", Name: "hr", New: true}}}, "nobody has approved"},
		{High, Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Name: "example.com", New: true}}}, "new here"},
		// A page that is only read, at an address that says only where.
		{Medium, Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Name: "example.com", New: true, Bare: true}}}, "a host"},
		{High, Meaning{Effects: []string{"read", "send"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Name: "example.com", New: true, Bare: true}}}, "new here"},
		{High, Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Doubt: "the URL has a user name", Bare: true}}}, "new here"},
		{High, Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Name: "example.com", New: true, Bare: true}},
			Carries: []CarriedFact{{Param: "url", What: "what mail answered"}}}, "new here"},
		{Medium, Meaning{Effects: []string{"read"}, Where: "remote", Net: "chosen", Hosts: []HostFact{{Param: "url", Name: "localhost", New: true, Beyond: true, Bare: true}}}, "a host"},
		// What others have set up runs by it.
		{Medium, Meaning{Effects: []string{"write", "execute"}, Where: "workspace", Triggers: true}, "changes"},
		{Medium, Meaning{Effects: []string{"write", "execute"}, Where: "remote", Net: "chosen", Triggers: true, Hosts: []HostFact{{Doubt: "nobody knows", New: true}}}, "changes"},
		{High, Meaning{Effects: []string{"write", "execute", "delete"}, Where: "remote", Triggers: true}, "gone"},
		{High, Meaning{Effects: []string{"write", "execute"}, Where: "workspace", Triggers: true, Paths: []PathFact{outside("/srv/other")}}, "outside"},
		{High, Meaning{Effects: []string{"write", "execute"}, Where: "remote", Triggers: true, Carries: []CarriedFact{{Param: "message", What: "a secret", Secret: true}}}, "a secret"},
		// No message goes to whom an issue is given.
		{Medium, Meaning{Effects: []string{"write", "send"}, Where: "remote", Recipients: []RecipientFact{{Param: "assignee", Name: "bob", New: true, Member: true}}}, "changes"},
		{High, Meaning{Effects: []string{"write", "send"}, Where: "remote", Recipients: []RecipientFact{{Name: "bob", New: true, Member: true}, {Param: "to", Name: "eve", New: true}}}, "recipient"},
		// What is pressed says that it costs something.
		{High, Meaning{Effects: []string{"write", "send"}, Where: "remote", Orders: true}, "buys"},
		{Low, Meaning{Effects: []string{"read"}, Where: "remote", Orders: true}, "only reads"},
		{High, write("workspace", outside("/etc/hosts")), "outside"},
		{High, write("workspace", hook), "git runs it"},
		{High, read("workspace", secret), "passwords"},
		{High, Meaning{Effects: []string{"delete"}, Where: "local"}, "gone"},
		{High, Meaning{Effects: []string{"execute"}, Where: "local"}, "code"},
		{High, Meaning{Effects: []string{"read", "spend"}, Where: "remote"}, "money"},
	} {
		c := call(t, "s__do", `{}`)
		c.Description = "executes deletions" // what words suggest does not count
		means(test.m)(&c)
		d := p.Decide(c)
		why := ""
		for _, r := range d.Reasons {
			why += r.String() + "\n"
		}
		if d.Risk != test.want || !strings.Contains(why, test.because) {
			t.Errorf("%+v: risk %s, want %s for %q:\n%s", test.m, d.Risk, test.want, test.because, why)
		}
		if c.Annotations.Destructive = &destructive; p.Decide(c).Risk < High {
			t.Errorf("%+v: a destructiveHint does not count", test.m)
		}
		c.Annotations.Destructive = nil
		if c.Meaning.Accepted = false; p.Decide(c).Risk != High {
			t.Errorf("%+v: facts that nobody accepted lower what words suggest", test.m)
		}
		if c.Meaning.Accepted, c.Meaning.Unknown = true, []string{"more"}; p.Decide(c).Risk != High {
			t.Errorf("%+v: an argument that nobody knows does not count", test.m)
		}
	}
}

// An argument that nobody knows raises what a tool's words suggest, and never lowers it.
func TestUnknownArgumentsRaise(t *testing.T) {
	t.Parallel()
	p := profile(t, `{"default": "risk"}`)
	for _, test := range []struct {
		tool     string
		accepted bool
		unknown  []string
		want     Risk
	}{
		{"s__get_pods", true, nil, Low},
		{"s__get_pods", true, []string{"resourceType"}, Medium},
		{"s__get_pods", false, nil, Low},
		{"s__get_pods", false, []string{"resourceType"}, Medium},
		{"s__delete_pods", true, []string{"resourceType"}, High},
	} {
		c := call(t, test.tool, `{}`)
		c.Meaning = &Meaning{Accepted: test.accepted, Effects: []string{"read"}, Where: "remote", Net: "fixed", Unknown: test.unknown}
		if got := p.Decide(c).Risk; got != test.want {
			t.Errorf("%+v: risk %s", test, got)
		}
	}
}

func TestMeaningOfRulesIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"effects": ["reed"], "action": "allow"}`:     `unknown word "reed", want one of read, write, delete, execute, send, spend`,
		`{"effects": [], "action": "allow"}`:           "an empty list tests nothing",
		`{"where": ["home"], "action": "allow"}`:       `unknown word "home"`,
		`{"net": ["any"], "action": "allow"}`:          `unknown word "any"`,
		`{"paths": ["workspaces"], "action": "allow"}`: `"workspaces" is neither one of workspace, outside, secret, runs-later nor an absolute path`,
		`{"hosts": ["[x"], "action": "allow"}`:         `"[" is not closed`,
		`{"action": "allow"}`:                          "the rule names no tool",
		`{"commands": ["git status"]}`:                 "the rule says nothing",
	} {
		_, problems := Parse(spec(t, `{"profiles": {"p": {"rules": [`+text+`]}}}`))
		if len(problems) == 0 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: %v, want %q", text, problems, want)
		}
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	p := profile(t, `{"default": "deny", "rules": [{"known": true, "action": "allow"}, {"known": false, "action": "ask"}]}`)
	known := call(t, "s__x", `{}`)
	means(read("local"))(&known)
	guessed, unnamed, changed, unaccepted := call(t, "s__x", `{}`), known, known, known
	changed.Changed = "its schema changed"
	for c, fill := range map[*Call]func(*Meaning){
		&unnamed:    func(m *Meaning) { m.Unknown = []string{"flag"} },
		&unaccepted: func(m *Meaning) { m.Accepted = false },
	} {
		m := *c.Meaning
		fill(&m)
		c.Meaning = &m
	}
	if got := p.Decide(known).Disposition; got != Allow {
		t.Errorf("a call of which it is known what it means: %s", got)
	}
	for name, c := range map[string]Call{"guessed": guessed, "with another argument": unnamed, "of a changed tool": changed, "not accepted": unaccepted} {
		if got := p.Decide(c).Disposition; got != Ask {
			t.Errorf("a call %s: %s", name, got)
		}
	}
}

// What carries something away from this machine is not allowed for what it does.
func TestCarriesOut(t *testing.T) {
	t.Parallel()
	p := profile(t, `{"default": "ask", "rules": [{"effects": ["read"], "action": "allow"}]}`)
	named := profile(t, `{"default": "ask", "rules": [{"tools": ["s__x"], "action": "allow"}]}`)
	for _, test := range []struct {
		where, net string
		secret     bool
		want       Disposition
		risk       Risk
	}{
		{"remote", "fixed", true, Ask, High},
		{"remote", "fixed", false, Ask, Medium},
		{"remote", "", true, Ask, High},
		{"local", "chosen", true, Ask, High},
		{"local", "none", true, Allow, Low},
		{"local", "", false, Allow, Low},
	} {
		c := call(t, "s__x", `{}`)
		m := read(test.where)
		m.Net, m.Carries = test.net, []CarriedFact{{Param: "q", What: "what mail answered"}}
		if test.secret {
			m.Carries = append(m.Carries, CarriedFact{Param: "q", What: "a secret", Secret: true})
		}
		means(m)(&c)
		if d := p.Decide(c); d.Disposition != test.want || d.Risk != test.risk {
			t.Errorf("%s, %s, secret %v: %s, %s", test.where, test.net, test.secret, d.Disposition, d.Risk)
		}
		if got := named.Decide(c).Disposition; got != Allow {
			t.Errorf("%s, %s: a rule that names the tool: %s", test.where, test.net, got)
		}
	}
}

func TestHinted(t *testing.T) {
	t.Parallel()
	p := profile(t, `{"default": "risk", "rules": [{"tools": ["s__grave"], "risk": "high"}, {"tools": ["s__mild"], "risk": "low"}]}`)
	yes := true
	for _, test := range []struct {
		tool string
		m    Meaning
		want bool
	}{
		{"s__x", write("workspace", inside("a")), true},
		{"s__mild", write("workspace", inside("a")), true},
		{"s__grave", write("workspace", inside("a")), false},
		{"s__x", write("workspace", outside("/b")), false},
		{"s__x", Meaning{Effects: []string{"delete"}, Where: "local"}, false},
		{"s__x", Meaning{Effects: []string{"read"}, Where: "local", Unknown: []string{"flag"}}, false},
	} {
		c := call(t, test.tool, `{}`)
		means(test.m)(&c)
		if d := p.Decide(c); d.Hinted {
			t.Errorf("%s %+v: hinted without a hint", test.tool, test.m)
		}
		c.Annotations.Destructive = &yes
		d := p.Decide(c)
		if d.Hinted != test.want || d.Risk != High {
			t.Errorf("%s %+v: hinted %v, %s", test.tool, test.m, d.Hinted, d.Risk)
		}
		c.Meaning = nil
		for _, both := range []Decision{Stricter(d, p.Decide(c)), Stricter(p.Decide(c), d)} {
			if both.Hinted {
				t.Errorf("%s %+v: hinted, though one of the policies has another reason", test.tool, test.m)
			}
		}
		if low := (Decision{Disposition: Allow, Risk: Low}); Stricter(d, low).Hinted != test.want || Stricter(low, d).Hinted != test.want {
			t.Errorf("%s %+v: a lower risk changes why it is high", test.tool, test.m)
		}
	}
}

func TestLooserByMeaning(t *testing.T) {
	t.Parallel()
	one := func(rules string) *Set {
		return set(t, `{"defaultProfile": "p", "profiles": {"p": {"default": "ask", "rules": [`+rules+`]}}}`)
	}
	reading := `{"effects": ["read"], "action": "allow"}`
	local := `{"effects": ["read"], "where": ["local"], "action": "allow"}`
	for _, test := range []struct {
		before, after string
		looser        bool
	}{
		{reading, reading, false},
		{"", reading, true},
		{reading, "", false},
		{local, reading, true},
		{reading, local, true}, // nobody has proved that it is narrower
		{`{"known": true, "tools": ["*"], "action": "deny"}`, `{"known": false, "tools": ["*"], "action": "deny"}`, true},
		{`{"paths": ["secret"], "action": "deny"}`, "", true},
		{"", `{"paths": ["secret"], "action": "deny"}`, false},
	} {
		if got := Looser(one(test.before), one(test.after)); (len(got) > 0) != test.looser {
			t.Errorf("%s, then %s: %q", test.before, test.after, got)
		}
	}
}

func TestBuiltinProfiles(t *testing.T) {
	t.Parallel()
	ask := "ask"
	builtins := func(action string) Options {
		return Options{Builtins: map[string]*ProfileSpec{"careful@1": {Default: &ask, Rules: []RuleSpec{{Tools: []string{"s__get"}, Action: &action}}}}}
	}
	text := `{"defaultProfile": "p", "profiles": {"p": {"extends": "builtin:careful@1", "asklist": ["s__x"]}}}`
	s := set(t, text, builtins("allow"))
	if got := s.Default().Decide(call(t, "s__get", `{}`)).Disposition; got != Allow {
		t.Errorf("a rule of the builtin: %s", got)
	}
	if got := s.Default().Decide(call(t, "s__other", `{}`)).Disposition; got != Ask {
		t.Errorf("the builtin's default: %s", got)
	}
	if names := s.Names(); len(names) != 1 || names[0] != "p" {
		t.Errorf("the builtin is offered as a profile: %q", names)
	}
	if other := set(t, text, builtins("ask")); other.Revision() == s.Revision() {
		t.Error("another builtin, and the same revision")
	}
	for _, name := range []string{"builtin:carefull@1", "builtin:careful", "careful"} {
		_, problems := Parse(spec(t, `{"profiles": {"p": {"extends": "`+name+`"}}}`), builtins("allow"))
		if len(problems) != 1 || !strings.Contains(problems[0].String(), `did you mean "builtin:careful@1"?`) {
			t.Errorf("%s: %v", name, problems)
		}
	}
	_, problems := Parse(spec(t, `{"profiles": {"builtin:careful@1": {}}}`))
	if len(problems) != 1 {
		t.Errorf("a profile of one's own with such a name: %v", problems)
	}
}

func TestHostNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // "": doubtful
		"https://example.com/a?b#c":         "example.com",
		"HTTPS://Example.COM:8443":          "example.com",
		"example.com.":                      "example.com",
		"localhost:3000":                    "localhost",
		"http://[::1]:80/":                  "::1",
		"http://127.0.0.1":                  "127.0.0.1",
		"http://2130706433/":                "",
		"http://0x7f.1/":                    "",
		"https://example.com@evil.net/":     "",
		"https://example.com\\@evil.net/":   "",
		"https://example.com\t.evil.net/":   "",
		"example.com/path":                  "",
		"//example.com":                     "",
		"file:///etc/passwd":                "",
		"javascript://example.com/%0aalert": "",
		"data:text/html,x":                  "",
		"https://exаmple.com":               "",
		"":                                  "",
	} {
		got := HostNamed("url", text)
		if got.Name != want || (got.Doubt == "") != (want != "") {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
}
