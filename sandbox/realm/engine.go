package realm

import (
	"fmt"
	"runtime"
	"strings"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// An Engine runs one script. It is used by one goroutine, except for Interrupt,
// which any may call at any time. Begin and Answer return when only another
// answer can move the script on, or when it has ended.
//
// An Engine keeps a panic of goja from ending the process: one because of a limit
// that was passed while the realm was prepared, or because of a defect that a
// script has found. The run ends with an error, and so does the Engine, whose state
// can't be trusted any more; the next run has its own.
type Engine struct {
	engine engine
	broken *wire.Failure
}

// An engine is what an Engine guards: see its methods, which have the same
// names.
type engine interface {
	load(names *Names, text string, input []byte) (analysis.Report, *wire.Failure)
	begin()
	answer(number int, r wire.Reply, body []byte)
	ended() bool
	deadlocked()
	finish() (result []byte, notes []string, fail *wire.Failure)
	interrupt(reason *wire.Failure)
}

// New returns an engine. It prepares what is the same for every script, and does
// not ask the host before Load.
func New(h Host) *Engine { return &Engine{engine: newRealm(h)} }

// Load reads the script, which may name tools by names, and its input (nil for
// none); nothing runs yet. The Failure says why it cannot be run.
func (e *Engine) Load(names *Names, text string, input []byte) (report analysis.Report, fail *wire.Failure) {
	e.survive(func() { report, fail = e.engine.load(names, text, input) })
	if e.broken != nil {
		return analysis.Report{}, e.broken
	}
	return report, fail
}

// Begin starts the script.
func (e *Engine) Begin() { e.survive(e.engine.begin) }

// Answer resolves or rejects the promise of a call and runs what waited for it.
// The reply's body is the engine's to keep.
func (e *Engine) Answer(number int, r wire.Reply, body []byte) {
	e.survive(func() { e.engine.answer(number, r, body) })
}

// Ended reports whether the script has returned or thrown.
func (e *Engine) Ended() bool { return e.broken != nil || e.engine.ended() }

// Deadlocked ends a script that waits although no call is open.
func (e *Engine) Deadlocked() { e.survive(e.engine.deadlocked) }

// Finish returns the result as JSON (nil for undefined), or how the script
// failed, and notes for whoever wrote it. It may run code of the script.
func (e *Engine) Finish() (result []byte, notes []string, fail *wire.Failure) {
	if e.broken == nil {
		e.survive(func() { result, notes, fail = e.engine.finish() })
	}
	if e.broken != nil {
		return nil, nil, e.broken
	}
	return result, notes, fail
}

// Interrupt makes the script stop soon; Finish then reports the reason.
func (e *Engine) Interrupt(reason *wire.Failure) { e.engine.interrupt(reason) }

func (e *Engine) survive(f func()) {
	defer func() {
		if x := recover(); x != nil {
			e.broken = defect(x)
		}
	}()
	f()
}

// defect reports a panic. A limit is not a defect, and neither is a slice too long
// to exist: that is memory that the script asked for.
func defect(x any) *wire.Failure {
	if err, ok := x.(error); ok {
		if limit := limitOf(err); limit != nil {
			return limit
		}
	}
	text := "an unknown error"
	if err, ok := x.(runtime.Error); ok { // other texts may be the script's
		text = strings.TrimPrefix(err.Error(), "runtime error: ")
	}
	if strings.HasPrefix(text, "makeslice: ") || strings.HasPrefix(text, "growslice: ") {
		return &wire.Failure{Kind: wire.FailureLimit, Name: wire.LimitMemory, Message: "the script asked for more memory than there can be"}
	}
	return failText("InternalError", fmt.Sprintf("the script engine failed at this script (%s)", text),
		"this is a defect of the engine, not of the script: write it in another, plainer way (where an arrow function uses the `arguments` of the function around it, name them: ...args)")
}
