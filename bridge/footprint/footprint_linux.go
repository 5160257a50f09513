package footprint

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unchanged returns what is mapped of the program's file and nothing has written to.
func unchanged() []mapping {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	return unchangedIn(string(text), program)
}

// unchangedIn reads them from the text of /proc/PID/smaps. Memory that can be written to is
// none, and neither is what was written to before it became read-only, as a dynamic linker does:
// that would be lost.
func unchangedIn(smaps, program string) (list []mapping) {
	var at mapping
	ours := false
	for line := range strings.Lines(smaps) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.Contains(name, "-") || strings.Contains(name, "_") {
			if ours && name == "Anonymous" && strings.TrimSpace(value) == "0 kB" {
				list = append(list, at)
			}
			continue
		}
		// 00400000-016a7000 r-xp 00000000 fe:00 10536294    /usr/bin/codemode-bridge
		var access, offset, device, inode string
		n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s", &at.start, &at.end, &access, &offset, &device, &inode)
		ours = n == 6 && (access == "r-xp" || access == "r--p") && strings.HasSuffix(strings.TrimSpace(line), " "+program)
	}
	return list
}

// drop leaves the mapping as it is and takes its pages out of memory.
func (m mapping) drop() {
	// The kernel refuses what is no mapping; then the pages stay.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
}
