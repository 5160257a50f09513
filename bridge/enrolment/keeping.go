package enrolment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/ledger"
)

// Keeping returns a log whose Prune leaves the rows that the centre has not confirmed, as
// long as the laptop is enrolled.
func Keeping(b ledger.Book, f Folder) ledger.Book {
	linked, ok := b.(ledger.Linked)
	if !ok {
		return b
	}
	return &keeping{b, linked, f}
}

type keeping struct {
	ledger.Book
	ledger.Linked
	folder Folder
}

// Unwrap returns the log itself, which may be more than a Book.
func (k *keeping) Unwrap() ledger.Book { return k.Book }

// Shared passes on what the store knows; see [ledger.Queue].
func (k *keeping) Shared() bool {
	s, ok := k.Book.(interface{ Shared() bool })
	return !ok || s.Shared()
}

// Prune removes old rows that the centre has.
func (k *keeping) Prune(ctx context.Context, before time.Time) (int64, error) {
	from, err := k.unconfirmed(ctx, before)
	if err != nil {
		return 0, err
	}
	return k.Book.Prune(ctx, from)
}

// KeptFrom is as in [ledger.KeptFrom].
func (k *keeping) KeptFrom(ctx context.Context, before time.Time) (time.Time, error) {
	from, err := k.unconfirmed(ctx, before)
	if err != nil {
		return time.Time{}, err
	}
	return ledger.KeptFrom(ctx, k.Book, from)
}

// unconfirmed is the time of the first row that the centre has not confirmed, if that is
// earlier than before.
func (k *keeping) unconfirmed(ctx context.Context, before time.Time) (time.Time, error) {
	_, err := k.folder.Enrolment()
	if errors.Is(err, ErrNotEnrolled) {
		return before, nil
	}
	sent, unread := k.folder.Sent()
	if err = errors.Join(err, unread); err != nil {
		return time.Time{}, fmt.Errorf("it is not known what the centre has: %w", err)
	}
	store, links, err := k.LinksAfter(ctx, sent.Head.Seq, 1, 1)
	if err == nil && store != sent.Head.Store { // a new log, of which the centre has nothing
		_, links, err = k.LinksAfter(ctx, 0, 1, 1)
	}
	if err != nil || len(links) == 0 {
		return before, err
	}
	first, err := ledger.Decode(links[0].Body)
	if err == nil && first.Time.Before(before) {
		before = first.Time
	}
	return before, err
}
