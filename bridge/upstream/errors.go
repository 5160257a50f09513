package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"codemode-bridge/bridge/upstream/tap"
)

// An ErrorKind classifies an [Error].
type ErrorKind string

// The kinds of error.
const (
	Unavailable   ErrorKind = "unavailable"    // no connection, or it was lost under way
	Timeout       ErrorKind = "timeout"        // Limits.Timeout or the caller's deadline passed
	Canceled      ErrorKind = "canceled"       // by the caller
	BadReply      ErrorKind = "protocol"       // the server answered with a protocol error, or not in MCP
	TooLarge      ErrorKind = "too_large"      // the answer is beyond Limits.MaxReply
	OverRate      ErrorKind = "over_rate"      // beyond Limits.Rate, and the next free place is too far away to wait for
	UnknownServer ErrorKind = "unknown_server" // no such server in the Set
	UnknownTool   ErrorKind = "unknown_tool"   // the server lists no such tool, or Allow and Deny leave it out
)

// An Error says why a call has no result. Its text names the server and can be shown to
// a person or a model: the parts that come from the server are cut, stripped of the
// secrets in the Spec, and have their control characters escaped.
type Error struct {
	Server, Tool string
	Kind         ErrorKind
	// Sent reports whether the request may have reached the server, so that
	// its effect is unknown.
	Sent bool
	// Err is the cause. It wraps a *jsonrpc.Error of the SDK if the server
	// answered with one.
	Err error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("calling %s of server %s: %v", tap.Escape(e.Tool, tap.MaxName), tap.Escape(e.Server, tap.MaxName), e.Err)
	if e.Sent && (e.Kind == Unavailable || e.Kind == Timeout || e.Kind == Canceled) {
		text += "; outcome unknown"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// WasSent returns Sent, for callers that know the error only by this method.
func (e *Error) WasSent() bool { return e.Sent }

// ErrClosed is the cause of an [Error] after [Set.Close].
var ErrClosed = errors.New("the set of servers is closed")

// What keeps a call from its server.
var (
	errUnknownServer = errors.New("no server of this name is configured")
	errReplaced      = errors.New("the configuration now names another server like that")
	errDisabled      = errors.New("the server is disabled in the configuration")
	errStopped       = errors.New("the server was taken out of the configuration")
)

// Reasons for the end of a session or of a call.
var (
	errConnectTimeout = errors.New("it did not answer in time")
	errCallTimeout    = errors.New("no answer in time")
	errIdle           = errors.New("no call has used it for a while")
	errListTimeout    = errors.New("no answer in time to a listing")
	errUnlisted       = errors.New("the server says that it has tools, and does not know the request that lists them")
	errInputRequired  = errors.New("the server asked for input in the middle of the call and got none")
)

// A startError says why the child could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return "starting the process: " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// A refusedError ends a session because the server refuses our credentials.
type refusedError struct{ status int }

func (e *refusedError) Error() string {
	if e.status == 401 {
		return "the server wants other credentials (HTTP status 401)"
	}
	return "the server does not permit the access (HTTP status " + strconv.Itoa(e.status) + ")"
}

// A noLoginError says that a call is not tried because a login is missing.
type noLoginError struct{ why string }

func (e *noLoginError) Error() string { return e.why }
func (e *noLoginError) NeedsLogin()   {}

// A missedLoginError is the end of a program whose login nobody made in time.
type missedLoginError struct{ why error }

func (e *missedLoginError) Error() string {
	return "nobody made the login that it waited for; " + e.why.Error()
}
func (e *missedLoginError) Unwrap() error { return e.why }

// A suspendedError says why no call is sent while the breaker is open.
type suspendedError struct{ text string }

func (e *suspendedError) Error() string { return e.text }

// A parkedError says why a call is not tried: the server's own pause is longer than
// the breaker's.
type parkedError struct{ why string }

func (e *parkedError) Error() string { return "the server is parked: " + e.why }

// interruption says why a call's context ended.
func interruption(ctx context.Context) (ErrorKind, error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCallTimeout):
		return Timeout, cause
	case errors.Is(cause, context.DeadlineExceeded):
		return Timeout, &shownError{text: "the caller's own time was up", err: cause}
	default:
		return Canceled, cause
	}
}
