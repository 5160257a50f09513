package ledger

import (
	"context"
	"iter"
)

// A Carried is what one store hands to another: everything as it is kept, in one state
// of the store. Rows stay sealed and entries encrypted, since the other store gets the
// same name and key: checkpoints of the one hold for the other.
type Carried interface {
	Identity() Identity
	Links(ctx context.Context) iter.Seq2[Link, error]
	Journals(ctx context.Context) iter.Seq2[CarriedJournal, error]
	Uses(ctx context.Context) iter.Seq2[CarriedUse, error]
	Close() error
}

// An Identity is which store it is.
type Identity struct {
	Store string
	Key   []byte
}

// A CarriedJournal is a run's journal. The times are unix nanoseconds.
type CarriedJournal struct {
	Run, Owner, Request, State, Configuration string
	Lease, Began, Until                       int64
	Shared                                    string
	Common                                    []byte // the bytes that Shared names
	Entries                                   []CarriedEntry
}

// A CarriedEntry is one of its entries; Total is how many bytes its journal has up to it.
type CarriedEntry struct {
	Kind        string
	Call, Total int64
	Body        []byte // encrypted
}

// A CarriedUse says how often a grant was used, and when last.
type CarriedUse struct {
	Grant      string
	Used, Last int64
}

// CarriedRows is how many rows a Carried reads, and the other store writes, at a time.
const CarriedRows = 2_000
