package bridge

import (
	"context"
	"errors"
	"time"

	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/seal"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How what upstream servers ask reaches the client that is attached to a run;
// package elicit has the rest.

// statelessPatience is how long a server request waits for a stateless client,
// which is not held meanwhile. One with a session does not come back to the call
// by itself, so there it waits as long as the client holds the call.
const statelessPatience = 5 * time.Minute

var errTooManyRounds = errors.New("the script has more questions than one call may ask")

// putServerRequest puts a server request to a client with a session.
func (a *sessionAsker) putServerRequest(ctx context.Context, q *elicit.Request) {
	asked := a.s.o.Now()
	if err := q.Put(ctx, a.req.Session, a.noteServerForm(asked)); err != nil {
		a.s.o.Logger.Debug("a client could not be asked for a server", "run", a.r.id, "err", err)
	}
}

// serverRequestRequired puts a server request to a stateless client, by answering.
func (a *statelessAsker) serverRequestRequired(q *elicit.Request) *mcp.CallToolResult {
	st := seal.State{Run: a.r.id, Principal: principal(a.req), Call: rpc.CallDigest(a.req), Asked: map[string]string{q.ID(): q.Digest()}, Missed: a.missed, Left: a.left, Round: a.round + 1, Given: a.s.o.Now(), Expires: time.Now().Add(stateFor)}
	sealed, err := a.s.seal.Close(st)
	if err != nil {
		return failure("sealing the request state: " + err.Error())
	}
	a.s.runner.leave(a.r)
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{q.ID(): q.Input()}, RequestState: sealed}
}

// serverRequestAnswered resolves what a stateless client answers to a server
// request; one without an answer may be put again.
func (a *statelessAsker) serverRequestAnswered(st seal.State) {
	for id, digest := range st.Asked {
		q := a.r.session.prompts.Find(a.r.id, id)
		if q == nil || q.Digest() != digest {
			continue
		}
		q.Resolve(a.req.Params.InputResponses[id], a.noteServerForm(st.Given))
	}
}

// noteServerForm returns a function that notes how fast a server's form was answered,
// which tells whether a person is there.
func (a *attachment) noteServerForm(asked time.Time) func(*mcp.ElicitResult) {
	return func(res *mcp.ElicitResult) {
		a.reflex().NoteServerForm(res, a.s.o.Now().Sub(asked))
	}
}
