package sandbox

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

const (
	// grace is how much longer than Limits.CPU a worker may run, so that it
	// can stop the script itself and say where it was.
	grace = 500 * time.Millisecond
	// sampleEvery is how often a worker's real processor time is compared
	// with what it admits to.
	sampleEvery = time.Second
	// maxOpenArgs bounds the arguments of all open calls together, in bytes.
	maxOpenArgs = 64 << 20
	// maxTimer bounds one timer, as browsers do.
	maxTimer = (1<<31 - 1) * time.Millisecond
)

// A run is one script in one worker, from the Run frame to the end.
//
//	worker ──▶ reader ──▶ one goroutine a call ──▶ host
//	                                                │ settle
//	worker ◀── queue of replies ◀───────────────────┘
//	                    ▲
//	      clock: script timers, CPU limit
//
// The reader is the goroutine that called Session.Run. It checks each frame
// against what may come at that moment. No frame needs a rate limit: of every
// kind only so many may come in one run. The queue, filled under mu, is where
// the order of answers is made.
//
// Most time between a script and its answers goes into waking threads, so
// there are two short cuts. A call that is the only thing that the script waits
// for is done by the reader itself, which has nothing to read meanwhile. And an
// answer that finds the worker waiting is written by who settles it.
type run struct {
	p      *process
	id     uint64
	limits Limits
	host   Host
	timers TimerHost // nil: timers are served here
	order  OrderHost // nil: nobody asks

	ctx     context.Context // of the host's calls; ends with the run
	cancel  context.CancelFunc
	calls   sync.WaitGroup // goroutines in the host's methods
	writes  sync.WaitGroup // whoever is writing answers
	readers sync.WaitGroup // readers that took over
	held    *Call          // the reader's: started unless Idle shows that the reader can do it

	mu     sync.Mutex // guards all below
	ended  bool
	err    error // why, if not by Done; the first reason
	result Result

	previewed bool
	made      int             // calls made, timers included
	nTimers   int             // timers among them
	open      map[int]*opened // calls made and not settled
	openArgs  int             // bytes of their arguments
	active    int             // open calls that the host is working on
	waiting   []Call          // open calls beyond Limits.Parallel
	due       timerHeap       // open timers served here
	queue     []queued        // settled, not yet being written
	writing   bool            // somebody writes what is in the queue
	reader    int             // counts the readers: the newest one reads
	inline    time.Time       // since when it is in the host's Call; zero if it is not
	sent      int             // replies taken from the queue
	unheard   unheard         // failures, for those that the script did not live to see
	lastTime  time.Time       // of the newest reply
	logBytes  int64
	idles     int

	clock   *time.Timer // calls tick
	clockAt time.Time   // when; zero if it will not

	// The script's clock. It stands while the worker is idle.
	running bool
	since   time.Time     // when it last began to run
	cpuAt   time.Duration // processor time of the worker when the run began
	metered bool          // the system tells: if not, the worker alone holds Limits.CPU
	spare   time.Duration // by how much the clock was ahead of that processor time when last compared
	used    time.Duration // before since
	burnt   time.Duration // processor time used beyond what running explains
	sampled sample
	usedAt  time.Duration // what the clock showed when sampled was taken
	sample  time.Time     // when to sample next

	// The clock of waiting. It runs while the worker is idle and only timers
	// are open.
	resting bool
	restAt  time.Time     // when it last began to run
	rested  time.Duration // before restAt
}

// opened is an open call.
type opened struct {
	args  int  // bytes
	timer bool // not counted as parallel
	name  string
	at    analysis.Position
}

// serve runs the script in p and reports whether p can be used again.
func serve(ctx context.Context, p *process, script Script, limits Limits, host Host) (Result, bool, error) {
	p.runs++
	r := &run{
		p: p, id: p.runs, limits: limits, host: host,
		open: make(map[int]*opened),
	}
	r.timers, _ = host.(TimerHost)
	r.order, _ = host.(OrderHost)
	r.ctx, r.cancel = context.WithCancel(ctx)
	defer r.cancel()

	now := time.Now()
	r.running, r.since, r.sample = true, now, now.Add(sampleEvery)
	r.cpuAt, r.metered = p.cpu()
	r.lastTime = script.Start.Round(0)
	if r.lastTime.IsZero() {
		r.lastTime = now
	}
	start := r.lastTime
	p.conn.SetMaxBody(max(limits.Result, wire.MaxArgs))

	// From here on the run may be ended from outside: by its clock or its
	// context.
	r.mu.Lock()
	r.armLocked(now)
	r.mu.Unlock()
	defer r.clock.Stop()
	defer context.AfterFunc(ctx, func() {
		r.fail(fmt.Errorf("running script: %w", context.Cause(ctx)))
	})()

	if err := r.writeScript(script, start); err != nil {
		r.unwritten(err)
	}
	r.read()
	r.readers.Wait()
	clean := r.drain()
	r.calls.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	var own *ScriptError
	usable := clean && (r.err == nil || errors.As(r.err, &own))
	return r.result, usable, r.err
}

