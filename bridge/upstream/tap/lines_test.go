package tap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A peerEnd is a Lines over pipes, and the server's ends of them.
type peerEnd struct {
	*Lines
	requests *bufio.Reader
	answers  *os.File
}

func pipedConn(t *testing.T) *peerEnd {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	below := New(Options{Server: "x", Limit: 16 << 20})
	c := &peerEnd{NewLines(below, out, in, 0), bufio.NewReader(theirIn), theirOut}
	t.Cleanup(func() {
		c.Close()
		theirIn.Close()
		theirOut.Close()
		out.Close()
		c.Wait()
	})
	return c
}

func toolCall(t *testing.T, n int, pad string) *jsonrpc.Request {
	t.Helper()
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`"` + pad + `"`)}
}

// answer answers a call as the server.
func (c *peerEnd) answer(t *testing.T, n int) {
	t.Helper()
	if _, err := fmt.Fprintf(c.answers, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", n); err != nil {
		t.Fatal(err)
	}
}

// The answers come in order, and a read ends with the connection, whoever reads.
func TestLineConnReads(t *testing.T) {
	c := pipedConn(t)
	for n := range 5 {
		if err := c.Write(t.Context(), toolCall(t, n, "")); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 5 {
		c.answer(t, n)
		m, err := c.Read(t.Context())
		if r, ok := m.(*jsonrpc.Response); err != nil || !ok || fmt.Sprint(r.ID.Raw()) != fmt.Sprint(n) {
			t.Fatalf("answer %d: got %+v, %v", n, m, err)
		}
	}
	if c.stream != nil && !c.direct {
		t.Error("a goroutine reads still")
	}
	read := make(chan error)
	go func() {
		_, err := c.Read(context.Background())
		read <- err
	}()
	c.Close()
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("a read that is closed: %v", err)
	}
	if hungUp, why := c.Ending(); hungUp || why != nil {
		t.Errorf("we ended it, not the server: %v, %v", hungUp, why)
	}
}

// A read ends with its context, too.
func TestLineConnReadContext(t *testing.T) {
	c := pipedConn(t)
	if err := c.Write(t.Context(), toolCall(t, 1, "")); err != nil {
		t.Fatal(err)
	}
	c.answer(t, 1)
	if _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan error)
	go func() {
		_, err := c.Read(ctx)
		read <- err
	}()
	cancel()
	if err := <-read; err == nil {
		t.Error("a read without an answer")
	}
}

// A server that does not read holds up nobody, and what it reads in the end
// is whole.
func TestLineConnWrites(t *testing.T) {
	c := pipedConn(t)
	pad := strings.Repeat("x", 50<<10)
	const writers, each = 4, 3 // more than a pipe holds, and no full queue
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := c.Write(context.Background(), toolCall(t, 100*w+i, pad)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	last := make(map[int]int)
	next := func() {
		line, err := c.requests.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			ID     int    `json:"id"`
			Params string `json:"params"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Params != pad {
			t.Fatalf("a broken line of %d bytes: %v", len(line), err)
		}
		w := m.ID / 100
		if m.ID%100 != last[w] {
			t.Errorf("writer %d: message %d after %d", w, m.ID%100, last[w])
		}
		last[w]++
	}
	for range writers * each {
		next()
	}

	// Full again, with a full queue, too: a caller that gives up leaves nothing.
	n := last[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for c.Write(ctx, toolCall(t, n, pad)) == nil {
		n++
	}
	for last[0] < n {
		next()
	}
	if err := c.Write(t.Context(), toolCall(t, n, pad)); err != nil {
		t.Fatal(err)
	}
	next()
}

// The SDK is told that a request is answered, and no more, if all of the answer is in the
// exchange; what it needs of a result it gets.
func TestLinesKeepAnswers(t *testing.T) {
	t.Parallel()
	c := pipedConn(t)
	brief := func([]byte) []byte { return []byte(`{"tools":[]}`) }
	for n, want := range map[int]struct {
		x      *Exchange
		result string
		err    error
	}{
		1: {NewExchange(t.Context(), nil, nil), "", ErrAnswered},
		2: {NewExchange(t.Context(), nil, brief), `{"tools":[]}`, nil},
		3: {new(Exchange), `{}`, nil},
	} {
		if err := c.Write(want.x.In(t.Context()), toolCall(t, n, "")); err != nil {
			t.Fatal(err)
		}
		line, err := c.requests.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := jsonrpc.EncodeMessage(toolCall(t, n, ""))
		if err != nil || string(line) != string(encoded)+"\n" {
			t.Errorf("call %d is sent as %s, the SDK would send %s (%v)", n, line, encoded, err)
		}
		c.answer(t, n)
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, ok := m.(*jsonrpc.Response)
		if !ok || got.ID.Raw() != int64(n) || string(got.Result) != want.result || !errors.Is(got.Error, want.err) {
			t.Errorf("the SDK gets %#v for call %d", m, n)
		}
		if kept, err := want.x.Outcome(); err != nil || (string(kept) == "{}") != want.x.capture {
			t.Errorf("kept of call %d is %s, %v", n, kept, err)
		}
	}
}
