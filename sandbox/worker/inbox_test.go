package worker

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"codemode-bridge/sandbox/wire"
)

// A feed is a pipe whose frames a test gives one by one.
type feed struct {
	pipe
	frames chan wire.Frame // closed: the end of the pipe
}

func (f *feed) Read() (wire.Frame, error) {
	frame, ok := <-f.frames
	if !ok {
		return wire.Frame{}, io.EOF
	}
	return frame, nil
}

func (f *feed) Buffered() int { return len(f.frames) }

func (f *feed) send(kinds ...wire.Kind) {
	for _, k := range kinds {
		f.frames <- wire.Frame{Kind: k}
	}
}

// take checks what the next frames are.
func take(t *testing.T, b *inbox, kinds ...wire.Kind) {
	t.Helper()
	for _, want := range kinds {
		if f, err := b.next(); err != nil || f.Kind != want {
			t.Errorf("got %s, %v; want %s", f.Kind, err, want)
		}
	}
}

// Whoever reads, the loop gets the frames in their order.
func TestInboxOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{frames: make(chan wire.Frame, 8)}
		b := newInbox(f)
		if b.arrived() {
			t.Error("a frame before there is one")
		}
		f.send(1, 2)
		take(t, b, 1)
		if !b.arrived() {
			t.Error("the second frame is not seen")
		}
		b.readAhead()
		b.readAhead() // one is enough
		synctest.Wait()
		f.send(3, 4)
		synctest.Wait()
		take(t, b, 2, 3)
		take(t, b, 4)
		if b.arrived() {
			t.Error("a frame that has not come")
		}
		go func() { synctest.Wait(); f.send(5, 6) }()
		take(t, b, 5) // by the goroutine, which ends with it
		take(t, b, 6)
		synctest.Wait()
		close(f.frames)
		if _, err := b.next(); !errors.Is(err, errGone) {
			t.Errorf("at the end: %v", err)
		}
	})
}

// A loop that waits reads itself.
func TestInboxWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{frames: make(chan wire.Frame)}
		b := newInbox(f)
		go func() {
			synctest.Wait()
			b.readAhead()
			f.send(1)
			synctest.Wait()
			close(f.frames)
		}()
		take(t, b, 1)
		if _, err := b.next(); !errors.Is(err, errGone) {
			t.Errorf("at the end: %v", err)
		}
	})
}

// The end of the pipe is seen while the script runs, and what came before it
// is not lost.
func TestInboxEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{frames: make(chan wire.Frame, 8)}
		b := newInbox(f)
		var lost error
		b.lost = func(err error) { lost = err }
		b.readAhead()
		f.send(1)
		synctest.Wait()
		if lost != nil {
			t.Errorf("lost early: %v", lost)
		}
		close(f.frames)
		synctest.Wait()
		if !errors.Is(lost, errGone) {
			t.Errorf("the end was told as %v", lost)
		}
		b.readAhead() // there is nothing more to read
		take(t, b, 1)
		if _, err := b.next(); !errors.Is(err, errGone) {
			t.Errorf("at the end: %v", err)
		}
	})
}
