package instance

import (
	"slices"
	"sync"
	"time"
)

// A broadcast is what an instance says on its standard error: every client hears
// it.
type broadcast struct {
	mu        sync.Mutex
	heard     bool
	early     []byte // what was said before anybody heard it
	listeners []chan []byte
}

// Bounds on what is kept for clients: bytes from before the first, and lines that
// one has not taken yet.
const (
	maxEarly = 64 << 10
	maxLines = 256
)

// Write never blocks: a client that does not read misses lines.
func (b *broadcast) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.heard && len(b.early)+len(line) <= maxEarly {
		b.early = append(b.early, line...)
	}
	for _, listener := range b.listeners {
		select {
		case listener <- slices.Clone(line):
		default:
		}
	}
	return len(line), nil
}

// unheard returns what was said while there was no client.
func (b *broadcast) unheard() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard {
		return nil
	}
	return b.early
}

// tell writes all that is said to c until gone is closed; the first to listen also
// hears what was said before.
func (b *broadcast) tell(c *Conn, gone <-chan struct{}) {
	lines := make(chan []byte, maxLines)
	b.mu.Lock()
	if !b.heard {
		lines <- b.early
		b.heard, b.early = true, nil
	}
	b.listeners = append(b.listeners, lines)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.listeners = slices.DeleteFunc(b.listeners, func(other chan []byte) bool { return other == lines })
		b.mu.Unlock()
	}()
	say := func(line []byte) bool {
		c.SetWriteDeadline(time.Now().Add(lastRead))
		_, err := c.Write(line)
		return err == nil
	}
	for {
		select {
		case line := <-lines:
			if !say(line) {
				return
			}
		case <-gone:
			for {
				select {
				case line := <-lines:
					if !say(line) {
						return
					}
				default:
					return
				}
			}
		}
	}
}
