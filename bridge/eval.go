package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/gate"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// evalArgs are the arguments of an eval tool. There are no others: nothing
// that a model says can choose a profile.
type evalArgs struct {
	Code  string          `json:"code"`
	Input json.RawMessage `json:"input"`
}

// eval runs a script under a profile and answers with its result. The run is
// owned by the server; the request is attached to it, and stops it when the
// client gives up. A request that carries a state is one that comes back with
// answers: it attaches to the run that the state names.
func (s *Server) eval(ctx context.Context, req *mcp.CallToolRequest, profile string) (*mcp.CallToolResult, error) {
	if text := req.Params.RequestState; text != "" {
		st, err := s.seal.open(text, principal(req), callDigest(req), s.o.Now())
		if err != nil {
			return failure(err.Error()), nil
		}
		c := s.claimantOf(req, "")
		c.sealed = true
		r, err := s.runOf(ctx, st.Run, c)
		if err != nil {
			return failure("run " + st.Run + " is over, or cannot go on here: " + err.Error()), nil
		}
		return s.attach(ctx, s.newAttachment(req, r, false))
	}
	var args evalArgs
	if err := readArguments(req.Params.Arguments, &args); err != nil {
		return failure(req.Params.Name + ": " + err.Error() + `; it takes {"code": "...", "input"?: any}`), nil
	}
	s.o.Ready(ctx)
	sess, err := s.session(req)
	if err != nil {
		return failure(err.Error()), nil
	}
	r, err := s.reattach(ctx, sess, req, profile, args)
	if err != nil {
		return failure("the same script is paused, and does not go on: " + err.Error()), nil
	}
	if r == nil {
		if r, err = s.start(sess, gate.Origin{Profile: profile, Reach: reach(req), TraceID: traceOf(req)}, principal(req), args, nil); err != nil {
			return failure(err.Error()), nil
		}
	}
	return s.attach(ctx, s.newAttachment(req, r, false))
}

// runOf returns the run that a claimant names, live or resumed.
func (s *Server) runOf(ctx context.Context, id string, c claimant) (*run, error) {
	if _, here := s.lookup(id); !here {
		s.o.Ready(ctx)
	}
	return s.resume(ctx, id, c)
}

// traceOf is the client's own trace of a request, as W3C Trace Context writes
// it; empty if it has none.
func traceOf(req *mcp.CallToolRequest) string {
	parent, _ := req.Params.Meta["traceparent"].(string)
	if parts := traceparent.FindStringSubmatch(parent); parts != nil {
		return parts[1]
	}
	return ""
}

var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Why a run is stopped that did not end by itself.
var (
	errClientGone   error = &approval.StoppedError{By: "the client", Why: "the client cancelled the call"}
	errSessionEnded error = &approval.StoppedError{By: "the client", Why: "the client ended its session"}
)

// Eval runs one script outside any MCP session, for the command line, and
// returns what an eval tool would answer. It stops when ctx ends. There is
// nobody to ask: unasked is told of each call that was denied for that.
func (s *Server) Eval(ctx context.Context, profile, code string, input json.RawMessage, unasked func(*approval.DeniedError)) (*mcp.CallToolResult, error) {
	sess := s.loose("command line")
	defer sess.sandbox.Close()
	r, err := s.start(sess, gate.Origin{Profile: profile, Reach: gate.Nobody}, "", evalArgs{Code: code, Input: input}, unasked)
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
	s.o.Ready(ctx)
	sess, err := s.session(req)
	if err != nil {
		return failure(err.Error()), nil
	}
	g, err := s.o.Gate.Begin(ctx, gate.Origin{ID: newID("r"), Session: sess.id, Client: sess.client}, nil)
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
	return &mcp.CallToolResult{
		StructuredContent: asObject(answer.Structured),
		Content:           []mcp.Content{&mcp.TextContent{Text: string(answer.Structured)}},
	}, nil
}

// asObject returns v if it is a JSON object and {"result": v} if it is not:
// older clients take nothing else for structured content.
func asObject(v json.RawMessage) any {
	if t := bytes.TrimSpace(v); len(t) > 0 && t[0] == '{' {
		return v
	}
	return map[string]json.RawMessage{"result": v}
}

// failure is an answer that says what went wrong where there is no run to
// speak of.
func failure(text string) *mcp.CallToolResult {
	body := map[string]any{"error": scriptError{Name: "RequestError", Message: text}}
	return &mcp.CallToolResult{IsError: true, StructuredContent: body, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// readArguments reads a tool's arguments strictly: what the tool does not
// take is an error and not ignored.
func readArguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	// encoding/json takes what is doubled, and what is spelt in another case.
	if _, err := canon.Parse(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			if wrong.Field == "" {
				return fmt.Errorf("the arguments must be an object, not a %s", wrong.Value)
			}
			return fmt.Errorf("%q must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return errors.New(unprefixed(err))
	}
	return exactKeys(raw, into)
}

// exactKeys refuses keys that encoding/json took for a field of into although
// they are spelt in another case.
func exactKeys(raw json.RawMessage, into any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	t := reflect.TypeOf(into).Elem()
	for key := range keys {
		if !slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("json") == key }) {
			return fmt.Errorf("unknown field %q", key)
		}
	}
	return nil
}

// unprefixed is an error of encoding/json without the package's name.
func unprefixed(err error) string {
	text := err.Error()
	if len(text) > 6 && text[:6] == "json: " {
		return text[6:]
	}
	return text
}

// report tells the client what upstream servers log and, if it asked to be
// told, about the run's progress: at once for what an upstream reports, and every
// few seconds that it still runs, since many clients give up on a call that is
// silent for a minute. What it returns ends it.
func (s *Server) report(ctx context.Context, req *mcp.CallToolRequest, r *run) func() {
	token := req.Params.GetProgressToken()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		var told float64
		for {
			var n elicit.News
			select {
			case <-ctx.Done():
				return
			case n = <-r.elicit.News():
			case <-tick.C:
				n.Text = r.soFar()
			}
			var err error
			switch {
			case n.Log != nil:
				//lint:ignore SA1019 logging is deprecated by the newest protocol; servers use it
				err = req.Session.Log(ctx, n.Log) // as far as the client wants to hear of it
			case token != nil:
				told++ // progress must grow, whatever the news
				err = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: told, Message: n.Text})
			}
			if err != nil {
				return
			}
		}
	}()
	return func() { stop(); <-ended }
}

// progressEvery is how often a client hears of a run that has no news.
const progressEvery = 5 * time.Second
