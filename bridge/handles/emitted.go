package handles

import (
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on what one run may attach to its answer.
const (
	maxEmitted      = 32
	maxEmittedBytes = 16 << 20
)

// Emitted is the media that a script attached to its run's answer. The zero value
// is ready. Its methods may be called by any number of goroutines.
type Emitted struct {
	mu     sync.Mutex
	pieces []piece
	bytes  int
}

type piece struct {
	call    int
	content mcp.Content
}

// Add attaches content of so many bytes. It is the call of that number that does.
func (e *Emitted) Add(call int, content mcp.Content, size int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pieces) >= maxEmitted || e.bytes+size > maxEmittedBytes {
		return fmt.Errorf("an answer carries at most %d pieces of media and %d MB", maxEmitted, maxEmittedBytes>>20)
	}
	e.pieces = append(e.pieces, piece{call, content})
	e.bytes += size
	return nil
}

// Clear forgets what was attached.
func (e *Emitted) Clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pieces, e.bytes = nil, 0
}

// Content returns what was attached, in the order of the calls.
func (e *Emitted) Content() (all []mcp.Content) {
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.SortStableFunc(e.pieces, func(a, b piece) int { return a.call - b.call })
	for _, p := range e.pieces {
		all = append(all, p.content)
	}
	return all
}
