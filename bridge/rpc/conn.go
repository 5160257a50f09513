package rpc

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Connect makes the two pipes the SDK's connection to the client: each message is
// decoded once, and goes from one goroutine to one other. From then on nothing else may
// read them. It is called once.
func (s *Stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &conn{s: s, incoming: make(chan arrival), closed: make(chan struct{})}
	go c.read()
	return c, nil
}

// A conn is a Stdio as the SDK sees it.
type conn struct {
	s        *Stdio
	incoming chan arrival

	once   sync.Once
	closed chan struct{}
	err    error // of closing
}

// An arrival is a message that was read, or why there are no more.
type arrival struct {
	message jsonrpc.Message
	err     error
}

// read passes messages on until the pipe ends or the connection is closed. A pipe on
// which nothing comes cannot be left by closing it, so this goroutine may stay in it
// until the process ends.
func (c *conn) read() {
	for {
		m, err := c.s.message()
		select {
		case c.incoming <- arrival{m.message, err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-c.incoming:
		return a.message, a.err
	case <-c.closed:
		return nil, io.EOF
	}
}

// Write writes a message in one piece.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	line, err := encode(m)
	if err != nil {
		return err
	}
	_, err = c.s.Write(append(line, '\n'))
	return err
}

// encode is jsonrpc.EncodeMessage, but copies a result, which the SDK has written as
// JSON on one line just before, instead of reading and writing it once more.
func encode(m jsonrpc.Message) ([]byte, error) {
	answer, ok := m.(*jsonrpc.Response)
	if !ok || answer.Error != nil || len(answer.Result) == 0 || bytes.IndexByte(answer.Result, '\n') >= 0 {
		return jsonrpc.EncodeMessage(m)
	}
	id, ok := answer.ID.Raw().(int64)
	if !ok {
		return jsonrpc.EncodeMessage(m)
	}
	line := make([]byte, 0, len(answer.Result)+64)
	line = append(line, `{"jsonrpc":"2.0","id":`...)
	line = strconv.AppendInt(line, id, 10)
	line = append(line, `,"result":`...)
	line = append(line, answer.Result...)
	return append(line, '}'), nil
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.err = c.s.Close()
	})
	return c.err
}

func (c *conn) SessionID() string { return "" }
