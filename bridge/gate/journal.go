package gate

import (
	"time"

	"codemode-bridge/bridge/ledger"
)

// A Journal makes the journal entries of one call. The gate writes each of them in
// one transaction with the record that it belongs to.
type Journal interface {
	// Asking returns the entry for a call that a person is asked about.
	Asking() Entries
	// Sending returns the entry for a call that is about to be sent.
	Sending() Entries
	// Ended returns the entry for a call that was answered or refused, with what
	// the script gets.
	Ended(reply Reply, past Past) Entries
	// Lease is the one under which it makes them; 0 for none.
	Lease() int64
}

// Entries are written together with a record.
type Entries = ledger.Entries

// noJournal is the journal of a call that has none.
type noJournal struct{}

func (noJournal) Asking() Entries           { return Entries{} }
func (noJournal) Sending() Entries          { return Entries{} }
func (noJournal) Ended(Reply, Past) Entries { return Entries{} }
func (noJournal) Lease() int64              { return 0 }

// A Past is what a finished call leaves in its run.
type Past struct {
	Effect Effect `json:"effect"`
	// Path is the tool's, under which rules count it; empty if the call was not counted.
	Path     string `json:"path,omitempty"`
	Server   string `json:"server,omitempty"`
	Name     string `json:"name,omitempty"` // of the tool, at its server
	Sent     int64  `json:"sent,omitempty"`
	Received int    `json:"received,omitempty"`
	// Met are the hosts and recipients that it names, if a person approved it.
	Met []string `json:"met,omitempty"`
	// Labels are those of the tool, as far as they are known.
	Labels     []string `json:"labels,omitempty"`
	Unlabelled bool     `json:"unlabelled,omitempty"`
	// Read is when it was answered, and Cleared up to when a person had forgotten, with a yes to it, what was read, if
	// policy looks at that.
	Read    time.Time `json:"read,omitzero"`
	Cleared time.Time `json:"cleared,omitzero"`
}
