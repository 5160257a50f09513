package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage bounds one line of the client's.
const maxMessage = 64 << 20

// A Stdio is the protocol's two pipes to one client. It lets through only
// messages that the SDK can read: at the first that it cannot, the SDK ends the
// session, where the client should be told and go on. A batch is let through a message
// at a time, and its answers go out together.
type Stdio struct {
	in    *bufio.Reader
	line  []byte   // what is left of the message that Read reads
	next  []passed // messages that were let through and not read yet
	began bool     // initialize has come

	mu      sync.Mutex // one message at a time; guards what follows
	out     io.WriteCloser
	opening string // key of the initialize that has no answer yet
	version string // that was agreed on; empty until then
	batches []*batch
}

// A passed is a message that was let through.
type passed struct {
	text    []byte // a line without its end
	message jsonrpc.Message
}

// A batch has requests without an answer.
type batch struct {
	waiting []string // keys of the requests without an answer
	answers []json.RawMessage
}

// NewStdio returns the two pipes to one client. Closing it closes only out.
func NewStdio(in io.Reader, out io.WriteCloser) *Stdio {
	return &Stdio{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Read reads the messages that the SDK can read.
func (s *Stdio) Read(p []byte) (int, error) {
	if len(s.line) == 0 {
		m, err := s.message()
		if err != nil {
			return 0, err
		}
		s.line = append(m.text, '\n')
	}
	n := copy(p, s.line)
	s.line = s.line[n:]
	return n, nil
}

// message returns the next message that the SDK can read.
func (s *Stdio) message() (passed, error) {
	for len(s.next) == 0 {
		line, err := s.readLine()
		if err != nil {
			return passed{}, err
		}
		if len(line) > maxMessage {
			s.answer(&Error{Code: jsonrpc.CodeParseError, Message: fmt.Sprintf("parse error: a message of more than %d MB", maxMessage>>20)})
			continue
		}
		text := bytes.TrimSpace(line)
		if elements, ok := Batch(text); ok {
			s.takeBatch(elements)
		} else if len(text) > 0 {
			s.take(text)
		}
	}
	m := s.next[0]
	s.next = s.next[1:]
	return m, nil
}

// readLine reads one line. Of one that is too long it keeps only enough to show that.
func (s *Stdio) readLine() ([]byte, error) {
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

// take lets one message through, or answers it.
func (s *Stdio) take(text []byte) {
	m, err := s.read(text)
	if err != nil {
		s.answer(err)
		return
	}
	if m.Method == "initialize" && m.IsRequest() {
		s.began = true
		s.mu.Lock()
		s.opening = m.Key()
		s.mu.Unlock()
	}
	s.next = append(s.next, passed{text, m.decoded})
}

// read reads a message, and refuses a request that comes before initialize.
func (s *Stdio) read(text []byte) (Message, *Error) {
	m, err := Read(text)
	if err != nil || s.began || !m.IsRequest() || m.Meta(mcp.MetaKeyProtocolVersion) != "" {
		return m, err
	}
	switch m.Method {
	case "initialize", "ping", "server/discover":
		return m, nil
	}
	// The SDK would say so with the code 0.
	return m, &Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: the session has not begun, initialize comes first"}
}

// takeBatch lets the messages of a batch through, if the protocol that was agreed on
// has batches.
func (s *Stdio) takeBatch(elements []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(elements) == 0 || !HasBatches(s.version) {
		what := "invalid request: batches are of protocol 2025-03-26, which this session does not speak"
		if len(elements) == 0 {
			what = "invalid request: an empty batch"
		}
		s.writeLocked((&Error{Code: jsonrpc.CodeInvalidRequest, Message: what}).Bytes())
		return
	}
	b := &batch{}
	for _, text := range elements {
		m, err := Read(text)
		switch {
		case err == nil && m.Method == "initialize":
			err = &Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: initialize is no part of a batch"}
		case err == nil && m.IsRequest() && slices.Contains(b.waiting, m.Key()):
			err = &Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: the batch has this id twice"}
		}
		if err != nil {
			if !err.Response {
				b.answers = append(b.answers, err.Bytes())
			}
			continue
		}
		if m.IsRequest() {
			b.waiting = append(b.waiting, m.Key())
		}
		var line bytes.Buffer
		json.Compact(&line, text) // it may have line breaks, which end a message; it is JSON
		s.next = append(s.next, passed{line.Bytes(), m.decoded})
	}
	s.batches = append(s.batches, b)
	s.flushLocked()
}

// flushLocked writes the answers to batches that have them all, and forgets those
// batches.
func (s *Stdio) flushLocked() (err error) {
	s.batches = slices.DeleteFunc(s.batches, func(b *batch) bool {
		if len(b.waiting) > 0 {
			return false
		}
		if len(b.answers) > 0 {
			text, e := json.Marshal(b.answers)
			err = errors.Join(err, e, s.writeLocked(text))
		}
		return true
	})
	return err
}

// answer answers a message that is not let through.
func (s *Stdio) answer(err *Error) {
	if err.Response {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(err.Bytes()) // the next read notices if the client is gone
}

func (s *Stdio) writeLocked(message []byte) error {
	_, err := s.out.Write(append(message, '\n'))
	return err
}

// Write writes whole messages, one at a time. An answer to a part of a batch
// waits for the others.
func (s *Stdio) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening == "" && len(s.batches) == 0 {
		return s.out.Write(p)
	}
	m := Peek(p)
	if !m.IsResponse() {
		return s.out.Write(p)
	}
	if m.Key() == s.opening {
		s.opening = ""
		var result struct{ ProtocolVersion string }
		if json.Unmarshal(m.Result, &result) == nil {
			s.version = result.ProtocolVersion
		}
	}
	for _, b := range s.batches {
		if i := slices.Index(b.waiting, m.Key()); i >= 0 {
			b.waiting = slices.Delete(b.waiting, i, i+1)
			b.answers = append(b.answers, bytes.Clone(bytes.TrimSpace(p)))
			return len(p), s.flushLocked()
		}
	}
	return s.out.Write(p)
}

// Close closes the pipe to the client.
func (s *Stdio) Close() error { return s.out.Close() }
