package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/stopwatch"
	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The protocol versions that the eras begin and end with.
const (
	lastLegacy  = "2025-11-25"
	firstModern = "2026-07-28"
)

// probePatience is how long a server may leave server/discover unanswered before it
// is assumed not to know it.
func (s Spec) probePatience() time.Duration {
	if s.Own {
		return s.Limits.connectTimeout()
	}
	return min(4*time.Second, s.Limits.connectTimeout()/6)
}

// loginPatience is how long a person has for a login that a program obtains itself.
const loginPatience = 5 * time.Minute

// A session is one connection to a server. It owns its resources: end releases all of
// them.
type session struct {
	spec   Spec
	log    *slog.Logger
	shown  redactor
	tap    *tap.Tap
	client *mcp.ClientSession
	// life ends when the session is ended by us; nothing that belongs to the
	// session is bound to anything shorter.
	life  context.Context
	abort context.CancelCauseFunc
	ended chan struct{} // closed when the connection has ended, by whomever

	useful       atomic.Bool // a call was answered
	awaitedLogin bool        // its program waited for a login before it answered
	hasty        bool        // Options.Hasty

	logging sync.Mutex // held while the server's level of logging is set
	logged  bool       // it has been set, to
	level   int        // a severity

	lines   *tap.Lines // of stdio and inprocess
	process *process   // of stdio
	inner   func()     // ends the server of inprocess
	web     *tap.HTTP  // of http and sse
}

// connect makes a session with a server by a spec, which is the server's own with what was
// fetched, in the given era or, with Auto, in the one that the server turns out to speak. It gives up after limit, except that a program which first
// has to obtain a login by itself gets more time.
func connect(of *server, spec Spec, era Protocol, limited time.Duration) (*session, error) {
	o, log, shown := of.options, of.log, of.shown
	s := &session{spec: spec, log: log, shown: shown, ended: make(chan struct{}), hasty: o.Hasty}
	s.life, s.abort = context.WithCancelCause(of.life)
	s.tap = tap.New(tap.Options{Server: spec.Name, Limit: spec.Limits.maxReply(), Done: s.life.Done(), Log: log, Hide: shown.Replace})
	// The time-out is not a deadline of the context: what the SDK opens while it
	// connects lives as long as the context.
	limit := stopwatch.StartLimit(limited, func() { s.abort(errConnectTimeout) })
	transport, err := s.open(o, log, func(link string) {
		limit.Extend(loginPatience)
		of.asksLogin(link)
	})
	of.starts(s.process)
	if err != nil {
		limit.Stop()
		s.end()
		return nil, err
	}
	version := firstModern
	if era == Legacy || spec.kind() == SSE {
		version = lastLegacy
	}
	client := mcp.NewClient(o.implementation(), s.clientOptions())
	//lint:ignore SA1019 deprecated by the newest protocol; servers use it
	client.AddRoots(spec.roots()...)
	s.client, err = client.Connect(s.life, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		go func() {
			_ = s.client.Wait() // explain says why
			close(s.ended)
		}()
	}
	inTime, asked := limit.Stop()
	s.awaitedLogin = asked
	if !inTime && err == nil {
		err = errConnectTimeout
	}
	if err == nil && era == Modern && s.protocol() < firstModern {
		err = fmt.Errorf("it speaks MCP %s, and its protocol is set to modern", s.protocol())
	}
	if err != nil {
		err = s.explain(err)
		s.end()
		if asked {
			err = &missedLoginError{err}
		}
		return nil, err
	}
	return s, nil
}

