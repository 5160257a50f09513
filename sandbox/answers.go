package sandbox

import (
	"errors"
	"fmt"
	"time"

	"codemode-bridge/sandbox/wire"
)

// How an answer gets from the host into the queue, and from there to the worker.

// drainTimeout is how long a worker may take, after a run, to read what
// was being written to it.
const drainTimeout = time.Second

// answerer returns the function with which the host answers a call.
func (r *run) answerer(number int) func(Reply) {
	return func(reply Reply) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answerLocked(number, reply)
		r.deliverLocked()
	}
}

// answerLocked queues the answer to an open call, and begins the next call that
// waited for its place. A call that was already answered is left alone.
func (r *run) answerLocked(number int, reply Reply) {
	if r.ended {
		return
	}
	call, next := r.open.remove(number)
	if call == nil {
		return
	}
	if next != nil {
		r.start(*next)
	}
	at := r.queue.add(number, call, reply)
	if r.order != nil {
		r.order.Answered(number, at)
	}
}

// deliverLocked has the queue written: at once, if the worker has taken all that was
// sent before and thus has room for a little more, and otherwise by a goroutine,
// since a worker that runs a script does not read.
func (r *run) deliverLocked() {
	if r.ended || !r.queue.waits() {
		return
	}
	if !r.clock.running && r.queue.small() {
		r.queue.writing = true
		r.queue.writes.Add(1)
		r.writeBatchLocked()
		r.queue.writing = false
		r.queue.writes.Done()
	}
	r.deliverLaterLocked()
}

// deliverLaterLocked starts a goroutine that writes the queue.
func (r *run) deliverLaterLocked() {
	if r.ended || !r.queue.waits() {
		return
	}
	r.queue.writing = true
	r.queue.writes.Go(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for len(r.queue.replies) > 0 {
			r.writeBatchLocked()
		}
		r.queue.writing = false
	})
}

// writeBatchLocked writes what is in the queue; it releases the lock meanwhile.
// The caller has set writing.
func (r *run) writeBatchLocked() {
	batch := r.queue.take()
	r.startClockLocked(time.Now()) // from here on the worker may be busy
	r.mu.Unlock()
	var err error
	for _, f := range batch {
		if err = r.p.conn.Write(wire.KindReply, f.reply, f.body); err != nil {
			break
		}
	}
	if err == nil {
		err = r.p.conn.Flush()
	}
	if err != nil {
		r.unwritten(err)
	}
	r.mu.Lock()
}

// unwritten ends the worker because something could not be written. The pipe's error
// is not the reason: the reader finds out why the worker died.
func (r *run) unwritten(err error) {
	if unsent := (*wire.FrameError)(nil); errors.As(err, &unsent) {
		r.fail(fmt.Errorf("running script: %w", err))
		return
	}
	r.p.kill()
}

// drain waits for what is still being written: it must not be cut
// short, unless the worker cannot be used again anyway.
func (r *run) drain() (clean bool) {
	r.mu.Lock()
	writing := r.queue.writing
	r.mu.Unlock()
	if !writing {
		return true
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.queue.writes.Wait()
	}()
	select {
	case <-written:
		return true
	case <-time.After(drainTimeout):
		r.p.kill()
		<-written
		return false
	}
}
