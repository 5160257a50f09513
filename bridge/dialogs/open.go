// Package dialogs knows which questions are open before the people at clients that
// have a session, and which of these the clients have been told to close. It asks
// nothing itself: whoever opens a dialog tells Open, also when it is over.
//
//	Open         by connection and request: until when, and what withdraws it
//	Withdrawals  how many dialogs the client of an HTTP session was told to close
package dialogs

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Open has the open dialogs of a server. Its methods may be called from any
// goroutine.
type Open struct {
	mu     sync.Mutex
	closed bool
	left   map[*mcp.ServerSession]bool // connections that are being closed
	open   map[Place]Dialog
	under  sync.WaitGroup // one for each
}

// A Place is where a question is open: at a connection.
type Place struct {
	Conn    *mcp.ServerSession
	Request string
}

// A Dialog belongs to a run and stays open until its time is up, unless it is
// withdrawn.
type Dialog struct {
	Run      string
	Until    time.Time
	Ctx      context.Context // which Withdraw ends
	Withdraw context.CancelFunc
}

// New returns an Open without dialogs.
func New() *Open {
	return &Open{open: map[Place]Dialog{}, left: map[*mcp.ServerSession]bool{}}
}

// Begin notes a dialog that is about to be opened, and reports whether it may
// be: the question is not open at that connection.
func (d *Open) Begin(at Place, one Dialog) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, open := d.open[at]; open || d.closed || d.left[at.Conn] {
		return false
	}
	d.open[at] = one
	d.under.Add(1)
	return true
}

// End notes that a dialog is over.
func (d *Open) End(at Place) {
	d.mu.Lock()
	delete(d.open, at)
	d.mu.Unlock()
	d.under.Done()
}

// Way returns the context of an open dialog, and what withdraws it.
func (d *Open) Way(at Place) (context.Context, context.CancelFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[at].Ctx, d.open[at].Withdraw
}

// Of returns the time until which the last of a run's dialogs at a connection stays
// open; zero if there is none.
func (d *Open) Of(conn *mcp.ServerSession, run string) (until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, one := range d.open {
		if at.Conn == conn && one.Run == run && one.Until.After(until) {
			until = one.Until
		}
	}
	return until
}

// Leave withdraws the dialogs at a connection that is about to be closed, which would
// wait for their answers. Call what it returns afterwards.
func (d *Open) Leave(conn *mcp.ServerSession) (closed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[conn] = true
	for at, one := range d.open {
		if at.Conn == conn {
			one.Withdraw()
		}
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.left, conn)
	}
}

// Close withdraws all dialogs, and returns when they are over.
func (d *Open) Close() {
	d.mu.Lock()
	d.closed = true
	for _, one := range d.open {
		one.Withdraw()
	}
	d.mu.Unlock()
	d.under.Wait()
}
