package elicit

//lint:file-ignore SA1019 sampling is deprecated by the newest protocol; servers use it

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Request is one that a server makes of the person at a client, or of the
// client's model, as it is shown: labelled.
type Request struct {
	id, run string
	queue   *Queue
	form    *mcp.ElicitParams        // for the person; nil if the model is asked
	model   *mcp.CreateMessageParams // for the client's model; nil if the person is asked
	wanted  context.Context          // ends when nobody waits for the answer any more

	once     sync.Once
	answered chan answer // holds the answer
}

// An answer is what came of a request: one of form, model and err.
type answer struct {
	form  *mcp.ElicitResult
	model *mcp.CreateMessageWithToolsResult
	err   error
}

var errClientFailed = errors.New("the client could not ask")

// ID names the request. No two have the same.
func (r *Request) ID() string { return r.id }

// Input returns the request as part of an answer to a stateless client.
func (r *Request) Input() mcp.InputRequest {
	if r.model != nil {
		return r.model
	}
	return r.form
}

// Digest returns the digest of what is shown.
func (r *Request) Digest() string {
	text, _ := json.Marshal(r.Input()) // it came as JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Put puts the request to a client with a session and resolves it. Filled is told
// of the form that the person answered, before the server is. When ctx ends, or
// nobody wants the answer any more, the request is left to whoever attaches next.
// An error says why the client could not ask; the request is resolved then, too.
func (r *Request) Put(ctx context.Context, at *mcp.ServerSession, filled func(*mcp.ElicitResult)) error {
	defer r.queue.Release(r)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.wanted, cancel)()
	var got answer
	var err error
	if r.model != nil {
		var res *mcp.CreateMessageResult
		if res, err = at.CreateMessage(ctx, r.model); err == nil {
			got.model = &mcp.CreateMessageWithToolsResult{Role: res.Role, Model: res.Model, StopReason: res.StopReason, Content: []mcp.Content{res.Content}}
		}
	} else if got.form, err = at.Elicit(ctx, r.form); err == nil {
		filled(got.form)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		got.err = errClientFailed
		err = fmt.Errorf("asking a client for a server: %w", err)
	}
	r.resolve(got)
	return err
}

// Resolve answers the request with what a stateless client sent for it. An answer
// of the wrong kind, or none, leaves the request to be put again. Filled is as for
// [Request.Put].
func (r *Request) Resolve(response any, filled func(*mcp.ElicitResult)) {
	defer r.queue.Release(r)
	switch got := response.(type) {
	case *mcp.ElicitResult:
		if r.form != nil {
			filled(got)
			r.resolve(answer{form: got})
		}
	case *mcp.CreateMessageWithToolsResult:
		if r.model != nil {
			r.resolve(answer{model: got})
		}
	}
}

// Refuse answers the request with an error.
func (r *Request) Refuse(err error) { r.resolve(answer{err: err}) }

// resolve answers the request, the first time that it is called, and takes it
// out of the queue.
func (r *Request) resolve(a answer) {
	r.once.Do(func() {
		r.queue.remove(r)
		r.answered <- a
	})
}

// newID returns a new name for a request: a letter and 60 random bits.
func newID() string { return "q" + strings.ToLower(rand.Text()[:12]) }
