package upstream

//lint:file-ignore SA1019 sampling and logging are deprecated by the newest protocol; servers use them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"codemode-bridge/bridge/stopwatch"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Client is the party that calls are made for. What a server says or asks during a
// call goes to the Client of that call, and never to another: on a connection without
// a stream for each call, this requires that all calls under way are for one Client.
//
// Nothing is passed on after the call has returned. Ask may be called concurrently.
type Client interface {
	// Session is the name of the session that the call belongs to: each has its own
	// connection to a server with Spec.PerSession.
	Session() string
	// Person is whose account the call uses at a server with Persons. A person
	// that is not known has none.
	Person() (name string, known bool)
	tap.Listener
	// Ask puts a question to a person or to the Client's model. An error refuses
	// it, and the server gets its text. When ctx ends, nobody waits for the answer
	// any more.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// What a Client is told.
type (
	Progress = tap.Progress
	Log      = tap.Log
)

// A Question is what a server asks during a call: one of Form and Model.
// Everything in both is the server's and untrusted.
type Question struct {
	Server string
	Form   *mcp.ElicitParams
	Model  *mcp.CreateMessageWithToolsParams
	// First reports that a person must agree before the model is asked.
	First bool
}

// An Answer is the answer to a Question: the field that matches the question is set.
type Answer struct {
	Form  *mcp.ElicitResult
	Model *mcp.CreateMessageWithToolsResult
}

type clientKey struct{}

// WithClient returns a context with which [Set.Call] and [Set.Read] act for c.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

func clientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// Bounds on what a server asks.
const (
	maxRounds    = 8        // of one call that requests input
	maxQuestion  = 64 << 10 // bytes of the params of one question
	maxQuestions = 8        // in one answer that requests input
)

// What a server gets when its question is not put to anybody.
var (
	errNobody   = errors.New("codemode-bridge refuses: it is not certain which call the question belongs to, so nobody can be asked")
	errLong     = fmt.Errorf("codemode-bridge refuses: a question has at most %s", tap.Size(maxQuestion))
	errNoElicit = errors.New("codemode-bridge refuses: this server may not ask people anything")
	errNoSample = errors.New("codemode-bridge refuses: this server may not use the client's model")
)

// clientOptions returns the settings of the SDK's client: the capabilities that it declares
// to the server, and the handlers of server requests.
func (s *session) clientOptions() *mcp.ClientOptions {
	o := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		// A call that requests input must be returned to us instead of being
		// answered by the SDK.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		// The tap receives the notification; the handler only makes the SDK
		// subscribe to it.
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
	}
	if len(s.spec.Roots) > 0 {
		o.Capabilities.RootsV2 = &mcp.RootCapabilities{}
	}
	if !s.spec.NoElicitation {
		o.Capabilities.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
		o.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			a, err := s.askedOutside(ctx, req.Params.Meta, Question{Form: req.Params})
			return a.Form, err
		}
	}
	if s.spec.sampling() != NoSampling {
		o.Capabilities.Sampling = &mcp.SamplingCapabilities{}
		o.CreateMessageWithToolsHandler = func(ctx context.Context, req *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			a, err := s.askedOutside(ctx, req.Params.Meta, Question{Model: req.Params})
			return a.Model, err
		}
	}
	return o
}

// askedOutside answers a server request that is not part of the answer to a call. The
// tap has determined which call it belongs to.
func (s *session) askedOutside(ctx context.Context, meta mcp.Meta, q Question) (Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := s.tap.Asker(meta, cancel)
	if x == nil {
		return Answer{}, errNobody
	}
	return s.ask(ctx, x, q)
}

// ask puts a question to the client of a call. Meanwhile the call's timeout is
// suspended.
func (s *session) ask(ctx context.Context, x *tap.Exchange, q Question) (Answer, error) {
	client := clientOf(x.Life())
	if client == nil {
		return Answer{}, errNobody
	}
	q.Server = s.spec.Name
	switch {
	case q.Form != nil:
		if s.spec.NoElicitation {
			return Answer{}, errNoElicit
		}
		q.Form = new(*q.Form)
		q.Form.Meta = nil
	case s.spec.sampling() == NoSampling:
		return Answer{}, errNoSample
	default:
		q.Model = new(*q.Model)
		q.Model.Meta = nil
		q.First = s.spec.sampling() == AskSampling
	}
	size, err := json.Marshal([]any{q.Form, q.Model})
	if err != nil || len(size) > maxQuestion {
		return Answer{}, errLong
	}
	defer stopwatch.Hold(x.Life())()
	return client.Ask(ctx, q)
}

