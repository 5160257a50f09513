package tap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// This file reads JSON in place, without copying it and without recursion.
// It finds where members of an object begin and end, whatever their size and
// depth; it does not check what is inside of them (json.Valid does, where a
// part is handed on).

var errNoObject = errors.New("not a JSON object")

// Members calls f for each member of the object b, with the key decoded and the
// value as it lies in b. Keys are matched exactly, unlike encoding/json, which
// ignores case.
func Members(b []byte, f func(key string, value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return errNoObject
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return end(b, i+1)
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return errNoObject
		}
		after := skipString(b, i)
		if after < 0 {
			return errNoObject
		}
		var key string
		if raw := b[i+1 : after-1]; bytes.IndexByte(raw, '\\') < 0 {
			key = string(raw)
		} else if err := json.Unmarshal(b[i:after], &key); err != nil {
			return errNoObject
		}
		i = skipSpace(b, after)
		if i >= len(b) || b[i] != ':' {
			return errNoObject
		}
		start := skipSpace(b, i+1)
		i = skipValue(b, start)
		if i < 0 {
			return errNoObject
		}
		if err := f(key, b[start:i]); err != nil {
			return err
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == '}':
			return end(b, i+1)
		default:
			return errNoObject
		}
	}
}

// Elements calls f for each element of the array b.
func Elements(b []byte, f func(value []byte) error) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return errors.New("not a JSON array")
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return nil
	}
	for {
		start := i
		i = skipValue(b, start)
		if i < 0 {
			return errors.New("not a JSON array")
		}
		if err := f(b[start:i]); err != nil {
			return err
		}
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ',' {
			return nil
		}
		i = skipSpace(b, i+1)
	}
}

func end(b []byte, i int) error {
	if skipSpace(b, i) != len(b) {
		return errNoObject
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i, or -1.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// skipValue returns the index after the value that starts at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				i--
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	}
	start := i
	for i < len(b) && bytes.IndexByte([]byte(",}] \t\r\n:\"{["), b[i]) < 0 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// An envelope is a JSON-RPC message with its parts as they lie in the message.
// A part that is not there is nil.
type envelope struct {
	id, method, params, result, err []byte
}

// parseEnvelope reads the outermost object of a message. A message with two
// members of one name has no single meaning and is refused.
func parseEnvelope(msg []byte) (envelope, error) {
	var e envelope
	var version []byte
	err := Members(msg, func(key string, value []byte) error {
		var part *[]byte
		switch key {
		case "jsonrpc":
			part = &version
		case "id":
			part = &e.id
		case "method":
			part = &e.method
		case "params":
			part = &e.params
		case "result":
			part = &e.result
		case "error":
			part = &e.err
		default:
			return nil
		}
		if *part != nil {
			return fmt.Errorf("two members %q", key)
		}
		*part = value
		return nil
	})
	if err != nil {
		return envelope{}, err
	}
	if string(version) != `"2.0"` {
		return envelope{}, errors.New(`not a JSON-RPC message: jsonrpc is not "2.0"`)
	}
	return e, nil
}

// A skeleton is what is kept of a message beyond the limit: its outermost object with
// nested values emptied, which still tells which request the message answers.
type skeleton struct {
	kept              []byte
	depth             int
	inString, escaped bool
}

const maxSkeleton = 4 << 10

func (s *skeleton) add(b []byte) {
	for _, c := range b {
		keep := s.depth <= 1
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString:
			switch c {
			case '\\':
				s.escaped = true
			case '"':
				s.inString = false
			}
		case c == '"':
			s.inString = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
			keep = s.depth <= 1
		}
		if keep && len(s.kept) < maxSkeleton {
			s.kept = append(s.kept, c)
		}
	}
}

// id returns the id of the response that the message is, nil if that cannot be
// told.
func (s *skeleton) id() []byte {
	e, err := parseEnvelope(s.kept)
	if err != nil || e.method != nil {
		return nil
	}
	return e.id
}