// endLocked ends the run for the given reason, or by Done if it is nil. Only
// the first end counts; it reports whether this was it.
func (r *run) endLocked(err error) bool {
	if r.ended {
		return false
	}
	r.ended, r.err = true, err
	r.stopLocked(time.Now())
	r.result.Calls = r.made - r.nTimers
	if r.result.CPU <= 0 {
		r.result.CPU = r.chargedLocked(time.Time{})
	}
	r.result.CPU = min(r.result.CPU, r.used)
	r.queue, r.waiting, r.due, r.open = nil, nil, nil, nil
	r.cancel()
	return true
}

// fail ends the run, and with it the worker.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

func (r *run) failLocked(err error) {
	if r.endLocked(err) {
		r.p.kill()
	}
}

// bad is the reason of an end because of what the worker sent.
func bad(format string, args ...any) error {
	return &WorkerError{"broke the protocol: " + fmt.Sprintf(format, args...)}
}

// read handles the worker's frames until the run is over, or another reader
// takes over.
func (r *run) read() {
	r.mu.Lock()
	me, over := r.reader, r.ended
	r.mu.Unlock()
	for !over {
		if r.p.conn.Buffered() == 0 {
			r.startHeld()
		}
		f, err := r.p.conn.Read()
		var broken *wire.FrameError
		switch {
		case err == nil:
			err = r.handle(f)
		case errors.As(err, &broken):
			err = bad("%v", broken)
		default:
			// The pipe ended. The process has too, or will: what it says by its
			// exit is the reason.
			r.p.kill()
			<-r.p.exited
			err = r.p.death()
			if l := (*LimitError)(nil); errors.As(err, &l) && l.Value == "" {
				l.Value = r.value(l.Limit)
			}
		}
		r.mu.Lock()
		if err != nil {
			r.failLocked(err)
		}
		over = r.ended || r.reader != me
		r.mu.Unlock()
	}
}

