package bridge

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
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

// An entry is about a call that was sent or answered. It is written as a head, in
// JSON, and behind it the turns since the entry before (package replay), and what the
// script got, if it was answered: value.
type entry struct {
	Op     string `json:"op,omitempty"` // or answerOp
	Name   string `json:"name,omitempty"`
	Digest string `json:"digest,omitempty"` // of the arguments

	Past   *gate.Past          `json:"past,omitempty"` // of calls that passed the gate
	Text   bool                `json:"text,omitempty"` // value is a text, not JSON
	Thrown *sandbox.ReplyError `json:"thrown,omitempty"`
	Items  []handles.Kept      `json:"items,omitempty"` // that the value's handles stand for
	Media  json.RawMessage     `json:"media,omitempty"` // that the call attached to the run's answer

	First    int                        `json:"first,omitempty"`  // the place of the first of
	Packed   int                        `json:"packed,omitempty"` // so many bytes of turns
	Turns    []replay.Turn              `json:"turns,omitempty"`  // the turns themselves, in journals of older releases
	Profiles []string                   `json:"tight,omitempty"`  // the profiles that bound the session beside the run's own
	Names    map[string]catalog.ToolRef `json:"names,omitempty"`  // what the script has meant so far by names in other spellings

	packed []byte // the turns
	value  []byte
}

// encode writes an entry: the head's length, the head as JSON, the turns, the value.
func (s *entry) encode() ([]byte, error) {
	s.Packed = len(s.packed)
	head, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing an entry of the journal: %w", err)
	}
	body := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(head)+len(s.packed)+len(s.value)), uint64(len(head)))
	return append(append(append(body, head...), s.packed...), s.value...), nil
}

// answerOp marks the answer of a run that is over.
const answerOp = "answer"

var errEntry = errors.New("an entry of the journal cannot be read")

func decodeEntry(body []byte) (*entry, error) {
	n, used := binary.Uvarint(body)
	if used <= 0 || n > uint64(len(body)-used) {
		return nil, errEntry
	}
	body = body[used:]
	s := new(entry)
	if err := json.Unmarshal(body[:n], s); err != nil {
		return nil, fmt.Errorf("%w: %v", errEntry, err)
	}
	if body = body[n:]; s.Packed < 0 || s.Packed > len(body) {
		return nil, errEntry
	}
	s.packed = body[:s.Packed]
	if s.value = body[s.Packed:]; len(s.value) == 0 {
		s.value = nil
	}
	return s, nil
}

// turns appends the entry's turns to those that are known.
func (s *entry) turns(known []replay.Turn) ([]replay.Turn, error) {
	if s.Turns != nil && s.First <= len(known) {
		return append(known, s.Turns[min(len(s.Turns), len(known)-s.First):]...), nil
	}
	return replay.ReadTurns(known, s.First, s.packed)
}

// reply is what the script got.
func (s *entry) reply(at time.Time) sandbox.Reply {
	reply := sandbox.Reply{Err: s.Thrown, Time: at}
	switch {
	case s.Thrown != nil:
	case s.Text:
		text := string(s.value)
		reply.Text = &text
	default:
		reply.Value = s.value
	}
	return reply
}

// setReply is its inverse.
func (s *entry) setReply(reply sandbox.Reply) {
	switch {
	case reply.Err != nil:
		s.Thrown = reply.Err
	case reply.Text != nil:
		s.Text, s.value = true, []byte(*reply.Text)
	default:
		s.value = reply.Value
	}
}

// argsDigest names a call's arguments as the script's runtime wrote them.
func argsDigest(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// entryOf begins the entry of a call.
func entryOf(c sandbox.Call) *entry {
	return &entry{Op: string(c.Op), Name: c.Name, Digest: argsDigest(c.Args)}
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
	body, err := s.encode()
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
		s.First, s.packed = j.first, replay.AppendTurns(nil, j.turns)
		e := ledger.JournalEntry{Run: j.run, Owner: j.owner, Lease: j.lease, Kind: kind, Call: call}
		var err error
		if e.Body, err = s.encode(); err != nil {
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
		noted.Op, noted.value, keep = answerOp, answer, max(keep, keptFor)
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

func (c *callJournal) Asking() gate.Entries {
	return c.r.journal.entries(ledger.Noted, 0, new(entry))
}

func (c *callJournal) Sending() gate.Entries {
	return c.r.journal.entries(ledger.Sent, c.call.Number, entryOf(c.call))
}

func (c *callJournal) Ended(got gate.Reply, past gate.Past) gate.Entries {
	s := entryOf(c.call)
	s.Past, s.Items = &past, got.(scriptReply).items
	s.setReply(got.(scriptReply).Reply)
	return c.r.journal.entries(ledger.Replied, c.call.Number, s)
}
