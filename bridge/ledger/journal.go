package ledger

import (
	"context"
	"errors"
	"fmt"
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
	Replied EntryKind = "settled" // a call has its answer
	Noted   EntryKind = "noted"   // what else the run has seen
	Ended   EntryKind = "ended"   // the run is over: its journal is removed, or kept until Until
)

// A JournalEntry is one step of a run.
type JournalEntry struct {
	Run  string
	Kind EntryKind
	// Owner is the bridge that writes it. One that does not own the run writes
	// nothing: the error is ErrNotOwner, and a Record that the entry came with
	// is not kept either. Began makes Owner the owner.
	Owner string
	// Lease is the number of the lease under which Owner writes; one that is not
	// the run's any more writes nothing, also if Owner has a newer one. Zero leaves
	// that out, for who has no lease: Began makes the first.
	Lease int64
	Call  int // the call's number in its run; of Sent and Settled
	// Configuration is the id of the configuration that the run belongs to; of
	// Began. Nobody with another one goes on with the run.
	Configuration string
	Until         time.Time // of Began: when the run expires; of Ended: when the journal goes, zero for at once
	// Shared names bytes that many runs depend on, such as the names of the
	// tools, and is kept once for all of them; of Began. Common are those bytes,
	// the same wherever the name is. They are no secret: they are not encrypted.
	Shared string
	Common []byte
	Body   []byte // for whoever wrote it; at most MaxEntry
}

// MaxEntry bounds the body of an entry, and the bytes that Shared names.
const MaxEntry = 64 << 20

// Check says what is wrong with an entry, whatever is kept of its run.
func (e *JournalEntry) Check() error {
	wrong := ""
	switch {
	case e.Run == "":
		wrong = "it names no run"
	case e.Owner == "":
		wrong = "nobody owns it"
	case e.Kind != Began && e.Kind != Sent && e.Kind != Replied && e.Kind != Noted && e.Kind != Ended:
		wrong = fmt.Sprintf("there is no kind %q", e.Kind)
	case e.Kind != Began && e.Configuration != "":
		wrong = "it names a configuration, and does not begin the run"
	case e.Kind != Began && (e.Shared != "" || len(e.Common) > 0), e.Shared == "" && len(e.Common) > 0:
		wrong = "it has shared bytes without a name, or does not begin the run"
	case len(e.Body) > MaxEntry || len(e.Common) > MaxEntry:
		wrong = fmt.Sprintf("it has %d bytes, at most %d are kept", max(len(e.Body), len(e.Common)), MaxEntry)
	default:
		return nil
	}
	return fmt.Errorf("checking an entry of the journal of run %q: %s", e.Run, wrong)
}

// A JournalState says how far a run with a journal is.
type JournalState string

const (
	Live     JournalState = "live"     // its owner runs it, or ended without a word
	Paused   JournalState = "paused"   // it was suspended while it waits for people
	Finished JournalState = "finished" // its journal is kept for a while
)

// A JournaledRun is a run that has a journal.
type JournaledRun struct {
	Run string
	// Owner is the bridge that has the run's lease; empty when none has. Lease
	// is the lease's number, which grows each time that a bridge acquires the run:
	// zero in a run that began in a release that counted none.
	Owner string
	Lease int64
	// HandoverRequestedBy is the bridge that wants to acquire the run, and
	// CancelRequestedBy whoever wants it to end, after which nobody acquires it to
	// run it; both are requests to the owner, and empty when nobody makes them.
	HandoverRequestedBy string
	CancelRequestedBy   string
	State               JournalState
	// Configuration is the id of the configuration that it belongs to; empty for
	// a run that began in a release that kept none.
	Configuration string
	Began         time.Time
	Until         time.Time // when it expires
	Bytes         int64     // of its entries' bodies
}

// Acquire makes a bridge the owner of the run, under a new lease. A request that
// the run is to end stays until it has ended.
func (k *JournaledRun) Acquire(bridge string) {
	k.Owner, k.State, k.HandoverRequestedBy = bridge, Live, ""
	k.Lease++
}

// Release leaves the run to whoever acquires it.
func (k *JournaledRun) Release() { k.Owner, k.State = "", Paused }

// Change returns what k is after change, of whose changes those of the lease and
// its requests, State and Until count. Another owner than before has a new lease,
// and a run that is to end is not handed over.
func (k JournaledRun) Change(change func(*JournaledRun) error) (JournaledRun, error) {
	next := k
	if err := change(&next); err != nil {
		return k, err
	}
	if next.State != Live && next.State != Paused && next.State != Finished {
		return k, fmt.Errorf("changing run %s: there is no state %q", k.Run, next.State)
	}
	if next.Owner != "" && next.Owner != k.Owner && next.Lease <= k.Lease {
		next.Lease = k.Lease + 1
	}
	if next.CancelRequestedBy != "" {
		next.HandoverRequestedBy = ""
	}
	k.Owner, k.Lease, k.HandoverRequestedBy, k.CancelRequestedBy = next.Owner, max(k.Lease, next.Lease), next.HandoverRequestedBy, next.CancelRequestedBy
	k.State, k.Until = next.State, next.Until.Round(0).UTC()
	return k, nil
}

var (
	// ErrNoJournal: nothing is kept of the run.
	ErrNoJournal = errors.New("there is no journal of this run")
	// ErrNotOwner: another bridge has the run now, or the same under a newer lease.
	ErrNotOwner = errors.New("the run belongs to another bridge")
)

// A Journal keeps the entries of runs. Several processes may share one; its
// methods may be called by any number of goroutines. What a method has done
// outlives the end of this process, and a cut of the power as soon as a Durable
// record was kept after it.
//
// Entries that announce or follow an effect travel with its Record
// (Record.Journal) and are kept in one transaction with it, or neither is: an
// entry that is refused refuses its record, and nothing else that is written
// in the same moment. Entries of a run are refused that has no journal
// (ErrNoJournal; Ended is none, and does nothing, for a run without calls has
// no journal) or that their Owner does not own (ErrNotOwner), and Began of one
// that has a journal.
//
// Nothing goes by itself when its time has come: who looks after the runs asks
// for them and drops what is past its Until. A Store that is a Journal tells
// of changed runs by Changed as well.
type Journal interface {
	// Append keeps entries, all or none, in their order. The error is one of
	// those above, or as Record's.
	Append(ctx context.Context, entries ...JournalEntry) error
	// Read returns a run with its entries in the order in which they were kept,
	// without their Owner, Configuration and Until, which are in Kept; the first is Began, with
	// its Common. Or ErrNoJournal, or ErrDamaged if what is kept is not what
	// was written.
	Read(ctx context.Context, run string) (JournaledRun, []JournalEntry, error)
	// Runs returns all runs that have a journal, the oldest first.
	Runs(ctx context.Context) ([]JournaledRun, error)
	// ChangeRun changes what is known of a run, as Kept.Change has it,
	// and returns it, all others waiting meanwhile, in whatever process they
	// are: change is quick and does not ask the store. An error of change is
	// returned and leaves all as it was. Or ErrNoJournal.
	ChangeRun(ctx context.Context, run string, change func(*JournaledRun) error) (JournaledRun, error)
	// LeaseRequests returns the runs of an owner that it is requested to hand over
	// or to end, the oldest first.
	LeaseRequests(ctx context.Context, owner string) ([]JournaledRun, error)
	// Drop removes a run's journal. One that is not there is no error.
	Drop(ctx context.Context, run string) error
}
