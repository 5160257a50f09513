package profiles

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// spec decodes an `evaluation` section.
func spec(t testing.TB, text string) Spec {
	t.Helper()
	var s Spec
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return s
}

// set parses a section that must be right.
func set(t testing.TB, text string, options ...Options) *Set {
	t.Helper()
	s, problems := Parse(spec(t, text), options...)
	if len(problems) > 0 {
		t.Fatalf("parsing %s: %v", text, problems)
	}
	return s
}

// profile is the profile p of a section made of that profile alone.
func profile(t testing.TB, text string) *Profile {
	t.Helper()
	p, ok := set(t, `{"profiles": {"p": `+text+`}}`).Profile("p")
	if !ok {
		t.Fatal("there is no profile p")
	}
	return p
}

// call is a call of server__tool with JSON arguments.
func call(t testing.TB, name, args string) Call {
	t.Helper()
	c := Call{Tool: name}
	if server, tool, ok := strings.Cut(name, "__"); ok {
		c.Server, c.Tool = server, tool
	}
	if args != "" {
		d := json.NewDecoder(strings.NewReader(args))
		d.UseNumber()
		if err := d.Decode(&c.Args); err != nil {
			t.Fatalf("decoding arguments %s: %v", args, err)
		}
	}
	return c
}

// A row is one call and what must come of it.
type row struct {
	want       Disposition
	tool, args string
	because    string // part of the first reason
	change     []func(*Call)
}

func allow(tool, args, because string, change ...func(*Call)) row {
	return row{Allow, tool, args, because, change}
}

func ask(tool, args, because string, change ...func(*Call)) row {
	return row{Ask, tool, args, because, change}
}

func deny(tool, args, because string, change ...func(*Call)) row {
	return row{Deny, tool, args, because, change}
}

func changed(c *Call) { c.Changed = "the tool is not as a person has last seen it" }

// decide runs the rows against one profile.
func decide(t *testing.T, p *Profile, rows ...row) {
	t.Helper()
	for _, r := range rows {
		c := call(t, r.tool, r.args)
		for _, change := range r.change {
			change(&c)
		}
		d := p.Decide(c)
		if d.Disposition != r.want || !strings.Contains(d.Because().String(), r.because) {
			t.Errorf("%s(%s): %s because %q, want %s because of %q", r.tool, r.args, d.Disposition, d.Because(), r.want, r.because)
		}
	}
}

func pretty(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func yesPtr() *bool { b := true; return &b }
func noPtr() *bool  { b := false; return &b }
