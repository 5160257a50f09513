package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codemode-bridge/analysis"
)

// anyHeader draws a header of any kind with anything in it that may be there.
func anyHeader(t *rapid.T) any {
	count := func(what string) int { return rapid.IntRange(0, math.MaxInt).Draw(t, what) }
	size := func(what string) int64 { return rapid.Int64Range(0, math.MaxInt64).Draw(t, what) }
	text := func(what string) string { return rapid.StringN(-1, -1, MaxName).Draw(t, what) }
	flag := func(what string) bool { return rapid.Bool().Draw(t, what) }
	texts := func(what string, most int) []string {
		if s := rapid.SliceOfN(rapid.StringN(-1, 20, -1), 0, most).Draw(t, what); len(s) > 0 {
			return s
		}
		return nil
	}
	object := func() json.RawMessage {
		return rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"a": "<\u00e9"}`)}).Draw(t, "object")
	}
	position := func() analysis.Position { return analysis.Position{Line: count("line"), Column: count("column")} }
	moment := func() time.Time {
		return time.Unix(rapid.Int64Range(firstSecond, lastSecond).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nano")).UTC()
	}
	run := rapid.Uint64().Draw(t, "run")
	switch rapid.SampledFrom([]Kind{KindHello, KindReady, KindNames, KindRun, KindReply, KindPreview, KindCall, KindIdle, KindLog, KindDone}).Draw(t, "kind") {
	case KindHello:
		return Hello{Version: count("version"), Heap: size("heap")}
	case KindReady:
		h := Ready{Version: count("version")}
		for _, step := range texts("steps", maxSteps) {
			if h.Hardening == nil {
				h.Hardening = make(map[string]string)
			}
			h.Hardening[step] = text("state")
		}
		return h
	case KindNames:
		return Names{Revision: text("revision"), Servers: texts("servers", 100)}
	case KindRun:
		h := Run{ID: run, Revision: text("revision"), InputSize: rapid.IntRange(0, MaxFrame).Draw(t, "input"), Start: moment(), Limits: Limits{
			CPU: time.Duration(size("cpu")), Calls: count("calls"), Parallel: count("parallel"), Logs: size("logs"), Result: size("result")}}
		copy(h.Seed[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed"))
		return h
	case KindReply:
		h := Reply{Run: run, Number: max(1, count("number")), Text: flag("text"), Time: moment()}
		if flag("throws") {
			h.Err = &Thrown{Name: text("name"), Message: text("message"), Fields: object()}
		}
		return h
	case KindPreview:
		h := Preview{Run: run, Report: analysis.Report{Truncated: flag("truncated")}}
		for range rapid.IntRange(0, 20).Draw(t, "sites") {
			h.Report.Calls = append(h.Report.Calls, analysis.CallSite{Name: text("name"), Position: position(), Args: text("args"), Loop: flag("loop"), Branch: flag("branch")})
		}
		h.Report.Unknown = rapid.IntRange(0, len(h.Report.Calls)).Draw(t, "unknown")
		return h
	case KindCall:
		return Call{Run: run, Number: max(1, count("number")), Op: rapid.SampledFrom(ops).Draw(t, "op"), Name: text("name"), Position: position()}
	case KindIdle:
		made := count("made")
		return Idle{Run: run, Made: made, Taken: rapid.IntRange(0, made).Draw(t, "taken")}
	case KindLog:
		return Log{Run: run, Level: rapid.SampledFrom(levels).Draw(t, "level"), Text: text("text")}
	}
	h := Done{Run: run, Calls: count("calls"), CPU: time.Duration(size("cpu")), LogsDropped: count("dropped"), Notes: texts("notes", MaxNotes)}
	for range rapid.IntRange(0, MaxCauses).Draw(t, "causes") {
		h.Err = &Failure{Kind: rapid.SampledFrom([]string{FailureError, FailureLimit}).Draw(t, "kind"), Name: text("name"), Message: text("message"),
			Position: position(), Frame: text("frame"), Stack: texts("stack", MaxStack), Cause: h.Err, Hint: text("hint"), Call: count("call"), Fields: object()}
	}
	return h
}

// What is written is read as what it was, and written again as the same bytes.
func TestHeadersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHeader(t)
		kind := headerOf(h).kind()
		var b bytes.Buffer
		if err := New(nil, &b).Send(kind, h); err != nil {
			t.Fatal(err)
		}
		first := bytes.Clone(b.Bytes())
		f, err := New(&b, nil).Read()
		if err != nil {
			t.Fatal(err)
		}
		v := fresh(kind)
		if err := f.Decode(v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, value(v), exactTimes); diff != "" {
			t.Fatalf("what came back (-want +got):\n%s", diff)
		}
		b.Reset()
		if err := New(nil, &b).Send(kind, value(v)); err != nil || !bytes.Equal(b.Bytes(), first) {
			t.Fatalf("written again as %q, %v; first as %q", b.Bytes(), err, first)
		}
	})
}
