package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/logfile"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// logs are the program's own log, on standard error and, because clients tend to hide
// that, in a file. What runs do is in the audit log.
type logs struct {
	logger *slog.Logger
	file   io.Closer
}

// openLogs opens the logs; without toFile, which is for commands that call no tool,
// on standard error alone.
func openLogs(con *console, cfg *config.Config, toFile bool) (*logs, error) {
	level := cfg.Log.Level.Slog()
	l := &logs{}
	handlers := []slog.Handler{terminalLog(con, cfg.Log.Format, level)}
	if toFile {
		dir := logDir(con)
		if dir == "" {
			return nil, &configError{errors.New("there is no state folder for the log"), "set XDG_STATE_HOME, or HOME"}
		}
		file, err := logfile.Open(dir)
		if err != nil {
			return nil, &configError{err, "set XDG_STATE_HOME to a folder that can be written"}
		}
		handlers = append(handlers, slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)}))
		l.file = file
	}
	l.logger = slog.New(slog.NewMultiHandler(handlers...))
	return l, nil
}

// openQuietLogs opens the logs of a command that prints an answer and ends. The file
// has everything; on standard error, beside the answer, are only errors, unless
// log.level is debug.
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

// logDir is the folder of the log files; empty if there is none.
func logDir(con *console) string {
	places, err := config.Paths(con.Env)
	if err != nil {
		return ""
	}
	return filepath.Join(places.StateDir, "log")
}

// terminalLog writes to standard error: text on a terminal, else JSON, unless the
// configuration says which.
func terminalLog(con *console, format config.LogFormat, level slog.Level) slog.Handler {
	file, isFile := con.Err.(*os.File)
	terminal := isFile && term.IsTerminal(int(file.Fd()))
	if format == config.LogText || format != config.LogJSON && terminal {
		_, noColor := con.Env("NO_COLOR")
		return tint.NewTextHandler(con.Err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: noColor || !terminal})
	}
	return slog.NewJSONHandler(con.Err, &slog.HandlerOptions{Level: level})
}
