package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"codemode-bridge/bridge/ledger"
)

// A journal is what the store has of a run.
type journal struct {
	ledger.JournaledRun
	entries []ledger.JournalEntry // without Owner, Configuration, Until and Common
}

// Append stores entries.
func (s *Store) Append(ctx context.Context, entries ...ledger.JournalEntry) error {
	if err := ctx.Err(); err != nil || len(entries) == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if err := s.appendEntriesLocked(entries); err != nil {
		return err
	}
	s.changedLocked()
	return nil
}

// appendEntriesLocked stores all entries or none.
func (s *Store) appendEntriesLocked(entries []ledger.JournalEntry) error {
	if len(entries) == 0 {
		return nil
	}
	before := s.savedJournalsLocked()
	for i := range entries {
		if err := s.entryLocked(&entries[i]); err != nil {
			before()
			return err
		}
	}
	return nil
}

// savedJournalsLocked returns what takes back all that is done to the journals from
// here on.
func (s *Store) savedJournalsLocked() (restore func()) {
	before, shared := make([]*journal, len(s.journals)), maps.Clone(s.shared)
	for i, j := range s.journals {
		was := *j
		was.entries = slices.Clip(was.entries)
		before[i] = &was
	}
	return func() { s.journals, s.shared = before, shared }
}

func (s *Store) entryLocked(e *ledger.JournalEntry) error {
	if err := e.Check(); err != nil {
		return err
	}
	j := s.journalLocked(e.Run)
	switch {
	case e.Kind == ledger.Began && j != nil:
		return fmt.Errorf("beginning the journal of run %s: it has one", e.Run)
	case e.Kind == ledger.Began:
		if there, ok := s.shared[e.Shared]; ok && !bytes.Equal(there, e.Common) {
			return fmt.Errorf("beginning the journal of run %s: other bytes are kept as %q", e.Run, e.Shared)
		}
		if e.Shared != "" {
			s.shared[e.Shared] = bytes.Clone(e.Common)
		}
		j = &journal{JournaledRun: ledger.JournaledRun{Run: e.Run, Owner: e.Owner, Lease: 1, State: ledger.Live, Configuration: e.Configuration, Began: s.clock().Round(0).UTC(), Until: e.Until.Round(0).UTC()}}
		s.journals = append(s.journals, j)
	case j == nil && e.Kind == ledger.Ended:
		return nil
	case j == nil:
		return fmt.Errorf("writing the journal of run %s: %w", e.Run, ledger.ErrNoJournal)
	case j.Owner != e.Owner, e.Lease != 0 && e.Lease != j.Lease:
		return fmt.Errorf("writing the journal of run %s: %w", e.Run, ledger.ErrNotOwner)
	case e.Kind == ledger.Ended && e.Until.IsZero():
		s.dropLocked(j)
		return nil
	case e.Kind == ledger.Ended:
		j.Owner, j.HandoverRequestedBy, j.CancelRequestedBy = "", "", ""
		j.State, j.Until = ledger.Finished, e.Until.Round(0).UTC()
	}
	j.Bytes += int64(len(e.Body))
	j.entries = append(j.entries, ledger.JournalEntry{Run: e.Run, Kind: e.Kind, Call: e.Call, Shared: e.Shared, Body: bytes.Clone(e.Body)})
	return nil
}

// journalLocked returns a run's journal; nil if it has none.
func (s *Store) journalLocked(run string) *journal {
	for _, j := range s.journals {
		if j.Run == run {
			return j
		}
	}
	return nil
}

// dropLocked removes a journal, and the shared bytes that no other journal names.
func (s *Store) dropLocked(j *journal) {
	s.journals = slices.DeleteFunc(s.journals, func(other *journal) bool { return other == j })
	name := j.entries[0].Shared
	if !slices.ContainsFunc(s.journals, func(other *journal) bool { return other.entries[0].Shared == name }) {
		delete(s.shared, name)
	}
}

// Read returns a run with its entries.
func (s *Store) Read(ctx context.Context, run string) (ledger.JournaledRun, []ledger.JournalEntry, error) {
	if err := ctx.Err(); err != nil {
		return ledger.JournaledRun{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journalLocked(run)
	if j == nil {
		return ledger.JournaledRun{}, nil, fmt.Errorf("reading the journal of run %s: %w", run, ledger.ErrNoJournal)
	}
	entries := slices.Clone(j.entries)
	for i := range entries {
		entries[i].Body = bytes.Clone(entries[i].Body)
	}
	entries[0].Common = bytes.Clone(s.shared[entries[0].Shared])
	return j.JournaledRun, entries, nil
}

// selected returns the runs that want selects.
func (s *Store) selected(ctx context.Context, want func(ledger.JournaledRun) bool) ([]ledger.JournaledRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []ledger.JournaledRun
	for _, j := range s.journals {
		if want(j.JournaledRun) {
			all = append(all, j.JournaledRun)
		}
	}
	return all, ctx.Err()
}

// Runs returns all runs that have a journal.
func (s *Store) Runs(ctx context.Context) ([]ledger.JournaledRun, error) {
	return s.selected(ctx, func(ledger.JournaledRun) bool { return true })
}

// LeaseRequests returns the runs that their owner is requested to hand over or end.
func (s *Store) LeaseRequests(ctx context.Context, owner string) ([]ledger.JournaledRun, error) {
	return s.selected(ctx, func(k ledger.JournaledRun) bool {
		return k.Owner == owner && (k.HandoverRequestedBy != "" || k.CancelRequestedBy != "")
	})
}

// ChangeRun changes the stored run.
func (s *Store) ChangeRun(ctx context.Context, run string, change func(*ledger.JournaledRun) error) (ledger.JournaledRun, error) {
	if err := ctx.Err(); err != nil {
		return ledger.JournaledRun{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ledger.JournaledRun{}, errClosed
	}
	j := s.journalLocked(run)
	if j == nil {
		return ledger.JournaledRun{}, fmt.Errorf("changing run %s: %w", run, ledger.ErrNoJournal)
	}
	k, err := j.JournaledRun.Change(change)
	if err != nil {
		return k, err
	}
	j.JournaledRun = k
	s.changedLocked()
	return k, nil
}

// Drop removes a run's journal.
func (s *Store) Drop(ctx context.Context, run string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if j := s.journalLocked(run); j != nil {
		s.dropLocked(j)
		s.changedLocked()
	}
	return nil
}