// answered repeats a request until its result is an answer. A server of the newer era
// returns its questions as a result; they are put one after the other, and the request
// is made again with the answers.
func (s *session) answered(ctx context.Context, x *tap.Exchange, send func(ctx context.Context, answers mcp.InputResponseMap, state string) error) ([]byte, error) {
	var answers mcp.InputResponseMap
	state := ""
	for range maxRounds {
		raw, err := s.request(ctx, x, func(ctx context.Context) error { return send(ctx, answers, state) })
		if err != nil || !inputRequired(raw) {
			return raw, err
		}
		var wants struct {
			Requests mcp.InputRequestMap `json:"inputRequests"`
			State    string              `json:"requestState"`
		}
		if err := json.Unmarshal(raw, &wants); err != nil {
			return nil, fmt.Errorf("%w: %w", errInputRequired, err)
		}
		if len(wants.Requests) > maxQuestions || len(wants.Requests) == 0 && wants.State == "" {
			return nil, fmt.Errorf("%w: %d questions at once", errInputRequired, len(wants.Requests))
		}
		answers, state = mcp.InputResponseMap{}, wants.State
		for _, id := range slices.Sorted(maps.Keys(wants.Requests)) {
			answer, err := s.inputFor(ctx, x, wants.Requests[id])
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errInputRequired, err)
			}
			answers[id] = answer
		}
	}
	return nil, fmt.Errorf("%w: %d times for one call", errInputRequired, maxRounds)
}

// inputFor answers one question of a result. If a person does not answer, or may not
// be asked, that becomes the answer to the question and does not fail the call.
func (s *session) inputFor(ctx context.Context, x *tap.Exchange, r mcp.InputRequest) (mcp.InputResponse, error) {
	switch p := r.(type) {
	case *mcp.ListRootsParams:
		return &mcp.ListRootsResult{Roots: s.spec.roots()}, nil
	case *mcp.ElicitParams:
		a, err := s.ask(ctx, x, Question{Form: p})
		return a.Form, err
	case *mcp.CreateMessageWithToolsParams:
		a, err := s.ask(ctx, x, Question{Model: p})
		return a.Model, err
	}
	return nil, errors.New("it asks for something unknown")
}

// newExchange makes the exchange of one job, for the client of ctx.
func newExchange(ctx context.Context) *tap.Exchange {
	return tap.NewExchange(ctx, clientOf(ctx), nil)
}

// prepare adds to a request what the server must know about the exchange.
func (s *session) prepare(x *tap.Exchange, p interface{ SetProgressToken(any) }, meta *mcp.Meta) {
	trace.Add(x.Life(), (*map[string]any)(meta))
	client := clientOf(x.Life())
	if client == nil {
		return
	}
	p.SetProgressToken(x.Tie())
	if level := client.LogLevel(); level != "" && s.protocol() >= firstModern {
		(*meta)[mcp.MetaKeyLogLevel] = level
	}
}

// logPatience bounds the time in which a server sets its log level.
const logPatience = 2 * time.Second

// listen sets the log level of a server of the older era to what the client wants.
// What the server logs beyond that is not passed on.
func (s *session) listen(ctx context.Context, c Client) {
	if c == nil || s.protocol() >= firstModern || s.capabilities().Logging == nil {
		return
	}
	want := tap.Severity(c.LogLevel())
	s.logging.Lock()
	defer s.logging.Unlock()
	if want < 0 || s.logged && s.level <= want {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	if err := s.client.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(tap.Levels[want])}); err != nil {
		s.log.Debug("setting the server's level of logging", "err", s.shown.showError(err))
	}
	s.logged, s.level = true, want
}

func (s Spec) roots() []*mcp.Root {
	roots := []*mcp.Root{}
	for _, uri := range s.Roots {
		roots = append(roots, &mcp.Root{URI: uri})
	}
	return roots
}