// handle does what a frame says. An error is the end of run and worker.
func (r *run) handle(f wire.Frame) error {
	if f.Kind != wire.KindIdle {
		r.startHeld()
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
	ok := !r.previewed && r.made == 0
	r.previewed = true
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
	switch {
	case err != nil || r.ended:
		return err
	case r.active < r.limits.Parallel:
		r.active++
		r.held = &call
	default:
		r.waiting = append(r.waiting, call)
	}
	return nil
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
	if err != nil || ended || r.timers != nil && r.timers.Timer(call, wait, r.settler(call.Number)) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	heap.Push(&r.due, scriptTimer{at: now.Add(wait), number: c.Number})
	r.armLocked(now)
	return nil
}

// openLocked checks a call against what may come now, and opens it; a run that
// has ended opens nothing.
func (r *run) openLocked(c wire.Call, args []byte) (Call, error) {
	if r.ended {
		return Call{}, nil
	}
	switch {
	case c.Number != r.made+1:
		return Call{}, bad("call number %d after %d", c.Number, r.made)
	case !r.running:
		return Call{}, bad("a call while idle")
	}
	r.made++
	timer := c.Op == wire.OpTimer
	if timer {
		r.nTimers++
	}
	r.openArgs += len(args)
	switch {
	case r.nTimers > wire.MaxTimers:
		return Call{}, &LimitError{Limit: wire.LimitTimers, Value: count(wire.MaxTimers), Position: c.Position}
	case r.made-r.nTimers > r.limits.Calls:
		return Call{}, &LimitError{Limit: wire.LimitCalls, Value: count(r.limits.Calls), Position: c.Position}
	case r.openArgs > maxOpenArgs:
		return Call{}, &LimitError{Limit: wire.LimitArgs, Value: size(maxOpenArgs), Position: c.Position}
	}
	r.open[c.Number] = &opened{args: len(args), timer: timer, at: c.Position, name: title(c.Op, c.Name)}
	return Call{Number: c.Number, Op: c.Op, Name: c.Name, Args: args, Position: c.Position}, nil
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

// start hands a call to the host.
func (r *run) start(c Call) {
	r.calls.Go(func() { r.host.Call(r.ctx, c, r.settler(c.Number)) })
}

// startHeld hands the newest call to the host, if that has not been done.
func (r *run) startHeld() {
	if c := r.held; c != nil {
		r.held = nil
		r.start(*c)
	}
}

// callInline does the held call, which is the only open one, on the reader's
// goroutine. The worker is idle until the answer, so there is nothing to read;
// when that takes long, the clock has another reader take over, which sees
// what the worker does all the same.
func (r *run) callInline() {
	c := *r.held
	r.held = nil
	r.mu.Lock()
	me := r.reader
	r.inline = time.Now()
	r.armLocked(r.inline)
	r.mu.Unlock()

	r.host.Call(r.ctx, c, r.settler(c.Number))

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reader == me {
		r.inline = time.Time{}
	}
}

// takeOverLocked starts another reader in the place of one that is in the
// host's Call.
func (r *run) takeOverLocked() {
	r.reader++
	r.inline = time.Time{}
	r.readers.Go(r.read)
}

// takeOverAfter is how long a reader may be in the host's Call.
const takeOverAfter = 20 * time.Millisecond

func (r *run) writeScript(script Script, start time.Time) error {
	conn := r.p.conn
	names := script.Names
	if names == nil {
		names = &Names{}
	}
	if !r.p.named || r.p.revision != names.Revision {
		err := conn.Write(wire.KindNames,
			wire.Names{Revision: names.Revision, Servers: names.Servers},
			[]byte(strings.Join(names.Names, "\x00")))
		if err != nil {
			return err
		}
		r.p.named, r.p.revision = true, names.Revision
	}
	return conn.Send(wire.KindRun, wire.Run{
		ID:        r.id,
		Revision:  names.Revision,
		InputSize: len(script.Input),
		Seed:      script.Seed,
		Start:     start.UTC(),
		Limits: wire.Limits{
			CPU:      r.limits.CPU,
			Calls:    r.limits.Calls,
			Parallel: r.limits.Parallel,
			Logs:     r.limits.Logs,
			Result:   r.limits.Result,
		},
	}, script.Input, []byte(script.Source))
}

func (r *run) idle(v wire.Idle) error {
	r.mu.Lock()
	// Each one follows a turn of the script, and a turn follows an answer.
	if r.idles++; r.idles > 2*(r.made+r.sent)+16 {
		r.mu.Unlock()
		return bad("too many idle frames")
	}
	if v.Made > r.made || v.Taken > r.sent {
		r.mu.Unlock()
		return bad("an idle frame with %d calls and %d answers of %d and %d", v.Made, v.Taken, r.made, r.sent)
	}
	if r.ended || !r.running || v.Made != r.made || v.Taken != r.sent {
		r.mu.Unlock()
		return nil // out of date, or nothing new
	}
	open := len(r.open)
	if open == 0 && len(r.queue) == 0 {
		r.mu.Unlock()
		return &WorkerError{"stopped: the script waits, and no call is open"}
	}
	now := time.Now()
	r.stopLocked(now)
	r.restLocked(now)
	r.armLocked(now)
	r.mu.Unlock()
	r.host.Idle(open)
	if open == 1 && r.held != nil {
		r.callInline()
	}
	return nil
}

func (r *run) log(v wire.Log) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logBytes += int64(len(v.Text))
	if r.logBytes > r.limits.Logs || int64(len(r.result.Logs)) >= r.limits.Logs {
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
	if v.Calls < r.made-r.nTimers || v.Calls > r.limits.Calls {
		return bad("a count of %d calls after %d", v.Calls, r.made-r.nTimers)
	}
	r.result.LogsDropped, r.result.Notes, r.result.CPU = v.LogsDropped, v.Notes, v.CPU
	if note := r.openNoteLocked(); note != "" {
		r.result.Notes = append([]string{note}, v.Notes...)
	}
	if v.Err == nil {
		r.result.Notes = append(r.result.Notes, r.unheard.notes(v.Taken)...)
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
		if v.Err.Call > r.made {
			return bad("an error of call %d of %d", v.Err.Call, r.made)
		}
		r.endLocked(scriptError(v.Err))
	}
	return nil
}

// openNoteLocked remarks on calls that nobody answered. Answers that the
// worker has not read when its script ends are answers all the same: one
// refusal may end a script that waits for several calls, and it is refused
// them all.
func (r *run) openNoteLocked() string {
	var numbers []int
	for n, o := range r.open {
		if !o.timer {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return ""
	}
	slices.Sort(numbers)
	var list []string
	for i, n := range numbers {
		if i == maxOpenNamed {
			list = append(list, fmt.Sprintf("and %d more", len(numbers)-i))
			break
		}
		list = append(list, strconv.Itoa(n))
	}
	calls := "calls " + strings.Join(list, ", ") + " were"
	if len(numbers) == 1 {
		calls = "call " + list[0] + " was"
	}
	return "the script ended while " + calls + " not answered: await every call whose effect or answer matters"
}

// maxOpenNamed bounds how many open calls a note names.
const maxOpenNamed = 20

// limitError names the limit that the worker says was exceeded. The value is
// ours: nothing here is taken from the worker but which limit it was, and
// where.
func (r *run) limitError(f *wire.Failure) *LimitError {
	return &LimitError{Limit: f.Name, Value: r.value(f.Name), Position: f.Position, Frame: f.Frame, Stack: f.Stack}
}

// value returns this run's limit of that name as LimitError.Value has it.
func (r *run) value(limit string) string {
	switch limit {
	case wire.LimitCPU:
		return duration(r.limits.CPU)
	case wire.LimitWall:
		return duration(wire.WallFactor * r.limits.CPU)
	case wire.LimitMemory:
		return size(r.p.heap)
	case wire.LimitCalls:
		return count(r.limits.Calls)
	case wire.LimitTimers:
		return count(wire.MaxTimers)
	case wire.LimitArgs:
		return size(wire.MaxArgs)
	case wire.LimitResult:
		return size(r.limits.Result)
	case wire.LimitSource:
		return size(r.limits.Source)
	case wire.LimitInput:
		return size(r.limits.Input)
	}
	return ""
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