// open starts or opens what the session talks to.
func (s *session) open(o Options, log *slog.Logger, asks func(link string)) (mcp.Transport, error) {
	switch s.spec.kind() {
	case Stdio:
		p, err := start(s.spec, o.environ(), log, s.shown, asks)
		if err != nil {
			return nil, err
		}
		s.process = p
		s.lines = tap.NewLines(s.tap, p.stdout, p.stdin, s.spec.probePatience())
		return s.lines, nil
	case InProcess:
		if s.spec.InProcess == nil {
			return nil, errors.New("the spec has no server")
		}
		server, err := s.spec.InProcess(s.life, log)
		if err != nil {
			return nil, s.shown.showError(err)
		}
		theirs, out := io.Pipe()
		in, theirOut := io.Pipe()
		inner, err := server.Connect(s.life, &mcp.IOTransport{Reader: theirs, Writer: theirOut, MaxLineLength: -1}, nil)
		if err != nil {
			return nil, err
		}
		s.inner = func() {
			_ = in.Close()
			_ = inner.Close()
		}
		s.lines = tap.NewLines(s.tap, in, out, s.spec.probePatience())
		return s.lines, nil
	case HTTP, SSE:
		web, err := tap.NewHTTP(s.tap, tap.HTTPOptions{
			URL: s.spec.URL, SSE: s.spec.kind() == SSE, Headers: s.spec.Headers, Auth: s.spec.Auth,
			Probe: s.spec.probePatience(), Conns: s.spec.Limits.concurrency(),
		})
		if err != nil {
			return nil, err
		}
		s.web = web
		return web.Transport(), nil
	}
	return nil, fmt.Errorf("a server of the kind %q is not known", tap.Escape(string(s.spec.Kind), tap.MaxName))
}

// end closes the session and returns when nothing of it is left.
func (s *session) end() {
	s.abort(tap.ErrSessionEnded)
	// Reading ends first: the SDK's Close waits for open requests, and ends
	// them when it cannot read any more.
	if s.lines != nil {
		_ = s.lines.Close()
	}
	if s.client != nil {
		_ = s.client.Close()
		<-s.ended
	}
	if s.inner != nil {
		s.inner()
	}
	if s.process != nil {
		patience := politely
		if s.client == nil || s.hasty && !s.useful.Load() {
			patience = 0 // it has nothing to bring to an end
		}
		s.process.stop(patience)
	}
	if s.lines != nil {
		s.lines.Wait()
	}
	if s.web != nil {
		s.web.Close()
	}
}

// explain says why the session could not be made, or why it ended; err is what the SDK
// says. The text is safe to show.
func (s *session) explain(err error) error {
	if needed := s.tap.LoginNeeded(); needed != nil {
		return s.shown.showError(needed)
	}
	if status := s.tap.Refused(); status != 0 {
		return &refusedError{status}
	}
	cause := context.Cause(s.life)
	var hungUp bool
	var broken error
	if s.lines != nil {
		hungUp, broken = s.lines.Ending()
	}
	text, ours := "", true
	switch {
	case errors.Is(cause, errConnectTimeout):
		err = cause
		text = fmt.Sprintf("it did not answer the handshake within %v", s.spec.Limits.connectTimeout())
	case errors.Is(cause, errStopped):
		err = cause
		text = cause.Error()
	case broken != nil:
		err = broken
		text, ours = s.shown.show(broken.Error(), tap.MaxMessage), false
	case hungUp && s.process != nil:
		text = s.process.howItEnded()
		if why := s.process.said.reason(); why != "" {
			text = s.shown.show(why, tap.MaxMessage)
		}
	case s.client == nil && s.tap.Status() != 0:
		text = s.tap.Status().Error()
	case hungUp, errors.Is(err, io.EOF), errors.Is(err, mcp.ErrConnectionClosed):
		text = "the connection was closed"
	default:
		return s.shown.showError(err)
	}
	plain := text
	if !ours {
		plain = ""
	}
	if s.process != nil && !errors.Is(cause, errStopped) {
		if garbage := s.tap.Garbage(); garbage != "" {
			text += "; its stdout has lines that are no messages, such as " + garbage
		}
		text += s.process.said.last() + s.process.beyond(s.spec.Name)
	}
	return &shownError{text: text, plain: plain, err: err}
}

func (s *session) protocol() string {
	if r := s.client.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// capabilities returns what the server says it can do.
func (s *session) capabilities() mcp.ServerCapabilities {
	if r := s.client.InitializeResult(); r != nil && r.Capabilities != nil {
		return *r.Capabilities
	}
	return mcp.ServerCapabilities{}
}

// isLost reports whether err, of a request, is due to the end of the session.
func (s *session) isLost(err error) bool {
	return errors.Is(err, tap.ErrSessionEnded) || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) ||
		s.lines != nil && s.lines.Over()
}

