package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What the SDK gets from the connection and writes to it are the messages of the pipes.
func TestConn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	in, feed := io.Pipe()
	c, err := NewStdio(in, noClose{&out}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go io.WriteString(feed, "no JSON\n"+
		`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	m, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request, ok := m.(*jsonrpc.Request)
	if !ok || request.Method != "initialize" || request.ID.Raw() != int64(7) {
		t.Fatalf("read %#v", m)
	}
	if !strings.Contains(out.String(), "parse error") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("what is no message is answered %q", out.String())
	}
	text, _ := jsonrpc.MakeID("seven")
	for _, m := range []jsonrpc.Message{
		&jsonrpc.Response{ID: request.ID, Result: json.RawMessage(`{"a":"<\u2028>"}`)},
		&jsonrpc.Response{ID: request.ID, Result: json.RawMessage("{\n}")},
		&jsonrpc.Response{ID: request.ID},
		&jsonrpc.Response{ID: text, Result: json.RawMessage(`{}`)},
		&jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{Code: -1, Message: "no"}},
		&jsonrpc.Request{ID: request.ID, Method: "elicitation/create", Params: json.RawMessage(`{}`)},
	} {
		out.Reset()
		if err := c.Write(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != string(want)+"\n" {
			t.Errorf("wrote %s, the SDK %s", got, want)
		}
	}

	// Nothing comes any more: closing ends the SDK's reading all the same.
	read := make(chan error)
	go func() { _, err := c.Read(context.Background()); read <- err }()
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("closed, reading ends with %v", err)
	}
}

// The SDK's decoder takes a buffer of 32 KB each time. A call is read without it.
func TestConnReadsCheaply(t *testing.T) {
	const messages = 200
	lines := call + strings.Repeat(call, messages)
	s := NewStdio(strings.NewReader(lines), noClose{io.Discard})
	s.began = true
	c, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func() {
		if _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range messages {
		read()
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / messages; per > 16<<10 {
		t.Errorf("a message of %d bytes takes %d bytes of memory", len(call), per)
	}
}

const call = `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 1"}}}` + "\n"

// BenchmarkMessage reads a client's call of a tool and writes the answer, as the SDK
// does with the connection.
func BenchmarkMessage(b *testing.B) {
	in, feed := io.Pipe()
	defer in.Close()
	s := NewStdio(in, noClose{io.Discard})
	s.began = true
	c, err := s.Connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			if _, err := io.WriteString(feed, call); err != nil {
				return
			}
		}
	}()
	result := json.RawMessage(`{"content":[{"type":"text","text":"{\"result\":1,\"run\":\"r\"}"}],"structuredContent":{"result":1,"run":"r"}}`)
	b.ReportAllocs()
	for b.Loop() {
		m, err := c.Read(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Write(b.Context(), &jsonrpc.Response{ID: m.(*jsonrpc.Request).ID, Result: result}); err != nil {
			b.Fatal(err)
		}
	}
}
