package profiles

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// looserDecision says in what one decision is looser than another.
func looserDecision(was, is Decision) string {
	switch {
	case is.rank() < was.rank():
		return "disposition"
	case is.Disposition == Allow && was.Notify && !is.Notify:
		return "notify"
	case is.Repeatable && !was.Repeatable && is.Disposition != Deny:
		return "repeatable"
	case is.Disposition != Ask || was.Disposition != Ask:
		return ""
	case is.Risk < was.Risk:
		return "risk"
	case is.Timeout > was.Timeout, was.TimeoutExplicit && !is.TimeoutExplicit:
		return "timeout"
	case is.Remember && !was.Remember:
		return "remember"
	case was.RequireReason && !is.RequireReason:
		return "requireReason"
	case is.Fallback > was.Fallback:
		return "fallback"
	}
	for _, q := range was.Quorums {
		if !slices.ContainsFunc(is.Quorums, func(n Quorum) bool { return meets(&n, &q) }) {
			return "quorum"
		}
	}
	return ""
}

// tables are what `risk` of the section may be.
var tables = []string{
	``, `"unknown":"low"`, `"unknown":"medium"`, `"unknown":"critical"`, `"high":{"remember":true}`, `"high":{"remember":false,"requireReason":true}`,
	`"medium":{"timeout":"20s"},"high":{"timeout":"20s"},"critical":{"timeout":"20s"}`, `"critical":{"timeout":"10m"}`,
	`"low":{"quorum":{"need":2}}`, `"critical":{"quorum":{"need":3}}`, `"medium":{"quorum":{"need":2,"of":["a","b"]}}`,
}

// A change makes some part of a profile another.
func drawChange(t *rapid.T, p worldProfile) worldProfile {
	add := func(list []string) []string {
		return append(slices.Clone(list), rapid.SampledFrom(worldPatterns).Draw(t, "pattern"))
	}
	drop := func(list []string) []string {
		if len(list) == 0 {
			return list
		}
		i := rapid.IntRange(0, len(list)-1).Draw(t, "at")
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	switch rapid.IntRange(0, 12).Draw(t, "change") {
	case 0:
		p.deny = add(p.deny)
	case 1:
		p.ask = add(p.ask)
	case 2:
		p.allow = add(p.allow)
	case 3:
		p.deny = drop(p.deny)
	case 4:
		p.ask = drop(p.ask)
	case 5:
		p.allow = drop(p.allow)
	case 6:
		p.allow = nil
	case 7:
		p.rules = append(slices.Clone(p.rules), drawRule(t, worldActions))
	case 8, 9:
		if len(p.rules) == 0 {
			break
		}
		i := rapid.IntRange(0, len(p.rules)-1).Draw(t, "rule")
		p.rules = slices.Clone(p.rules)
		if rapid.Bool().Draw(t, "drop") {
			p.rules = slices.Delete(p.rules, i, i+1)
			break
		}
		r, other := p.rules[i], drawRule(t, worldActions)
		switch rapid.IntRange(0, 4).Draw(t, "part") {
		case 0:
			r.tools = other.tools
		case 1:
			r.action, r.remember, r.requireReason, r.timeout, r.quorum = other.action, other.remember, other.requireReason, other.timeout, other.quorum
			if r.action == "" && r.risk == "" {
				r.risk = "low"
			}
		case 2:
			if r.risk = other.risk; r.action == "" && r.risk == "" {
				r.risk = "low"
			}
		case 3:
			r.condition = other.condition
		case 4:
			r.repeatable = other.repeatable
		}
		p.rules[i] = r
	case 10:
		p.byDefault = rapid.SampledFrom([]string{"", "allow", "risk", "ask", "deny"}).Draw(t, "default")
	case 12:
		p = drawObserve(t, p)
	case 11:
		p.fallback = rapid.SampledFrom([]string{"", "deny", "queue", "allow"}).Draw(t, "fallback")
	}
	return p
}

func changeable(t *rapid.T, tb testing.TB, w world, table string) (*Set, bool) {
	s, problems := Parse(spec(tb, `{"risk": {`+table+`}, "defaultProfile": "child", `+strings.TrimPrefix(w.json(), "{")))
	return s, len(problems) == 0
}

// Whatever is changed: if one call is decided less strictly, Looser has said so.
func TestLooserMissesNothing(t *testing.T) {
	silent, loosened := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w, table := drawTrial(rt), rapid.SampledFrom(tables).Draw(rt, "table")
		before, ok := changeable(rt, t, w, table)
		if !ok {
			rt.Fatalf("%s: not a policy", w.json())
		}
		next := world{w.enabled, map[string]worldProfile{"top": w.profiles["top"], "child": w.profiles["child"]}}
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			name := rapid.SampledFrom([]string{"top", "child"}).Draw(rt, "where")
			next.profiles[name] = drawChange(rt, next.profiles[name])
		}
		switch rapid.IntRange(0, 9).Draw(rt, "more") {
		case 0:
			next.enabled = !next.enabled
		case 1:
			table = rapid.SampledFrom(tables).Draw(rt, "another table")
		}
		after, ok := changeable(rt, t, next, table)
		if !ok {
			return // what is inherited may not be weakened
		}
		said := Looser(before, after)
		if len(said) == 0 {
			silent++
		}
		for range 10 {
			c := drawCall(rt, t)
			for _, name := range []string{"top", "child"} {
				old, new := before.profiles[name].Decide(c), after.profiles[name].Decide(c)
				what := looserDecision(old, new)
				if what == "" {
					continue
				}
				loosened++
				if len(said) == 0 {
					rt.Fatalf("%s\n%s\nprofile %s, call %s(%v): looser by its %s, and nothing was said\n%s\n%s",
						w.json(), next.json(), name, c.Path(), c.Args, what, pretty(old), pretty(new))
				}
			}
		}
	})
	if silent == 0 || loosened == 0 {
		t.Errorf("nothing was tried: %d changes of which nothing was said, %d looser decisions", silent, loosened)
	}
}

