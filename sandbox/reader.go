package sandbox

import (
	"encoding/json"
	"errors"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// maxTimer bounds one timer, as browsers do.
const maxTimer = (1<<31 - 1) * time.Millisecond

// takeOverAfter is how long a reader may be in the host's Call before another
// takes over.
const takeOverAfter = 20 * time.Millisecond

// A readerTurn says which of a run's readers reads the worker's pipe. A reader
// may call the host itself; if that takes long, another takes its place.
// A run has one, under its lock.
type readerTurn struct {
	newest int       // counts the readers: the newest one reads
	inCall time.Time // since when it is in the host's Call; zero if it is not
}

// due returns when another reader takes over; zero for never.
func (t *readerTurn) due() time.Time {
	if t.inCall.IsZero() {
		return time.Time{}
	}
	return t.inCall.Add(takeOverAfter)
}

// received counts what a worker has sent in one run so far. The number of frames of
// each kind is bounded, so their rate needs no limit. A run has one, under its lock.
type received struct {
	previewed bool
	idles     int
	logBytes  int64
}

// read handles the worker's frames until the run is over, or another reader
// takes over.
func (r *run) read() {
	r.mu.Lock()
	me, over := r.turn.newest, r.ended
	r.mu.Unlock()
	for !over {
		if r.p.conn.Buffered() == 0 {
			r.startNewest()
		}
		f, err := r.p.conn.Read()
		var broken *wire.FrameError
		switch {
		case err == nil:
			err = r.handle(f)
		case errors.As(err, &broken):
			err = bad("%v", broken)
		default:
			// The pipe ended. The process has ended too, or will: its exit says
			// why.
			r.p.kill()
			<-r.p.exited
			err = r.p.death()
			if l := (*LimitError)(nil); errors.As(err, &l) && l.Value == "" {
				l.Value = r.limits.text(l.Limit)
			}
		}
		r.mu.Lock()
		if err != nil {
			r.failLocked(err)
		}
		over = r.ended || r.turn.newest != me
		r.mu.Unlock()
	}
}

// handle does what a frame says. An error ends the run and the worker.
func (r *run) handle(f wire.Frame) error {
	if f.Kind != wire.KindIdle {
		r.startNewest()
	}
	switch f.Kind {
	case wire.KindPreview:
		v, err := decode[wire.Preview](r, f)
		if err != nil {
			return err
		}
		return r.preview(v.Report)
	case wire.KindCall:
		v, err := decode[wire.Call](r, f)
		if err != nil {
			return err
		}
		return r.call(v, f.Body)
	case wire.KindIdle:
		v, err := decode[wire.Idle](r, f)
		if err != nil {
			return err
		}
		return r.idle(v)
	case wire.KindLog:
		v, err := decode[wire.Log](r, f)
		if err != nil {
			return err
		}
		return r.log(v)
	case wire.KindDone:
		v, err := decode[wire.Done](r, f)
		if err != nil {
			return err
		}
		return r.done(v, f.Body)
	}
	return bad("an unexpected %s frame", f.Kind)
}

// decode reads a header and checks that it belongs to this run.
func decode[T wire.Preview | wire.Call | wire.Idle | wire.Log | wire.Done](r *run, f wire.Frame) (T, error) {
	v, err := wire.Decode[T](f)
	if err != nil {
		return v, bad("%v", err)
	}
	var id uint64
	switch v := any(v).(type) {
	case wire.Preview:
		id = v.Run
	case wire.Call:
		id = v.Run
	case wire.Idle:
		id = v.Run
	case wire.Log:
		id = v.Run
	case wire.Done:
		id = v.Run
	}
	if id != r.id {
		return v, bad("a %s frame of run %d in run %d", f.Kind, id, r.id)
	}
	return v, nil
}

func (r *run) preview(report analysis.Report) error {
	r.mu.Lock()
	ok := !r.received.previewed && r.open.made == 0
	r.received.previewed = true
	ended := r.ended
	r.mu.Unlock()
	if !ok {
		return bad("a second or late preview")
	}
	if !ended {
		r.host.Preview(report)
	}
	return nil
}

func (r *run) call(c wire.Call, args []byte) error {
	switch {
	case len(args) > wire.MaxArgs:
		return bad("arguments of %d bytes", len(args))
	case len(args) > 0 && !json.Valid(args):
		return bad("arguments that are not JSON")
	}
	if c.Op == wire.OpTimer {
		return r.timer(c, args)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	call, err := r.openLocked(c, args)
	if err == nil && !r.ended && r.open.admit(call) {
		r.newest = &call
	}
	return err
}

// timer opens a timer.
func (r *run) timer(c wire.Call, args []byte) error {
	wait, err := timerWait(args)
	if err != nil {
		return err
	}
	r.mu.Lock()
	call, err := r.openLocked(c, args)
	ended := r.ended
	r.mu.Unlock()
	if err != nil || ended || r.timers != nil && r.timers.Timer(call, wait, r.answerer(call.Number)) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.due.add(now.Add(wait), c.Number)
	r.setAlarmLocked(now)
	return nil
}

// openLocked opens a call; a run that has ended opens nothing.
func (r *run) openLocked(c wire.Call, args []byte) (Call, error) {
	switch {
	case r.ended:
		return Call{}, nil
	case !r.clock.running:
		return Call{}, bad("a call while idle")
	}
	return r.open.add(c, args)
}

func timerWait(args []byte) (time.Duration, error) {
	var v struct {
		MS *float64 `json:"ms"`
	}
	if err := json.Unmarshal(args, &v); err != nil || v.MS == nil {
		return 0, bad("a timer without a time")
	}
	ms := max(0, min(*v.MS, float64(maxTimer/time.Millisecond)))
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func (r *run) idle(v wire.Idle) error {
	r.mu.Lock()
	// Each one follows a turn of the script, and a turn follows an answer.
	made, sent := r.open.made, r.queue.sent
	if r.received.idles++; r.received.idles > 2*(made+sent)+16 {
		r.mu.Unlock()
		return bad("too many idle frames")
	}
	if v.Made > made || v.Taken > sent {
		r.mu.Unlock()
		return bad("an idle frame with %d calls and %d answers of %d and %d", v.Made, v.Taken, made, sent)
	}
	if outdated := v.Made != made || v.Taken != sent; r.ended || outdated || !r.clock.running {
		r.mu.Unlock()
		return nil // something is on its way to the worker, or this says nothing new
	}
	open := len(r.open.byNumber)
	if open == 0 && len(r.queue.replies) == 0 {
		r.mu.Unlock()
		return &WorkerError{"stopped: the script waits, and no call is open"}
	}
	r.stopClockLocked(time.Now())
	r.mu.Unlock()
	r.host.Idle(open)
	if open == 1 && r.newest != nil {
		r.callInline()
	}
	return nil
}

func (r *run) log(v wire.Log) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received.logBytes += int64(len(v.Text))
	if r.received.logBytes > r.limits.Logs || int64(len(r.result.Logs)) >= r.limits.Logs {
		return bad("more than %s of logs", size(r.limits.Logs))
	}
	if !r.ended {
		r.result.Logs = append(r.result.Logs, Log{v.Level, v.Text})
	}
	return nil
}

func (r *run) done(v wire.Done, body []byte) error {
	switch {
	case int64(len(body)) > r.limits.Result:
		return bad("a result of %d bytes", len(body))
	case len(body) > 0 && v.Err != nil:
		return bad("both a result and an error")
	case len(body) > 0 && !json.Valid(body):
		return bad("a result that is not JSON")
	case r.p.conn.Buffered() > 0:
		return bad("more after the end of the run")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	if v.Calls < r.open.calls() || v.Calls > r.limits.Calls {
		return bad("a count of %d calls after %d", v.Calls, r.open.calls())
	}
	r.result.LogsDropped, r.result.Notes, r.result.CPU = v.LogsDropped, v.Notes, v.CPU
	if note := r.open.note(); note != "" {
		r.result.Notes = append([]string{note}, v.Notes...)
	}
	if v.Err == nil {
		r.result.Notes = append(r.result.Notes, r.queue.unheard.notes(v.Taken)...)
	}
	switch {
	case v.Err == nil:
		if len(body) > 0 {
			r.result.Value = body
		}
		r.endLocked(nil)
	case v.Err.Kind == wire.FailureLimit:
		r.endLocked(r.limitError(v.Err))
	default:
		if v.Err.Call > r.open.made {
			return bad("an error of call %d of %d", v.Err.Call, r.open.made)
		}
		r.endLocked(scriptError(v.Err))
	}
	return nil
}

// limitError names the limit that the worker says was exceeded. Only the name of the
// limit, the position and the hint are taken from the worker; the value is ours.
func (r *run) limitError(f *wire.Failure) *LimitError {
	return &LimitError{Limit: f.Name, Value: r.limits.text(f.Name), Position: f.Position, Frame: f.Frame, Stack: f.Stack, Advice: f.Hint}
}

func scriptError(f *wire.Failure) *ScriptError {
	e := &ScriptError{
		Name: f.Name, Message: f.Message, Position: f.Position, Frame: f.Frame,
		Stack: f.Stack, Hint: f.Hint, Call: f.Call, Fields: f.Fields,
	}
	if f.Cause != nil {
		e.Cause = scriptError(f.Cause)
	}
	return e
}

// startNewest passes the newest call to the host, if that has not been done.
func (r *run) startNewest() {
	if c := r.newest; c != nil {
		r.newest = nil
		r.start(*c)
	}
}

// callInline makes the newest call, which is the only open one, on the reader's
// goroutine. The worker is idle until the answer, so there is nothing to read.
// If the call takes long, the alarm has another reader take over, since a worker
// that claims to be idle has to be watched all the same.
func (r *run) callInline() {
	c := *r.newest
	r.newest = nil
	r.mu.Lock()
	me, now := r.turn.newest, time.Now()
	r.turn.inCall = now
	r.setAlarmLocked(now)
	r.mu.Unlock()

	r.host.Call(r.ctx, c, r.answerer(c.Number))

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn.newest == me {
		r.turn.inCall = time.Time{}
	}
}

// takeOverLocked starts another reader in the place of one that is in the
// host's Call.
func (r *run) takeOverLocked() {
	r.turn.newest++
	r.turn.inCall = time.Time{}
	r.readers.Go(r.read)
}
