package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

const (
	CheckpointEvery = 1_000 // rows between checkpoints in the second place
	CheckpointAfter = 10 * time.Minute
	CheckpointAgain = time.Minute // after one that could not be written
)

// A SecondPlace is a file apart from the store that keeps checkpoints: whoever
// replaces the store does not reach it. Only the writing goroutine uses it.
type SecondPlace struct {
	File   string // empty for none
	Clock  func() time.Time
	Logger *slog.Logger

	Rows   int64     // since the last checkpoint there
	tried  time.Time // when that one was written, or a newer one could not be
	failed bool      // the newer one could not be written
}

// NewSecondPlace returns one in which nothing is due.
func NewSecondPlace(file string, clock func() time.Time, logger *slog.Logger) SecondPlace {
	return SecondPlace{File: file, Clock: clock, Logger: logger, tried: time.Now()}
}

// Due returns how long until a checkpoint is due, if one is.
func (p *SecondPlace) Due() (in time.Duration, ok bool) {
	switch {
	case p.File == "" || p.Rows == 0:
		return 0, false
	case p.failed:
		return CheckpointAgain - time.Since(p.tried), true
	case p.Rows >= CheckpointEvery:
		return 0, true
	}
	return CheckpointAfter - time.Since(p.tried), true
}

// Save appends a checkpoint of the last row, signed with the key of that row's
// store: not with the key of the store that is there, which may be another by now.
func (p *SecondPlace) Save(store string, seq int64, hash Hash, key []byte) {
	if p.File == "" || p.Rows == 0 || seq == 0 {
		return
	}
	c := Checkpoint{Store: store, Seq: seq, Hash: hash, Time: p.Clock().UTC()}
	c.Sign(key)
	err := AppendCheckpoint(p.File, c)
	p.tried, p.failed = time.Now(), err != nil
	if err != nil {
		p.Logger.Error("no checkpoint was written", "error", err)
		return
	}
	p.Rows = 0
}

// ReadCheckpoints reads the second place. A line that is not a checkpoint, such as
// one cut short by a full disk, is logged and ignored: somebody who can only
// append gains nothing by it, and somebody who can do more could have removed the
// line. A last line without its end may still be being written.
func ReadCheckpoints(file string, logger *slog.Logger) ([]Checkpoint, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading checkpoints: %w", err)
	}
	defer f.Close()
	var all []Checkpoint
	for r, n := bufio.NewReader(f), 1; ; n++ {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading checkpoints: %w", err)
		}
		c, err := ParseCheckpoint(line)
		if err != nil {
			logger.Warn("a line among the checkpoints is no checkpoint", "file", file, "line", n)
			continue
		}
		all = append(all, c)
	}
}

// LastCheckpoint returns the newest checkpoint of the second place; nil when
// there is none.
func LastCheckpoint(file string, logger *slog.Logger) (*Checkpoint, error) {
	all, err := ReadCheckpoints(file, logger)
	if len(all) == 0 || err != nil {
		return nil, err
	}
	return &all[len(all)-1], nil
}

// AppendCheckpoint writes a checkpoint to the second place, on a line of its own
// even if an earlier line is incomplete.
func AppendCheckpoint(path string, c Checkpoint) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("writing a checkpoint: %w", err)
	}
	line := c.String() + "\n"
	torn, err := unfinished(f)
	if torn {
		line = "\n" + line
	}
	if err == nil {
		_, err = f.WriteString(line)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing a checkpoint: %w", err)
	}
	return nil
}

// unfinished reports whether the last line of a file is incomplete.
func unfinished(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}
