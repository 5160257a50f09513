package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// residentBytes returns the resident size of a process (Linux).
func residentBytes(pid int) (int64, error) { return sizeOf(pid, "status", "VmRSS:") }

// sharedBytes returns the size of a process in which memory that several processes
// share is divided among them (PSS).
func sharedBytes(pid int) (int64, error) { return sizeOf(pid, "smaps_rollup", "Pss:") }

func sizeOf(pid int, file, line string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	value, ok := field(string(text), line)
	if !ok {
		return 0, fmt.Errorf("process %d has no %s", pid, line)
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return kilobytes << 10, err
}

// children returns the children of a process whose program has this name.
func children(pid int, name string) ([]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, path := range all {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		parent, _ := field(string(status), "PPid:")
		program, _ := field(string(status), "Name:")
		// The kernel keeps only 15 bytes of a name.
		if parent != strconv.Itoa(pid) || program == "" || !strings.HasPrefix(name, program) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		found = append(found, child)
	}
	return found, nil
}

// field returns the value of a line of /proc/PID/status.
func field(status, name string) (string, bool) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
