package confine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// seatbelt is the box as a profile of macOS's sandbox, in the language of
// sandbox-exec(1). Temp is a folder for what is gone when the program ends.
//
// Hosts cannot be told apart there: a box that names some has no network but the one to
// this machine, over which the bridge's proxy is reached.
func (b Box) seatbelt(needs []string, temp string) string {
	var p strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&p, format+"\n", args...) }
	paths := func(rule string, all []string) {
		if len(all) == 0 {
			return
		}
		line("(allow %s", rule)
		for _, path := range all {
			line("  (subpath %s)", quoted(path))
		}
		line(")")
	}
	line("(version 1)")
	line("(deny default)")
	line("(allow process-fork)")
	line("(allow signal (target same-sandbox))")
	line("(allow sysctl-read)")
	line("(allow file-read-metadata)")
	line(`(allow file-ioctl (literal "/dev/dtracehelper"))`)
	line(`(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))`)
	line(`(allow mach-lookup (global-name "com.apple.system.logger"))`)
	paths("file-read*", append(slices.Clone(macSystem), needs...))
	paths("file-read*", b.Read)
	paths("file-read* file-write*", append(slices.Clone(b.Write), temp, "/dev/null", "/dev/zero", "/dev/tty"))
	if b.Run == nil {
		line("(allow process-exec*)")
	} else {
		line("(allow process-exec*")
		for _, program := range b.Run {
			line("  (literal %s)", quoted(program))
		}
		line(")")
	}
	switch {
	case b.Net.Any:
		line("(allow network*)")
		line(`(allow mach-lookup (global-name "com.apple.dnssd.service"))`)
	case !b.Net.None():
		line(`(allow network-outbound (remote ip "localhost:*"))`)
	}
	return p.String()
}

// macSystem is what any program needs of a Mac.
var macSystem = []string{"/usr", "/bin", "/sbin", "/System", "/Library/Frameworks", "/Library/Apple", "/opt", "/dev", "/private/etc/ssl", "/private/etc/localtime", "/private/var/db/timezone", "/private/var/db/dyld"}

// quoted writes a path as a string of the profile language.
func quoted(path string) string { return strconv.Quote(filepath.ToSlash(path)) }
