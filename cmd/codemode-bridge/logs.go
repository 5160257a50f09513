package main

import (
	"log/slog"

	"codemode-bridge/bridge/config"
	"codemode-bridge/cmd/codemode-bridge/logging"
)

// logs are the program's own log, in a form that can be closed.
type logs struct {
	logger *slog.Logger
	*logging.Logs
}

// openLogs opens the logs of a bridge.
func openLogs(con *console, cfg *config.Config) (*logs, error) {
	return hintedLogs(logging.Open(&con.Console, cfg.Log))
}

// openQuietLogs opens the logs of a command that prints an answer and ends.
func openQuietLogs(con *console, cfg *config.Config) (*logs, error) {
	return hintedLogs(logging.OpenQuiet(&con.Console, cfg.Log))
}

func hintedLogs(l *logging.Logs, err error) (*logs, error) {
	if err != nil {
		return nil, &configError{err, "set XDG_STATE_HOME to a folder that can be written"}
	}
	return &logs{l.Logger, l}, nil
}
