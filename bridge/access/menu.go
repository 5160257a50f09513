package access

import (
	"context"
	"slices"
	"strings"
)

// A Policy is the profiles that there are.
type Policy struct {
	Profiles []string
	Default  string // the one that binds eval; empty: none
	Alone    bool   // eval stands for all of them
}

// An Eval is a tool that runs scripts, with the profile that binds it. The empty profile stands for
// the default one, or for none if there is none.
type Eval struct{ Tool, Profile string }

// EvalTool is the tool that is bound to a profile by name.
func EvalTool(profile string) string { return "codemode_eval_" + profile }

// Evals are the eval tools that the principal may see and call. At an endpoint or in a window that is
// bound to a profile there is eval, with that profile, and nothing else.
func (g Rights) Evals(p Policy) (all []Eval) {
	byDefault := func(profile string) string {
		if profile == p.Default {
			return ""
		}
		return profile
	}
	if g.bound != "" {
		if slices.Contains(p.Profiles, g.bound) && g.Profile(g.bound) {
			all = append(all, Eval{"eval", byDefault(g.bound)})
		}
		return all
	}
	if g.all {
		all = append(all, Eval{"eval", ""})
		for _, profile := range p.Profiles {
			if !p.Alone {
				all = append(all, Eval{EvalTool(profile), profile})
			}
		}
		return all
	}
	has := slices.DeleteFunc(slices.Clone(p.Profiles), func(profile string) bool { return !g.Profile(profile) })
	standard, ok := g.standard(p, has)
	if ok {
		all = append(all, Eval{"eval", byDefault(standard)})
	}
	if ok && (len(has) == 0 || len(has) == 1 && has[0] == standard) {
		return all
	}
	for _, profile := range has {
		all = append(all, Eval{EvalTool(profile), profile})
	}
	return all
}

// standard is the profile that binds eval for the principal, who has these.
func (g Rights) standard(p Policy, has []string) (profile string, ok bool) {
	switch {
	case g.rule == nil:
		return "", false
	case g.rule.DefaultProfile != "":
		return g.rule.DefaultProfile, slices.Contains(has, g.rule.DefaultProfile)
	case p.Default != "" && slices.Contains(has, p.Default):
		return p.Default, true
	case p.Default == "" && g.Profile(""):
		return "", true
	case len(has) == 1:
		return has[0], true
	}
	return "", false
}

// A Scope is what a run under a profile reaches: what all of its rights give. A run has two
// if it went on for a client whose groups are others than those it began with.
type Scope struct {
	Profile string // the empty name stands for none
	Rights  []Rights
}

// Key is the same for scopes that reach the same servers.
func (s Scope) Key() string {
	var keys []string
	for _, g := range s.Rights {
		switch {
		case g.Refuses(s.Profile, "") != "":
			return "nothing"
		case g.rule != nil && g.rule.Servers != nil:
			keys = append(keys, strings.Join(g.rule.Servers, "\x00"))
		}
	}
	return strings.Join(keys, "\x01")
}

// Questions is how many open questions there may be; 0: any number.
func (s Scope) Questions() (most int) {
	return Least(s.Rights, func(l Limits) int { return l.Questions })
}

// Least is the strictest of a limit that rights set; 0: none sets it.
func Least(rights []Rights, of func(Limits) int) (least int) {
	for _, g := range rights {
		if n := of(g.Limits()); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Refuses says why a server is out of reach; empty if it is not. The empty server stands for the
// functions of the bridge itself.
func (s Scope) Refuses(server string) string {
	for _, g := range s.Rights {
		if why := g.Refuses(s.Profile, server); why != "" {
			return why
		}
	}
	return ""
}

type boundKey struct{}

// Bind returns a context of an endpoint or window that is bound to one profile.
func Bind(ctx context.Context, profile string) context.Context {
	return context.WithValue(ctx, boundKey{}, profile)
}

// Bound is the profile that a context is bound to; empty: none.
func Bound(ctx context.Context) string {
	profile, _ := ctx.Value(boundKey{}).(string)
	return profile
}
