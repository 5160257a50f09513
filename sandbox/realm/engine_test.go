package realm

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dop251/goja"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/wire"
)

// A brittle engine does one thing at the step that is its name.
type brittle struct {
	engine
	step string
	do   func()
}

func (b *brittle) at(step string) {
	if step == b.step {
		b.do()
	}
}

func (b *brittle) load(*Names, string, []byte) (analysis.Report, *wire.Failure) {
	b.at("load")
	return analysis.Report{Unknown: 1}, nil
}
func (b *brittle) begin()                         { b.at("begin") }
func (b *brittle) answer(int, wire.Reply, []byte) { b.at("answer") }
func (b *brittle) ended() bool                    { return false }
func (b *brittle) deadlocked()                    { b.at("deadlocked") }
func (b *brittle) finish() ([]byte, []string, *wire.Failure) {
	b.at("finish")
	return []byte("1"), []string{"a note"}, nil
}

// A panic at any step is the run's failure, and the engine is not used after it.
func TestEngineBreaks(t *testing.T) {
	var list []int
	for _, step := range []string{"load", "begin", "answer", "deadlocked", "finish", "none"} {
		e := &Engine{engine: &brittle{step: step, do: func() { _ = list[17] }}}
		report, fail := e.Load(nil, "", nil)
		if broken := step == "load"; (fail != nil) != broken || (report.Unknown == 0) != broken {
			t.Errorf("%s: load gives %+v, %+v", step, report, fail)
		}
		e.Begin()
		e.Answer(1, wire.Reply{}, nil)
		e.Deadlocked()
		if step != "finish" && step != "none" && !e.Ended() {
			t.Errorf("%s: a broken engine goes on", step)
		}
		result, notes, fail := e.Finish()
		if step == "none" {
			if string(result) != "1" || len(notes) != 1 || fail != nil {
				t.Errorf("a whole engine: %s, %q, %+v", result, notes, fail)
			}
			continue
		}
		want := "the script engine failed at this script (index out of range [17] with length 0)"
		if result != nil || notes != nil {
			t.Errorf("%s: %s, %q", step, result, notes)
		}
		if diff := cmp.Diff(&wire.Failure{Kind: wire.FailureError, Name: "InternalError", Message: want}, fail, cmpopts.IgnoreFields(wire.Failure{}, "Hint")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
}

func TestDefect(t *testing.T) {
	if f := defect(errors.New("what the script wrote")); f.Message != "the script engine failed at this script (an unknown error)" {
		t.Errorf("%+v", f)
	}
	vm, limit := goja.New(), &wire.Failure{Kind: wire.FailureLimit, Name: wire.LimitCPU}
	vm.Interrupt(&interruption{limit})
	if _, err := vm.RunString("1"); defect(fmt.Errorf("prelude: %w", err)) != limit {
		t.Errorf("a limit is called a defect: %v", err)
	}
	size := -1
	e := &Engine{engine: &brittle{step: "begin", do: func() { _ = make([]int, size) }}}
	e.Begin()
	if _, _, f := e.Finish(); f == nil || f.Kind != wire.FailureLimit || f.Name != wire.LimitMemory {
		t.Errorf("%+v", f)
	}
}
