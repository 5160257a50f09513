package dialogs

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Withdrawals counts the dialogs that the clients of HTTP sessions have been told
// to close. The SDK tells them in the background, and drops what comes after the
// answer to the call that the dialog came with: that answer waits until it is told.
type Withdrawals struct {
	mu      sync.Mutex
	told    map[string]int // by session
	changed chan struct{}  // closed at the next one; nil until somebody waits
}

// Of returns how many there were in a session.
func (w *Withdrawals) Of(session string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[session]
}

// Wait returns once there were n in a session, ctx ends, or a second has passed,
// since some clients cannot be told.
func (w *Withdrawals) Wait(ctx context.Context, session string, n int) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		w.mu.Lock()
		if w.told[session] >= n {
			w.mu.Unlock()
			return
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Withdrawals) note(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == nil {
		w.told = map[string]int{}
	}
	w.told[session]++
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

func (w *Withdrawals) forget(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.told, session)
}

// Events is a store of what is sent to HTTP sessions that counts their withdrawals.
func (w *Withdrawals) Events(store mcp.EventStore) mcp.EventStore { return &events{store, w} }

// events counts what is sent, in order: the SDK holds the stream from Append until it
// is written.
type events struct {
	mcp.EventStore
	withdrawals *Withdrawals
}

func (e *events) Append(ctx context.Context, session, stream string, data []byte) error {
	if bytes.Contains(data, []byte(`"method":"notifications/cancelled"`)) {
		defer e.withdrawals.note(session)
	}
	return e.EventStore.Append(ctx, session, stream, data)
}

func (e *events) SessionClosed(ctx context.Context, session string) error {
	e.withdrawals.forget(session)
	return e.EventStore.SessionClosed(ctx, session)
}
