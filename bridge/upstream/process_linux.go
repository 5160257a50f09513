package upstream

import (
	"bytes"
	"os"
	"strconv"
)

// marked returns the processes whose environment carries the cookie. This finds
// daemons that forked twice and left their group.
func marked(cookie string) []*os.Process {
	want := []byte(marker + "=" + cookie)
	carries := func(pid string) bool {
		env, err := os.ReadFile("/proc/" + pid + "/environ") // of other users: not readable; of zombies: empty
		return err == nil && bytes.Contains(env, want)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []*os.Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !carries(entry.Name()) {
			continue
		}
		// The handle is taken first and the process is then checked again, so
		// that a signal cannot reach another process with the same number.
		p, err := os.FindProcess(pid)
		if err == nil && carries(entry.Name()) {
			found = append(found, p)
		}
	}
	return found
}
