package known

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// confined reports whether the program's own flag keeps its browser to this machine:
// it is there once, and names no origin but this machine's.
func (l Launch) confined(args []string) bool {
	flag, found := strings.CutSuffix(l.Confines, "=")
	if !found {
		return false
	}
	values := FlagValues(args, flag)
	return len(values) == 1 && !slices.ContainsFunc(strings.Split(values[0], ";"), func(origin string) bool { return !ofThisMachine(origin) })
}

// ofThisMachine reports whether an origin is one of this machine, whoever looks it
// up.
func ofThisMachine(origin string) bool {
	u, err := url.Parse(strings.TrimSuffix(origin, ":*"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" && u.Path != "/" {
		return false
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return addr.IsLoopback()
	}
	return strings.EqualFold(u.Hostname(), "localhost")
}
