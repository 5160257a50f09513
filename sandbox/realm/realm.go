package realm

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
	"codemode-bridge/sandbox/source"
	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/web"
	"codemode-bridge/sandbox/wire"
)

// maxCalls bounds how deep functions may call each other. At this depth even
// calls through native code stay within maxStack, and the engine, which
// unwinds those in time quadratic in their depth, needs seconds, not minutes.
const maxCalls = 4000

// A realm is the goja engine: a runtime of its own for one script.
type realm struct {
	*values.Codec
	host   Host
	world  *web.World
	script *source.Script
	input  []byte

	program  *goja.Program
	main     *goja.Promise
	result   goja.Value // after main is fulfilled
	failed   *wire.Failure
	resolved bool             // the result, or how the script failed, is known
	emits    map[int]struct{} // open when it was resolved: the end waits for them
	done     bool
	notes    []string

	// Calls.
	pending  map[int]*pending
	callOf   map[*goja.Promise]*pending // of calls that are not answered
	thrown   thrown
	rejected []rejection // without a handler, in order; looked at in the end

	classes map[string]*goja.Object // error classes made so far
	rand    *rand.ChaCha8
	hints   explainer
	tools   tools
	timers  timers
	saved   savedRuns
}

// A rejection is a promise that was rejected, and its call if it is a call's.
type rejection struct {
	promise *goja.Promise
	call    *pending
}

// thrown knows the call that an error comes from. Its keys are weak, so it keeps no
// error alive that the script has dropped.
type thrown map[weak.Pointer[goja.Object]]*pending

func (t thrown) add(e *goja.Object, p *pending)   { t[weak.Make(e)] = p }
func (t thrown) call(e *goja.Object) (p *pending) { return t[weak.Make(e)] }

// A pending is a call that was made; it is kept until it is answered, or for
// as long as its error may have to be explained.
type pending struct {
	number           int
	op               wire.Op
	label            string // as the script writes it, for messages
	name             string
	promise          *goja.Promise
	resolve, reject  func(any) error
	at               analysis.Position
	stack            []string
	timer            *timer
	input            []byte        // of codemode.run: the saved script's input
	within           *wire.Failure // how the saved script failed
	answered, failed bool
}

// newRealm makes the part of a realm that is the same for every script. It does
// not ask the host anything.
func newRealm(h Host) *realm {
	vm := goja.New()
	// A script must not name a source map: goja would read that file.
	vm.SetParserOptions(parser.WithDisableSourceMaps)
	vm.SetMaxCallStackSize(maxCalls)
	r := &realm{
		Codec: values.New(vm, wire.MaxArgs, codemodeType), host: h,
		pending: make(map[int]*pending), thrown: make(thrown), callOf: make(map[*goja.Promise]*pending),
	}
	r.hints.Codec = r.Codec
	r.tools.r, r.timers.r, r.saved.outer = r, r, r
	r.Codec.StackOf = r.stackOf
	vm.SetPromiseRejectionTracker(r.trackRejection)
	r.world = web.New(r.Codec)
	return r
}

func (r *realm) load(n *Names, text string, input []byte) (analysis.Report, *wire.Failure) {
	r.tools.names, r.hints.names = n, n
	script, err := source.Read(text)
	if err != nil {
		return analysis.Report{}, syntaxFailure(err)
	}
	r.script, r.hints.script = script, script
	report := preview.Script(script.Program, script.At)
	script.RepairRegexps()
	script.RepairArguments()
	caught := script.RepairCaught()
	if r.program, err = script.Compile(); err != nil {
		return report, syntaxFailure(err)
	}
	r.input = input
	r.prepare()
	if caught {
		r.installCaught()
	}
	return report, nil
}

// matchesBound guards regexp2.DefaultMatchTimeout, which is the process's.
var matchesBound sync.Mutex

// BoundMatches bounds the wall time of each match of a regular expression that is compiled
// from now on, in any engine of this process. The engine takes a match that is cut short for
// no match, so that is for processes which must outlive their scripts, such as those of
// tests. Elsewhere a match is not bounded, and cannot be interrupted: ending the process ends it.
func BoundMatches(limit time.Duration) {
	matchesBound.Lock()
	defer matchesBound.Unlock()
	if regexp2.DefaultMatchTimeout != limit {
		regexp2.DefaultMatchTimeout = limit
	}
}

