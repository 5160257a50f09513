package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/config"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
	"gopkg.in/natefinch/lumberjack.v2"
)

// logs are where a bridge says how it fares: standard error and, because
// clients tend to hide that, a file. What its runs do is in the audit log.
type logs struct {
	logger *slog.Logger
	file   io.Closer
}

// Bounds on the log files of one user.
const (
	logFileMB   = 10 // a file is then set aside
	logBackups  = 2  // of each process
	logFilesMax = 20 // of all processes
)

// openLogs opens the logs. With toFile false, for commands that call no tool,
// there is standard error alone.
func openLogs(con *console, cfg *config.Config, toFile bool) (*logs, error) {
	level := cfg.Log.Level.Slog()
	l := &logs{}
	handlers := []slog.Handler{terminalLog(con, cfg.Log.Format, level)}
	if toFile {
		dir := logDir(con)
		if dir == "" {
			return nil, &configError{errors.New("there is no state folder for the log"), "set XDG_STATE_HOME, or HOME"}
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &configError{fmt.Errorf("making the folder of the log: %w", err), "set XDG_STATE_HOME to a folder that can be written"}
		}
		pruneLogs(dir)
		file := &lumberjack.Logger{
			Filename: filepath.Join(dir, fmt.Sprintf("bridge-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405"), os.Getpid())),
			MaxSize:  logFileMB, MaxBackups: logBackups,
		}
		handlers = append(handlers, slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)}))
		l.file = file
	}
	l.logger = slog.New(slog.NewMultiHandler(handlers...))
	return l, nil
}

// openQuietLogs opens the logs of a command that answers and ends. What it does is
// in the file; beside the answer stand errors alone, unless log.level is debug.
func openQuietLogs(con *console, cfg *config.Config) (*logs, error) {
	quiet := *cfg
	if quiet.Log.Level != config.LogDebug {
		quiet.Log.Level = config.LogError
	}
	return openLogs(con, &quiet, true)
}

func (l *logs) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

// logDir is the folder of the log files; "" if there is none to be had.
func logDir(con *console) string {
	places, err := config.Paths(con.env)
	if err != nil {
		return ""
	}
	return filepath.Join(places.StateDir, "log")
}

// terminalLog writes to standard error: for people on a terminal, JSON elsewhere.
func terminalLog(con *console, format config.LogFormat, level slog.Level) slog.Handler {
	file, isFile := con.err.(*os.File)
	terminal := isFile && term.IsTerminal(int(file.Fd()))
	if format == config.LogText || format != config.LogJSON && terminal {
		_, noColor := con.env("NO_COLOR")
		return tint.NewTextHandler(con.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: noColor || !terminal})
	}
	return slog.NewJSONHandler(con.err, &slog.HandlerOptions{Level: level})
}

// pruneLogs removes the oldest files beyond the bound, but none of a process
// that still runs.
func pruneLogs(dir string) {
	names := logFiles(dir)
	for _, name := range names[:max(0, len(names)-logFilesMax+1)] {
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

// logFiles are the log files, the oldest first: their names begin with the
// time at which their process started.
func logFiles(dir string) []string {
	names, err := filepath.Glob(filepath.Join(dir, "bridge-*.jsonl"))
	if err != nil {
		return nil
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
