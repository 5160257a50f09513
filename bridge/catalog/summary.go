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