// prepare makes the part of the world that depends on the script and its run.
func (r *realm) prepare() {
	r.rand = rand.NewChaCha8(r.host.Seed())
	r.VM.SetRandSource(func() float64 { return float64(r.rand.Uint64()>>11) / (1 << 53) })
	r.VM.SetTimeSource(r.host.Now)
	r.world.Begin(r.script, worldHost{r})
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
	v, err := r.VM.RunProgram(r.program)
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
		r.saved.answer(number, reply, body)
		return
	}
	delete(r.pending, number)
	p.answered = true
	var err error
	switch {
	case p.timer != nil:
		err = r.timers.fire(p)
	case reply.Err != nil:
		p.failed = true
		err = p.reject(r.thrownError(p, reply.Err))
		r.discard(p)
	case p.op == wire.OpRun:
		err = r.saved.run(p, body)
	default:
		v, bad := r.replyValue(p, reply, body)
		if bad != nil {
			p.failed = true
			err = p.reject(r.thrownError(p, &wire.Thrown{Name: "ToolError", Message: p.label + " answered something that is no JSON: " + bad.Error()}))
		} else {
			err = p.resolve(v)
		}
		r.discard(p)
	}
	if err != nil {
		r.stop(err)
		return
	}
	r.look()
}

// discard forgets the promise of an answered call, so that its value can be
// collected as soon as the script has no more use for it.
func (r *realm) discard(p *pending) {
	delete(r.callOf, p.promise)
	p.promise, p.resolve, p.reject, p.input = nil, nil, nil, nil
}

// replyValue makes the value of an answer.
func (r *realm) replyValue(p *pending, reply wire.Reply, body []byte) (goja.Value, error) {
	if reply.Text {
		text := string(body)
		r.hints.remember(p.label, p.title(), nil, text)
		return r.VM.ToValue(text), nil
	}
	if len(body) == 0 {
		return goja.Undefined(), nil
	}
	v, err := r.Decode(string(body))
	if err == nil && p.op == wire.OpTool {
		r.hints.remember(p.label, p.title(), v, "")
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

// look checks whether the script has ended: its promise is settled, and so is every
// promise directly in its result, and every emit call made until then is answered.
// What a script emits belongs to its result, whether it awaited that or not.
func (r *realm) look() {
	if r.done || r.main == nil {
		return
	}
	if !r.resolved {
		if r.resolved = r.resolve(); r.done || !r.resolved {
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

// resolve reports whether the script has its result, or has failed.
func (r *realm) resolve() bool {
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

// forget removes a promise from the rejections that nobody handled.
func (r *realm) forget(p *goja.Promise) { r.trackRejection(p, goja.PromiseRejectionHandle) }

// promisesIn returns the promises directly in an array or object: a script
// that returns list.map(async ...) means their values.
func (r *realm) promisesIn(v goja.Value) (list []*goja.Promise) {
	obj, ok := v.(*goja.Object)
	if !ok || values.IsProxy(obj) {
		return nil
	}
	if p, ok := values.AsPromise(v); ok {
		return []*goja.Promise{p}
	}
	class := obj.ClassName()
	if class != "Array" && class != "Object" || obj.ExportType() == codemodeType {
		return nil
	}
	if err := r.Guard(func() {
		for i, key := range obj.Keys() {
			if i == maxPromises {
				break
			}
			if p, ok := values.AsPromise(r.DataProperty(obj, key)); ok {
				list = append(list, p)
			}
		}
	}); err != nil {
		r.stop(err)
	}
	return list
}

// maxPromises bounds how many elements of a result are searched for promises.
const maxPromises = 1000

func (r *realm) ended() bool { return r.done }

func (r *realm) deadlocked() {
	r.done = true
	r.failed = failText("Error", "the script waits for a promise that nothing will settle",
		"no call is open and no timer runs: look for a new Promise() whose resolve is never called, or an awaited value that never comes")
	if at := r.script.OnlyAwait(); at.Line > 0 {
		r.failed.Position, r.failed.Frame = at, r.script.Frame(at)
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
	if r.failed == nil && body == nil && r.script != nil && r.script.Uncalled != "" {
		name := r.script.Uncalled
		notes = append(notes, name+" was defined and never called: end with: return await "+name+"()")
	}
	if n := r.timers.note(); n != "" && r.failed == nil {
		notes = append(notes, n)
	}
	return body, notes, r.failed
}

func (r *realm) interrupt(reason *wire.Failure) {
	r.VM.Interrupt(&interruption{reason})
	r.saved.interrupt(reason)
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

// encodeResult converts what the script returned. It runs getters and toJSON
// of the script, so the deadline must be armed.
func (r *realm) encodeResult() ([]byte, error) {
	v := r.result
	if p, ok := values.AsPromise(v); ok {
		v = p.Result()
	}
	if obj, ok := v.(*goja.Object); ok && values.Callable(obj) {
		r.note("the script returned a function, which has no JSON form: call it, and return what it gives")
	}
	b, notes, err := r.EncodeNoted(v, "result", r.host.Limits().Result)
	for _, n := range notes {
		r.note(n)
	}
	return b, err
}

func (r *realm) note(s string) {
	if len(r.notes) < wire.MaxNotes/2 {
		r.notes = append(r.notes, s)
	}
}
