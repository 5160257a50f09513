package push

import (
	"context"
	"fmt"
	"time"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
)

// Keeping returns a log whose Prune leaves the rows that not every one of the sinks has
// acknowledged. Open opens the documents of its store; close is called when they were read.
func Keeping(b ledger.Book, sinks []string, open func(context.Context) (from documents.Store, closed func(), err error)) ledger.Book {
	linked, ok := b.(ledger.Linked)
	if !ok || len(sinks) == 0 {
		return b
	}
	return &keeping{b, linked, sinks, open}
}

type keeping struct {
	ledger.Book
	ledger.Linked
	sinks []string
	open  func(context.Context) (documents.Store, func(), error)
}

// Unwrap returns the log itself, which may be more than a Book.
func (k *keeping) Unwrap() ledger.Book { return k.Book }

// Shared passes on what the store knows; see [ledger.Queue].
func (k *keeping) Shared() bool {
	s, ok := k.Book.(interface{ Shared() bool })
	return !ok || s.Shared()
}

// Prune removes old rows that all sinks have.
func (k *keeping) Prune(ctx context.Context, before time.Time) (int64, error) {
	from, err := k.KeptFrom(ctx, before)
	if err != nil {
		return 0, err
	}
	return k.Book.Prune(ctx, from)
}

// KeptFrom is as in [ledger.KeptFrom].
func (k *keeping) KeptFrom(ctx context.Context, before time.Time) (time.Time, error) {
	from, closed, err := k.open(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("it is not known what was pushed: %w", err)
	}
	defer closed()
	s, err := read(ctx, from)
	if err != nil {
		return time.Time{}, err
	}
	for _, name := range k.sinks {
		_, rows, err := batch(ctx, k, s.Sinks[name])
		if err != nil {
			return time.Time{}, err
		}
		if len(rows) == 0 {
			continue
		}
		first, err := ledger.Decode(rows[0].Body)
		if err != nil {
			return time.Time{}, err
		}
		if first.Time.Before(before) {
			before = first.Time
		}
	}
	return ledger.KeptFrom(ctx, k.Book, before)
}
