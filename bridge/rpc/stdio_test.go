package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noClose is an output that nothing needs to close.
type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// What the SDK could not read is answered here, and does not reach it.
func TestStdioLetsThroughWhatCanBeRead(t *testing.T) {
	var answers bytes.Buffer
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, // before initialize
		`not JSON`,
		`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		``,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`,
	}, "\n")
	through, err := io.ReadAll(NewStdio(strings.NewReader(in), noClose{&answers}))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(through)), "\n"); len(lines) != 2 || !strings.Contains(lines[0], `"initialize"`) || !strings.Contains(lines[1], `"ping"`) {
		t.Errorf("let through:\n%s", through)
	}
	refused := strings.Split(strings.TrimSpace(answers.String()), "\n")
	if len(refused) != 2 || !strings.Contains(refused[0], "initialize comes first") || !strings.Contains(refused[1], "parse error") {
		t.Errorf("answered:\n%s", answers.String())
	}
}

// The answers to a batch leave together, where the protocol has batches.
func TestStdioAnswersABatchAtOnce(t *testing.T) {
	var out bytes.Buffer
	in, feed := io.Pipe()
	s := NewStdio(in, noClose{&out})
	message := make([]byte, 4<<10)
	next := func(line string) string {
		t.Helper()
		if line != "" {
			go io.WriteString(feed, line+"\n")
		}
		n, err := s.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}
	next(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	io.WriteString(s, `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-03-26"}}`+"\n")
	out.Reset()
	if first := next(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`); !strings.Contains(first, `"id":1`) {
		t.Errorf("first comes %s", first)
	}
	if second := next(""); !strings.Contains(second, `"id":2`) {
		t.Errorf("then comes %s", second)
	}
	io.WriteString(s, `{"jsonrpc":"2.0","id":2,"result":{}}`+"\n")
	if out.Len() > 0 {
		t.Errorf("half a batch is answered: %s", out.String())
	}
	io.WriteString(s, `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
	if got := strings.TrimSpace(out.String()); got != `[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]` {
		t.Errorf("answered %s", got)
	}
}

// heard writes down what a Watch is told.
type heard struct{ told []string }

func (h *heard) Asked(ids []json.RawMessage) { h.told = append(h.told, fmt.Sprintf("asked %s", ids)) }
func (h *heard) Answered(key string)         { h.told = append(h.told, "answered "+key) }

// A Watch hears of what is let through and of answers that were written, of a batch once;
// not of what was refused, of notifications, or of requests to the client.
func TestStdioIsWatched(t *testing.T) {
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":0,"method":"tools/list"}`, // before initialize
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"\u0061","method":"ping"}`,
		`{"jsonrpc":"2.0","id":9,"result":{}}`, // of the client's
		`[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":"four","method":"ping"}]`,
		``,
	}, "\n")
	var h heard
	s := NewStdio(strings.NewReader(in), noClose{io.Discard})
	s.Watch(&h)
	message := make([]byte, 4<<10)
	if _, err := s.Read(message); err != nil {
		t.Fatal(err)
	}
	io.WriteString(s, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}`+"\n")
	if _, err := io.Copy(io.Discard, s); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"text":",\"result\":"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"id":1,"result":{}}}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":"2.0","id":"a","result":{"id":7,"result":1}}`,
		`{"id":"four","jsonrpc":"2.0","error":{"code":1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":"never asked","error":{"code":1,"message":",\"result\":"}}`,
	} {
		if _, err := io.WriteString(s, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"asked [1]", "answered 1", `asked ["\u0061"]`, `asked [3 "four"]`, `answered "a"`, "answered 3", `answered "never asked"`}
	if diff := cmp.Diff(want, h.told); diff != "" {
		t.Error(diff)
	}
}
