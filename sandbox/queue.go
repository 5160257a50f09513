package sandbox

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"codemode-bridge/sandbox/wire"
)

const (
	// maxReply bounds the body of a reply, so that it fits a frame.
	maxReply = wire.MaxFrame - 1<<20
	// maxDirect bounds what is written by whoever answers a call, so that it fits
	// into a pipe.
	maxDirect = 16 << 10
)

// A replyQueue holds answers that wait to be written to the worker. The order
// in which they are added is the order in which the script sees them. A run
// has one, under its lock.
type replyQueue struct {
	run     uint64 // its number
	replies []queuedReply
	writing bool           // somebody writes what was in the queue
	writes  sync.WaitGroup // whoever is writing
	sent    int            // replies taken from the queue
	last    time.Time      // of the newest reply
	unheard unheard        // failures, for those that the script did not live to see
}

// A queuedReply is an answer that waits to be written.
type queuedReply struct {
	reply wire.Reply
	body  []byte
}

// add queues the answer to a call and returns the time that the script's clock will
// show with it, which never goes back.
func (q *replyQueue) add(number int, c *openCall, reply Reply) time.Time {
	if reply.Time.IsZero() {
		reply.Time = time.Now()
	}
	reply.Time = reply.Time.Round(0) // compared without the monotonic clock, as when the run is replayed
	if reply.Time.Before(q.last) {
		reply.Time = q.last
	}
	q.last = reply.Time
	q.unheard.answered(number, c, reply)
	q.replies = append(q.replies, q.frame(number, reply))
	return reply.Time
}

// frame makes a frame of a reply. A reply that fits into no frame becomes an
// error that says so.
func (q *replyQueue) frame(number int, reply Reply) queuedReply {
	f := queuedReply{reply: wire.Reply{Run: q.run, Number: number, Time: reply.Time.UTC()}}
	switch {
	case reply.Err != nil:
		f.reply.Err = &wire.Thrown{Name: reply.Err.Name, Message: reply.Err.Message}
		if fields := reply.Err.Fields; len(fields) <= wire.MaxFields && json.Valid(fields) {
			f.reply.Err.Fields = fields
		}
	case reply.Text != nil:
		f.reply.Text, f.body = true, []byte(*reply.Text)
	default:
		f.body = reply.Value
	}
	if n := int64(len(f.body)); n > maxReply {
		f.body, f.reply.Text = nil, false
		f.reply.Err = &wire.Thrown{Name: "ToolError", Message: fmt.Sprintf(
			"the answer is %s; the limit is %s", size(n), size(maxReply))}
	}
	return f
}

// waits reports whether the queue holds anything that nobody is writing.
func (q *replyQueue) waits() bool { return len(q.replies) > 0 && !q.writing }

// small reports whether what is in the queue fits into a pipe.
func (q *replyQueue) small() bool {
	size := 0
	for _, f := range q.replies {
		size += len(f.body)
	}
	return size <= maxDirect
}

// take empties the queue.
func (q *replyQueue) take() []queuedReply {
	batch := q.replies
	q.replies = nil
	q.sent += len(batch)
	return batch
}
