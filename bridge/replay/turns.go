package replay

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
)

// A Turn is one answer that the script got before, a timer's included.
type Turn struct {
	Call   int       // its number
	At     time.Time // what the script's clock showed
	Answer []byte    // what it got, where its user keeps that with the turn
}

// AppendTurns writes turns behind b, each by what differs from the one before it: a few
// bytes. A script that makes many calls at once has turns written more than once, since
// nobody knows yet whether they were kept.
func AppendTurns(b []byte, turns []Turn) []byte {
	var call, at int64
	for _, t := range turns {
		b = binary.AppendVarint(b, int64(t.Call)-call)
		b = binary.AppendVarint(b, t.At.UnixNano()-at)
		b = binary.AppendUvarint(b, uint64(len(t.Answer)))
		b = append(b, t.Answer...)
		call, at = int64(t.Call), t.At.UnixNano()
	}
	return b
}

var errTurns = errors.New("turns cannot be read")

// ReadTurns appends to known what AppendTurns wrote, of which the first turn has the
// given place in known or is the next one: turns that are known already are not read
// again. The answers share b's memory.
func ReadTurns(known []Turn, first int, b []byte) ([]Turn, error) {
	if first < 0 || first > len(known) {
		return known, errors.New("turns are missing")
	}
	var call, at int64
	for place := first; len(b) > 0; place++ {
		calls, n := binary.Varint(b)
		if n <= 0 {
			return known, errTurns
		}
		b = b[n:]
		later, n := binary.Varint(b)
		if n <= 0 {
			return known, errTurns
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return known, errTurns
		}
		answer := b[n : n+int(size) : n+int(size)]
		b = b[n+int(size):]
		call, at = call+calls, at+later
		if place < len(known) {
			continue
		}
		t := Turn{Call: int(call), At: time.Unix(0, at).UTC()}
		if size > 0 {
			t.Answer = answer
		}
		known = append(known, t)
	}
	return known, nil
}

// UnmarshalJSON reads a turn of a journal from before turns were packed.
func (t *Turn) UnmarshalJSON(b []byte) error {
	var v struct {
		Call   int    `json:"c"`
		At     int64  `json:"t"` // Unix nanoseconds
		Answer []byte `json:"a"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*t = Turn{v.Call, time.Unix(0, v.At).UTC(), v.Answer}
	return nil
}
