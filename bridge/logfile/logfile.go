// Package logfile writes the log of a bridge to a file, because clients tend to hide the
// standard error of a server. Each process has a file of its own,
// bridge-TIME-PID.jsonl, with a JSON object on each line:
//
//	{"time":"2026-03-01T09:12:44Z","level":"INFO","msg":"a window has joined","process":18772}
//
// A file that has grown too large is set aside and another begun. The oldest files are
// removed, except those of processes that still run.
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
	maxMB      = 10 // from which a file is set aside
	maxBackups = 2  // of each process
	maxFiles   = 20 // of all processes
)

// Open opens a new log file for this process in a folder, which it makes if need be.
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

// prune removes the oldest files beyond maxFiles, but none of a process that still runs.
func prune(folder string) {
	names := files(folder)
	for _, name := range names[:max(0, len(names)-maxFiles+1)] {
		if !processLives(pidOf(name)) {
			os.Remove(name)
		}
	}
}

// pidOf returns the id of the process that writes a log file, from the file's name.
func pidOf(name string) int {
	base := strings.TrimSuffix(filepath.Base(name), ".jsonl")
	parts := strings.Split(base, "-")
	if len(parts) < 3 {
		return 0
	}
	pid, err := strconv.Atoi(parts[2]) // in the name of a file that was set aside, a time follows
	if err != nil {
		return 0
	}
	return pid
}

// files returns the log files, the oldest first: their names begin with the time at
// which their process started.
func files(folder string) []string {
	names, err := filepath.Glob(filepath.Join(folder, "bridge-*.jsonl"))
	if err != nil {
		return nil
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
