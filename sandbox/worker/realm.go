package worker

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"codemode-bridge/analysis"
	"codemode-bridge/analysis/preview"
	"codemode-bridge/sandbox/wire"
)

// maxCalls bounds how deep functions may call each other. At this depth even
// calls through native code stay within maxStack, and the engine, which
// unwinds those in time quadratic in their depth, needs seconds, not minutes.
const maxCalls = 4000

// A realm is the goja engine: a runtime of its own for one script.
type realm struct {
	host  host
	names *names
	vm    *goja.Runtime
	input []byte

	script  *scriptText
	program *goja.Program
	main    *goja.Promise
	result  goja.Value // after main is fulfilled
	failed  *wire.Failure
	settled bool             // the result, or how the script failed, is known
	emits   map[int]struct{} // open when it was settled: the end waits for them
	done    bool

	pending   map[int]*pending
	tools     map[string]goja.Value // function objects by name, so that they are equal to themselves
	thrown    thrown
	rejected  []rejection                // without a handler, in order; looked at in the end
	callOf    map[*goja.Promise]*pending // of calls that are not settled
	replies   []remembered               // the newest answers, for hints
	textBytes int
	classes   map[string]*goja.Object // error classes made so far
	console   *console
	timers    timers
	saved     savedRuns
	bigInts   bool // BigInt.prototype.toJSON is there
	started   time.Time
	rand      *rand.ChaCha8
	notes     []string

	inspectSymbol *goja.Symbol // by which an object says how it is logged; nil if no object can

	// Built-ins from before the script, which may replace them.
	mapEach, setEach, keysOf, describeProperty goja.Callable
}

// A rejection is a promise that was rejected, and the call that it is of, if any.
type rejection struct {
	promise *goja.Promise
	call    *pending
}

// thrown are the calls that errors are of. It keeps no error from being collected
// that the script has let go.
type thrown map[weak.Pointer[goja.Object]]*pending

func (t thrown) add(e *goja.Object, p *pending)   { t[weak.Make(e)] = p }
func (t thrown) call(e *goja.Object) (p *pending) { return t[weak.Make(e)] }

// A pending is a call that was made; it is kept until it is answered, or for
// as long as its error may have to be explained.
type pending struct {
	number          int
	op              wire.Op
	label           string // as the script writes it, for messages
	name            string
	promise         *goja.Promise
	resolve, reject func(any) error
	at              analysis.Position
	stack           []string
	timer           *timer
	input           []byte        // of codemode.run: the saved script's input
	within          *wire.Failure // how the saved script failed
	settled, failed bool
}

// scriptZone is a script's local time, by the name that Node gives it.
var scriptZone = time.FixedZone("Coordinated Universal Time", 0)

// newRealm makes the part of a realm that is the same for every script. Nothing
// of the host is asked before load.
func newRealm(h host) *realm {
	vm := goja.New()
	// No source map of a script's own making: goja would read the file.
	vm.SetParserOptions(parser.WithDisableSourceMaps)
	vm.SetMaxCallStackSize(maxCalls)
	r := &realm{
		host: h, vm: vm,
		pending: make(map[int]*pending), thrown: make(thrown), callOf: make(map[*goja.Promise]*pending),
	}
	vm.SetPromiseRejectionTracker(r.trackRejection)
	r.blockCompilers()
	return r
}

func (r *realm) load(n *names, source string, input []byte) (analysis.Report, *wire.Failure) {
	r.names = n
	script, fail := intake(source)
	if fail != nil {
		return analysis.Report{}, fail
	}
	r.script = script
	report := preview.Script(script.program, script.at)
	script.repairRegexps()
	script.repairArguments()
	caught := script.repairCaught()
	boundRegexps(r.host.limits().CPU) // literals are compiled with the program, so this comes before it
	if r.program, fail = script.compile(); fail != nil {
		return report, fail
	}
	r.input = input
	r.prepare()
	if caught {
		r.installCaught()
	}
	return report, nil
}

// regexpsBound guards regexp2.DefaultMatchTimeout, which is the process's.
var regexpsBound sync.Mutex

