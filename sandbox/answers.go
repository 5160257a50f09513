package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/sandbox/wire"
)

// The way of an answer: settled, queued, written.

const (
	// drainTimeout is how long a worker may take, after a run, to read what
	// was being written to it.
	drainTimeout = time.Second
	// maxReply bounds the body of a reply, so that it fits a frame.
	maxReply = wire.MaxFrame - 1<<20
	// maxDirect bounds what is written by who settles a call, so that it fits
	// into a pipe.
	maxDirect = 16 << 10
)

// queued is a settled call whose answer waits to be written.
type queued struct {
	reply wire.Reply
	body  []byte
}

func (r *run) settler(number int) func(Reply) {
	return func(reply Reply) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settleLocked(number, reply)
		r.deliverLocked()
	}
}

// settleLocked queues the answer to an open call. The order of the queue is
// the order in which the script sees the answers.
func (r *run) settleLocked(number int, reply Reply) {
	o, ok := r.open[number]
	if !ok || r.ended {
		return
	}
	delete(r.open, number)
	r.openArgs -= o.args
	if !o.timer {
		r.active--
		if len(r.waiting) > 0 && r.active < r.limits.Parallel {
			next := r.waiting[0]
			r.waiting = r.waiting[1:]
			r.active++
			r.start(next)
		}
	}
	if reply.Time.IsZero() {
		reply.Time = time.Now()
	}
	reply.Time = reply.Time.Round(0) // what the script sees is compared, as it will be when the run is replayed
	if reply.Time.Before(r.lastTime) {
		reply.Time = r.lastTime
	}
	r.lastTime = reply.Time
	if r.order != nil {
		r.order.Settled(number, reply.Time)
	}
	r.unheard.settled(number, o, reply)
	r.queue = append(r.queue, r.answer(number, reply))
}

// answer makes a frame of a reply. A reply that fits into no frame becomes an
// error that says so.
func (r *run) answer(number int, reply Reply) queued {
	q := queued{reply: wire.Reply{Run: r.id, Number: number, Time: reply.Time.UTC()}}
	switch {
	case reply.Err != nil:
		q.reply.Err = &wire.Thrown{Name: reply.Err.Name, Message: reply.Err.Message}
		if f := reply.Err.Fields; len(f) <= wire.MaxFields && json.Valid(f) {
			q.reply.Err.Fields = f
		}
	case reply.Text != nil:
		q.reply.Text, q.body = true, []byte(*reply.Text)
	default:
		q.body = reply.Value
	}
	if n := int64(len(q.body)); n > maxReply {
		q.body, q.reply.Text = nil, false
		q.reply.Err = &wire.Thrown{Name: "ToolError", Message: fmt.Sprintf(
			"the answer is %s; the limit is %s", size(n), size(maxReply))}
	}
	return q
}

// deliverLocked sees to it that the queue is written: here and now, if the
// worker has taken all that was sent before and thus has room for a little
// more, and otherwise by a goroutine, since a worker that runs a script does
// not read.
func (r *run) deliverLocked() {
	if r.writing || r.ended || len(r.queue) == 0 {
		return
	}
	size := 0
	for _, q := range r.queue {
		size += len(q.body)
	}
	if !r.running && size <= maxDirect {
		r.writing = true
		r.writes.Add(1)
		r.writeBatchLocked()
		r.writing = false
		r.writes.Done()
	}
	r.deliverLaterLocked()
}

// deliverLaterLocked starts a goroutine that writes the queue.
func (r *run) deliverLaterLocked() {
	if r.writing || r.ended || len(r.queue) == 0 {
		return
	}
	r.writing = true
	r.writes.Go(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for len(r.queue) > 0 {
			r.writeBatchLocked()
		}
		r.writing = false
	})
}

// writeBatchLocked writes what is in the queue, without the lock. The caller
// has set writing.
func (r *run) writeBatchLocked() {
	batch := r.queue
	r.queue = nil
	r.sent += len(batch)
	r.startClockLocked(time.Now()) // from here on the worker may have something to do
	r.mu.Unlock()
	var err error
	for _, q := range batch {
		if err = r.p.conn.Write(wire.KindReply, q.reply, q.body); err != nil {
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

// unwritten ends the worker because something could not be written. What the
// pipe says is no reason of an end by itself: the reader says what the worker
// died of.
func (r *run) unwritten(err error) {
	if unsent := (*wire.FrameError)(nil); errors.As(err, &unsent) {
		r.fail(fmt.Errorf("running script: %w", err))
		return
	}
	r.p.kill()
}

// drain waits for what is still being written: it must not be cut in the
// middle, unless the worker is of no use any more anyhow.
func (r *run) drain() (clean bool) {
	r.mu.Lock()
	writing := r.writing
	r.mu.Unlock()
	if !writing {
		return true
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.writes.Wait()
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
