package worker

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"codemode-bridge/sandbox/wire"
)

// An inbox gives the loop the parent's frames. The loop reads them itself: it waits for
// the parent in the read, and a goroutine in between would cost every answer a change
// of threads. Only while a script runs without a pause does a goroutine read ahead, to
// notice the end of the pipe.
type inbox struct {
	conn pipe
	// lost, if set, is called by the goroutine when the pipe has ended.
	lost func(error)

	mu     sync.Mutex
	reader reader
	queue  []wire.Frame  // read ahead
	fail   error         // why the goroutine ended
	handed chan struct{} // the goroutine has ended for a loop that waits
}

// A reader says who reads from the pipe.
type reader int

const (
	readerNone  reader = iota
	readerLoop         // the loop, which waits
	readerAhead        // the goroutine, while the script runs
	readerLast         // the goroutine, for a loop that waits: its next frame is its last
)

func newInbox(conn pipe) *inbox { return &inbox{conn: conn, handed: make(chan struct{}, 1)} }

// next waits for the next frame. The error is errGone when the parent closed
// the pipe, and otherwise the parent's fault.
func (b *inbox) next() (wire.Frame, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 && b.fail == nil {
		if b.reader == readerNone {
			b.reader = readerLoop
			b.mu.Unlock()
			f, err := b.conn.Read()
			b.mu.Lock()
			b.reader = readerNone
			return f, pipeError(err)
		}
		b.reader = readerLast
		b.mu.Unlock()
		<-b.handed
		b.mu.Lock()
	}
	if len(b.queue) == 0 {
		return wire.Frame{}, b.fail
	}
	f := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	return f, nil
}

// arrived reports whether next will not have to wait for the parent.
func (b *inbox) arrived() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) > 0 || b.fail != nil || b.reader == readerNone && b.conn.Buffered() > 0
}

// readAhead starts the goroutine unless somebody reads already. What it reads is
// bounded: a parent sends only what the script asked for.
func (b *inbox) readAhead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader != readerNone || b.fail != nil {
		return
	}
	b.reader = readerAhead
	go func() {
		for b.readOne() {
		}
	}()
}

// readOne reads a frame ahead and reports whether to go on.
func (b *inbox) readOne() bool {
	f, err := b.conn.Read()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.queue = append(b.queue, f)
	} else {
		b.fail = pipeError(err)
	}
	switch {
	case b.reader == readerLast:
		b.handed <- struct{}{}
	case err == nil:
		return true
	case b.lost != nil:
		b.lost(b.fail)
	}
	b.reader = readerNone
	return false
}

// errGone is the end of the pipe.
var errGone = errors.New("the parent closed the pipe")

func pipeError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
		return errGone
	}
	return err
}
