package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A worker starts with nearly every eval of sessions that take turns, so what its packages
// prepare before main is counted: a table that only some scripts need is made when one does.
func TestWorkerPreparesLittle(t *testing.T) {
	t.Parallel()
	worker := filepath.Join(programs(t), "codemode-worker")
	if runtime.GOOS == "windows" {
		worker += ".exe"
	}
	cmd := exec.Command(worker) // its input is empty: it ends
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.String())
	}
	all, packages := 0, 0
	for line := range strings.Lines(trace.String()) {
		// init regexp @1.1 ms, 0.003 ms clock, 0 bytes, 0 allocs
		words := strings.Fields(line)
		if len(words) < 9 || words[0] != "init" || words[len(words)-1] != "allocs" {
			continue
		}
		n, err := strconv.Atoi(words[len(words)-2])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		const most = 1000
		if n > most {
			t.Errorf("%s allocates %d times at every start, at most %d are fine", words[1], n, most)
		}
		all += n
		packages++
	}
	const most = 3000
	if all > most || packages < 20 {
		t.Errorf("%d packages allocate %d times at every start, at most %d are fine\n%s", packages, all, most, trace.String())
	}
}
