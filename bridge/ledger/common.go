package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Book is a store of records and journals that has a key.
type Book interface {
	Store
	Journal
	// Key returns a secret of this store for another purpose, the same in every process
	// and each time the store is opened.
	Key(purpose string) ([]byte, error)
	// WholeAt returns when all rows were last known to be right; zero if that is not
	// known.
	WholeAt() time.Time
}

// Damaged returns an error that is ErrDamaged.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// Unavailable returns an error that is ErrUnavailable.
func Unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnavailable}, args...)...)
}

// Reason returns what err says beyond that the log is damaged.
func Reason(err error) string {
	return strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": ")
}

var (
	// ErrClosed is the error of a store that is closed.
	ErrClosed = Unavailable("it is closed")
	// ErrNoStore: there is no store yet, and it was opened for reading only.
	ErrNoStore = errors.New("there is no store in this database yet: codemode-bridge makes one when it serves, or store copy does")
	// ErrReadOnly is the error of a store that was opened for reading only.
	ErrReadOnly = Unavailable("it was opened for reading only")
)

// A RefusedError is an error of one item that does not affect the rest of the
// transaction.
type RefusedError struct{ error }

// Refuse makes err one.
func Refuse(err error) error { return RefusedError{err} }

// Unwrap returns what the item is refused for.
func (e RefusedError) Unwrap() error { return e.error }

// RefusedFor returns what an item is refused for, if err is a RefusedError; nil if not.
func RefusedFor(err error) error {
	if no := (RefusedError{}); errors.As(err, &no) {
		return no.error
	}
	return nil
}

// Sortable returns a time as text that sorts like the time: with a Z, a prefix would
// not sort before what it begins.
func Sortable(t time.Time) string {
	return strings.TrimSuffix(t.UTC().Format(time.RFC3339Nano), "Z")
}

// Nanos returns a time as unix nanoseconds; 0 for none.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Moment is its inverse.
func Moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// A Linked is a store whose rows can be read as they are kept, to be checked elsewhere.
type Linked interface {
	// LinksAfter returns the store's id and the rows with numbers greater than after, in
	// their order: at most rows of them, and no more once their texts have bytes together.
	LinksAfter(ctx context.Context, after int64, rows, bytes int) (store string, links []Link, err error)
}
