package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

var (
	// ErrUnavailable: the store cannot write now (no space, no permission, the file
	// is gone, an earlier write may be lost). It tries again with the next record.
	ErrUnavailable = errors.New("the audit log cannot be written")

	// ErrDamaged: the store's content is not what was written. It is left alone,
	// readable as far as possible, until it is repaired.
	ErrDamaged = errors.New("the audit log is damaged")

	// ErrUsedUp: the record would be one use of its grant too many. Nothing of it was
	// stored.
	ErrUsedUp = errors.New("the grant is used up")
)

// A NewerError is why a store is left alone: a newer release changed it in a way that
// this one would not understand.
type NewerError struct {
	Has    int // the version of the store's schema
	Oldest int // the oldest version whose release may use it
	Knows  int // this release's version
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("a newer release has changed it (schema %d, which needs at least %d; this one knows %d)", e.Has, e.Oldest, e.Knows)
}

// A Store keeps records forever, in the order in which it received them, chained
// by hash. Its methods may be called concurrently, and any number of processes may
// have the same store open.
type Store interface {
	// Record appends records, in their order and in one transaction: whenever the
	// process or the power ends, all of them are found later, with their journal
	// entries and uses of grants, or none. It returns once they are as durable as the
	// most demanding of them asks, which is also how durable every earlier record is
	// by then. A zero time becomes now. The error is ErrUnavailable or ErrDamaged,
	// wrapped with the reason, after which they may be found in the store later; or
	// ErrUsedUp, what refuses a journal entry, or the context's, after which nothing
	// of them is stored. They are abandoned only before they are written.
	Recorder

	// Rows yields the rows that q selects, oldest first unless q.Newest is set. Rows
	// that are written meanwhile may or may not be among them; no row comes twice.
	// It ends with the first error.
	Rows(ctx context.Context, q Query) iter.Seq2[Row, error]

	// Head returns the last row's number and hash; 0 for an empty store.
	Head(ctx context.Context) (int64, Hash, error)

	// Verify reads the whole store and reports whether it is what was written.
	// Without a checkpoint that was kept elsewhere (nil means none) it cannot detect
	// that the whole store was replaced by an older or rewritten one. The error is
	// about reading; damage that is found is in the report.
	Verify(ctx context.Context, against *Checkpoint) (Report, error)

	// Checkpoint signs the present head.
	Checkpoint(ctx context.Context) (Checkpoint, error)

	// Prune removes the rows that precede the first one not older than before,
	// appends a Pruned record that accounts for them, and returns their number. If
	// there are none it writes nothing.
	Prune(ctx context.Context, before time.Time) (int64, error)

	// Changed returns a channel that is closed after anyone next changes the store;
	// if another process does, within 250 ms. It may also be closed without a
	// change. To miss none, call Changed again before reading the store.
	Changed() <-chan struct{}

	// Err says why Record fails at present; nil if it does not.
	Err() error

	// Close writes the records already received, ends the store's goroutines and
	// waits for them. Later records fail.
	Close() error
}

// KeptFrom returns the time from which on a store's Prune(before) leaves all rows: before, or
// earlier if others have to get rows first.
func KeptFrom(ctx context.Context, s Store, before time.Time) (time.Time, error) {
	if k, ok := s.(interface {
		KeptFrom(ctx context.Context, before time.Time) (time.Time, error)
	}); ok {
		return k.KeptFrom(ctx, before)
	}
	return before, nil
}

// A Row is a record with its place in the chain.
type Row struct {
	Seq    int64 // from 1, without gaps
	Hash   Hash
	Record Record
}

// A Query selects the rows that match all of its fields. A zero field matches
// every row; a list matches a row that has one of its values.
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
	Since  time.Time         // at this time or later
	Until  time.Time         // before this time
	Fields map[string]string // members of the record's JSON and their text; "args.path" looks into an object

	After  int64 // only rows with a greater number
	Before int64 // only rows with a smaller number; 0 is no bound
	Newest bool  // newest first
	Limit  int   // at most this many rows; 0 is no limit
}

// A Kind says what was done to a store.
type Kind string

const (
	Edited     Kind = "edited"     // the row is not what was written
	Removed    Kind = "removed"    // the row is missing
	Inserted   Kind = "inserted"   // the row was not written by the store
	Reordered  Kind = "reordered"  // the row is in another's place
	Cut        Kind = "cut"        // the rows from this one on are missing: cut off, or the file is an older copy
	Rewritten  Kind = "rewritten"  // the rows are chained, but are not the ones that were signed
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
