package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/profiles"
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
	// Configuration is the one that the run belongs to.
	Configuration gate.Configuration `json:"configuration,omitzero"`
	gate.Surroundings
	// Secret is the SHA-256 of what lets somebody without a principal go on with
	// the run from another session.
	Secret []byte `json:"secret,omitempty"`
}

// A common is what many runs begin with, as it stands in their journals: the
// names that scripts see, and the policy.
type common struct {
	Seen   *sandbox.Names  `json:"seen"`
	Policy json.RawMessage `json:"policy"`
}

// shared has what the runs under one view have in common, and keeps it until the
// view is another.
type shared struct {
	gate  *gate.Gate
	log   *slog.Logger
	known sync.Map // *catalog.View -> *sandbox.Names; names and policy -> common as text
}

// forget is called when the view changes.
func (s *shared) forget() { s.known.Clear() }

// names are what a script may call that sees view. They are the same value
// as long as they are the same names, so that a worker is told only once.
func (s *shared) names(view *catalog.View) *sandbox.Names {
	if known, ok := s.known.Load(view); ok {
		return known.(*sandbox.Names)
	}
	names := &sandbox.Names{Names: view.Names()}
	sum := sha256.New()
	for _, name := range names.Names {
		fmt.Fprintln(sum, name)
	}
	for _, prefix := range view.Prefixes() {
		names.Servers = append(names.Servers, prefix)
		fmt.Fprintln(sum, prefix)
	}
	names.Revision = hex.EncodeToString(sum.Sum(nil)[:12])
	s.known.Store(view, names)
	return names
}

// commonText is the form of a common in journals, and its name there. Without
// one, what could not be written is refused when it is read.
func (s *shared) commonText(names *sandbox.Names, policy *profiles.Set) (name string, text []byte) {
	type pair struct {
		names  *sandbox.Names
		policy *profiles.Set
	}
	if known, ok := s.known.Load(pair{names, policy}); ok {
		text = known.([]byte)
	} else {
		source, err := policy.Source()
		if err == nil {
			text, err = json.Marshal(common{names, source})
		}
		if err != nil {
			s.log.Error("writing the policy of a run", "err", err)
		}
		s.known.Store(pair{names, policy}, text)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), text
}

// readCommon reads what commonText wrote, or the names alone, which is all that
// older releases kept.
func readCommon(text []byte) (names *sandbox.Names, policy *profiles.Set, err error) {
	var c common
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, err
	}
	if c.Seen == nil {
		err = json.Unmarshal(text, &names)
		return names, nil, err
	}
	policy, err = profiles.FromSource(c.Policy)
	return c.Seen, policy, err
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
		b.Surroundings = r.gate.Surroundings
		body, err := json.Marshal(b)
		if err != nil {
			rn.o.Logger.Error("writing the journal of a run", "run", r.id, "err", err) // without a body it is refused when it is read
		}
		shared, common := rn.shared.commonText(names, r.gate.Policy)
		return ledger.JournalEntry{Run: r.id, Owner: rn.o.Bridge, Kind: ledger.Began, Body: body, Configuration: b.Configuration.ID,
			Until: rn.o.Now().Add(rn.o.Gate.View().Profiles.PausedFor()), Shared: shared, Common: common}
	}
}
