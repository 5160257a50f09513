package bridge

import (
	"encoding/json"
	"time"

	"codemode-bridge/bridge/commons"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/sandbox"
)

// What a run begins with, as its journal has it.

// A beginning is what a script's run depends on besides the answers.
type beginning struct {
	Engine    string          `json:"engine"`
	Code      string          `json:"code"`
	Input     json.RawMessage `json:"input,omitempty"`
	Seed      [32]byte        `json:"seed"`
	Start     time.Time       `json:"start"`
	Started   time.Time       `json:"started"`
	Profile   string          `json:"profile"`
	Session   string          `json:"session"`
	Client    string          `json:"client"`
	Principal string          `json:"principal"`
	Groups    []string        `json:"groups,omitempty"` // of the principal
	Fetched   bool            `json:"fetched,omitempty"`
	Reach     gate.Reach      `json:"reach,omitempty"` // of the client
	// Configuration is the one that the run belongs to.
	Configuration gate.Configuration `json:"configuration,omitzero"`
	gate.Surroundings
	Trace trace.Context `json:"trace,omitzero"` // of its first eval span
	// Secret is the SHA-256 of what lets somebody without a principal go on with
	// the run from another session.
	Secret []byte `json:"secret,omitempty"`
}

// keepJournal gives a run a journal, if there is anything to keep one in.
func (rn *runner) keepJournal(r *run, b beginning, names *sandbox.Names) {
	if rn.o.Journal == nil {
		return
	}
	r.journal = newJournal(r.id, rn.o.Bridge, rn.o.JournalBytes)
	r.life.State.Journal = lifecycle.WholeJournal
	r.journal.lost = func() { r.update(lifecycle.Event{Kind: lifecycle.LosesLease}) }
	r.journal.outgrown = func() { r.update(lifecycle.Event{Kind: lifecycle.Outgrows}) }
	r.journal.profiles = func() []string { return rn.roster.addedProfiles(r.session) }
	r.journal.names = r.names.All
	r.journal.began = func() ledger.JournalEntry {
		b.Surroundings, b.Trace = r.gate.Surroundings, r.trace.First()
		body, err := json.Marshal(b)
		if err != nil {
			rn.o.Logger.Error("writing the journal of a run", "run", r.id, "err", err) // without a body it is refused when it is read
		}
		shared, common := rn.shared.Text((*commons.Names)(names), r.gate.Policy)
		return ledger.JournalEntry{Run: r.id, Owner: rn.o.Bridge, Kind: ledger.Began, Body: body, Configuration: b.Configuration.ID,
			Until: rn.o.Now().Add(rn.o.Gate.View().Profiles.PausedFor()), Shared: shared, Common: common}
	}
}
