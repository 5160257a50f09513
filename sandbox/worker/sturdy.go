package worker

import (
	"fmt"
	"runtime"
	"strings"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// sturdy keeps the process when an engine panics: because of a limit that was
// passed while it was made ready, or a defect of it that some script has found.
// The run ends with an error, and the engine with it: its state is not to be
// trusted, and the next run has its own.
type sturdy struct {
	engine
	broken *wire.Failure
}

func (s *sturdy) load(names *names, source string, input []byte) (report analysis.Report, fail *wire.Failure) {
	s.survive(func() { report, fail = s.engine.load(names, source, input) })
	if s.broken != nil {
		return analysis.Report{}, s.broken
	}
	return report, fail
}

func (s *sturdy) begin() { s.survive(s.engine.begin) }

func (s *sturdy) answer(number int, r wire.Reply, body []byte) {
	s.survive(func() { s.engine.answer(number, r, body) })
}

func (s *sturdy) ended() bool { return s.broken != nil || s.engine.ended() }

func (s *sturdy) stuck() { s.survive(s.engine.stuck) }

func (s *sturdy) finish() (result []byte, notes []string, fail *wire.Failure) {
	if s.broken == nil {
		s.survive(func() { result, notes, fail = s.engine.finish() })
	}
	if s.broken != nil {
		return nil, nil, s.broken
	}
	return result, notes, fail
}

func (s *sturdy) survive(f func()) {
	defer func() {
		if x := recover(); x != nil {
			s.broken = defect(x)
		}
	}()
	f()
}

// defect reports a panic. A limit is no defect, nor is a list longer than there
// can be, which is memory that the script asked for.
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
