package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// resolve builds the profile of a layer, after that of the layer it extends.
// Lists add up. Calls that the parent denies by name or asks about stay so
// whatever the child adds, because the strictest match wins; settings that could
// undo this are refused here if they are looser than the parent's.
func (b *builder) resolve(l *layer, base *Profile, global *RiskTable) *Profile {
	if l.profile != nil || l.resolving {
		return l.profile
	}
	l.resolving = true
	defer func() { l.resolving = false }()
	at := pointer("/profiles", l.name)
	var up *Profile
	var chain []*ProfileSpec // nearest first
	if l.spec.Extends != nil {
		parent, ok := b.layers[*l.spec.Extends]
		switch {
		case !ok:
			all := b.extendable()
			hint := cmp.Or(near(*l.spec.Extends, all), near(BuiltinPrefix+*l.spec.Extends, all))
			b.problem(at+"/extends", fmt.Sprintf("there is no profile %q", *l.spec.Extends), hint)
		case parent.resolving:
			b.problem(at+"/extends", "the profiles extend each other in a circle: "+b.circle(l.name), "")
		default:
			if up = b.resolve(parent, base, global); up != nil {
				chain = b.chain(*l.spec.Extends)
				b.notWeaker(l, at, chain)
			}
		}
	}
	chain = append([]*ProfileSpec{l.spec}, chain...)
	p := l.compose(base, up, false)
	b.buildAskSettings(p, chain, global)
	if l.onTrial() || up != nil && up.shadow != nil {
		p.shadow = l.compose(base, up.full(), true)
		b.buildAskSettings(p.shadow, chain, global)
	}
	p.effective = EffectiveSpec{effective(p), observedSpec(p)}
	l.profile = p
	return p
}

// chain returns the specs from the named profile up, nearest first.
func (b *builder) chain(name string) []*ProfileSpec {
	var chain []*ProfileSpec
	for seen := map[string]bool{}; !seen[name]; {
		seen[name] = true
		l, ok := b.layers[name]
		if !ok {
			break
		}
		chain = append(chain, l.spec)
		if l.spec.Extends == nil {
			break
		}
		name = *l.spec.Extends
	}
	return chain
}

// circle spells out a circle of extends that name is part of or leads to.
func (b *builder) circle(name string) string {
	names := []string{name}
	for seen := map[string]bool{name: true}; ; {
		name = *b.layers[name].spec.Extends
		names = append(names, name)
		if seen[name] {
			return strings.Join(names, " -> ")
		}
		seen[name] = true
	}
}

// notWeaker refuses settings of a profile that are looser than those it extends.
func (b *builder) notWeaker(l *layer, at string, parents []*ProfileSpec) {
	weaker := func(key, mine, theirs string) {
		b.problem(at+key, fmt.Sprintf("%s would weaken %s, which the profile inherits", mine, theirs), "what is inherited can only be made stricter")
	}
	nearest := func(f func(*ProfileSpec) *string) *string {
		for _, p := range parents {
			if v := f(p); v != nil {
				return v
			}
		}
		return nil
	}
	theirs := nearest(func(p *ProfileSpec) *string { return p.Default })
	if mine := l.spec.Default; mine != nil && theirs != nil && slices.Index(defaultActionWords, *mine) >= 0 &&
		slices.Index(defaultActionWords, *mine) < slices.Index(defaultActionWords, *theirs) {
		weaker("/default", *mine, *theirs)
	}
	theirs = nearest(func(p *ProfileSpec) *string { return p.ElicitationFallback })
	if mine := l.spec.ElicitationFallback; mine != nil && theirs != nil && *mine == "allow" && *theirs != "allow" {
		weaker("/elicitationFallback", *mine, *theirs)
	}
	for r := Low; r <= Critical; r++ {
		mine := l.spec.Risk.of(r)
		if mine == nil {
			continue
		}
		at := "/risk/" + r.String()
		for _, p := range parents {
			theirs := p.Risk.of(r)
			if theirs == nil {
				continue
			}
			if isFalse(theirs.Remember) && isTrue(mine.Remember) {
				weaker(at+"/remember", "true", "false")
			}
			if isTrue(theirs.RequireReason) && isFalse(mine.RequireReason) {
				weaker(at+"/requireReason", "false", "true")
			}
			if theirs.Quorum != nil && theirs.Quorum.Need != nil && mine.Quorum != nil && mine.Quorum.Need != nil && *mine.Quorum.Need < *theirs.Quorum.Need {
				weaker(at+"/quorum/need", strconv.Itoa(*mine.Quorum.Need), strconv.Itoa(*theirs.Quorum.Need))
			}
		}
	}
}

