package bridge

import (
	"context"
	"encoding/json"
	"errors"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	who "codemode-bridge/bridge/principal"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/surface"
	"codemode-bridge/bridge/trace"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eval runs a script under a profile and answers with its result. The run is
// owned by the server; the request is attached to it, and stops it when the
// client gives up. A request that carries a state is one that comes back with
// answers: it attaches to the run that the state names.
func (s *Server) eval(ctx context.Context, req *mcp.CallToolRequest, profile string) (*mcp.CallToolResult, error) {
	ctx = rpc.Traced(ctx, req)
	if text := req.Params.RequestState; text != "" {
		st, err := s.seal.Open(text, principal(req), rpc.CallDigest(req), s.o.Now())
		if err != nil {
			return failure(err.Error()), nil
		}
		c := s.claimantOf(ctx, req, "")
		c.sealed = true
		res, err := s.goOn(ctx, req, st.Run, c, false)
		if err != nil {
			return surface.Refused(errors.Is(err, ErrClosed), "run "+st.Run+" is over, or cannot go on here: "+err.Error())
		}
		return res, nil
	}
	var args evalArgs
	if err := surface.ReadArguments(req.Params.Arguments, &args); err != nil {
		return failure(req.Params.Name + ": " + err.Error() + `; it takes {"code": "...", "input"?: any}`), nil
	}
	sess, err := s.session(req)
	if err != nil {
		return surface.Refused(errors.Is(err, ErrClosed), err.Error())
	}
	r, err := s.runner.reattach(ctx, sess, s.claimantOf(ctx, req, ""), profile, args)
	if err != nil {
		return surface.Refused(errors.Is(err, ErrClosed), "the same script is paused, and does not go on: "+err.Error())
	}
	if r == nil {
		if r, err = s.runner.start(ctx, sess, gate.Origin{Profile: profile, Reach: reach(req)}, rpc.Caller(ctx, req.Extra), args, nil); err != nil {
			return surface.Refused(errors.Is(err, ErrClosed), err.Error())
		}
	}
	return s.attach(ctx, s.newAttachment(req, r, false))
}

// Eval runs one script outside any MCP session, for the command line, and
// returns what an eval tool would answer. It stops when ctx ends. There is
// nobody to ask: unasked is told of each call that was denied for that.
func (s *Server) Eval(ctx context.Context, profile, code string, input json.RawMessage, unasked func(*approval.DeniedError)) (*mcp.CallToolResult, error) {
	profile, err := s.o.standard(s.o.Access().For("", nil), profile)
	if err != nil {
		return nil, err
	}
	sess := s.runner.loose("command line")
	defer sess.sandbox.Close()
	r, err := s.runner.start(ctx, sess, gate.Origin{Profile: profile, Reach: gate.Nobody}, who.Principal{}, evalArgs{Code: code, Input: input}, unasked)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		r.stop(context.Cause(ctx))
		<-r.done
	}
	return r.answer(), nil
}

// discover answers a discovery tool: the same function that scripts have,
// through the same gate, under the profile that binds `eval`.
func (s *Server) discover(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	sess, err := s.session(req)
	if err != nil {
		return failure(err.Error()), nil
	}
	may := s.o.rightsOf(ctx, req.Extra)
	profile, err := s.o.standard(may, "")
	if err != nil {
		return failure(err.Error()), nil
	}
	g, err := s.o.Gate.Begin(ctx, gate.Origin{ID: newID("r"), Session: sess.id, Client: sess.client, Profile: profile, TraceID: trace.Of(rpc.Traced(ctx, req)).TraceID()}, scoped{scope: scope(s.o.Gate.View(), profile, may)})
	if err != nil {
		return failure(err.Error()), nil
	}
	answer, err := s.o.Gate.Call(ctx, g, gate.Call{Number: 1, Name: req.Params.Name, Args: req.Params.Arguments})
	if err != nil {
		return failure(err.Error()), errors.Join(g.End(ctx, outcomeOf(err), err.Error(), gate.Entries{}))
	}
	if err := g.End(ctx, outcomeOf(nil), "", gate.Entries{}); err != nil {
		return failure(err.Error()), nil
	}
	if answer.IsError {
		return failure(answer.Text()), nil
	}
	return surface.Found(answer.Structured, answer.Text()), nil
}
