package worker

import (
	"fmt"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/realm"
	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// A run is one script being run: what it may still do, and what is open.
// It is the engine's host.
type run struct {
	w      *worker
	engine *realm.Engine
	header wire.Run

	time    time.Time // the script's clock
	made    int       // calls numbered so far
	sent    int       // of these, handed to the parent
	taken   int       // answers taken
	calls   int       // of made, those that are not timers
	timers  int
	open    map[int]openCall // sent, and the answer not taken
	args    int              // bytes of their arguments
	busy    int              // of open, those that are not timers
	unsent  []unsentCall     // numbered, waiting for fewer open calls, in order
	dropped map[int]bool     // timers that were cleared

	flushed     time.Time // the last flush for a log's sake
	logged      int64     // bytes
	lines       int
	logsDropped int
	err         error // the pipe's, which ends the worker
}

type unsentCall struct {
	header wire.Call
	args   []byte
}

// prepare makes the next run, as far as possible before its script is known. That
// takes a quarter of a short run's time, and nobody waits for it now.
func (w *worker) prepare() { w.spare = w.newRun() }

func (w *worker) newRun() *run {
	r := &run{w: w, open: make(map[int]openCall), dropped: make(map[int]bool)}
	r.engine = realm.New(r)
	return r
}

// run serves one run. The error is the pipe's, or the parent's fault.
func (w *worker) run(header wire.Run, input []byte, source string) error {
	r := w.spare
	if w.spare = nil; r == nil {
		r = w.newRun()
	}
	// Of the sessions that take turns most run one script and lose their worker to others.
	if w.more && !w.guest {
		defer w.prepare()
	}
	w.more = true
	e := r.engine
	r.header, r.time = header, header.Start.UTC()
	known := w.names
	if known.Revision != header.Revision {
		known = new(realm.Names)
	}
	limit := header.Limits.CPU
	if w.guest {
		realm.BoundMatches(wire.WallFactor * limit) // literals are compiled by Load
	}
	w.clock.begin(limit, func(name string) { e.Interrupt(realm.TimeFailure(name, limit)) })
	w.watch.begin()
	r.resume()
	if len(input) == 0 {
		input = nil
	}
	report, fail := e.Load(known, source, input)
	var result []byte
	var notes []string
	if fail == nil {
		// Sent with the first call, or when the script runs on: see newWorker.
		r.write(wire.KindPreview, wire.Preview{Run: header.ID, Report: report})
		e.Begin()
		for !e.Ended() && r.err == nil {
			if len(r.open) == 0 {
				e.Deadlocked()
				break
			}
			if err := r.next(e); err != nil {
				return err
			}
		}
		result, notes, fail = e.Finish()
	}
	if fail == nil && int64(len(result)) > header.Limits.Result {
		result, fail = nil, realm.ResultFailure(header.Limits.Result)
	}
	r.pause()
	// The timer may not have had its turn; in a guest a match that was cut short counted as no match.
	if over := w.clock.over(); over != "" && fail == nil {
		result, fail = nil, realm.TimeFailure(over, limit)
	}
	w.watch.finish()
	done := wire.Done{
		Run: header.ID, Calls: r.calls, CPU: w.clock.used(), LogsDropped: r.logsDropped, Taken: r.taken,
		Notes: append(r.unsentNotes(), notes...), Err: fail,
	}
	r.write(wire.KindDone, done, result)
	r.flush()
	w.watch.giveBack()
	return r.err
}

// next sends what the script asked for, waits for one answer and gives it to
// the engine.
func (r *run) next(e *realm.Engine) error {
	for {
		f, err := r.frame()
		if err != nil {
			r.err = err
			return err
		}
		switch f.Kind {
		case wire.KindReply:
			h, err := wire.Decode[wire.Reply](f)
			if err != nil {
				return err
			}
			if h.Run != r.header.ID {
				continue // of a run before this one
			}
			return r.take(e, h, f.Body)
		case wire.KindNames: // the next run's; this one keeps the names it began with
			if err := r.w.readNames(f); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a %s frame in the middle of a run", f.Kind)
		}
	}
}

// take gives an answer to the engine, unless it is a cleared timer's.
func (r *run) take(e *realm.Engine, h wire.Reply, body []byte) error {
	call, open := r.open[h.Number]
	if !open {
		return fmt.Errorf("an answer to call %d, which is not open", h.Number)
	}
	delete(r.open, h.Number)
	if call.op != wire.OpTimer {
		r.busy--
	}
	r.args -= call.args
	r.taken++
	if h.Time.After(r.time) {
		r.time = h.Time.UTC() // never back: a script's clock is monotonic
	}
	r.sendCalls()
	if r.dropped[h.Number] {
		delete(r.dropped, h.Number)
		return nil
	}
	e.Answer(h.Number, h, body)
	return nil
}

// frame sends what was written and returns the parent's next frame. If none
// has arrived, it says that the script is idle, and waits.
func (r *run) frame() (wire.Frame, error) {
	if r.w.inbox.arrived() {
		r.flush()
		return r.w.inbox.next()
	}
	r.write(wire.KindIdle, wire.Idle{Run: r.header.ID, Made: r.sent, Taken: r.taken})
	r.flush()
	r.pause()
	defer r.resume()
	return r.w.inbox.next()
}

func (r *run) Call(op wire.Op, name string, args []byte, at analysis.Position) (int, error) {
	switch {
	case op == wire.OpTimer && r.timers >= wire.MaxTimers:
		return 0, &realm.LimitReached{Limit: wire.LimitTimers, Value: fmt.Sprintf("%d timers a run", wire.MaxTimers)}
	case op != wire.OpTimer && r.calls >= r.header.Limits.Calls:
		return 0, &realm.LimitReached{Limit: wire.LimitCalls, Value: fmt.Sprintf("%d calls a run", r.header.Limits.Calls)}
	case len(args) > wire.MaxArgs:
		return 0, &realm.LimitReached{Limit: wire.LimitArgs, Value: fmt.Sprintf("%s of arguments", values.Size(wire.MaxArgs))}
	}
	r.made++
	if op == wire.OpTimer {
		r.timers++
	} else {
		r.calls++
	}
	r.unsent = append(r.unsent, unsentCall{wire.Call{Run: r.header.ID, Number: r.made, Op: op, Name: name, Position: at}, args})
	r.sendCalls()
	return r.made, nil
}

// sendCalls sends unsent calls, in the order of their numbers, while fewer than
// the limit are open, and beyond that while all that are open are small: the parent
// begins no more than the limit, and may find that some of them wait for people
// together. Timers put no load on anybody and do not count, but keep their place in
// the order.
func (r *run) sendCalls() {
	for len(r.unsent) > 0 {
		c := r.unsent[0]
		if c.header.Op != wire.OpTimer {
			if r.busy >= r.header.Limits.Parallel && r.args+len(c.args) > maxAhead {
				return
			}
			r.busy++
		}
		r.unsent[0] = unsentCall{}
		r.unsent = r.unsent[1:]
		r.sent++
		r.args += len(c.args)
		r.open[c.header.Number] = openCall{c.header.Op, len(c.args)}
		r.write(wire.KindCall, c.header, c.args)
	}
}

// An openCall is what is kept of a call until its answer is taken.
type openCall struct {
	op   wire.Op
	args int // bytes
}

// maxAhead is how many bytes of arguments the parent has while there are more open
// calls than it may begin.
const maxAhead = 1 << 20

func (r *run) Drop(number int) { r.dropped[number] = true }

func (r *run) Log(level, text string) {
	// The limit bounds the number of lines too: an empty one takes a frame.
	if int64(r.lines) >= r.header.Limits.Logs {
		r.logsDropped += max(1, len(text))
		return
	}
	room := r.header.Limits.Logs - r.logged
	if int64(len(text)) > room || len(text) > wire.MaxText {
		keep := values.Cut(text, int(max(0, min(room, wire.MaxText))))
		r.logsDropped += len(text) - len(keep)
		if text = keep; text == "" {
			r.logged = r.header.Limits.Logs
			return
		}
	}
	r.logged += int64(len(text))
	r.lines++
	r.write(wire.KindLog, wire.Log{Run: r.header.ID, Level: level, Text: text})
	// A script that never comes to rest is ended with its process: what it
	// logged is then all there is to go by.
	if now := time.Now(); now.Sub(r.flushed) > logDelay {
		r.flushed = now
		r.flush()
	}
}

// logDelay is how long a line of the console may wait to be sent with others.
const logDelay = 5 * time.Millisecond

func (r *run) Now() time.Time      { return r.time }
func (r *run) Limits() wire.Limits { return r.header.Limits }
func (r *run) Seed() [32]byte      { return r.header.Seed }
func (r *run) pause()              { r.w.clock.pause(); r.w.watch.pause() }
func (r *run) resume()             { r.w.watch.resume(); r.w.clock.resume() }

func (r *run) write(kind wire.Kind, header any, body ...[]byte) {
	if r.err == nil {
		r.err = r.w.conn.Write(kind, header, body...)
	}
}

func (r *run) flush() {
	if r.err == nil {
		r.err = r.w.conn.Flush()
	}
}

// unsentNotes remarks on calls that were never sent. Of those that were sent,
// the parent knows which are not answered.
func (r *run) unsentNotes() []string {
	count := 0
	for _, c := range r.unsent {
		if c.header.Op != wire.OpTimer {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	calls := fmt.Sprintf("%d calls were", count)
	if count == 1 {
		calls = "1 call was"
	}
	return []string{fmt.Sprintf("%s never sent: the script ended while waiting for the limit of %d parallel calls", calls, r.header.Limits.Parallel)}
}
