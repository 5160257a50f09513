// Package logfile writes the log of a bridge to a file of its own, because clients
// tend to hide what a server says on its standard error. Each process has one file,
// bridge-TIME-PID.jsonl, a JSON object a line:
//
//	{"time":"2026-03-01T09:12:44Z","level":"INFO","msg":"a window has joined","process":18772}
//
// A file that has grown large is set aside, and the oldest are removed, but none of
// a process that still runs.
package logfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// Bounds on the log files of one user.
const (
	maxMB      = 10 // a file is then set aside
	maxBackups = 2  // of each process
	maxFiles   = 20 // of all processes
)

// Open opens a new log file of this process in a folder, which is made if need be.
func Open(folder string) (io.WriteCloser, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the log: %w", err)
	}
	prune(folder)
	return &lumberjack.Logger{
		Filename: filepath.Join(folder, fmt.Sprintf("bridge-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405"), os.Getpid())),
		MaxSize:  maxMB, MaxBackups: maxBackups,
	}, nil
}

// prune removes the oldest files beyond the bound, but none of a process
// that still runs.
func prune(folder string) {
	names := files(folder)
	for _, name := range names[:max(0, len(names)-maxFiles+1)] {
		if !processLives(pidOf(name)) {
			os.Remove(name)
		}
	}
}

// pidOf is the process that writes a log file, by the file's name.
func pidOf(name string) int {
	base := strings.TrimSuffix(filepath.Base(name), ".jsonl")
	parts := strings.Split(base, "-")
	if len(parts) < 3 {
		return 0
	}
	pid, err := strconv.Atoi(parts[2]) // a file that was set aside has a time behind it
	if err != nil {
		return 0
	}
	return pid
}

// files are the log files, the oldest first: their names begin with the
// time at which their process started.
func files(folder string) []string {
	names, err := filepath.Glob(filepath.Join(folder, "bridge-*.jsonl"))
	if err != nil {
		return nil
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
