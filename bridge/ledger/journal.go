package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The journal has what is needed to replay a run to where it was: its script, its
// calls in the order they were made, and their answers in the order in which the
// script got them. Unlike the audit log it has the exact values, so it is stored
// encrypted, and it is removed when the run has ended.

// An EntryKind says what a JournalEntry is.
type EntryKind string

const (
	Began   EntryKind = "began"   // the first of a run: what its script depends on
	Sent    EntryKind = "sent"    // a call is about to be sent
	Replied EntryKind = "settled" // a call has its answer
	Noted   EntryKind = "noted"   // anything else that the run has seen
	Ended   EntryKind = "ended"   // the run is over: its journal is removed, or kept until Until
)

// A JournalEntry is one step of a run.
type JournalEntry struct {
	Run  string
	Kind EntryKind
	// Owner is the bridge that writes the entry. If it does not own the run nothing
	// is written: the error is ErrNotOwner, and the Record that the entry came with
	// is not stored either. Began makes Owner the owner.
	Owner string
	// Lease is the number of the lease under which Owner writes. Under a lease that
	// the run no longer has nothing is written, even if Owner has a newer one. Zero
	// skips this check, for an owner without a lease: Began makes the first one.
	Lease int64
	Call  int // the call's number in its run; of Sent and Settled
	// Configuration is the id of the configuration that the run belongs to; of
	// Began. No bridge with another one resumes the run.
	Configuration string
	Until         time.Time // of Began: when the run expires; of Ended: when the journal is removed, zero for at once
	// Shared names bytes that many runs depend on, such as the names of the tools,
	// which are stored once for all of them; of Began. Common are those bytes, the
	// same for every use of the name. They are not secret and not encrypted.
	Shared string
	Common []byte
	Body   []byte // has meaning only for its writer; at most MaxEntry
}

// MaxEntry bounds the body of an entry, and the bytes that Shared names.
const MaxEntry = 64 << 20

// Check says what is wrong with an entry by itself, regardless of what is stored
// of its run.
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

// Moot tells of each entry whether it is moot: a later one, which is stored together with it, ends its run and removes
// the journal. Whether such an entry may be stored is checked as with all others, but it need not be.
func Moot(together []JournalEntry) []bool {
	moot, ended := make([]bool, len(together)), ""
	for i := len(together) - 1; i >= 0; i-- {
		switch e := &together[i]; {
		case e.Kind == Ended && e.Until.IsZero():
			ended = e.Run
		case e.Kind == Ended || e.Kind == Began: // it changes more than the journal's entries
			ended = ""
		default:
			moot[i] = e.Run == ended
		}
	}
	return moot
}

// A JournalState says how far a run with a journal is.
type JournalState string

const (
	Live     JournalState = "live"     // its owner runs it, or ended without notice
	Paused   JournalState = "paused"   // it was suspended, waiting for people
	Finished JournalState = "finished" // its journal is kept for a while
)

// A JournaledRun is a run that has a journal.
type JournaledRun struct {
	Run string
	// Owner is the bridge that has the run's lease; empty if none has. Lease is the
	// lease's number, which grows each time that a bridge acquires the run: zero if
	// the run began in a release without lease numbers.
	Owner string
	Lease int64
	// HandoverRequestedBy is the bridge that wants to acquire the run, and
	// CancelRequestedBy whoever wants it to end, after which no bridge acquires it
	// to run it. Both are requests to the owner; empty if there is none.
	HandoverRequestedBy string
	CancelRequestedBy   string
	State               JournalState
	// Configuration is the id of the configuration that it belongs to; empty for a
	// run that began in a release that did not store it.
	Configuration string
	Began         time.Time
	Until         time.Time // when it expires
	Bytes         int64     // of its entries' bodies
}

// Acquire makes a bridge the owner of the run, under a new lease. A request to
// cancel the run stays until it has ended.
func (k *JournaledRun) Acquire(bridge string) {
	k.Owner, k.State, k.HandoverRequestedBy = bridge, Live, ""
	k.Lease++
}

// Release gives up the lease, so that any bridge may acquire the run.
func (k *JournaledRun) Release() { k.Owner, k.State = "", Paused }

// Change returns k as change leaves it. Only changes of the lease and its requests,
// of State and of Until count. A new owner gets a new lease, and a run that is to
// end is not handed over.
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
	// ErrNoJournal: nothing is stored of the run.
	ErrNoJournal = errors.New("there is no journal of this run")
	// ErrNotOwner: another bridge has the run now, or the same under a newer lease.
	ErrNotOwner = errors.New("the run belongs to another bridge")
	// ErrOwnerAlive: the bridge that has the run is alive, and has not given it up.
	ErrOwnerAlive = errors.New("the bridge that has the run is alive")
)

// A Journal keeps the entries of runs. Several processes may share one, and its
// methods may be called concurrently. What a method has written survives the end
// of this process, and survives a power cut once a Durable record has been stored
// after it.
//
// Entries that announce or follow an effect travel with its Record
// (Record.Journal) and are stored in one transaction with it, or neither is: if an
// entry is refused so is its record, but nothing else that is written at the same
// moment. An entry is refused if its run has no journal (ErrNoJournal) or its
// Owner does not own the run (ErrNotOwner); Began is refused if the run already
// has a journal. Ended of a run without a journal is not refused and does nothing,
// since a run without calls has no journal.
//
// Nothing expires by itself: whoever looks after the runs lists them and drops
// those past their Until. The Changed channel of a Store that is a Journal reports
// changed runs too.
type Journal interface {
	// Append stores entries, all or none, in their order. The error is one of those
	// above, or one that Record may return.
	Append(ctx context.Context, entries ...JournalEntry) error
	// Read returns a run with its entries in the order in which they were stored.
	// The first is Began, with its Common; Owner, Configuration and Until of the
	// entries are left out, since the JournaledRun has them. The error is
	// ErrNoJournal, or ErrDamaged if the stored entries are not what was written.
	Read(ctx context.Context, run string) (JournaledRun, []JournalEntry, error)
	// Runs returns all runs that have a journal, the oldest first.
	Runs(ctx context.Context) ([]JournaledRun, error)
	// ChangeRun changes a run by [JournaledRun.Change] and returns it. Everybody
	// else, in whatever process, waits meanwhile, so change must be quick and not
	// call the store. An error of change is returned and leaves everything as it
	// was. The error may also be ErrNoJournal.
	ChangeRun(ctx context.Context, run string, change func(*JournaledRun) error) (JournaledRun, error)
	// LeaseRequests returns the runs that an owner is requested to hand over or to
	// end, the oldest first.
	LeaseRequests(ctx context.Context, owner string) ([]JournaledRun, error)
	// Drop removes a run's journal. It is not an error if there is none.
	Drop(ctx context.Context, run string) error
}
