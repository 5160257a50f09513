package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"codemode-bridge/analysis"

	"github.com/google/go-cmp/cmp"
)

var when = time.Date(2026, 11, 21, 6, 0, 0, 123456789, time.UTC)

// samples holds a frame of each kind, full and empty.
var samples = []struct {
	kind   Kind
	header any
	body   string
}{
	{KindHello, Hello{Version: Version, Heap: 256 << 20}, ""},
	{KindReady, Ready{Version: Version, Hardening: map[string]string{"seccomp": "on", "landlock": "not <permitted>"}}, ""},
	{KindNames, Names{Revision: "r1", Servers: []string{"a", "b"}}, "a__x\x00b__y"},
	{KindNames, Names{}, ""},
	{KindRun, Run{ID: math.MaxUint64, Revision: "r1", InputSize: 2, Seed: [32]byte{1, 255}, Start: when,
		Limits: Limits{CPU: time.Second, Calls: 1, Parallel: 2, Logs: 3, Result: 4}}, "{}return 1"},
	{KindReply, Reply{Run: 1, Number: 2, Text: true, Time: when}, "text \xff\x00"},
	{KindReply, Reply{Run: 1, Number: 2, Time: when, Err: &Thrown{Name: "ToolError", Message: "a\u2028\U0001f600", Fields: json.RawMessage(`{"tool":"x","n":1e3}`)}}, ""},
	{KindPreview, Preview{Run: 1, Report: analysis.Report{Calls: []analysis.CallSite{{Name: "a__x", Position: analysis.Position{Line: 1, Column: 2}, Args: `{"a":1}`, Loop: true}}}}, ""},
	{KindCall, Call{Run: 1, Number: 1, Op: OpTool, Name: "a__x", Position: analysis.Position{Line: 3}}, `{"a":1}`},
	{KindIdle, Idle{Run: 1, Made: 2, Taken: 1}, ""},
	{KindLog, Log{Run: 1, Level: "warn", Text: "a <b>\n\x00 line"}, ""},
	{KindDone, Done{Run: 1, Calls: 2, CPU: time.Millisecond, LogsDropped: 3, Taken: 4, Notes: []string{"n"},
		Err: &Failure{Kind: FailureError, Name: "TypeError", Message: "no", Position: analysis.Position{Line: 1, Column: 1}, Frame: "1 | x\n    ^",
			Stack: []string{"f (1:2)"}, Cause: &Failure{Kind: FailureLimit, Name: LimitCPU}, Hint: "h", Call: 2, Fields: json.RawMessage(`{"a":{}}`)}}, ""},
	{KindDone, Done{}, `{"result":true}`},
}

// fresh returns a pointer to a new header of a kind.
func fresh(k Kind) any {
	return map[Kind]any{
		KindHello: new(Hello), KindReady: new(Ready), KindNames: new(Names), KindRun: new(Run), KindReply: new(Reply),
		KindPreview: new(Preview), KindCall: new(Call), KindIdle: new(Idle), KindLog: new(Log), KindDone: new(Done),
	}[k]
}