// What only tightens is not held against anybody.
func TestLooserIsSilent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, table := drawWorld(rt), rapid.SampledFrom(tables).Draw(rt, "table")
		before, _ := changeable(rt, t, w, table)
		next := world{w.enabled, map[string]worldProfile{"top": w.profiles["top"], "child": w.profiles["child"]}}
		name := rapid.SampledFrom([]string{"top", "child"}).Draw(rt, "where")
		p := next.profiles[name]
		switch rapid.IntRange(0, 6).Draw(rt, "what") {
		case 0:
		case 1:
			p.deny = append(slices.Clone(p.deny), rapid.SampledFrom(worldPatterns).Draw(rt, "pattern"))
		case 2:
			r := drawRule(rt, []string{"deny"})
			p.rules = append(slices.Clone(p.rules), r)
		case 3:
			p.byDefault = "deny"
		case 4:
			p.allow = slices.Clone(p.allow)
			if len(p.allow) > 0 {
				p.allow = p.allow[1:]
			}
		case 6:
			r := drawRule(rt, worldActions)
			r.observed = true
			p.rules = append(slices.Clone(p.rules), r)
		case 5:
			p.rules = slices.Clone(p.rules)
			slices.Reverse(p.rules)
			slices.Reverse(p.deny)
		}
		next.profiles[name] = p
		after, ok := changeable(rt, t, next, table)
		if !ok {
			return // the child's default would weaken it
		}
		if said := Looser(before, after); len(said) > 0 {
			rt.Fatalf("%s\n%s\n%q", w.json(), next.json(), said)
		}
	})
}

