package bridge

import (
	"context"
	"errors"
	"sync"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/entries"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/sandbox"
)

// A journal writes down what a run needs to be run again to where it was. A
// script does the same whenever it gets the same answers in the same order, at
// the same times of its clock. So three things are kept:
//
//	began    with the first entry: the script and all that it starts from
//	answers  of each call that passes the gate, with the record of its outcome
//	turns    in which order the script got the answers, timers included, and
//	         what the clock showed
//
// Only calls can be seen outside. So turns wait in memory for the next entry,
// and no answer waits for the disk for their sake: what the script did after a
// turn that was lost left no trace, and is free to go another way. Answers that
// come from nowhere but the bridge (a handle's value, say) travel in their
// turn.
type journal struct {
	run      string
	owner    string
	lease    int64 // under which it is written; a run that begins has the first
	limit    int64 // bytes; beyond it the journal is given up
	began    func() ledger.JournalEntry
	lost     func()                            // another bridge has acquired the run
	outgrown func()                            // it is given up
	profiles func() []string                   // the profiles that bind the run's session beside its own
	names    func() map[string]catalog.ToolRef // what its script means by names in other spellings

	opening sync.Mutex // held while the first entries are being kept

	mu      sync.Mutex // taken with nothing of package sandbox held but its own lock: see Settled
	idle    sync.Cond  // of mu: pending is 0
	open    bool       // the first entry was kept
	full    bool       // it is to end: it is too large
	ended   bool       // it has
	pending int        // entries that are being kept
	bytes   int64      // of what is kept
	held    int64      // of answers that are not
	first   int        // so many turns were kept before those in turns
	turns   []replay.Turn
	answers map[int][]byte // of calls whose turn is to come and has to carry the answer
}

func newJournal(run, owner string, limit int64) *journal {
	j := &journal{run: run, owner: owner, lease: 1, limit: limit, answers: map[int][]byte{}, profiles: func() []string { return nil }, names: new(catalog.Taken).All, lost: func() {}, outgrown: func() {}}
	j.idle.L = &j.mu
	return j
}

// An entry is about a call that was sent or answered.
type entry = entries.Entry[gate.Past, sandbox.ReplyError]

func decodeEntry(body []byte) (*entry, error) {
	return entries.Decode[gate.Past, sandbox.ReplyError](body)
}

// entryOf begins the entry of a call.
func entryOf(c sandbox.Call) *entry {
	return &entry{Op: string(c.Op), Name: c.Name, Digest: entries.Digest(c.Args)}
}

// replyIn is what the script got.
func replyIn(s *entry, at time.Time) sandbox.Reply {
	reply := sandbox.Reply{Err: s.Thrown, Time: at}
	switch {
	case s.Thrown != nil:
	case s.Text:
		text := string(s.Value)
		reply.Text = &text
	default:
		reply.Value = s.Value
	}
	return reply
}

// setReply is its inverse.
func setReply(s *entry, reply sandbox.Reply) {
	switch {
	case reply.Err != nil:
		s.Thrown = reply.Err
	case reply.Text != nil:
		s.Text, s.Value = true, []byte(*reply.Text)
	default:
		s.Value = reply.Value
	}
}

// answered notes that the script gets an answer.
func (j *journal) answered(call int, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := replay.Turn{Call: call, At: at, Answer: j.answers[call]}
	delete(j.answers, call)
	if !j.full {
		j.turns = append(j.turns, t)
	}
}

// carry has the turn of a call carry its answer.
func (j *journal) carry(call int, s *entry) error {
	body, err := s.Encode()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.full {
		return nil
	}
	j.answers[call] = body
	if j.held += int64(len(body)); j.bytes+j.held > j.limit {
		j.giveUpLocked()
	}
	return nil
}

// giveUpLocked forgets what is not kept. What is kept goes with the next entry.
func (j *journal) giveUpLocked() {
	j.full, j.turns, j.answers, j.held = true, nil, nil, 0
	j.outgrown()
}

