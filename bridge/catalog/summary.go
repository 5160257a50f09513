package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/tsdecl"
)

// Describe writes the line that lists the servers, in at most limit bytes:
//
//	SERVERS (tools): filesystem (14), github (83) and 3 more
//
// Where not all fit, those with the most tools are named. The order is that of
// names, so that a tool more or less moves nothing.
func (v *View) Describe(limit int) string {
	servers := v.seen().servers
	if len(servers) == 0 {
		return "SERVERS (tools): none"
	}
	bySize := slices.Clone(servers)
	slices.SortStableFunc(bySize, func(a, b ServerCount) int { return cmp.Compare(b.Tools, a.Tools) })
	line := func(n int) string {
		named := slices.Clone(bySize[:n])
		slices.SortFunc(named, func(a, b ServerCount) int { return strings.Compare(a.Server, b.Server) })
		var b strings.Builder
		b.WriteString("SERVERS (tools): ")
		for i, s := range named {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s (%d)", tsdecl.Plain(s.Server, 64), s.Tools)
		}
		if more := len(servers) - n; n > 0 && more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		} else if more > 0 {
			fmt.Fprintf(&b, "%d", more)
		}
		return b.String()
	}
	n := len(servers)
	for n > 0 && len(line(n)) > limit {
		// No server takes less than "a (1), ", so most of the way is one step.
		n = min(n-1, limit/7)
	}
	return line(n)
}

// Tools are the tools that the view shows, by server and raw name, without discovery
// functions and saved scripts. Not to be modified.
func (v *View) Tools() []*Tool {
	listed := v.seen().listed
	for i, t := range listed {
		if t.Saved != nil {
			return listed[:i]
		}
	}
	return listed
}

// Having is the first tool with a raw name and, among its arguments, all of these; nil
// if the view shows none.
func (v *View) Having(name string, arguments ...string) *Tool {
	for _, t := range v.Tools() {
		if t.Name != name || t.Unread != "" {
			continue
		}
		has := t.Arguments()
		if !slices.ContainsFunc(arguments, func(a string) bool { return !slices.Contains(has, a) }) {
			return t
		}
	}
	return nil
}
