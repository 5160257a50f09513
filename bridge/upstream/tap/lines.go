package tap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// giveUp is how many times the limit a single line may be before the session
// with a server that never ends it is ended.
const giveUp = 64

// A lineReader splits a stream into lines of bounded size.
type lineReader struct {
	r     *bufio.Reader
	limit int64
	cut   bool // a line beyond the limit is returned at once and not read to its end
}

// next returns the next line without its end. A line beyond the limit is read
// to its end but not kept: next then returns its skeleton instead.
func (l *lineReader) next() (line []byte, over *skeleton, err error) {
	var chunks [][]byte
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		size += int64(len(part))
		switch {
		case over != nil:
			over.add(part)
			runtime.Gosched() // this line is of no use, and may take long
		case size > l.limit+1: // the line's end is not counted
			over = new(skeleton)
			for _, chunk := range chunks {
				over.add(chunk)
			}
			over.add(part)
			chunks = nil
			if l.cut {
				return nil, over, nil
			}
		case len(part) > 0:
			chunks = append(chunks, bytes.Clone(part)) // part is overwritten by the next read
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if size > giveUp*l.limit {
				return nil, nil, fmt.Errorf("a line of more than %s has no end", Size(giveUp*l.limit))
			}
			continue
		case err != nil && (size == 0 || !errors.Is(err, io.EOF)):
			return nil, nil, err
		case over != nil:
			return nil, over, nil
		case len(chunks) == 1:
			return bytes.TrimRight(chunks[0], "\r\n"), nil, nil
		}
		return bytes.TrimRight(bytes.Join(chunks, nil), "\r\n"), nil, nil
	}
}

// Lines is an mcp.Connection, and the mcp.Transport that gives it, over
// two streams of lines. Unlike the SDK's, it survives whatever a server prints:
// lines that are no messages are logged and skipped.
//
// It has two goroutines, which end some time after Close: see Wait. They are
// there for unusual cases: one reads until the first call of a tool, since a
// server may be silent before that, and then the SDK's own goroutine does; the
// other writes what the server does not take at once. A goroutine in between
// would cost every call a change of threads in each direction.
type Lines struct {
	tap *Tap
	in  *lineReader
	out io.WriteCloser

	// stream, if set, is what in reads from, so that a read can be ended.
	stream interface{ SetReadDeadline(time.Time) error }
	leave  atomic.Bool   // the reading goroutine should end after its next message
	left   chan struct{} // closed when it has ended for that
	direct bool          // Read reads by itself; Read's own

	sending sync.Mutex
	queued  int // messages given to the writing goroutine and not yet written; guarded by sending

	writes   chan []byte          // to the writing goroutine
	messages chan jsonrpc.Message // from the reading goroutine
	closed   chan struct{}
	once     sync.Once
	running  sync.WaitGroup

	// probe is how long the server may be silent on server/discover. After
	// that the SDK is told that the method does not exist, and goes on with
	// initialize.
	probe time.Duration

	mu     sync.Mutex
	hungUp bool  // the server ended the connection
	why    error // unless it ended its output
}

// NewLines makes the connection over two streams. A server that is silent on
// server/discover for longer than probe is taken for one that does not know it.
func NewLines(t *Tap, r io.Reader, w io.WriteCloser, probe time.Duration) *Lines {
	c := &Lines{
		tap:      t,
		in:       &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: t.limit},
		out:      w,
		writes:   make(chan []byte, 16),
		messages: make(chan jsonrpc.Message),
		closed:   make(chan struct{}),
		left:     make(chan struct{}),
		probe:    probe,
	}
	if s, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok && s.SetReadDeadline(time.Time{}) == nil {
		c.stream = s
	}
	c.running.Go(c.read)
	c.running.Go(c.write)
	return c
}

func (c *Lines) Connect(context.Context) (mcp.Connection, error) { return c, nil }

func (c *Lines) SessionID() string { return "" }

func (c *Lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	if !c.direct {
		select {
		case m := <-c.messages:
			return m, nil
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.left:
			c.direct = true
			context.AfterFunc(ctx, c.interrupt)
		}
	}
	m, err := c.receive()
	if err != nil {
		c.end(err)
		return nil, io.EOF
	}
	return m, nil
}

// interrupt ends the read that is going on, and all later ones.
func (c *Lines) interrupt() {
	if c.stream != nil {
		_ = c.stream.SetReadDeadline(time.Unix(1, 0))
	}
}

// Write sends a message, or queues it. It does not wait until the server has
// read it: a caller whose context ends must be able to leave, and a message
// must never be sent in part.
func (c *Lines) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	e, x := c.tap.outgoing(ctx, data)
	if x != nil {
		switch string(e.method) {
		case `"server/discover"`:
			time.AfterFunc(c.probe, func() { c.silent(e.id) })
		case `"tools/call"`:
			// A server that is called has been greeted: it need not be read to
			// notice that it is silent.
			c.leave.Store(c.stream != nil)
		}
	}
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	if x.barred() != nil {
		c.tap.take(e.id)
		return context.Canceled
	}
	if x != nil {
		x.sent.Store(true) // before it is, so that it is never reported unsent when it was
	}
	data = c.send(append(data, '\n'))
	if data == nil {
		return nil
	}
	select {
	case c.writes <- data:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		c.dequeue()
		if x != nil {
			x.sent.Store(false)
		}
		return ctx.Err()
	}
}

