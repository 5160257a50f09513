package bridge

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A person at a client of either protocol has what was read before forgotten with a yes: the next scripts are not asked
// because of it, with a session or without one.
func TestAPersonForgets(t *testing.T) {
	spec := asks(func(p *profiles.ProfileSpec) {
		p.Default, p.Asklist = new("allow"), nil
		p.Flows = []profiles.FlowSpec{{From: new("private"), To: new("external"), Action: new("ask"), By: new("context")}}
	})
	for _, answer := range []string{"once", "forget"} {
		var p *person
		b := newBench(t, spec)
		b.gate.View().Meanings = map[string]gate.Meant{
			"a": {Labels: func(string) ([]string, bool) { return []string{"external"}, true }},
			"b": {Labels: func(string) ([]string, bool) { return []string{"private"}, true }},
		}
		eras(t, b, func() *mcp.ClientOptions {
			p = &person{answer: says(answer)}
			return &mcp.ClientOptions{ElicitationHandler: p.elicit}
		}, func(t *testing.T, c *mcp.ClientSession) {
			eval(t, c, `await codemode.b__echo({n: 1}); return 1`)
			for _, want := range []int{1, map[string]int{"once": 2, "forget": 1}[answer]} {
				if got := eval(t, c, `await codemode.a__echo({n: 2}); return 1`); got != "1" || len(p.questions()) != want {
					t.Errorf("%s: %s, asked %d times", answer, got, len(p.questions()))
				}
			}
			if form := p.questions()[0].Message; !strings.Contains(form, `"private: b__ec`) {
				t.Errorf("asked %q", form)
			}
			eval(t, c, `await codemode.b__echo({n: 3}); await codemode.a__echo({n: 4}); return 1`)
			if want := map[string]int{"once": 3, "forget": 2}[answer]; len(p.questions()) != want {
				t.Errorf("%s: what was read later: asked %d times", answer, len(p.questions()))
			}
		})
	}
}

// What a person had forgotten stays forgotten when the run goes on at another bridge, from its journal.
func TestForgottenElsewhere(t *testing.T) {
	const code = `const n = Number("1")
await codemode.b__echo({n})
await codemode.a__echo({n: n + 1})
try { await codemode.a__fail({n: n + 2}) } catch {}
await codemode.a__echo({n: n + 4})
return "sent"`
	for _, v := range []approval.Verdict{yes, {Approve: true, Text: "it must be", Forget: true}} {
		f := newFleet()
		bridge := func(name string) *bench {
			spec := queued()
			spec.Profiles["p"].Default, spec.Profiles["p"].Asklist = new("allow"), []string{"a__fail"}
			spec.Profiles["p"].Flows = []profiles.FlowSpec{{From: new("private"), To: new("external"), Action: new("ask"), By: new("context")}}
			b := f.bridge(t, name, spec)
			b.o.Gate.View().Meanings = map[string]gate.Meant{
				"a": {Labels: func(string) ([]string, bool) { return []string{"external"}, true }},
				"b": {Labels: func(string) ([]string, bool) { return []string{"private"}, true }},
			}
			return b
		}
		first := bridge("one")
		id := f.startPaused(t, first, code, 1)
		e := f.open(t, 1)[0]
		f.answer(t, e, v)
		f.open(t, 1)
		waitUntil(t, func() bool { r, ok := first.roster.lookup(id); return ok && r.quiet() })
		first.Close(0)
		f.answer(t, f.open(t, 1)[0], yes)
		second := bridge("two")
		go func() { _, _ = second.Resume(t.Context(), id, "the test", nil) }()
		if v.Forget {
			waitUntil(t, func() bool { st, ok := second.Run(t.Context(), id); return ok && st.Over() })
			f.open(t, 0)
			if made := second.up.made(); len(made) != 2 || !strings.Contains(made[1], `"n":5`) {
				t.Errorf("made %q", made)
			}
		} else if e := f.open(t, 1)[0]; e.Script != "a__echo" || !e.Decision.Context {
			t.Errorf("asked %+v", e.Request)
		} else {
			f.answer(t, e, approval.Verdict{Reason: approval.Declined, Stop: true})
			waitUntil(t, func() bool { st, ok := second.Run(t.Context(), id); return ok && st.Over() })
		}
	}
}

// A yes to calls that wait together forgets what was read before, also where only one of them is asked because of it.
func TestForgettingWithCallsThatWaitTogether(t *testing.T) {
	for _, answer := range []string{"once", "forget"} {
		b := newBench(t, asks(func(p *profiles.ProfileSpec) {
			p.Default, p.Asklist = new("allow"), []string{"b__fail"}
			p.Flows = []profiles.FlowSpec{{From: new("private"), To: new("external"), Action: new("ask"), By: new("context")}}
		}))
		b.gate.View().Meanings = map[string]gate.Meant{
			"a": {Labels: func(string) ([]string, bool) { return []string{"external"}, true }},
			"b": {Labels: func(tool string) ([]string, bool) {
				return map[string][]string{"echo": {"private"}}[tool], true
			}},
		}
		p := &person{answer: says(answer)}
		c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit})
		for _, row := range []struct {
			code  string
			asked map[string]int // questions, by the answer to all of them
		}{
			{`await codemode.b__echo({n: 1}); await Promise.allSettled([codemode.a__echo({n: Number("2")}), codemode.b__fail({n: Number("3")})]); return 1`, map[string]int{"once": 1, "forget": 1}},
			{`await codemode.a__echo({n: 4}); return 1`, map[string]int{"once": 2, "forget": 1}},
		} {
			if got := eval(t, c, row.code); got != "1" || len(p.questions()) != row.asked[answer] {
				t.Fatalf("%s: %s: %s, asked %d times, want %d", answer, row.code, got, len(p.questions()), row.asked[answer])
			}
		}
	}
}
