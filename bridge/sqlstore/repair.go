package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"codemode-bridge/bridge/ledger"
)

// A Repaired says what Repair did. It is the Detail of the first row of the
// new log.
type Repaired struct {
	Store string      `json:"store"` // the damaged log's id; empty when that could not be read
	Old   string      `json:"old"`   // where its file is now; empty when there was none
	Why   string      `json:"why"`   // what was wrong with it
	Last  int64       `json:"last"`  // the last row before the damage; 0 when none could be read
	Hash  ledger.Hash `json:"hash"`  // of that row
}

// ErrWhole means that there is nothing to repair.
var ErrWhole = errors.New("the audit log is whole")

// Repair sets a damaged log aside, with its -wal, under a name with the time, and
// begins a new one whose first row records this. Nothing is deleted. A bridge that
// is running on the damaged log goes on with the new one, without the journals of
// its runs. A log that is whole is left alone: the error is ErrWhole.
func Repair(ctx context.Context, o Options) (Repaired, error) {
	o.setDefaults()
	if o.ReadOnly {
		return Repaired{}, errReadOnly
	}
	done, err := examine(ctx, &o)
	if err != nil {
		return Repaired{}, err
	}
	stamp := unused(o.Path, ".damaged-"+o.Clock().UTC().Format("20060102T150405Z"))
	// The file goes first: without its -wal it could look like a whole log that
	// ends earlier.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(o.Path+suffix, o.Path+stamp+suffix)
		if err == nil && suffix == "" {
			done.Old = o.Path + stamp
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return done, fmt.Errorf("setting the damaged audit log aside: %w", err)
		}
	}
	if _, err := readKeyFile(o.Key); errors.Is(err, ledger.ErrDamaged) {
		if err := os.Rename(o.Key, o.Key+stamp); err != nil {
			return done, fmt.Errorf("setting the damaged key aside: %w", err)
		}
	}
	detail, err := json.Marshal(done)
	if err != nil {
		return done, fmt.Errorf("writing of the repair: %w", err)
	}
	// The new log is put in place with its first row already in it: a bridge that
	// looks meanwhile would take a log without that row for another one's.
	begun := o
	begun.Path += stamp + ".new"
	head, err := anew(ctx, &begun, ledger.Record{Event: ledger.Repaired, Detail: detail})
	if err == nil {
		err = os.Rename(begun.Path, o.Path)
	}
	if err != nil {
		return done, fmt.Errorf("beginning another audit log: %w", err)
	}
	if o.CheckpointFile != "" {
		return done, ledger.AppendCheckpoint(o.CheckpointFile, head)
	}
	return done, nil
}

// anew makes a log with one row, and returns a checkpoint of it.
func anew(ctx context.Context, o *Options, first ledger.Record) (ledger.Checkpoint, error) {
	body, err := ledger.Encode(first, o.Clock)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	f, err := openFile(ctx, o, nil, true)
	if f != nil {
		defer f.closeWriting() // the last to close leaves the file whole, without a -wal
		defer f.closeReading()
	}
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	if err := f.add(ctx, o.Path, []*ledger.Item{{Bodies: [][]byte{body}}}, true); err != nil {
		return ledger.Checkpoint{}, err
	}
	c := ledger.Checkpoint{Store: f.id, Seq: f.seq, Hash: f.hash, Time: o.Clock().UTC()}
	c.Sign(f.key)
	return c, nil
}

// examine says what is wrong with a log, or that nothing is.
func examine(ctx context.Context, o *Options) (Repaired, error) {
	f, err := openFile(ctx, o, nil, false)
	if err != nil && !errors.Is(err, ledger.ErrDamaged) {
		return Repaired{}, err
	}
	done := Repaired{}
	if err != nil {
		done.Why = reason(err)
	}
	if f == nil {
		return done, nil
	}
	defer f.closeReading()
	f.closeWriting()
	report, failed := f.verify(ctx, o, nil)
	switch {
	case ctx.Err() != nil:
		return Repaired{}, ctx.Err()
	case err == nil && failed != nil && !errors.Is(failed, ledger.ErrDamaged):
		return Repaired{}, failed
	case err == nil && failed != nil:
		done.Why = reason(failed)
	case err == nil && report.Whole:
		return Repaired{}, ErrWhole
	case err == nil:
		done.Why = report.Message
	}
	done.Store, done.Last, done.Hash = f.id, report.Last, report.Hash
	return done, nil
}

// unused returns suffix, longer if a file has that name already.
func unused(path, suffix string) string {
	for n, try := 2, suffix; ; n++ {
		if _, err := os.Lstat(path + try); err != nil {
			return try
		}
		try = fmt.Sprintf("%s-%d", suffix, n)
	}
}
