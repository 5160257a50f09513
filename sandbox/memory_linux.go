package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// measuresMemory says whether residentMemory knows.
const measuresMemory = true

// residentMemory reads how much memory a process has in use that is its own.
func residentMemory(pid int) (int64, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b)
	if len(fields) < 3 {
		return 0, false
	}
	resident, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, false
	}
	shared, err := strconv.ParseInt(string(fields[2]), 10, 64) // pages of files
	return (resident - shared) * int64(os.Getpagesize()), err == nil
}

// machineMemory returns what this program may use: all that the machine has, or
// less if one of its control groups says so.
func machineMemory() (int64, bool) {
	all, ok := totalMemory("/proc/meminfo")
	if limit, limited := groupMemory("/sys/fs/cgroup", "/proc/self/cgroup"); limited && (!ok || limit < all) {
		return limit, true
	}
	return all, ok
}

// totalMemory reads a file like /proc/meminfo.
func totalMemory(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10, err == nil && kb > 0
		}
	}
	return 0, false
}

// groupMemory returns the lowest memory limit of the control groups that the file
// own names, in the form of /proc/self/cgroup, and of those above them, in the
// tree below root of either version.
func groupMemory(root, own string) (limit int64, ok bool) {
	b, err := os.ReadFile(own)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		top, file := root, "memory.max"
		switch {
		case controllers == "memory":
			top, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		for folder := filepath.Join(top, path); ; folder = filepath.Dir(folder) {
			// A missing file, or one with "max", is no limit.
			if b, err := os.ReadFile(filepath.Join(folder, file)); err == nil {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil && n > 0 && (!ok || n < limit) {
					limit, ok = n, true
				}
			}
			if folder == top || len(folder) <= len(top) {
				break
			}
		}
	}
	return limit, ok
}