// endsAll reports whether err, of a request, is the end of the session, which
// ends all its requests; over HTTP io.EOF is the end of one connection, and each
// request may have its own.
func (s *session) endsAll(err error) bool {
	return s.isLost(err) && (s.lines != nil || errors.Is(err, tap.ErrSessionEnded) || errors.Is(err, mcp.ErrConnectionClosed))
}

func (s *session) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// request runs do, which makes one request through the SDK, and returns the exact
// result. The request also ends with the session.
func (s *session) request(ctx context.Context, x *tap.Exchange, do func(context.Context) error) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(x.In(ctx))
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(tap.ErrSessionEnded) })()
	err := do(ctx)
	if errors.Is(err, tap.ErrAnswered) {
		err = nil
	}
	s.tap.Forget(x)
	result, why := x.Outcome()
	switch {
	case err == nil && result == nil:
		return nil, errors.New("the answer has no result")
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case why != nil:
		return nil, why
	}
	return nil, err
}

// call makes one tools/call and classifies its failure. again reports that the
// server did not read the request because the session had ended before.
func (s *session) call(ctx context.Context, tool string, args json.RawMessage) (result json.RawMessage, again bool, failure *Error) {
	x := newExchange(ctx)
	defer x.End()
	s.listen(ctx, clientOf(ctx))
	raw, err := s.answered(ctx, x, func(ctx context.Context, answers mcp.InputResponseMap, state string) error {
		params := &mcp.CallToolParams{Name: tool, Arguments: args, InputResponses: answers, RequestState: state}
		s.prepare(x, params, &params.Meta)
		_, err := s.client.CallTool(ctx, params)
		return err
	})
	if err == nil {
		return raw, false, nil
	}
	failure = s.classify(ctx, x, err)
	return nil, x.Unread() || !failure.Sent && ctx.Err() == nil && s.isLost(err), failure
}

func (s *session) classify(ctx context.Context, x *tap.Exchange, err error) *Error {
	e := &Error{Kind: BadReply, Sent: x.Sent()}
	var large tap.TooLargeError
	var answered *jsonrpc.Error
	var status tap.StatusError
	_, reason := x.Outcome()
	switch {
	case ctx.Err() != nil:
		e.Kind, e.Err = interruption(ctx)
	case errors.As(err, &large):
		e.Kind, e.Err = TooLarge, err
	case errors.Is(err, tap.ErrBroken):
		e.Kind, e.Err = Unavailable, s.shown.showError(err)
	case tap.NeedsLogin(reason), tap.Barred(reason):
		e.Kind, e.Err = Unavailable, s.shown.showError(reason)
	case s.tap.Refused() != 0 || s.tap.LoginNeeded() != nil:
		e.Kind, e.Err = Unavailable, s.explain(err)
	case errors.As(reason, &status):
		e.Kind, e.Err = Unavailable, reason
	case errors.As(reason, &answered):
		e.Err = &shownError{
			text: fmt.Sprintf("the server answered with error %d: %s", answered.Code, s.shown.show(answered.Message, tap.MaxMessage)) +
				s.process.beyondIn(s.spec.Name, s.shown.show(answered.Message, tap.MaxMessage)),
			err: reason,
		}
	case errors.Is(err, errInputRequired):
		e.Sent, e.Err = true, err
	case reason != nil:
		e.Err = s.shown.showError(reason)
	case s.isLost(err):
		e.Kind = Unavailable
		when := "before the call was sent"
		if e.Sent {
			when = "while the call was under way"
		}
		e.Err = &shownError{text: fmt.Sprintf("the server ended %s (%v)", when, s.explain(err)), err: err}
	default:
		e.Kind, e.Err = Unavailable, s.shown.showError(err)
	}
	return e
}

// inputRequired reports whether a result (of 2026-07-28) is a question rather than an
// answer.
func inputRequired(result []byte) bool {
	if !bytes.Contains(result, []byte("input_required")) {
		return false
	}
	var required bool
	_ = tap.Members(result, func(key string, value []byte) error {
		required = required || key == "resultType" && string(value) == `"input_required"`
		return nil
	})
	return required
}
