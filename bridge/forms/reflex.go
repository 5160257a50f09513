package forms

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Reflex finds out whether a client answers by itself: it does after two answers
// in a row that no person can have given, until one comes that a person can have
// given. Its methods may be called concurrently.
type Reflex struct {
	mu    sync.Mutex
	inRow int
}

// Note notes an answer to a form of ours.
func (x *Reflex) Note(got Answer) { x.note(got.AtOnce, got.Machine) }

// NoteServerForm notes an answer to a server's form, and how long it took: that too
// tells whether a person is there.
func (x *Reflex) NoteServerForm(res *mcp.ElicitResult, after time.Duration) {
	x.note(atOnce(after), atOnce(after) && res.Action != "accept")
}

func (x *Reflex) note(atOnce, machine bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case machine:
		x.inRow++
	case !atOnce:
		x.inRow = 0
	}
}

// ByItself reports whether the client answers by itself, so that nobody can be
// asked there.
func (x *Reflex) ByItself() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.inRow >= 2
}