// boundRegexps bounds the regular expressions that are compiled from now on, by
// time on the wall. It is regexp2's only bound: it never returns to the engine in
// between. A match that is given up counts as none, so no run may go on after
// that. Workers that share a process have the same limit.
func boundRegexps(limit time.Duration) {
	regexpsBound.Lock()
	defer regexpsBound.Unlock()
	if limit *= wire.WallFactor; regexp2.DefaultMatchTimeout != limit {
		regexp2.DefaultMatchTimeout = limit
	}
}

// prepare makes the part of the world that depends on the script and its run.
func (r *realm) prepare() {
	r.rand = rand.NewChaCha8(r.host.seed())
	r.vm.SetRandSource(func() float64 { return float64(r.rand.Uint64()>>11) / (1 << 53) })
	r.started = r.host.now()
	r.vm.SetTimeSource(r.host.now)
	r.installGlobals()
}

func (r *realm) trackRejection(p *goja.Promise, op goja.PromiseRejectionOperation) {
	if op == goja.PromiseRejectionReject {
		r.rejected = append(r.rejected, rejection{p, r.callOf[p]})
		return
	}
	r.rejected = slices.DeleteFunc(r.rejected, func(q rejection) bool { return q.promise == p })
}

func (r *realm) begin() {
	v, err := r.vm.RunProgram(r.program)
	if err != nil {
		r.stop(err)
		return
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		r.failed, r.done = failText("SyntaxError", "the script has no function to run", ""), true
		return
	}
	v, err = f(goja.Undefined())
	if err != nil {
		r.stop(err)
		return
	}
	r.main, _ = v.Export().(*goja.Promise)
	r.look()
}

func (r *realm) answer(number int, reply wire.Reply, body []byte) {
	p := r.pending[number]
	if p == nil {
		r.answerSaved(number, reply, body)
		return
	}
	delete(r.pending, number)
	p.settled = true
	var err error
	switch {
	case p.timer != nil:
		err = r.fire(p)
	case reply.Err != nil:
		p.failed = true
		err = p.reject(r.thrownError(p, reply.Err))
		r.letGo(p)
	case p.op == wire.OpRun:
		err = r.runSaved(p, body)
	default:
		v, bad := r.replyValue(p, reply, body)
		if bad != nil {
			p.failed = true
			err = p.reject(r.thrownError(p, &wire.Thrown{Name: "ToolError", Message: p.label + " answered something that is no JSON: " + bad.Error()}))
		} else {
			err = p.resolve(v)
		}
		r.letGo(p)
	}
	if err != nil {
		r.stop(err)
		return
	}
	r.look()
}

// letGo lets the answer of a settled call be collected as soon as the script has
// no more use for it.
func (r *realm) letGo(p *pending) {
	delete(r.callOf, p.promise)
	p.promise, p.resolve, p.reject, p.input = nil, nil, nil, nil
}

// replyValue makes the value of an answer.
func (r *realm) replyValue(p *pending, reply wire.Reply, body []byte) (goja.Value, error) {
	if reply.Text {
		text := string(body)
		r.remember(p, nil, text)
		return r.vm.ToValue(text), nil
	}
	if len(body) == 0 {
		return goja.Undefined(), nil
	}
	v, err := r.decode(string(body))
	if err == nil && p.op == wire.OpTool {
		r.remember(p, v, "")
	}
	return v, err
}

// stop ends the script with an error that did not come through its promise:
// it was interrupted, nests too deep, or a timer's callback threw.
func (r *realm) stop(err error) {
	if r.done {
		return
	}
	r.done = true
	if r.failed == nil {
		r.failed = r.failureOf(err)
	}
}

// look sees how far the script is: it has ended when its promise is settled,
// so is every promise that stands directly in its result, and every emit call
// made until then is answered. What a script emits belongs to its result,
// whether it waited or not.
func (r *realm) look() {
	if r.done || r.main == nil {
		return
	}
	if !r.settled {
		if r.settled = r.settle(); r.done || !r.settled {
			return
		}
		r.emits = make(map[int]struct{})
		for n, p := range r.pending {
			if p.op == wire.OpEmit {
				r.emits[n] = struct{}{}
			}
		}
	}
	for n := range r.emits {
		if r.pending[n] == nil {
			delete(r.emits, n)
		}
	}
	r.done = len(r.emits) == 0
}

