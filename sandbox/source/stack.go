package source

import (
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/values"
)

// MaxFrames bounds the stack of a call or error.
const MaxFrames = 10

// Trace returns the innermost place in the script of a stack of the engine, and the
// stack's lines.
func (s *Script) Trace(frames []goja.StackFrame) (at analysis.Position, stack []string) {
	for i := range frames {
		f := &frames[i]
		if f.SrcName() != values.ScriptName {
			continue // native code, or our own prelude
		}
		g := f.Position()
		p := s.place(g.Line, g.Column)
		if p.Line == 0 {
			continue
		}
		if at.Line == 0 {
			at = p
		}
		if len(stack) < MaxFrames {
			stack = append(stack, stackLine(f.FuncName(), p))
		}
	}
	return at, stack
}

func stackLine(name string, p analysis.Position) string {
	if name == "" || name == "<anonymous>" {
		name = "script"
	}
	return values.Cut(name, 100) + " " + PlaceText(p)
}

// PlaceText writes a position as in the lines of a stack: (3:15).
func PlaceText(p analysis.Position) string {
	return "(" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + ")"
}

// stackEntry matches one line of the stack property that goja writes:
//
//	at name (script:3:15(22))
//	at script:3:15(22)
var stackEntry = Pattern(`(?m)^\tat (?:(.*) \()?` + values.ScriptName + `:(\d{1,9}):(\d{1,9})\(\d+\)\)?$`)

// ParseStack reads positions from an error's stack property. A script may
// have put anything there; what does not look right is left out.
func (s *Script) ParseStack(text string) (at analysis.Position, lines []string) {
	text = text[max(0, len(text)-(32<<10)):]
	for _, m := range stackEntry().FindAllStringSubmatch(text, MaxFrames) {
		line, _ := strconv.Atoi(m[2])
		column, _ := strconv.Atoi(m[3])
		p := s.place(line, column)
		if p.Line == 0 {
			continue
		}
		if at.Line == 0 {
			at = p
		}
		lines = append(lines, stackLine(m[1], p))
		// The constructor of an error class is not where the error arose.
		if rest := s.From(p); len(lines) == 1 && (strings.HasPrefix(rest, "constructor") || strings.HasPrefix(rest, "super(")) {
			at, lines = analysis.Position{}, nil
		}
	}
	return at, lines
}
