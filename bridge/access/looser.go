package access

import (
	"fmt"
	"slices"
	"strings"
)

// Looser says how entries may give more than others did, which were there before; nil stands for
// no section. Only what can be shown to give less passes: fewer of the same patterns, lower
// limits, and fewer entries at the end. In all else the first entry that holds may be
// another one for somebody. Standard is the profile that binds eval for all.
func Looser(was, is []Entry, standard string) (why []string) {
	switch {
	case was == nil:
		for i, e := range is {
			if e.DefaultProfile != "" && e.DefaultProfile != standard {
				why = append(why, fmt.Sprintf("access: eval is the profile %s for those of entry %d", e.DefaultProfile, i+1))
			}
		}
		return why
	case is == nil:
		return []string{"access: everybody may use every profile, and reaches every server"}
	}
	for i, e := range is {
		if i >= len(was) {
			why = append(why, fmt.Sprintf("access: entry %d is new, for %s: %s", i+1, e.whom(), strings.Join(e.Profiles, ", ")))
			continue
		}
		why = append(why, e.looser(was[i], i+1, i == len(was)-1)...)
	}
	return why
}

// looser compares an entry with what stood in its place; last says that no other one came after.
func (e Entry) looser(was Entry, number int, last bool) (why []string) {
	say := func(format string, args ...any) {
		why = append(why, fmt.Sprintf("access: entry %d: ", number)+fmt.Sprintf(format, args...))
	}
	fewer := func(was, is []string) bool {
		return !slices.ContainsFunc(is, func(one string) bool { return !slices.Contains(was, one) })
	}
	same := func(was, is []string) bool { return fewer(was, is) && fewer(is, was) }
	who := func(compare func(was, is []string) bool) bool {
		return compare(was.Principals, e.Principals) && compare(was.Groups, e.Groups) && compare(was.Tokens, e.Tokens)
	}
	if !(who(same) && was.Local == e.Local || last && who(fewer) && (was.Local || !e.Local)) {
		say("it is for %s, no longer for %s", e.whom(), was.whom())
	}
	if !fewer(was.Profiles, e.Profiles) {
		say("it gives the profiles %s, no longer %s", strings.Join(e.Profiles, ", "), strings.Join(was.Profiles, ", "))
	} else if was.DefaultProfile != e.DefaultProfile || e.DefaultProfile == "" && !same(was.Profiles, e.Profiles) && len(e.Profiles) == 1 {
		say("eval is another profile than before")
	}
	if was.Servers != nil && (e.Servers == nil || !fewer(was.Servers, e.Servers)) {
		say("more servers are reached")
	}
	if was.Asked == AskedApprovers && e.Asked != AskedApprovers {
		say("the person at the client may answer")
	}
	for _, limit := range []struct {
		name    string
		was, is int
	}{{"sessions", was.Limits.Sessions, e.Limits.Sessions}, {"runs", was.Limits.Runs, e.Limits.Runs},
		{"workers", was.Limits.Workers, e.Limits.Workers}, {"questions", was.Limits.Questions, e.Limits.Questions}} {
		if limit.was != 0 && (limit.is == 0 || limit.is > limit.was) {
			say("the limit of %d %s is lifted", limit.was, limit.name)
		}
	}
	return why
}

// whom are those that the entry names, in words.
func (e Entry) whom() string {
	var all []string
	for _, of := range []struct {
		kind  string
		names []string
	}{{"", e.Principals}, {"group ", e.Groups}, {"token ", e.Tokens}} {
		for _, name := range of.names {
			all = append(all, of.kind+name)
		}
	}
	if e.Local {
		all = append(all, "whoever has no name")
	}
	return strings.Join(all, ", ")
}
