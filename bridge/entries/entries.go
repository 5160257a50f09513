// Package entries writes and reads the entries of a run's journal that are about calls.
package entries

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/replay"
)

// An Entry is about a call that was sent or answered. It is written as a head, in
// JSON, and behind it the turns since the entry before (package replay), and what the
// script got, if it was answered: Value. P is what a call that passed the gate leaves in
// its run, and E an error that a script gets.
type Entry[P, E any] struct {
	Op     string `json:"op,omitempty"` // or AnswerOp
	Name   string `json:"name,omitempty"`
	Digest string `json:"digest,omitempty"` // of the arguments

	Past   *P              `json:"past,omitempty"` // of calls that passed the gate
	Text   bool            `json:"text,omitempty"` // Value is a text, not JSON
	Thrown *E              `json:"thrown,omitempty"`
	Items  []handles.Kept  `json:"items,omitempty"` // that its handles stand for
	Media  json.RawMessage `json:"media,omitempty"` // that the call attached to the run's answer

	First    int                        `json:"first,omitempty"`  // the place of the first of
	Packed   int                        `json:"packed,omitempty"` // so many bytes of turns
	Turns    []replay.Turn              `json:"turns,omitempty"`  // the turns themselves, in journals of older releases
	Profiles []string                   `json:"tight,omitempty"`  // the profiles that bound the session beside the run's own
	Names    map[string]catalog.ToolRef `json:"names,omitempty"`  // what the script has meant so far by names in other spellings

	PackedTurns []byte `json:"-"` // behind the head; see replay.AppendTurns
	Value       []byte `json:"-"` // behind them
}

// Encode writes an entry: the head's length, the head as JSON, the turns, the value.
func (s *Entry[P, E]) Encode() ([]byte, error) {
	s.Packed = len(s.PackedTurns)
	head, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing an entry of the journal: %w", err)
	}
	body := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(head)+len(s.PackedTurns)+len(s.Value)), uint64(len(head)))
	return append(append(append(body, head...), s.PackedTurns...), s.Value...), nil
}

// AnswerOp marks the answer of a run that is over.
const AnswerOp = "answer"

// ErrEntry is an entry that nobody can read.
var ErrEntry = errors.New("an entry of the journal cannot be read")

// Decode is the inverse of [Entry.Encode].
func Decode[P, E any](body []byte) (*Entry[P, E], error) {
	n, used := binary.Uvarint(body)
	if used <= 0 || n > uint64(len(body)-used) {
		return nil, ErrEntry
	}
	body = body[used:]
	s := new(Entry[P, E])
	if err := json.Unmarshal(body[:n], s); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrEntry, err)
	}
	if body = body[n:]; s.Packed < 0 || s.Packed > len(body) {
		return nil, ErrEntry
	}
	s.PackedTurns = body[:s.Packed]
	if s.Value = body[s.Packed:]; len(s.Value) == 0 {
		s.Value = nil
	}
	return s, nil
}

// ReadTurns appends the entry's turns to those that are known.
func (s *Entry[P, E]) ReadTurns(known []replay.Turn) ([]replay.Turn, error) {
	if s.Turns != nil && s.First <= len(known) {
		return append(known, s.Turns[min(len(s.Turns), len(known)-s.First):]...), nil
	}
	return replay.ReadTurns(known, s.First, s.PackedTurns)
}

// Digest names a call's arguments as the script's runtime wrote them.
func Digest(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
