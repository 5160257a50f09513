package ledger

import (
	"context"
	"errors"
	"iter"
	"time"
)

var (
	// ErrUnavailable: the store cannot write now (no room, no permission, the
	// file is gone, an earlier write may be lost). It tries again with the next
	// record.
	ErrUnavailable = errors.New("the audit log cannot be written")

	// ErrDamaged: what the store holds is not what was written. It stays as it
	// is, readable where it can be read, until it is repaired.
	ErrDamaged = errors.New("the audit log is damaged")
)

// A Store keeps records for ever, in the order in which it took them, chained
// by hash. Any number of goroutines may call it, and any number of processes
// may hold the same store.
type Store interface {
	// Record appends r and returns when it is as durable as r asks. A zero time
	// becomes now. The error is ErrUnavailable or ErrDamaged, wrapped with the
	// reason, or the context's: a record is given up only before it is
	// written, so an error of the context means that it was not kept. Another
	// error may stand for a record that is found in the store later.
	Recorder

	// Rows yields the rows that q selects, oldest first unless q.Newest. Rows
	// that are written meanwhile may or may not be among them; each row comes
	// at most once. It ends with the first error.
	Rows(ctx context.Context, q Query) iter.Seq2[Row, error]

	// Head returns the last row's number and hash; 0 for an empty store.
	Head(ctx context.Context) (int64, Hash, error)

	// Verify reads the whole store and says whether it is what was written.
	// Without a checkpoint from another place it cannot find that the whole
	// store was replaced by an older or rewritten one; nil is none. The error
	// is of reading; what is found wrong is in the report.
	Verify(ctx context.Context, against *Checkpoint) (Report, error)

	// Checkpoint signs the present head.
	Checkpoint(ctx context.Context) (Checkpoint, error)

	// Prune removes the rows written before the first one that is not older
	// than before, appends a Pruned record that accounts for them, and returns
	// their number. It removes nothing, and writes nothing, when that is none.
	Prune(ctx context.Context, before time.Time) (int64, error)

	// Changed returns a channel that is closed after a later change of the
	// store by anyone, by another process within 250 ms. It may be closed
	// without one. Once closed it says no more; ask for the next before you
	// read.
	Changed() <-chan struct{}

	// Err says why Record fails now; nil when it does not.
	Err() error

	// Close writes what was taken, ends the store's goroutines and waits for
	// them. Records that come later fail.
	Close() error
}

// A Row is a record with its place in the chain.
type Row struct {
	Seq    int64 // from 1, without gaps
	Hash   Hash
	Record Record
}

// A Query selects rows that meet all of its parts; a zero part is met by every
// row, a list by a row that has one of its values.
type Query struct {
	Events       []Event
	Runs         []string
	Sessions     []string
	Clients      []string
	Profiles     []string
	Servers      []string
	Approvers    []string
	Channels     []string
	Dispositions []string
	Outcomes     []string
	Risks        []string

	Tool   string            // a pattern over Record.Path in which * stands for anything
	Since  time.Time         // not before it
	Until  time.Time         // before it
	Fields map[string]string // members of the record's JSON and their text; "args.path" looks into an object

	After  int64 // only rows with a greater number
	Before int64 // only rows with a smaller number; 0 is no bound
	Newest bool  // newest first
	Limit  int   // at most so many rows; 0 is no limit
}

// A Kind says what was done to a store.
type Kind string

const (
	Edited     Kind = "edited"     // the row does not say what was written
	Removed    Kind = "removed"    // the row is missing
	Inserted   Kind = "inserted"   // the row was not written by the store
	Reordered  Kind = "reordered"  // the row stands in another's place
	Cut        Kind = "cut"        // the rows from this one on are missing: cut off, or the file is an older copy
	Rewritten  Kind = "rewritten"  // the rows are chained, but are not those that were signed
	OtherStore Kind = "foreign"    // the checkpoint is of another store, or signed with another key
	Unreadable Kind = "unreadable" // the file cannot be read, at this row or as a whole
)

// A Report is what Verify found.
type Report struct {
	Whole  bool
	Sealed bool  // the seals were checked too; without the store's key they cannot be
	Rows   int64 // that were read and found right
	First  int64 // the first row's number: 1, or after the last pruned one
	Last   int64 // the last row that was found right
	Hash   Hash  // of that row

	// Where it is not whole: the first row that is wrong (0 when the store as a
	// whole is), how, and a sentence for people.
	Bad     int64
	Kind    Kind
	Message string
}
