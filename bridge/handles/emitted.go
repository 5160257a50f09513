package handles

import (
	"bytes"
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

// Emitted is the media that a script attached to its run's answer, and the handles that
// it got. The zero value is ready. Its methods may be called by any number of goroutines.
type Emitted struct {
	mu     sync.Mutex
	pieces []piece
	bytes  int
	made   []made
}

type piece struct {
	call    int
	content mcp.Content
}

// A made is a handle that the script got.
type made struct {
	id    string
	media bool
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

// Saw notes what an answer brought to the script.
func (e *Emitted) Saw(all []Kept) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range all {
		e.made = append(e.made, made{k.ID, k.Block != nil})
	}
}

// Made reports whether an answer brought a handle to the script.
func (e *Emitted) Made(handle string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.made, func(m made) bool { return m.id == handle })
}

// Note says how the user gets to see media, if the script returned a handle of such and
// attached none. Lasts reports whether a later script can do that.
func (e *Emitted) Note(result []byte, lasts bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pieces) > 0 {
		return ""
	}
	i := slices.IndexFunc(e.made, func(m made) bool { return m.media && bytes.Contains(result, []byte(`"handle":"`+m.id+`"`)) })
	switch {
	case i < 0:
		return ""
	case lasts:
		return fmt.Sprintf(`%s is media: emit("%[1]s") in your next script shows it to the user`, e.made[i].id)
	}
	return e.made[i].id + " is media, which ends with its script: emit(handle) in the script shows it to the user"
}

// Withhold forgets what was attached, and has the session's store forget what the
// script got handles of.
func (e *Emitted) Withhold(from *Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.made {
		from.forget(m.id)
	}
	e.pieces, e.bytes, e.made = nil, 0, nil
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