func TestLooserInWords(t *testing.T) {
	const base = `"extends":"up","denylist":["fs__rm*"],"asklist":["mail__*"],"default":"risk","elicitationFallback":"deny",
		"limits":{"calls":10},"rules":[{"name":"prod","tools":["db__*"],"when":"args.env == 'prod'","action":"ask","quorum":{"need":2},"check":["args.env != ''"],"hidden":["pin"]}]`
	policy := func(p, more string) *Set {
		return set(t, fmt.Sprintf(`{"defaultProfile":"safe"%s,"profiles":{"up":{"denylist":["shell__*"]},"safe":{%s}}}`, more, p))
	}
	before := policy(base, "")
	for name, c := range map[string]struct {
		after *Set
		want  string // "" for nothing
	}{
		"the same":            {policy(base, ""), ""},
		"an ask more":         {policy(strings.Replace(base, `"mail__*"`, `"mail__*","cal__*"`, 1), ""), ""},
		"asked, now denied":   {policy(strings.Replace(base, `"denylist":["fs__rm*"],"asklist":["mail__*"]`, `"denylist":["fs__*","mail__*"]`, 1), ""), ""},
		"a rule denies":       {policy(strings.Replace(base, `"action":"ask","quorum":{"need":2},"check":["args.env != ''"]`, `"action":"deny"`, 1), ""), ""},
		"a wider rule":        {policy(strings.Replace(base, `["db__*"]`, `["*"]`, 1), ""), ""},
		"more people":         {policy(strings.Replace(base, `"need":2`, `"need":3`, 1), ""), ""},
		"a tighter limit":     {policy(strings.Replace(base, `"calls":10`, `"calls":5`, 1), ""), ""},
		"a strict profile":    {set(t, `{"defaultProfile":"safe","profiles":{"up":{"denylist":["shell__*"]},"safe":{`+base+`},"more":{"extends":"safe","denylist":["x__*"]}}}`), ""},
		"denied no more":      {policy(strings.Replace(base, `"fs__rm*"`, ``, 1), ""), `profile safe: denylist: "fs__rm*" is gone`},
		"asked no more":       {policy(strings.Replace(base, `"mail__*"`, `"mail__send"`, 1), ""), `profile safe: asklist: "mail__*" is gone`},
		"of what it extends":  {set(t, `{"defaultProfile":"safe","profiles":{"up":{},"safe":{`+base+`}}}`), `profile safe: denylist: "shell__*" is gone`},
		"an allow":            {policy(base+`,"allowlist":["fs__*"]`, ""), `profile safe: allowlist: "fs__*" is new`},
		"default":             {policy(strings.Replace(base, `"risk"`, `"allow"`, 1), ""), `profile safe: default: allow instead of risk`},
		"fallback":            {policy(strings.Replace(base, `"elicitationFallback":"deny"`, `"elicitationFallback":"queue"`, 1), ""), `profile safe: elicitationFallback: queue instead of deny`},
		"one person":          {policy(strings.Replace(base, `,"quorum":{"need":2}`, ``, 1), ""), `profile safe: rule prod is gone or changed, and wanted several people`},
		"no check":            {policy(strings.Replace(base, `,"check":["args.env != ''"]`, ``, 1), ""), `profile safe: rule prod is gone or changed, and checked args.env != ''`},
		"nothing hidden":      {policy(strings.Replace(base, `,"hidden":["pin"]`, ``, 1), ""), `profile safe: rule prod is gone or changed, and hid pin`},
		"another condition":   {policy(strings.Replace(base, `'prod'`, `'test'`, 1), ""), `profile safe: rule prod is gone or changed, and asked`},
		"a rule lets pass":    {policy(strings.Replace(base, `"rules":[`, `"rules":[{"name":"ok","tools":["mail__get"],"action":"allow"},`, 1), ""), `profile safe: rule ok is new or changed, and lets calls pass`},
		"a rule says low":     {policy(strings.Replace(base, `"rules":[`, `"rules":[{"name":"ok","tools":["mail__get"],"risk":"low"},`, 1), ""), `profile safe: rule ok is new or changed, and says low risk of tools that may have counted as riskier`},
		"repeatable":          {policy(strings.Replace(base, `"rules":[`, `"rules":[{"name":"ok","tools":["mail__get"],"repeatable":true},`, 1), ""), `profile safe: rule ok is new or changed, and says that calls may be made twice`},
		"not repeatable":      {policy(strings.Replace(base, `"rules":[`, `"rules":[{"name":"ok","tools":["mail__get"],"repeatable":false},`, 1), ""), ""},
		"a higher limit":      {policy(strings.Replace(base, `"calls":10`, `"calls":11`, 1), ""), `profile safe: limits: calls is higher or gone`},
		"no limit":            {policy(strings.Replace(base, `"limits":{"calls":10},`, ``, 1), ""), `profile safe: limits: calls is higher or gone`},
		"nobody is asked":     {policy(base, `,"enabled":false`), `evaluation.enabled is false: nobody is asked any more`},
		"unknown tools":       {policy(base, `,"risk":{"unknown":"medium"}`), `risk: a tool of which nothing is known is medium instead of high`},
		"a yes is remembered": {policy(base, `,"risk":{"high":{"remember":true}}`), `profile safe: risk high: a yes may be remembered`},
		"paused for longer":   {policy(base, `,"pausedFor":"200h"`), `pausedFor: a paused question stays open for 200h0m0s instead of 168h0m0s`},
		"a new profile":       {set(t, `{"defaultProfile":"safe","profiles":{"up":{"denylist":["shell__*"]},"safe":{`+base+`},"more":{}}}`), `profile more: it is new, and nothing that there was is as loose`},
		"eval is free":        {set(t, `{"profiles":{"up":{"denylist":["shell__*"]},"safe":{`+base+`}}}`), `eval (profile none instead of safe): denylist: "shell__*" is gone`},
	} {
		t.Run(name, func(t *testing.T) {
			said := Looser(before, c.after)
			if c.want == "" && len(said) > 0 || c.want != "" && !slices.Contains(said, c.want) {
				t.Errorf("got %q, want %q", said, c.want)
			}
		})
	}
	// What words suggest is high, whatever a tool is of which nothing is known.
	const known = `,"risk":{"unknown":"medium"}`
	more := strings.Replace(base, `"rules":[`, `"rules":[{"name":"ok","tools":["mail__send"],"risk":"medium"},`, 1)
	if said := Looser(policy(base, known), policy(more, known)); !slices.Contains(said, "profile safe: rule ok is new or changed, and says medium risk of tools that may have counted as riskier") {
		t.Errorf("less than guessed: %q", said)
	}
	own := set(t, `{}`, Options{OwnFiles: []string{"/home/x/config.json"}})
	if said := Looser(own, set(t, `{}`)); len(said) != 1 {
		t.Errorf("a file of the bridge is free: %q", said)
	}
}
