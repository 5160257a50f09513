package sqlstore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"codemode-bridge/bridge/ledger"
)

const (
	checkpointEvery = 1_000 // rows between checkpoints in the second place
	checkpointAfter = 10 * time.Minute
	checkpointAgain = time.Minute // after one that could not be written
)

// A secondPlace is a file apart from the store that keeps checkpoints: whoever
// replaces the store does not reach it. Only the writing goroutine uses it.
type secondPlace struct {
	o      *Options
	rows   int64     // since the last checkpoint there
	tried  time.Time // when that one was written, or a newer one could not be
	failed bool      // the newer one could not be written
}

// due returns how long until a checkpoint is due, if one is.
func (p *secondPlace) due() (in time.Duration, ok bool) {
	switch {
	case p.o.CheckpointFile == "" || p.rows == 0:
		return 0, false
	case p.failed:
		return checkpointAgain - time.Since(p.tried), true
	case p.rows >= checkpointEvery:
		return 0, true
	}
	return checkpointAfter - time.Since(p.tried), true
}

// save appends a checkpoint of the last row, signed with the key of that row's
// store: not with the key of the file, which may be another store by now.
func (p *secondPlace) save(last *lastSeen, key []byte) {
	if p.o.CheckpointFile == "" || p.rows == 0 || last == nil {
		return
	}
	c := ledger.Checkpoint{Store: last.store, Seq: last.seq, Hash: last.hash, Time: p.o.Clock().UTC()}
	c.Sign(key)
	err := appendCheckpoint(p.o.CheckpointFile, c)
	p.tried, p.failed = time.Now(), err != nil
	if err != nil {
		p.o.Logger.Error("no checkpoint was written", "error", err)
		return
	}
	p.rows = 0
}

// readCheckpoints reads the second place. A line that is not a checkpoint, such as
// one cut short by a full disk, is logged and ignored: somebody who can only
// append gains nothing by it, and somebody who can do more could have removed the
// line. A last line without its end may still be being written.
func readCheckpoints(o *Options) ([]ledger.Checkpoint, error) {
	if o.CheckpointFile == "" {
		return nil, nil
	}
	f, err := os.Open(o.CheckpointFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading checkpoints: %w", err)
	}
	defer f.Close()
	var all []ledger.Checkpoint
	for r, n := bufio.NewReader(f), 1; ; n++ {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading checkpoints: %w", err)
		}
		c, err := ledger.ParseCheckpoint(line)
		if err != nil {
			o.Logger.Warn("a line among the checkpoints is no checkpoint", "file", o.CheckpointFile, "line", n)
			continue
		}
		all = append(all, c)
	}
}

// lastCheckpoint returns the newest checkpoint of the second place; nil when
// there is none.
func lastCheckpoint(o *Options) (*ledger.Checkpoint, error) {
	all, err := readCheckpoints(o)
	if len(all) == 0 || err != nil {
		return nil, err
	}
	return &all[len(all)-1], nil
}

// appendCheckpoint writes a checkpoint to the second place, on a line of its own
// even if an earlier line is incomplete.
func appendCheckpoint(path string, c ledger.Checkpoint) error {
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
