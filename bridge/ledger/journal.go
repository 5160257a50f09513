package ledger

import (
	"context"
	"errors"
	"time"
)

// The journal is what a run needs to be run again to where it was: its script,
// its calls in the order they were made, and their answers in the order in
// which the script got them. Unlike the log it holds things as they are, so it
// is encrypted where it is kept, and it is gone when the run has ended.

// An EntryKind says what an Entry is.
type EntryKind string

const (
	Began   EntryKind = "began"   // the first of a run: what its script depends on
	Sent    EntryKind = "sent"    // a call is about to be sent
	Settled EntryKind = "settled" // a call has its answer
	Ended   EntryKind = "ended"   // the run is over: its journal is removed, or kept until Until
)

// An Entry is one step of a run.
type Entry struct {
	Run  string
	Kind EntryKind
	// Owner is the bridge that writes it. One that does not own the run writes
	// nothing: the error is ErrNotOwner, and a Record that the entry came with
	// is not kept either. Began makes Owner the owner.
	Owner  string
	Call   int       // the call's number in its run; of Sent and Settled
	Settle int       // of Settled: its place in the order of answers, from 1
	Until  time.Time // of Began: when the run expires; of Ended: when the journal goes, zero for at once
	// Shared names bytes that many runs depend on, such as the names of the
	// tools, and is kept once for all of them; of Began. Common are those bytes.
	Shared string
	Common []byte
	Body   []byte // for whoever wrote it
}

// A JournalState says how far a run with a journal is.
type JournalState string

const (
	Live     JournalState = "live"     // its owner runs it, or ended without a word
	Paused   JournalState = "paused"   // it was put away while it waits for people
	Finished JournalState = "finished" // its journal is kept for a while
)

// A Kept is a run that has a journal.
type Kept struct {
	Run    string
	Owner  string // the bridge that runs it; empty when none does
	Wanted string // what somebody asks of the owner; empty when nobody asks
	State  JournalState
	Began  time.Time
	Until  time.Time // when it expires
	Bytes  int64     // of its entries
}

var (
	// ErrNoJournal: nothing is kept of the run.
	ErrNoJournal = errors.New("there is no journal of this run")
	// ErrNotOwner: another bridge has the run now.
	ErrNotOwner = errors.New("the run belongs to another bridge")
)

// A Journal keeps the entries of runs. Several processes may share one; its
// methods may be called by any number of goroutines. What a method has done
// outlives the end of this process.
//
// Entries that announce or follow an effect travel with its Record
// (Record.Journal) and are kept in one transaction with it.
type Journal interface {
	// Append keeps entries, all or none, in their order.
	Append(ctx context.Context, entries ...Entry) error
	// Read returns a run with its entries in the order in which they were
	// kept; the first is Began, with its Common. Or ErrNoJournal.
	Read(ctx context.Context, run string) (Kept, []Entry, error)
	// Runs returns all runs that have a journal, the oldest first.
	Runs(ctx context.Context) ([]Kept, error)
	// ChangeRun changes what is known of a run (Owner, Wanted, State and Until),
	// all others waiting meanwhile, in whatever process they are. An error of
	// change is returned and leaves all as it was. Or ErrNoJournal.
	ChangeRun(ctx context.Context, run string, change func(*Kept) error) (Kept, error)
	// WantedOf returns the runs of an owner of which somebody wants something.
	WantedOf(ctx context.Context, owner string) ([]Kept, error)
	// Drop removes a run's journal. One that is not there is no error.
	Drop(ctx context.Context, run string) error
}
