package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"
)

// What a changed configuration gives and takes: plain functions of the old one
// and the new one. What is done with that is in held.go.

// looser says in what a configuration may be looser than the one in force, and
// whether it changes who may answer; empty if it need not be confirmed.
func looser(old, cfg *config.Config) []string {
	why := profiles.Looser(old.Profiles, cfg.Profiles)
	for _, name := range cfg.ServerNames() {
		was, ok := old.Servers[name]
		is := cfg.Servers[name]
		if ok && is.TrustAnnotations && !was.TrustAnnotations {
			why = append(why, "server "+name+": what it says of its own tools is trusted")
		}
		if ok && is.NewTools.Looser(was.NewTools) {
			why = append(why, fmt.Sprintf("server %s: newTools is %s, no longer %s", name, is.NewTools, was.NewTools))
		}
		if ok && is.ChangedTools.Looser(was.ChangedTools) {
			why = append(why, fmt.Sprintf("server %s: changedTools is %s, no longer %s", name, is.ChangedTools, was.ChangedTools))
		}
		if ok && modelRights(is.Sampling) > modelRights(was.Sampling) {
			why = append(why, "server "+name+": sampling "+string(is.Sampling)+" instead of "+string(was.Sampling))
		}
	}
	return append(why, widened(old.Approvals, cfg.Approvals)...)
}

// modelRights are how freely a server may use the clients' models.
func modelRights(s config.Sampling) int {
	return slices.Index([]config.Sampling{config.SamplingDeny, config.SamplingAsk, config.SamplingAllow}, s)
}

// grave reports whether a change that loosens does so where most depends on
// it: somebody may allow more, nobody is asked any more, or a denial is gone.
func grave(old, cfg *config.Config) bool {
	if old.Profiles.Enabled() && !cfg.Profiles.Enabled() || len(widened(old.Approvals, cfg.Approvals)) > 0 {
		return true
	}
	for _, name := range old.Profiles.Names() {
		was, _ := old.Profiles.Profile(name)
		is, ok := cfg.Profiles.Profile(name)
		if ok && lostDenial(was.Effective(), is.Effective()) {
			return true
		}
	}
	return lostDenial(old.Profiles.Default().Effective(), cfg.Profiles.Default().Effective())
}

// lostDenial reports whether one profile denies something in words that the
// other one does not have.
func lostDenial(was, is profiles.ProfileSpec) bool {
	denies := func(r profiles.RuleSpec) bool { return r.Action != nil && *r.Action == profiles.Deny.String() }
	return slices.ContainsFunc(was.Denylist, func(glob string) bool { return !slices.Contains(is.Denylist, glob) }) ||
		slices.ContainsFunc(was.Rules, func(r profiles.RuleSpec) bool {
			return denies(r) && !slices.ContainsFunc(is.Rules, func(o profiles.RuleSpec) bool {
				return denies(o) && slices.Equal(r.Tools, o.Tools) && reflect.DeepEqual(r.When, o.When)
			})
		})
}

// widened says who may allow more by a change of the section approvals. What
// only takes away is not held: who loses a right loses it at once.
func widened(was, is config.Approvals) (why []string) {
	for _, name := range approverNames(was, is) {
		before, after := approverOf(was, name), approverOf(is, name)
		switch {
		case before == nil:
			why = append(why, fmt.Sprintf("approvals: %s is new: %s", name, rights(after)))
		case after != nil && !reflect.DeepEqual(narrowed(*before, *after), *after):
			why = append(why, fmt.Sprintf("approvals: %s is changed: %s", name, rights(after)))
		}
	}
	for _, d := range is.Delegations {
		if !slices.ContainsFunc(was.Delegations, func(had config.Delegation) bool { return lends(had, d) }) {
			why = append(why, fmt.Sprintf("approvals: %s may decide in the name of %s until %s", d.To, d.From, d.Until))
		}
	}
	if was.SeparateApprover && !is.SeparateApprover {
		why = append(why, "approvals: who asks for a call may allow it")
	}
	return why
}

// rights are what an approver may do, in words.
func rights(one *config.Approver) string {
	text := string(one.Role)
	if one.Risk != "" {
		text += ", up to " + string(one.Risk) + " risk"
	}
	if len(one.Groups) > 0 {
		text += ", in " + strings.Join(one.Groups, ", ")
	}
	if one.Login != "" {
		text += ", login " + one.Login
	}
	if one.Digest != (config.Digest{}) {
		text += ", token " + one.Digest.String()[:8] + "..."
	}
	return text
}

// lends reports whether one delegation covers another.
func lends(had, d config.Delegation) bool {
	return had.From == d.From && had.To == d.To && !d.Until.Time().After(had.Until.Time())
}

var (
	roleOrder = []config.ApproverRole{config.RoleViewer, config.RoleApprover, config.RoleAdmin}
	riskOrder = []config.RiskLevel{config.RiskLow, config.RiskMedium, config.RiskHigh, config.RiskCritical}
)

// highest is the risk that an approver may allow.
func highest(one config.Approver) config.RiskLevel {
	switch {
	case one.Risk != "":
		return one.Risk
	case one.Role == config.RoleAdmin:
		return config.RiskCritical
	}
	return config.RiskHigh
}

// narrowed is what an approver may do both before and after a change. One with
// another token may do nothing: nobody knows who has it.
func narrowed(before, after config.Approver) config.Approver {
	both := after
	if slices.Index(roleOrder, before.Role) < slices.Index(roleOrder, after.Role) {
		both.Role = before.Role
	}
	if before.Digest != after.Digest {
		both.Role, both.Digest = config.RoleViewer, before.Digest
	}
	if before.Login != after.Login { // who has it is known to the provider alone
		both.Login = ""
	}
	if slices.Index(riskOrder, highest(before)) < slices.Index(riskOrder, highest(after)) {
		both.Risk = highest(before)
	}
	both.Groups = slices.DeleteFunc(slices.Clone(after.Groups), func(g string) bool { return !slices.Contains(before.Groups, g) })
	if len(both.Groups) == len(after.Groups) {
		both.Groups = after.Groups
	}
	return both
}

// meanwhile is who may answer while a change is held: what both allow.
func meanwhile(was, is config.Approvals) config.Approvals {
	both := was
	both.Approvers, both.Delegations = nil, nil
	for _, one := range was.Approvers {
		if after := approverOf(is, one.Name); after != nil && after.Digest == one.Digest {
			both.Approvers = append(both.Approvers, narrowed(one, *after))
		} else if after != nil {
			both.Approvers = append(both.Approvers, one) // another token waits to be confirmed
		}
	}
	named := func(name string) bool {
		return slices.ContainsFunc(both.Approvers, func(one config.Approver) bool { return one.Name == name })
	}
	for _, d := range was.Delegations {
		if named(d.From) && named(d.To) && slices.ContainsFunc(is.Delegations, func(now config.Delegation) bool { return now.From == d.From && now.To == d.To }) {
			both.Delegations = append(both.Delegations, d)
		}
	}
	both.SeparateApprover = was.SeparateApprover || is.SeparateApprover
	return both
}

func approverNames(of ...config.Approvals) []string {
	var names []string
	for _, a := range of {
		for _, one := range a.Approvers {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func approverOf(a config.Approvals, name string) *config.Approver {
	for i := range a.Approvers {
		if a.Approvers[i].Name == name {
			return &a.Approvers[i]
		}
	}
	return nil
}
