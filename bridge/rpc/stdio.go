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
	watch Watch    // may be nil

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

// A Watch hears what becomes of the client's requests. It may be called from several
// goroutines.
type Watch interface {
	// Asked is told of a request before it is let through, and of those of a batch together.
	Asked(ids []json.RawMessage)
	// Answered is told of an answer once it is written; for a batch, of the first of its ids.
	Answered(key string)
}

// A batch has requests without an answer.
type batch struct {
	first   string   // key of its first request; empty if it has none
	waiting []string // keys of the requests without an answer
	answers []json.RawMessage
}

// NewStdio returns the two pipes to one client. Closing it closes only out.
func NewStdio(in io.Reader, out io.WriteCloser) *Stdio {
	return &Stdio{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Watch has w hear what becomes of the requests. It is called before the first Read.
func (s *Stdio) Watch(w Watch) { s.watch = w }

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
	if m.IsRequest() && s.watch != nil {
		s.watch.Asked([]json.RawMessage{m.ID})
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
	var asked []json.RawMessage
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
			asked = append(asked, m.ID)
		}
		var line bytes.Buffer
		json.Compact(&line, text) // it may have line breaks, which end a message; it is JSON
		s.next = append(s.next, passed{line.Bytes(), m.decoded})
	}
	if len(asked) > 0 {
		b.first = b.waiting[0]
		if s.watch != nil {
			s.watch.Asked(asked)
		}
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
		if b.first != "" && err == nil && s.watch != nil {
			s.watch.Answered(b.first)
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
		return s.passLocked(p)
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
	return s.passLocked(p)
}

// passLocked writes a message as it is.
func (s *Stdio) passLocked(p []byte) (int, error) {
	n, err := s.out.Write(p)
	if err == nil && s.watch != nil {
		if key, ok := answers(p); ok {
			s.watch.Answered(key)
		}
	}
	return n, err
}

// answers returns the key of the request that a message of ours answers. What the SDK
// writes is not read as a whole: an answer may have megabytes behind its id.
func answers(p []byte) (id string, ok bool) {
	if rest, ok := bytes.CutPrefix(p, []byte(`{"jsonrpc":"2.0","id":`)); ok {
		if id, _, ok := bytes.Cut(rest, []byte(`,"result":`)); ok && len(id) <= shortID && json.Valid(id) {
			return key(id), true
		}
	}
	m := Peek(p)
	return m.Key(), m.IsResponse() && m.ID != nil
}

// shortID is the length of ids as clients have them.
const shortID = 256

// Close closes the pipe to the client.
func (s *Stdio) Close() error { return s.out.Close() }
