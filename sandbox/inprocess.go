package sandbox

import (
	"io"
	"os"
	"sync"
	"time"

	"codemode-bridge/sandbox/wire"
)

// serveHere starts a worker in this process, on two pipes in memory. Killing it means
// closing them, which it notices when it next reads or writes.
func serveHere(serve func(in io.Reader, out io.Writer) error, heap int64) *process {
	in, out := newMemoryPipe(), newMemoryPipe()
	served := make(chan error, 1)
	go func() {
		err := serve(in, out)
		in.Close()
		out.Close()
		served <- err
	}()
	return &process{
		conn:   wire.New(out, in),
		heap:   heap,
		exited: make(chan struct{}),
		kill:   func() { in.Close(); out.Close() },
		cpu:    func() (time.Duration, bool) { return 0, false },
		wait: func() ending {
			if err := <-served; err != nil {
				return ending{code: -1, status: err.Error()}
			}
			return ending{status: "ended"}
		},
	}
}

// A memoryPipe behaves like os.Pipe, without the system: it buffers some bytes for a
// busy reader, and a writer waits for more room.
type memoryPipe struct {
	mu      sync.Mutex
	turned  sync.Cond
	pending []byte
	closed  bool
}

// pipeRoom is as much as a pipe of Linux holds.
const pipeRoom = 64 << 10

func newMemoryPipe() *memoryPipe {
	p := new(memoryPipe)
	p.turned.L = &p.mu
	return p
}

// Read takes what is there, and waits if there is nothing.
func (p *memoryPipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.pending) == 0 && !p.closed {
		p.turned.Wait()
	}
	if len(p.pending) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.pending)
	p.pending = p.pending[n:]
	p.turned.Broadcast()
	return n, nil
}

// Write returns when all of b is in the pipe.
func (p *memoryPipe) Write(b []byte) (written int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		for len(p.pending) >= pipeRoom && !p.closed {
			p.turned.Wait()
		}
		if p.closed {
			return written, os.ErrClosed
		}
		n := min(len(b), pipeRoom-len(p.pending))
		p.pending = append(p.pending, b[:n]...)
		p.turned.Broadcast()
		b, written = b[n:], written+n
	}
	return written, nil
}

// Close ends the pipe for both sides. What is in it can still be read.
func (p *memoryPipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.turned.Broadcast()
	return nil
}
