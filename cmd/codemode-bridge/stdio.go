package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// maxMessage bounds one line of the client's.
const maxMessage = 64 << 20

// A stdio is the protocol's two pipes to one client. It lets through only
// lines that are JSON: the SDK ends the session at the first that is not,
// where the client should be told and go on.
type stdio struct {
	in   *bufio.Reader
	line []byte // what is left of the line that is being read

	mu  sync.Mutex // one message at a time
	out io.WriteCloser
}

func newStdio(in io.Reader, out io.WriteCloser) *stdio {
	return &stdio{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Read reads from the lines that are JSON.
func (s *stdio) Read(p []byte) (int, error) {
	for len(s.line) == 0 {
		line, err := s.next()
		if err != nil {
			return 0, err
		}
		switch text := bytes.TrimSpace(line); {
		case len(text) == 0:
		case len(line) > maxMessage:
			s.complain(fmt.Sprintf("a message of more than %d MB", maxMessage>>20))
		case !utf8.Valid(text) || !json.Valid(text):
			s.complain("a line that is no JSON")
		default:
			s.line = append(text, '\n')
		}
	}
	n := copy(p, s.line)
	s.line = s.line[n:]
	return n, nil
}

// next reads one line. Of one that is too long it keeps no more than shows that.
func (s *stdio) next() ([]byte, error) {
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		if len(line) <= maxMessage {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return line, err
		}
	}
}

// complain answers what cannot be read, which has no id to answer to.
func (s *stdio) complain(what string) {
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": -32700, "message": "parse error: " + what}})
	if err == nil {
		s.Write(append(answer, '\n')) // a client that is gone shows at the next read
	}
}

// Write writes whole messages, one at a time.
func (s *stdio) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// Close closes the way out.
func (s *stdio) Close() error { return s.out.Close() }