// send writes a message if nothing waits before it and the pipe takes all of
// it. Otherwise it returns what is to be given to the writing goroutine; if
// that is only the rest of a message, there is room for it.
func (c *Lines) send(data []byte) []byte {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.queued == 0 {
		n := tryWrite(c.out, data)
		if n == len(data) {
			return nil
		}
		data = data[n:]
		if n > 0 {
			c.queued++
			c.writes <- data
			return nil
		}
	}
	c.queued++
	return data
}

// dequeue notes that a message has left the queue.
func (c *Lines) dequeue() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.queued--
}

// silent answers the SDK's server/discover in place of a server that does not.
func (c *Lines) silent(id []byte) {
	if c.tap.take(id) == nil {
		return
	}
	c.tap.log.Debug("the server does not answer server/discover", "waited", c.probe)
	m, err := decode(response(id, "error", []byte(`{"code":-32601,"message":"no answer"}`)))
	if err == nil {
		c.pass(m)
	}
}

// pass hands a message to Read and reports whether it was taken.
func (c *Lines) pass(m jsonrpc.Message) bool {
	select {
	case c.messages <- m:
		return true
	case <-c.closed:
		return false
	}
}

// decode is jsonrpc.DecodeMessage, but cheaper in the usual case, a result: the SDK's
// decoder takes a buffer of 32 KB for each message.
func decode(data []byte) (jsonrpc.Message, error) {
	e, err := parseEnvelope(data)
	if err == nil && e.method == nil && e.err == nil {
		if n, err := strconv.ParseInt(string(e.id), 10, 32); err == nil {
			id, err := jsonrpc.MakeID(float64(n))
			return &jsonrpc.Response{ID: id, Result: e.result}, err
		}
	}
	return jsonrpc.DecodeMessage(data)
}

// encode is jsonrpc.EncodeMessage, but copies the parameters of a request, which the SDK
// has written as JSON on one line just before, instead of reading and writing them once
// more.
func encode(m jsonrpc.Message) ([]byte, error) {
	request, ok := m.(*jsonrpc.Request)
	if !ok || request.Method != "tools/call" || bytes.IndexByte(request.Params, '\n') >= 0 {
		return jsonrpc.EncodeMessage(m)
	}
	id, ok := request.ID.Raw().(int64)
	if !ok {
		return jsonrpc.EncodeMessage(m)
	}
	line := make([]byte, 0, len(request.Params)+80)
	line = append(line, `{"jsonrpc":"2.0","id":`...)
	line = strconv.AppendInt(line, id, 10)
	line = append(line, `,"method":"tools/call","params":`...)
	line = append(line, request.Params...)
	return append(line, '}'), nil
}

// read passes messages to Read until the stream ends, or Read can read by
// itself.
func (c *Lines) read() {
	for {
		m, err := c.receive()
		if err != nil {
			c.end(err)
			return
		}
		if !c.pass(m) {
			return
		}
		if c.leave.Load() {
			close(c.left)
			return
		}
	}
}

// receive reads up to the next message for the SDK.
func (c *Lines) receive() (jsonrpc.Message, error) {
	for {
		line, over, err := c.in.next()
		if err != nil {
			return nil, err
		}
		var forward, answered []byte
		switch line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\uFEFF"))); {
		case over != nil:
			forward = c.tap.tooLarge(over.id())
		case len(line) == 0:
		case line[0] != '{':
			c.tap.notMessage(line)
		default:
			forward, answered = c.tap.arrival(line, nil)
		}
		if answered != nil {
			if n, err := strconv.ParseInt(string(answered), 10, 32); err == nil {
				id, err := jsonrpc.MakeID(float64(n))
				return &jsonrpc.Response{ID: id, Error: ErrAnswered}, err
			}
			forward = response(answered, "result", []byte(`{}`))
		}
		if forward == nil {
			size := len(line)
			if over != nil {
				size = int(c.tap.limit)
			}
			c.tap.waste(size)
			continue
		}
		m, err := decode(forward)
		if err == nil {
			return m, nil
		}
		c.tap.Drop(err.Error(), forward)
	}
}

func (c *Lines) write() {
	for {
		select {
		case data := <-c.writes:
			_, err := c.out.Write(data)
			c.dequeue()
			if err != nil {
				// The reading side says more about the end, if it has come to it.
				if !errors.Is(err, io.ErrClosedPipe) {
					c.tap.log.Debug("writing to the server", "err", err)
				}
				return
			}
		case <-c.closed:
			return
		}
	}
}

// end closes the connection because reading has ended.
func (c *Lines) end(why error) {
	c.mu.Lock()
	if !c.Over() {
		c.hungUp = true
		if !errors.Is(why, io.EOF) && !errors.Is(why, os.ErrClosed) && !errors.Is(why, io.ErrClosedPipe) {
			c.why = why
		}
	}
	c.mu.Unlock()
	_ = c.Close()
}

// Ending reports whether the server ended the connection and, if it was not by
// ending its output, why.
func (c *Lines) Ending() (hungUp bool, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hungUp, c.why
}

// Close closes the server's input and makes Read return. It does not wait; the
// SDK calls it under a lock.
func (c *Lines) Close() error {
	c.once.Do(func() {
		close(c.closed)
		_ = c.out.Close()
		c.interrupt()
	})
	return nil
}

// Wait returns when the goroutines have ended. The caller has closed the
// connection and the stream that it reads.
func (c *Lines) Wait() { c.running.Wait() }

// Over reports whether the connection has ended.
func (c *Lines) Over() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