// entries are an entry about a call, with the turns that are not kept, and
// before them the run's first entry if that is not kept. A journal that has
// grown too large ends instead: until that is kept, no call goes without it.
func (j *journal) entries(kind ledger.EntryKind, call int, s *entry) gate.Entries {
	s.Profiles, s.Names = j.profiles(), j.names()
	opening := j.lockOpening()
	j.mu.Lock()
	defer j.mu.Unlock()
	next := j.first + len(j.turns)
	if !j.full {
		s.First, s.PackedTurns = j.first, replay.AppendTurns(nil, j.turns)
		e := ledger.JournalEntry{Run: j.run, Owner: j.owner, Lease: j.lease, Kind: kind, Call: call}
		var err error
		if e.Body, err = s.Encode(); err != nil {
			e.Kind = "" // which is refused, and the record with it
		}
		all := []ledger.JournalEntry{e}
		if opening {
			all = []ledger.JournalEntry{j.began(), e}
		}
		size := int64(0)
		for _, e := range all {
			size += int64(len(e.Body))
		}
		if j.bytes+size <= j.limit {
			j.pending++
			return gate.Entries{All: all, Done: func(err error) { j.kept(err, opening, size, next) }}
		}
		j.giveUpLocked()
	}
	if opening || j.ended { // there is none
		j.ended = true
		j.end(opening)
		return gate.Entries{}
	}
	for j.pending > 0 { // an entry after the end would be refused
		j.idle.Wait()
	}
	if j.ended {
		return gate.Entries{}
	}
	return gate.Entries{All: []ledger.JournalEntry{{Run: j.run, Owner: j.owner, Lease: j.lease, Kind: ledger.Ended}}, Done: func(err error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.ended = j.ended || err == nil
	}}
}

// begin keeps the first entry of a run that has made no call yet, so that the run outlives
// this bridge from now on.
func (j *journal) begin(ctx context.Context, into ledger.Journal) error {
	if j == nil {
		return nil
	}
	first := j.entries(ledger.Noted, 0, new(entry))
	if len(first.All) == 0 { // it is too large for a journal
		return nil
	}
	err := into.Append(ctx, first.All...)
	first.Done(err)
	return err
}

// kept notes what became of entries, the turns before next among them.
func (j *journal) kept(err error, opening bool, size int64, next int) {
	defer j.end(opening)
	if errors.Is(err, ledger.ErrNotOwner) {
		j.lost()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending--; j.pending == 0 {
		j.idle.Broadcast()
	}
	if err != nil {
		return
	}
	j.open = true
	j.bytes += size
	j.keptTurnsLocked(next)
}

// keptTurnsLocked forgets the turns before next, which are kept. Another entry
// may have brought them already.
func (j *journal) keptTurnsLocked(next int) {
	n := min(next-j.first, len(j.turns))
	if n <= 0 || j.full {
		return
	}
	for _, t := range j.turns[:n] {
		j.held -= int64(len(t.Answer))
	}
	j.first, j.turns = j.first+n, j.turns[n:]
}

// under returns the lease under which entries are written, once the first one was kept.
func (j *journal) under() (lease int64, open bool) {
	if j == nil {
		return 0, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lease, j.open && !j.ended
}

// lockOpening reports whether nothing of the run was kept so far; then nobody
// else writes an entry of it until end.
func (j *journal) lockOpening() bool {
	j.opening.Lock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open || j.ended {
		j.opening.Unlock()
		return false
	}
	return true
}

func (j *journal) end(opening bool) {
	if opening {
		j.opening.Unlock()
	}
}

// replayed notes that so many turns of the run are kept already.
func (j *journal) replayed(turns int) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keptTurnsLocked(turns)
}

// ending ends the journal with its run; it is kept for a while if anybody wants to
// look at the run, or may fetch its answer, nil for nobody.
func (j *journal) ending(keep time.Duration, now time.Time, answer []byte) gate.Entries {
	if j == nil {
		return gate.Entries{}
	}
	j.mu.Lock()
	open, full, ended := j.open, j.full, j.ended
	j.mu.Unlock()
	if !open || ended {
		return gate.Entries{}
	}
	end := ledger.JournalEntry{Run: j.run, Owner: j.owner, Lease: j.lease, Kind: ledger.Ended}
	noted := new(entry)
	if answer != nil {
		noted.Op, noted.Value, keep = entries.AnswerOp, answer, max(keep, keptFor)
	}
	if keep <= 0 || full {
		return gate.Entries{All: []ledger.JournalEntry{end}}
	}
	end.Until = now.Add(keep)
	last := j.entries(ledger.Noted, 0, noted)
	if n := len(last.All); n == 0 || last.All[n-1].Kind == ledger.Ended { // it has grown too large just now
		return last
	}
	last.All = append(last.All, end)
	return last
}

// A callJournal is the journal of one call.
type callJournal struct {
	r    *run
	call sandbox.Call
}

func (c *callJournal) Lease() int64 { return c.r.journal.lease }

func (c *callJournal) Asking() gate.Entries {
	return c.r.journal.entries(ledger.Noted, 0, new(entry))
}

func (c *callJournal) Sending() gate.Entries {
	return c.r.journal.entries(ledger.Sent, c.call.Number, entryOf(c.call))
}

func (c *callJournal) Ended(got gate.Reply, past gate.Past) gate.Entries {
	s := entryOf(c.call)
	s.Past, s.Items = &past, got.(scriptReply).items
	setReply(s, got.(scriptReply).Reply)
	return c.r.journal.entries(ledger.Replied, c.call.Number, s)
}
