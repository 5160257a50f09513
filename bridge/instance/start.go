package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// maxLastWords bounds what is read of the words of an instance that does not start.
const maxLastWords = 64 << 10

// A StartError says that an instance ended with an exit code of its own instead of
// listening. Its process has said why.
type StartError struct{ ExitCode int }

func (e *StartError) Error() string {
	return fmt.Sprintf("the bridge for all windows ended with exit code %d", e.ExitCode)
}

// Start starts the process of an instance, and returns when it listens. The
// process says so by one byte on its descriptor 3, and takes the rendezvous with
// [Rendezvous.Own]. Whatever keeps it from that is copied to stderr. It outlives
// this process, so command must be bound to no context.
func (r *Rendezvous) Start(ctx context.Context, command *exec.Cmd, stderr io.Writer) error {
	said, err := os.OpenFile(r.LastWords(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	defer said.Close()
	before, err := io.ReadAll(io.LimitReader(said, maxLastWords)) // of an instance that has not ended, or crashed
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	defer ready.Close()
	command.Stderr, command.SysProcAttr, command.ExtraFiles = said, detached(), []*os.File{theirs}
	err = command.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	n, _ := ready.Read(make([]byte, 1))
	switch {
	case n == 1:
		go command.Wait() // it may end before this process does
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	err = command.Wait()
	if _, seekErr := said.Seek(0, io.SeekStart); seekErr == nil {
		if all, err := io.ReadAll(io.LimitReader(said, int64(len(before))+maxLastWords)); err == nil {
			stderr.Write(bytes.TrimPrefix(all, before)) // as if this process had said it
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &StartError{exit.ExitCode()}
	}
	return fmt.Errorf("the bridge for all windows ended while it started (%v)", command.ProcessState)
}
