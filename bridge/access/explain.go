package access

import (
	"fmt"
)

// An Explanation is what a principal has, and why.
type Explanation struct {
	Principal string   `json:"principal"`
	Groups    []string `json:"groups"`
	// Rules is false if the configuration says nothing of access.
	Rules bool `json:"rules"`
	// Entry says which entry holds, and Because which of its patterns; both are empty
	// if none holds.
	Entry   string   `json:"entry,omitempty"`
	Because string   `json:"because,omitempty"`
	Passed  []string `json:"passed,omitempty"` // entries before it, which do not hold

	Tools    []Given `json:"tools"`
	Profiles []Given `json:"profiles"`
	Servers  []Given `json:"servers"`
	Surface  string  `json:"surface"`
	Asked    string  `json:"asked"`
	Limits   Limits  `json:"limits"`
}

// A Given is one thing that the principal has, or has not.
type Given struct {
	Name string `json:"name"`
	Has  bool   `json:"has"`
	Why  string `json:"why"`
}

// Explain says what a principal has of these profiles and servers.
func (r *Rules) Explain(name string, groups []string, p Policy, servers []string, full bool) Explanation {
	g := r.For(name, groups)
	x := Explanation{Principal: name, Groups: append([]string{}, groupsOf(g, groups)...), Rules: r != nil, Entry: g.Entry(), Because: g.why,
		Tools: []Given{}, Profiles: []Given{}, Servers: []Given{}, Surface: SurfaceDefault, Asked: g.Asked(), Limits: g.Limits()}
	if g.Full(full) {
		x.Surface = SurfaceFull
	}
	for i := range r.all() {
		if e := &r.entries[i]; g.rule == nil || e.number < g.rule.number {
			x.Passed = append(x.Passed, e.place)
		}
	}
	for _, e := range g.Evals(p) {
		bound := e.Profile
		if bound == "" {
			bound = p.Default
		}
		why := "bound to the profile " + bound
		if bound == "" {
			why = "bound to no profile: everything may be called"
		}
		x.Tools = append(x.Tools, Given{e.Tool, true, why})
	}
	for _, profile := range p.Profiles {
		x.Profiles = append(x.Profiles, g.given(profile, g.Profile(profile), func(e *rule) globs { return e.profiles }))
	}
	for _, server := range servers {
		x.Servers = append(x.Servers, g.given(server, g.Server(server), func(e *rule) globs { return e.reach }))
	}
	return x
}

// groupsOf are the groups that counted.
func groupsOf(g Rights, groups []string) []string {
	if g.all {
		return groups
	}
	return g.asked
}

func (r *Rules) all() []rule {
	if r == nil {
		return nil
	}
	return r.entries
}

// given says whether the principal has something that a key of the entry gives by its globs.
func (g Rights) given(name string, has bool, by func(*rule) globs) Given {
	switch {
	case g.all:
		return Given{name, true, "nothing is said of access"}
	case g.rule == nil:
		return Given{name, false, "no entry holds"}
	}
	all := by(g.rule)
	if pattern, ok := all.match(name); ok {
		return Given{name, has, fmt.Sprintf("%q in %s", pattern, g.rule.place)}
	}
	if has {
		return Given{name, true, g.rule.place + " does not say which"}
	}
	return Given{name, false, "no pattern in " + g.rule.place}
}