// settle reports whether the script has its result, or has failed.
func (r *realm) settle() bool {
	rejected := func(p *goja.Promise) bool {
		r.forget(p)
		r.failed = r.failureFrom(p.Result(), nil)
		return true
	}
	switch r.main.State() {
	case goja.PromiseStateRejected:
		return rejected(r.main)
	case goja.PromiseStateFulfilled:
		r.result = r.main.Result()
		for _, p := range r.promisesIn(r.result) {
			switch p.State() {
			case goja.PromiseStatePending:
				return false
			case goja.PromiseStateRejected:
				return rejected(p)
			}
		}
		return true
	}
	return false
}

// forget takes a rejection off the list of those nobody handled.
func (r *realm) forget(p *goja.Promise) { r.trackRejection(p, goja.PromiseRejectionHandle) }

// promisesIn returns the promises directly in an array or object: a script
// that returns list.map(async ...) means their values.
func (r *realm) promisesIn(v goja.Value) (list []*goja.Promise) {
	obj, ok := v.(*goja.Object)
	if !ok || isProxy(obj) {
		return nil
	}
	if p, ok := asPromise(v); ok {
		return []*goja.Promise{p}
	}
	class := obj.ClassName()
	if class != "Array" && class != "Object" || obj.ExportType() == codemodeType {
		return nil
	}
	if err := r.guard(func() {
		for i, key := range obj.Keys() {
			if i == maxPromises {
				break
			}
			if p, ok := asPromise(r.dataProperty(obj, key)); ok {
				list = append(list, p)
			}
		}
	}); err != nil {
		r.stop(err)
	}
	return list
}

// dataProperty returns an own property without running a getter, or nil.
func (r *realm) dataProperty(o *goja.Object, key string) goja.Value {
	v, err := r.describeProperty(goja.Undefined(), o, r.vm.ToValue(key))
	if err != nil {
		panic(abort{err})
	}
	d, ok := v.(*goja.Object)
	if !ok {
		return nil
	}
	return d.Get("value")
}

// maxPromises bounds how many elements of a result are searched for promises.
const maxPromises = 1000

func (r *realm) ended() bool { return r.done }

func (r *realm) stuck() {
	r.done = true
	r.failed = failText("Error", "the script waits for a promise that nothing will settle",
		"no call is open and no timer runs: look for a new Promise() whose resolve is never called, or an awaited value that never comes")
	if at := r.lastAwait(); at.Line > 0 {
		r.failed.Position, r.failed.Frame = at, r.script.frame(at)
	}
}

func (r *realm) finish() ([]byte, []string, *wire.Failure) {
	var body []byte
	if r.failed == nil {
		var err error
		if body, err = r.encodeResult(); err != nil {
			r.failed = r.failureOf(err)
			body = nil
		}
	}
	notes := append(r.notes, r.rejectionNotes()...)
	if r.failed == nil && body == nil && r.script != nil && r.script.uncalled != "" {
		name := r.script.uncalled
		notes = append(notes, name+" was defined and never called: end with: return await "+name+"()")
	}
	if n := r.timerNote(); n != "" && r.failed == nil {
		notes = append(notes, n)
	}
	return body, notes, r.failed
}

func (r *realm) interrupt(reason *wire.Failure) {
	r.vm.Interrupt(&interruption{reason})
	r.interruptSaved(reason)
}

// An interruption is what interrupts the engine: a limit.
type interruption struct{ reason *wire.Failure }

func (i *interruption) Error() string { return i.reason.Message }

// limitOf returns the limit that stopped the engine, if one did.
func limitOf(err error) *wire.Failure {
	var i *goja.InterruptedError
	if errors.As(err, &i) {
		if v, ok := i.Value().(*interruption); ok {
			return v.reason
		}
	}
	return nil
}

// random fills b from the run's seed.
func (r *realm) random(b []byte) {
	var word [8]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(word[:], r.rand.Uint64())
		copy(b[i:], word[:])
	}
}
