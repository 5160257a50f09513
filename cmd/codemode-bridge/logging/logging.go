// Package logging opens the program's own log: on standard error and, because clients tend to
// hide that, in a file. What runs do is in the audit log.
package logging

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/logfile"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Logs are where the program's own log goes.
type Logs struct {
	Logger *slog.Logger
	file   io.Closer
}

// Open opens the logs, whose file takes info even if the configuration wants less.
func Open(con *cli.Console, cfg config.Log) (*Logs, error) {
	level := cfg.Level.Slog()
	dir := Dir(con.Env)
	if dir == "" {
		return nil, errors.New("there is no state folder for the log")
	}
	file, err := logfile.Open(dir)
	if err != nil {
		return nil, err
	}
	toFile := slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)})
	return &Logs{slog.New(slog.NewMultiHandler(terminal(con, cfg.Format, level), toFile)), file}, nil
}

// OpenQuiet opens the logs of a command that prints an answer and ends. The file
// has everything; on standard error, beside the answer, are only errors, unless the level
// is debug.
func OpenQuiet(con *cli.Console, cfg config.Log) (*Logs, error) {
	if cfg.Level != config.LogDebug {
		cfg.Level = config.LogError
	}
	return Open(con, cfg)
}

// Close closes the file.
func (l *Logs) Close() { l.file.Close() }

// Dir is the folder of the log files; empty if there is none.
func Dir(env config.Env) string {
	places, err := config.Paths(env)
	if err != nil {
		return ""
	}
	return filepath.Join(places.StateDir, "log")
}

// terminal writes to standard error: text on a terminal, else JSON, unless the
// configuration says which.
func terminal(con *cli.Console, format config.LogFormat, level slog.Level) slog.Handler {
	file, isFile := con.Err.(*os.File)
	is := isFile && term.IsTerminal(int(file.Fd()))
	if format == config.LogText || format != config.LogJSON && is {
		_, noColor := con.Env("NO_COLOR")
		return tint.NewTextHandler(con.Err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: noColor || !is})
	}
	return slog.NewJSONHandler(con.Err, &slog.HandlerOptions{Level: level})
}
