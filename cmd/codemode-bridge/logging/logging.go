// Package logging opens the program's own log: on standard error and, because clients tend to
// hide that, in a file. What runs do is in the audit log.
package logging

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
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

// Open opens the logs, whose file takes info even if the configuration wants less. Without
// a file, because there is no folder for it, standard error alone has the log, and says so.
func Open(con *cli.Console, cfg config.Log) (*Logs, error) {
	level := cfg.Level.Slog()
	shown := terminal(con, cfg.Format, level)
	file, err := openFile(con)
	if err != nil {
		if dir := Dir(con.Env); dir != "" && !refused(err) {
			return nil, err
		}
		l := &Logs{Logger: slog.New(shown)}
		l.Logger.Warn("the log goes to standard error alone; HOME or XDG_STATE_HOME names a folder that can be written", "err", err)
		return l, nil
	}
	toFile := slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)})
	return &Logs{slog.New(slog.NewMultiHandler(shown, toFile)), file}, nil
}

// refused reports whether an error says that the system lets nobody write there, or has no
// room: then everything else may still work.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC)
}

func openFile(con *cli.Console) (io.WriteCloser, error) {
	dir := Dir(con.Env)
	if dir == "" {
		return nil, errors.New("there is no state folder for the log")
	}
	return logfile.Open(dir)
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
func (l *Logs) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

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