func isTrue(b *bool) bool  { return b != nil && *b }
func isFalse(b *bool) bool { return b != nil && !*b }

// of returns the row of the table for a risk; nil if there is none.
func (t *RiskTable) of(r Risk) *RiskPolicySpec {
	if t == nil {
		return nil
	}
	switch r {
	case Low:
		return t.Low
	case Medium:
		return t.Medium
	case High:
		return t.High
	case Critical:
		return t.Critical
	}
	return nil
}

// buildAskSettings works out how to ask at each risk. The time to answer comes
// from the first of these that sets it: the profile's risk table, the section's
// risk table, the profile's timeout, the section's timeout, 300 s.
func (b *builder) buildAskSettings(p *Profile, chain []*ProfileSpec, global *RiskTable) {
	for r := Low; r <= Critical; r++ {
		var rows []*RiskPolicySpec
		for _, spec := range chain {
			rows = append(rows, spec.Risk.of(r))
		}
		rows = append(rows, global.of(r))
		d := askSettings{remember: r <= Medium, requireReason: r == Critical}
		for i := len(rows) - 1; i >= 0; i-- { // the nearest comes last, so that it wins
			if row := rows[i]; row != nil {
				if row.Timeout != nil {
					d.timeout = time.Duration(*row.Timeout)
				}
				if row.Remember != nil {
					d.remember = *row.Remember
				}
				if row.RequireReason != nil {
					d.requireReason = *row.RequireReason
				}
				if row.Quorum != nil {
					d.quorum = row.Quorum.quorum()
				}
			}
		}
		for _, spec := range chain {
			if d.timeout == 0 && spec.Timeout != nil {
				d.timeout = time.Duration(*spec.Timeout)
			}
		}
		d.explicit = d.timeout != 0
		if d.timeout == 0 && b.spec.Timeout != nil {
			d.timeout = time.Duration(*b.spec.Timeout)
		}
		if d.timeout == 0 {
			d.timeout = defaultTimeout
		}
		p.askSettings[r] = d
	}
}

// texts returns the entries of a list as they are written, each once.
func texts(entries []listEntry) (all []string) {
	for _, x := range entries {
		all = appendNew(all, x.text)
	}
	return all
}

// effective spells out what is enforced of a profile after `extends`.
func effective(p *Profile) ProfileSpec {
	var e ProfileSpec
	e.Denylist, e.Asklist, e.Allowlist = texts(p.deny), texts(p.ask), texts(p.allow)
	if p.hasAllowlist && e.Allowlist == nil {
		e.Allowlist = []string{}
	}
	for _, r := range p.rules {
		e.Rules = append(e.Rules, *r.spec)
	}
	for _, f := range p.flows {
		e.Flows = append(e.Flows, *f.spec)
	}
	action, fallback, limits := defaultActionWords[p.defaultAction], p.fallback.String(), p.limits
	e.Default, e.ElicitationFallback = &action, &fallback
	if limits != (Limits{}) {
		e.Limits = &limits
	}
	row := func(r Risk) *RiskPolicySpec {
		d := p.askSettings[r]
		timeout := Duration(d.timeout)
		s := &RiskPolicySpec{Timeout: &timeout, Remember: &d.remember, RequireReason: &d.requireReason}
		if d.quorum != nil {
			s.Quorum = &QuorumSpec{Need: &d.quorum.Need, Of: d.quorum.Of, InOrder: &d.quorum.InOrder}
		}
		return s
	}
	e.Risk = &RiskTable{Low: row(Low), Medium: row(Medium), High: row(High), Critical: row(Critical)}
	return e
}

// tighter takes the smaller of each limit.
func (l Limits) tighter(o Limits) Limits {
	return Limits{
		CPU: least(l.CPU, o.CPU), Call: least(l.Call, o.Call), Heap: least(l.Heap, o.Heap),
		Calls: least(l.Calls, o.Calls), Parallel: least(l.Parallel, o.Parallel),
		Source: least(l.Source, o.Source), Input: least(l.Input, o.Input), Logs: least(l.Logs, o.Logs),
		Result: least(l.Result, o.Result), Reply: least(l.Reply, o.Reply),
	}
}

func least[T ~int | ~int64](a, b *T) *T {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// The checks of single values.
