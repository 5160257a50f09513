package confine

import (
	"fmt"
	"strconv"
	"strings"
)

// seatbelt is the box as a profile of macOS's sandbox, in the language of
// sandbox-exec(1), in which the last rule that fits decides. Temp is a folder for what is
// gone when the program ends. Hosts cannot be told apart there: a box that names some
// reaches all.
func (b Box) seatbelt(places []place, temp string) string {
	var p strings.Builder
	rule := func(what, filter string, values ...string) {
		if len(values) == 0 {
			return
		}
		fmt.Fprintf(&p, "(%s", what)
		for _, v := range values {
			fmt.Fprintf(&p, "\n  (%s %s)", filter, strconv.Quote(v))
		}
		p.WriteString(")\n")
	}
	p.WriteString("(version 1)\n(deny default)\n(allow process-fork)\n(allow signal (target same-sandbox))\n(allow sysctl-read)\n(allow file-read-metadata)\n")
	rule("allow file-ioctl", "literal", "/dev/dtracehelper")
	rule("allow mach-lookup", "global-name", "com.apple.system.opendirectoryd.libinfo", "com.apple.system.logger")
	rule("allow file-read*", "subpath", macSystem...)
	rule("allow file-read* file-write*", "literal", "/dev/null", "/dev/zero", "/dev/tty")
	rule("allow file-read* file-write*", "subpath", temp)
	for _, place := range places {
		if place.Write {
			rule("allow file-read* file-write*", "subpath", place.Path)
		} else {
			rule("allow file-read*", "subpath", place.Path)
			rule("deny file-write*", "subpath", place.Path)
		}
	}
	if b.Run == nil {
		p.WriteString("(allow process-exec*)\n")
	} else {
		rule("allow process-exec*", "literal", b.Run...)
	}
	if !b.Net.None() {
		p.WriteString("(allow network*)\n(allow system-socket)\n")
		rule("allow mach-lookup", "global-name", "com.apple.dnssd.service")
	}
	return p.String()
}

// macSystem is what any program needs of a Mac.
var macSystem = []string{
	"/usr", "/bin", "/sbin", "/System", "/Library/Frameworks", "/Library/Apple", "/opt", "/dev",
	"/private/etc/ssl", "/private/etc/localtime", "/private/var/db/timezone", "/private/var/db/dyld",
}