func encoded(t testing.TB, kind Kind, header any, body ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := New(nil, &b).Send(kind, header, body...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	var b bytes.Buffer
	w := New(nil, &b)
	for _, s := range samples {
		half := len(s.body) / 2
		if err := w.Write(s.kind, s.header, []byte(s.body[:half]), []byte(s.body[half:])); err != nil {
			t.Fatalf("%s: %v", s.kind, err)
		}
	}
	if b.Len() != 0 {
		t.Error("written before Flush")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r := New(iotest.OneByteReader(&b), nil)
	for _, s := range samples {
		f, err := r.Read()
		if err != nil {
			t.Fatalf("%s: %v", s.kind, err)
		}
		v := fresh(f.Kind)
		if err := f.Decode(v); err != nil {
			t.Fatal(err)
		}
		if f.Kind != s.kind || string(f.Body) != s.body {
			t.Errorf("got %s %q, want %s %q", f.Kind, f.Body, s.kind, s.body)
		}
		if diff := cmp.Diff(s.header, value(v), exactTimes); diff != "" {
			t.Errorf("the header of %s (-want +got):\n%s", s.kind, diff)
		}
	}
	if _, err := r.Read(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestHalfFrames(t *testing.T) {
	for _, s := range samples {
		whole := encoded(t, s.kind, s.header, []byte(s.body))
		for n := 1; n < len(whole); n++ {
			if _, err := New(bytes.NewReader(whole[:n]), nil).Read(); err != io.ErrUnexpectedEOF {
				t.Fatalf("%s cut at %d of %d: %v", s.kind, n, len(whole), err)
			}
		}
	}
}

func frame(kind Kind, header, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(header)+len(body)))
	b = append(b, byte(kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	return append(append(b, header...), body...)
}

func TestReadRefuses(t *testing.T) {
	for want, b := range map[string][]byte{
		"a length of 4 bytes":             {0, 0, 0, 4},
		"a length of 67108865 bytes":      {4, 0, 0, 1},
		"unknown kind 0":                  frame(0, "", ""),
		"unknown kind 200":                frame(200, "", ""),
		"a header longer than the frame":  {0, 0, 0, 5, byte(KindIdle), 0, 0, 0, 1},
		"a body where none belongs":       frame(KindIdle, string(forged(1, 0, 0)), "x"),
		"bad call frame: a body of 101 b": frame(KindCall, "", strings.Repeat("x", 101)),
		"bad log frame: a header of":      frame(KindLog, strings.Repeat(" ", 70<<10), ""),
	} {
		c := New(bytes.NewReader(b), nil)
		c.SetMaxBody(100)
		_, err := c.Read()
		var bad *FrameError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A length is only a claim: what is allocated follows what arrives.
func TestClaimedLengthIsNotAllocated(t *testing.T) {
	head := []byte{4, 0, 0, 0, byte(KindDone), 0, 0, 0, 0}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := New(bytes.NewReader(head), nil).Read(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*readStep {
		t.Errorf("%d bytes allocated for a frame that did not come", n)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16+1)
	f, err := New(bytes.NewReader(frame(KindDone, "", string(large))), nil).Read()
	if err != nil || !bytes.Equal(f.Body, large) {
		t.Errorf("%d bytes, %v", len(f.Body), err)
	}
}

// forged returns a header of parts: numbers, texts, and bytes as they are.
func forged(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.AppendUvarint(b, uint64(p))
		case uint64:
			b = binary.AppendUvarint(b, p)
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func TestDecodeRefuses(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	failure := forged(0, "", "", 0, 0, "", 0, "", 0, "") // up to whether there is a cause
	for _, row := range []struct {
		kind   Kind
		header []byte
		want   string
	}{
		{KindIdle, nil, "ends too early"},
		{KindIdle, forged(1, 0), "ends too early"},
		{KindIdle, forged(1, 0, 0, 0), "1 bytes after the header's end"},
		{KindIdle, []byte{1, 0x80, 0, 0}, "not in its shortest form"},
		{KindIdle, append(bytes.Repeat([]byte{0xff}, 9), 2, 0, 0), "not in its shortest form"},
		{KindIdle, append(bytes.Repeat([]byte{0xff}, 12), 0, 0), "not in its shortest form"},
		{KindIdle, forged(1, uint64(math.MaxUint64), 0), "a count of calls of 18446744073709551615"},
		{KindIdle, forged(1, 1, 2), "a count of answers of 2"},
		{KindCall, forged(1, 0, 0, "a__x", 0, 0), "a call number of 0"},
		{KindCall, forged(1, 1, len(ops), "a__x", 0, 0), "an unknown operation 8"},
		{KindCall, forged(1, 1, 0, long, 0, 0), "a name of 513 bytes"},
		{KindCall, forged(1, 1, 0, "a\xff", 0, 0), "a name that is not UTF-8"},
		{KindCall, forged(1, 1, 0, 5, []byte("a__")), "ends too early"},
		{KindCall, forged(1, 1, 0, "a__x", uint64(math.MaxInt64+1), 0), "a line of"},
		{KindLog, forged(1, len(levels), ""), "an unknown log level 5"},
		{KindLog, forged(1, 0, strings.Repeat("x", MaxText+1)), "a log line of 65537 bytes"},
		{KindLog, forged(1, 0, "\xed\xa0\x80"), "a log line that is not UTF-8"},
		{KindDone, forged(1, uint64(math.MaxUint64), 0, 0, 0, 0, 0), "a count of calls of"},
		{KindDone, forged(1, 0, uint64(math.MaxUint64), 0, 0, 0, 0), "a processor time of"},
		{KindDone, forged(1, 0, 0, 0, 0, 0, 2), "a flag of 2"},
		{KindDone, forged(1, 0, 0, 0, 0, MaxNotes+1), "33 notes"},
		{KindDone, forged(1, 0, 0, 0, 0, MaxNotes), "ends too early"},
		{KindDone, forged(1, 0, 0, 0, 0, 0, 1, 2), "an unknown kind of failure 2"},
		{KindDone, forged(1, 0, 0, 0, 0, 0, 1, 0, "", "", 0, 0, "", 0, "", 0, "[]", 0), "error fields that are no object"},
		{KindDone, forged(1, 0, 0, 0, 0, 0, 1, 0, "", "", 0, 0, "", 0, "", 0, "{", 0), "error fields that is not JSON"},
		{KindDone, forged(1, 0, 0, 0, 0, 0, 1, 0, "", "", 0, 0, "", MaxStack+1), "65 stack lines"},
		{KindDone, forged(1, 0, 0, 0, 0, 0, 1, bytes.Repeat(append(failure, 1), MaxCauses), failure, 0), "a chain of causes"},
		{KindPreview, forged(1, 0, 1, 0), "a count of unknown call sites of 1"},
		{KindPreview, forged(1, MaxSites+1), "1001 call sites"},
		{KindReady, forged(1, 2, "b", "", "a", ""), "out of order"},
		{KindReady, forged(1, 2, "a", "", "a", ""), "out of order"},
		{KindReady, forged(1, 1, "a", long), "the state of a hardening step of 513 bytes"},
		{KindReady, forged(1, maxSteps+1), "65 hardening steps"},
		{KindReply, forged(1, 1, 0, 0, 1_000_000_000, 0), "a time out of range"},
		{KindReply, forged(1, 1, 0, 1<<40, 0, 0), "a time out of range"},
	} {
		var bad *FrameError
		err := Frame{Kind: row.kind, Header: row.header}.Decode(fresh(row.kind))
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %.100q: got %v, want %s", row.kind, row.header, err, row.want)
		}
	}
	var bad *FrameError
	if _, err := Decode[Call](Frame{Kind: KindIdle, Header: forged(1, 0, 0)}); !errors.As(err, &bad) {
		t.Errorf("an idle frame taken for a call: %v", err)
	}
}

// Of each header there is one form: what differs in one bit, lacks an end or
// has one too many is refused, or says something else.
func TestOneForm(t *testing.T) {
	for _, s := range samples {
		f, err := New(bytes.NewReader(encoded(t, s.kind, s.header, []byte(s.body))), nil).Read()
		if err != nil {
			t.Fatal(err)
		}
		for n := range f.Header {
			if (Frame{Kind: f.Kind, Header: f.Header[:n]}).Decode(fresh(f.Kind)) == nil {
				t.Errorf("%s: taken when cut at %d of %d", s.kind, n, len(f.Header))
			}
		}
		if (Frame{Kind: f.Kind, Header: append(bytes.Clone(f.Header), 0)}).Decode(fresh(f.Kind)) == nil {
			t.Errorf("%s: taken with a byte too many", s.kind)
		}
		for bit := range 8 * len(f.Header) {
			b := bytes.Clone(f.Header)
			b[bit/8] ^= 1 << (bit % 8)
			v := fresh(f.Kind)
			if (Frame{Kind: f.Kind, Header: b}).Decode(v) != nil {
				continue
			}
			if again := encoded(t, f.Kind, value(v), f.Body); !bytes.Equal(again, frame(f.Kind, string(b), s.body)) {
				t.Errorf("%s: %q is read as %+v, which is written as %q", s.kind, b, v, again)
			}
		}
	}
}

// exactTimes tells apart times of one moment that are in different zones.
var exactTimes = cmp.Comparer(func(a, b time.Time) bool { return a == b })

// value is the struct that v points at.
func value(v any) any { return reflect.ValueOf(v).Elem().Interface() }

// Whatever texts a script makes, the frames with them can be read.
func TestTextsAreCut(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("x", 100<<10), strings.Repeat("\x00", 100<<10), strings.Repeat("ä", 100<<10), strings.Repeat("\xff", 100<<10), strings.Repeat("<\u2028", 100<<10), "\xff", "a\xf0\x9f",
	} {
		failure := &Failure{Fields: json.RawMessage(`{"a":"` + strings.Repeat("<", MaxFields) + `"}`)}
		for range MaxCauses + 1 {
			failure = &Failure{Kind: FailureError, Name: text, Message: text, Frame: text, Hint: text, Cause: failure,
				Stack: append(make([]string, MaxStack-1), text, "more"), Fields: json.RawMessage(`{"a":"<"}`)}
		}
		notes := make([]string, MaxNotes+1)
		sites := make([]analysis.CallSite, MaxSites+1)
		for i := range notes {
			notes[i] = text
		}
		for i := range sites {
			sites[i] = analysis.CallSite{Args: text[:min(len(text), 100)]}
		}
		for _, s := range []struct {
			kind   Kind
			header any
		}{
			{KindLog, Log{Level: "log", Text: text}},
			{KindDone, Done{Notes: notes, Err: failure}},
			{KindPreview, Preview{Report: analysis.Report{Calls: sites, Unknown: MaxSites + 1}}},
			{KindReply, Reply{Number: 1, Time: when, Err: &Thrown{Name: text, Message: text}}},
		} {
			f, err := New(bytes.NewReader(encoded(t, s.kind, s.header)), nil).Read()
			if err == nil {
				err = f.Decode(fresh(s.kind))
			}
			if err != nil {
				t.Errorf("%s of %.10q: %v", s.kind, text, err)
			}
		}
		if failure.Message != text || notes[0] != text {
			t.Error("the caller's own texts were changed")
		}
	}
	if got := clipText("ääää", 6); got != "ä…" {
		t.Errorf("cut to %q", got)
	}
}

func TestWriteRefuses(t *testing.T) {
	c := New(nil, io.Discard)
	for _, err := range []error{
		c.Write(0, Idle{}),
		c.Write(99, Idle{}),
		c.Write(KindCall, Idle{}),
		c.Write(KindIdle, &Idle{}),
		c.Write(KindIdle, Idle{Made: -1, Taken: -1}),
		c.Write(KindIdle, Idle{Made: 1, Taken: 2}),
		c.Write(KindCall, Call{Number: 1, Op: "fork"}),
		c.Write(KindDone, Done{CPU: -1}),
		c.Write(KindCall, Call{Number: 1, Op: OpTool, Name: strings.Repeat("x", MaxName+1)}),
		c.Write(KindReply, Reply{Number: 1, Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}),
		c.Write(KindReply, Reply{Number: 1, Err: &Thrown{Fields: json.RawMessage("{")}}),
		c.Write(KindDone, Done{}, make([]byte, MaxFrame)),
	} {
		var bad *FrameError
		if !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
	}
}

// Frames of several writers come out whole.
func TestWritersAtOnce(t *testing.T) {
	r, w := io.Pipe()
	out := New(nil, w)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				out.Send(KindCall, Call{Run: uint64(i), Number: 1, Op: OpTool}, bytes.Repeat([]byte{byte(i)}, 10_000*i))
			}
		})
	}
	go func() { all.Wait(); w.Close() }()
	in, n := New(r, nil), 0
	for {
		f, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := Decode[Call](f)
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Repeat([]byte{byte(c.Run)}, 10_000*int(c.Run)); !bytes.Equal(f.Body, want) {
			t.Fatal("a body of another frame")
		}
		n++
	}
	if n != 8*50 {
		t.Errorf("%d frames", n)
	}
}

// What can be read and decoded is written as the same bytes again.
func FuzzRead(f *testing.F) {
	for _, s := range samples {
		f.Add(encoded(f, s.kind, s.header, []byte(s.body)))
	}
	f.Add([]byte{0, 0, 0, 5, byte(KindIdle), 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		in, w := New(bytes.NewReader(b), nil), New(nil, &out)
		in.SetMaxBody(1 << 20)
		used := 0
		for {
			frame, err := in.Read()
			if err != nil {
				return
			}
			v := fresh(frame.Kind)
			if frame.Decode(v) != nil {
				return
			}
			n := 4 + prelude + len(frame.Header) + len(frame.Body)
			if err := w.Send(frame.Kind, value(v), frame.Body); err != nil {
				t.Fatalf("%s frame that was read cannot be written: %v", frame.Kind, err)
			}
			if used += n; !bytes.Equal(out.Bytes(), b[:used]) {
				t.Fatalf("read   %q\nwritten %q", b[used-n:used], out.Bytes()[used-n:])
			}
		}
	})
}

// What was written can be read, and means the same, whatever the texts are.
func FuzzTexts(f *testing.F) {
	f.Add("name", "message", `{"a":1}`, int64(5), 3)
	f.Add("\xff", "\xed\xa0\x80", "\x00", int64(-1), -1)
	f.Add("…", `\ufffd`, "<&>\u2028", int64(math.MaxInt64), math.MaxInt)
	f.Fuzz(func(t *testing.T, name, message, body string, n int64, m int) {
		for _, s := range []struct {
			kind   Kind
			header any
		}{
			{KindCall, Call{Number: m, Op: OpRaw, Name: name, Position: analysis.Position{Line: m}}},
			{KindLog, Log{Level: "info", Text: message}},
			{KindReply, Reply{Number: m, Time: time.Unix(n%1e9, n).UTC(), Err: &Thrown{Name: name, Message: message}}},
			{KindDone, Done{Calls: m, CPU: time.Duration(n), Err: &Failure{Kind: FailureError, Name: name, Message: message, Stack: []string{message, name}}}},
		} {
			var b bytes.Buffer
			if err := New(nil, &b).Send(s.kind, s.header, []byte(body)); err != nil {
				continue // refused when written
			}
			if s.kind == KindLog && body != "" {
				continue
			}
			frame, err := New(&b, nil).Read()
			if err != nil {
				t.Fatal(err)
			}
			v := fresh(s.kind)
			if err := frame.Decode(v); err != nil {
				t.Fatalf("%q: %v", frame.Header, err)
			}
			if plain(name) && plain(message) && len(name) <= MaxName && len(message) <= 2*MaxName {
				if diff := cmp.Diff(s.header, value(v), exactTimes); diff != "" {
					t.Fatalf("what came back (-want +got):\n%s", diff)
				}
			}
			if string(frame.Body) != body {
				t.Fatalf("body %q, want %q", frame.Body, body)
			}
		}
	})
}

func plain(s string) bool { return strings.ToValidUTF8(s, "") == s }

func BenchmarkCall(b *testing.B) {
	r, w := io.Pipe()
	out, in := New(nil, w), New(r, nil)
	defer r.Close()
	go func() {
		for n := 1; out.Send(KindCall, Call{Run: 1, Number: n, Op: OpTool, Name: "github__list_issues"}, []byte(`{"owner":"o"}`)) == nil; n++ {
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		f, err := in.Read()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Decode[Call](f); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleConn() {
	r, w := io.Pipe()
	go New(nil, w).Send(KindCall, Call{Run: 1, Number: 1, Op: OpTool, Name: "time__now"}, []byte(`{}`))

	frame, _ := New(r, nil).Read()
	call, _ := Decode[Call](frame)
	fmt.Println(frame.Kind, call.Name, string(frame.Body))
	// Output: call time__now {}
}
