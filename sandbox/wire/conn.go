package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// readStep is how much is allocated for a frame before any of it arrived. A
// length is only a claim: more is allocated as bytes come.
const readStep = 1 << 20

// prelude is the length of what is in every frame: kind and header length.
const prelude = 1 + 4

// A Frame is one frame as it was read. Its slices are its own: nothing else
// keeps or reuses them.
type Frame struct {
	Kind   Kind
	Header []byte
	Body   []byte
}

// A FrameError says what is wrong with a frame. Whoever sent it does not
// speak the protocol, and nothing after it on the pipe can be trusted.
type FrameError struct {
	Kind   Kind // 0 when the frame was refused before its kind was known
	Reason string
}

func (e *FrameError) Error() string {
	if e.Kind == 0 {
		return "bad frame: " + e.Reason
	}
	return fmt.Sprintf("bad %s frame: %s", e.Kind, e.Reason)
}

// A Conn reads and writes frames. One goroutine at a time may call Read;
// Write and Flush may be called by several at once, and while another reads.
type Conn struct {
	r       *bufio.Reader
	maxBody atomic.Int64

	mu   sync.Mutex // guards what follows
	w    *bufio.Writer
	head []byte // of the frame that is being written; kept for the next one
}

// New returns a Conn that reads frames from r and writes them to w. It
// buffers in both directions and starts no goroutine.
func New(r io.Reader, w io.Writer) *Conn {
	c := &Conn{r: bufio.NewReaderSize(r, 32<<10), w: bufio.NewWriterSize(w, 32<<10)}
	c.maxBody.Store(MaxFrame)
	return c
}

// SetMaxBody lowers the bound on the body of the frames read from now on, in
// bytes. Without it, only MaxFrame bounds a body.
func (c *Conn) SetMaxBody(n int64) { c.maxBody.Store(min(n, MaxFrame)) }

// Buffered returns how many bytes were taken from the pipe that Read has not
// returned yet.
func (c *Conn) Buffered() int { return c.r.Buffered() }

// Read returns the next frame. It checks the frame's shape and sizes, and leaves
// the contents of its header to Decode. At the end of the stream it returns
// io.EOF, in the middle of a frame io.ErrUnexpectedEOF, and for a breach of the
// format a *FrameError. After an error the Conn is of no use.
func (c *Conn) Read() (Frame, error) {
	var head [4 + prelude]byte
	if _, err := io.ReadFull(c.r, head[:4]); err != nil {
		return Frame{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:4]))
	if n < prelude || n > MaxFrame {
		return Frame{}, &FrameError{Reason: fmt.Sprintf("a length of %d bytes", n)}
	}
	if _, err := io.ReadFull(c.r, head[4:]); err != nil {
		return Frame{}, unexpected(err)
	}
	f := Frame{Kind: Kind(head[4])}
	if int(f.Kind) >= len(shapes) || shapes[f.Kind].name == "" {
		return Frame{}, &FrameError{Reason: fmt.Sprintf("unknown kind %d", head[4])}
	}
	shape := shapes[f.Kind]
	header := int64(binary.BigEndian.Uint32(head[5:]))
	body := n - prelude - header
	switch {
	case body < 0:
		return Frame{}, &FrameError{f.Kind, "a header longer than the frame"}
	case header > shape.maxHeader:
		return Frame{}, &FrameError{f.Kind, fmt.Sprintf("a header of %d bytes", header)}
	case body > 0 && !shape.body:
		return Frame{}, &FrameError{f.Kind, "a body where none belongs"}
	case body > c.maxBody.Load():
		return Frame{}, &FrameError{f.Kind, fmt.Sprintf("a body of %d bytes", body)}
	}
	var err error
	if f.Header, err = c.readN(int(header)); err != nil {
		return Frame{}, err
	}
	if f.Body, err = c.readN(int(body)); err != nil {
		return Frame{}, err
	}
	return f, nil
}

// readN reads n bytes and never allocates more than readStep, or twice what
// has already arrived.
func (c *Conn) readN(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b := make([]byte, min(n, readStep))
	for got := 0; ; {
		if _, err := io.ReadFull(c.r, b[got:]); err != nil {
			return nil, unexpected(err)
		}
		if len(b) == n {
			return b, nil
		}
		got = len(b)
		more := make([]byte, min(n, 2*got))
		copy(more, b)
		b = more
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write appends a frame to the buffer; Flush sends it. The header is one of
// this package's structs and must belong to kind; the parts of body are
// written one after the other.
//
// Texts for someone to read (a log line, an error's message, stack and notes, a
// preview) are cut to what a frame may carry. Names and
// values never are: a frame that would be too large is an error, and nothing
// of it is written. Bytes that are not UTF-8 become U+FFFD in every text.
func (c *Conn) Write(kind Kind, header any, body ...[]byte) error {
	h := headerOf(header)
	if h == nil || h.kind() != kind {
		return &FrameError{kind, "a header that does not belong to it"}
	}
	size := int64(0)
	for _, b := range body {
		size += int64(len(b))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := coder{b: append(c.head[:0], make([]byte, 4+prelude)...)}
	h.code(&w)
	if w.err != nil {
		return &FrameError{kind, w.err.Error()}
	}
	c.head = w.b
	if cap(c.head) > maxKept {
		c.head = nil
	}
	n := int64(len(w.b)) - (4 + prelude)
	if n > shapes[kind].maxHeader {
		return &FrameError{kind, fmt.Sprintf("a header of %d bytes", n)}
	}
	if size += prelude + n; size > MaxFrame {
		return &FrameError{kind, fmt.Sprintf("a length of %d bytes", size)}
	}
	binary.BigEndian.PutUint32(w.b, uint32(size))
	w.b[4] = byte(kind)
	binary.BigEndian.PutUint32(w.b[5:], uint32(n))

	// A bufio.Writer keeps its first error, so the last write reports it.
	_, err := c.w.Write(w.b)
	for _, b := range body {
		_, err = c.w.Write(b)
	}
	return err
}

// maxKept is up to which size a header's buffer is kept for the next one.
const maxKept = 4 << 10

// Flush sends what Write has buffered.
func (c *Conn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.Flush()
}

// Send is Write followed by Flush.
func (c *Conn) Send(kind Kind, header any, body ...[]byte) error {
	if err := c.Write(kind, header, body...); err != nil {
		return err
	}
	return c.Flush()
}

// Decode reads the header into v, a pointer to an empty one of this package's
// structs. It accepts only the bytes that Write would have written: a number in a
// longer form, a flag other than 0 and 1, a text that is not UTF-8, bytes that are
// left over, and whatever exceeds the bounds of the structs is refused. Errors are
// *FrameError.
//
// Fields of type json.RawMessage hold valid JSON; what it says is not checked.
func (f Frame) Decode(v any) error {
	h, ok := v.(header)
	if !ok || h.kind() != f.Kind {
		return &FrameError{f.Kind, "not what was expected"}
	}
	c := coder{b: f.Header, reading: true}
	h.code(&c)
	if c.err == nil && len(c.b) > 0 {
		c.fail("%d bytes after the header's end", len(c.b))
	}
	if c.err != nil {
		return &FrameError{f.Kind, c.err.Error()}
	}
	return nil
}

// Decode returns a frame's header as a T; see Frame.Decode.
func Decode[T any](f Frame) (T, error) {
	var v T
	err := f.Decode(&v)
	return v, err
}
