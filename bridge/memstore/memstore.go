// Package memstore keeps audit records and the journals of runs in memory. It
// meets the contracts of ledger.Store and ledger.Journal except that nothing
// outlives the process. Tests use it, and it shows what a store must do, without a
// database.
package memstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/ledger"
)

var errClosed = fmt.Errorf("%w: it is closed", ledger.ErrUnavailable)

// A Store is a ledger.Store and a ledger.Journal in memory.
type Store struct {
	id    string
	key   []byte
	clock func() time.Time

	mu       sync.Mutex
	ring     *ledger.Keyring
	rows     []storedRow
	last     int64 // the last row's number and hash, also when it was pruned
	hash     ledger.Hash
	journals []*journal // the oldest first
	shared   map[string][]byte
	uses     map[string]int // of grants
	changed  chan struct{}
	closed   bool
}

type storedRow struct {
	ledger.Link
	record ledger.Record
}

// New returns an empty store. A nil clock is time.Now.
func New(clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	random := make([]byte, 48)
	rand.Read(random)
	s := &Store{id: hex.EncodeToString(random[:16]), key: random[16:], clock: clock, shared: make(map[string][]byte), uses: make(map[string]int), changed: make(chan struct{})}
	s.ring = ledger.NewKeyring(s.id, s.key)
	return s
}

// Record appends records, all or none.
func (s *Store) Record(ctx context.Context, all ...ledger.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	before := func() {}
	if len(all) > 1 {
		before = s.savedLocked()
	}
	for _, r := range all {
		if err := s.appendLocked(r); err != nil {
			before()
			return err
		}
	}
	if len(all) > 0 {
		s.changedLocked()
	}
	return nil
}

// savedLocked returns what takes back all that was appended since.
func (s *Store) savedLocked() (restore func()) {
	rows, last, hash, uses, journals := s.rows, s.last, s.hash, maps.Clone(s.uses), s.savedJournalsLocked()
	return func() {
		s.rows, s.last, s.hash, s.uses = rows, last, hash, uses
		journals()
	}
}

func (s *Store) appendLocked(r ledger.Record) error {
	entries, grant, most := r.Journal, r.Grant, r.GrantUses
	body, err := ledger.Encode(r, s.clock)
	if err != nil {
		return err
	}
	if r, err = ledger.Decode(body); err != nil { // what any store gives back
		return err
	}
	if most > 0 && s.uses[grant] >= most {
		return ledger.ErrUsedUp
	}
	if err := s.appendEntriesLocked(entries); err != nil {
		return err
	}
	if most > 0 {
		s.uses[grant]++
	}
	s.last++
	s.hash = ledger.HashRow(s.id, s.last, s.hash, body)
	link := ledger.Link{Seq: s.last, Hash: s.hash, Seal: s.ring.Seal(s.last, s.hash), Body: body}
	s.rows = append(s.rows, storedRow{link, r})
	return nil
}

// changedLocked wakes those who wait for a change.
func (s *Store) changedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Rows yields the rows that q selects, as they are now.
func (s *Store) Rows(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		s.mu.Lock()
		rows := slices.Clone(s.rows)
		s.mu.Unlock()
		if q.Newest {
			slices.Reverse(rows)
		}
		found := 0
		for _, k := range rows {
			if err := ctx.Err(); err != nil {
				yield(ledger.Row{}, err)
				return
			}
			row := ledger.Row{Seq: k.Seq, Hash: k.Hash, Record: k.record}
			if !q.Selects(row) {
				continue
			}
			if found++; !yield(row, nil) || found == q.Limit {
				return
			}
		}
	}
}

// Head returns the last row's number and hash.
func (s *Store) Head(context.Context) (int64, ledger.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.hash, nil
}

// Verify checks every row.
func (s *Store) Verify(ctx context.Context, against *ledger.Checkpoint) (ledger.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var signed []ledger.Checkpoint
	if against != nil {
		signed = append(signed, *against)
	}
	c := ledger.NewChecker(s.id, s.key, signed...)
	for _, k := range s.rows {
		if !c.Add(k.Link) {
			break
		}
	}
	return c.Report(), ctx.Err()
}

// Checkpoint signs the current head.
func (s *Store) Checkpoint(context.Context) (ledger.Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := ledger.Checkpoint{Store: s.id, Seq: s.last, Hash: s.hash, Time: s.clock().UTC()}
	c.Sign(s.key)
	return c, nil
}

// Prune removes old rows and appends the record that accounts for them.
func (s *Store) Prune(ctx context.Context, before time.Time) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errClosed
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n := slices.IndexFunc(s.rows, func(k storedRow) bool { return !k.record.Time.Before(before) })
	if n < 0 {
		n = len(s.rows)
	}
	if n == 0 {
		return 0, nil
	}
	old := s.rows[n-1]
	if err := s.appendLocked(ledger.Removal{Rows: int64(n), Last: old.Seq, Hash: old.Hash}.Record()); err != nil {
		return 0, err
	}
	s.rows = slices.Clone(s.rows[n:])
	s.changedLocked()
	return int64(n), nil
}

// Changed returns a channel that is closed with the next change.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Err returns the error with which Record fails.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return nil
}

// Close makes later records fail.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
