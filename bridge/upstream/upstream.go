// Package upstream keeps one live MCP session per upstream server.
//
// [Set.Apply] tells a [Set] which servers there should be, and the Set keeps a
// session with each: it starts the child process or opens the HTTP connection in
// the background, lists the tools, listens for changes, reconnects with growing
// pauses after a failure, and shuts servers down politely, then firmly. A server
// that is missing, slow, crashing, silent or printing garbage affects only its own
// tools; [Set.Status] says what is wrong with it, with the last lines of its stderr.
//
// # What goes over the wire
//
// The SDK speaks the protocol: its client makes the handshake, negotiates the
// version and numbers the requests. Package tap stands between it and the wire. It
// keeps results as the bytes that arrived, where the SDK would round large numbers,
// and enforces bounds against hostile servers.
//
// So [Set.Call] returns the whole CallToolResult as the exact JSON that the
// server sent, and sends the arguments as the exact JSON that it was given.
//
// # Goroutines
//
// One goroutine per server owns connecting, listing, waiting and reconnecting
// (see server.run). Calls are made in the caller's goroutine.
package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Kind says how a server is reached.
type Kind string

// The kinds of server.
const (
	Stdio     Kind = "stdio"     // a child process; messages are lines on its stdin and stdout
	HTTP      Kind = "http"      // streamable HTTP
	SSE       Kind = "sse"       // the HTTP transport of 2024-11-05, for old servers
	InProcess Kind = "inprocess" // an mcp.Server in this process
)

// A Protocol says which era of MCP is spoken with a server.
type Protocol string

// The eras.
const (
	// Auto asks the server with server/discover and falls back to
	// initialize, in a new process if the question ended the old one. The
	// result is remembered as long as the server's Spec stays the same.
	Auto   Protocol = "auto"
	Legacy Protocol = "legacy" // up to 2025-11-25, with the initialize handshake
	Modern Protocol = "modern" // 2026-07-28 or later, or no connection
)

// A Spec describes one upstream server. The zero value of a field means the default
// that its comment names.
type Spec struct {
	Name string // the configured name, unique in a Set
	Kind Kind   // empty: Stdio if Command is set, else HTTP
	// Identity, if not empty, identifies the server beyond its name, in a form that
	// the caller chooses: calls meant for another server of that name are not sent.
	// See [Set.Call].
	Identity string

	// Of Stdio servers:
	Command string
	Args    []string
	// Env is added to the child's environment, which otherwise holds only
	// the few variables that any program needs (PATH, HOME, the locale and
	// the like) and those of our own environment that PassEnv names.
	Env     map[string]string
	PassEnv []string
	Dir     string // working directory; empty: ours
	// Box, if not nil, is what the child runs in.
	Box *Box
	Child

	// Of HTTP and SSE servers:
	URL string
	// Headers are sent with every request to the URL's own origin, and to no
	// other.
	Headers map[string]string
	// Auth, if not nil, authorizes the requests. Two specs with different ones
	// are different. If it is a Persons too, each person has their own connection, with
	// their own account, and a call of which it is not known whose it is is refused:
	// Auth itself serves the connection that lists the tools, and no call.
	Auth Authorizer

	// InProcess makes the server of an InProcess spec, anew for each
	// connection; the context ends with the connection, and the log names the
	// server. Two specs that differ only in this function count as equal.
	InProcess func(context.Context, *slog.Logger) (*mcp.Server, error)
	// Source identifies what InProcess makes its server from: if it changes, a new
	// connection is made.
	Source string

	// Secrets must not appear in any text that is shown: those in Args, or known to
	// InProcess. The values of Env and Headers, and what URL carries, are treated
	// as secrets anyway.
	Secrets []string

	Limits Limits
	// IdleStop ends the process of a Stdio server that no call has used for this
	// long. Its tools stay listed, and the next call starts it again; until then
	// changes of its tools go unnoticed. 0: never.
	IdleStop time.Duration
	Protocol Protocol // empty: Auto
	// Allow and Deny choose among the server's tools by glob over the raw tool
	// name: a tool is kept if Allow is empty or matches, and Deny does not
	// match. A tool that is not kept is not listed and cannot be called. In a
	// glob, * stands for any text and ? for one character.
	Allow, Deny []string
	Disabled    bool // known, but never connected
	// Wrong, if not empty, says why the server cannot be started or reached as it is.
	// Nothing is tried before the spec changes.
	Wrong string
	// PerSession gives each session (Client.Session) its own connection, and so its
	// own process, from its first call to Set.EndSession. The tools are listed by
	// one more connection, which also serves calls without a Client.
	PerSession bool

	Asking
}

// A Child says what is special about the child of a Stdio server.
type Child struct {
	// TokenEnv, if not empty, is the variable that has the token of Auth, which must be
	// a Persons. No process is started without one; when the Auth is a Holder and has it
	// no longer, the process is ended.
	TokenEnv string
	// Own reports whether the program is ours. Its stderr then has the lines of
	// slog's JSONHandler: they are logged at their levels, and the last error among
	// them says why it ended. It may be silent for all of ConnectTimeout before it
	// answers, it is never Parked for its failures, and the secrets in Env and
	// PassEnv are those listed in Secrets.
	Own bool
}

// Asking is what a server may ask for.
type Asking struct {
	NoElicitation bool     // it may not ask people anything during a call
	Sampling      Sampling // whether it may use the model of the call's Client; empty: NoSampling
	Roots         []string // the URIs of the folders that it gets when it asks for roots
}

// Sampling says whether a server may use the model of the Client of a call.
type Sampling string

// The permissions.
const (
	NoSampling    Sampling = "deny"
	AskSampling   Sampling = "ask" // a person each time
	AllowSampling Sampling = "allow"
)

// An Authorizer supplies the Authorization header of the requests to one HTTP server,
// which changes as logins are made, renewed and ended. An error with a method
// NeedsLogin() lasts until a person does something; its text is shown. The methods are
// called from several goroutines at once.
type Authorizer interface {
	// Token returns the bearer token for the next request; empty: none.
	Token(ctx context.Context) (string, error)
	// Refused is told that a request with the token was answered with 401 or
	// 403. It reports whether to send the request again, which is done once. If
	// it returns no error, the answer speaks for itself.
	Refused(ctx context.Context, token string, status int, header http.Header) (again bool, err error)
	// Ready reports whether the required login has been made.
	Ready() bool
	// Hide removes tokens from a text.
	Hide(text string) string
}

// A Tool is one tool as its server lists it, untrusted in every field. Input
// and Output are the schemas as they were sent, nil if there was none; they
// may be any JSON value.
type Tool struct {
	Name, Title, Description                     string
	Input, Output                                json.RawMessage
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// A State is the state of a server's connection.
type State string

// The states of a server.
const (
	Disabled   State = "disabled"   // by its Spec
	Connecting State = "connecting" // the first time, or again at once after a lost connection
	Connected  State = "connected"  // its tools are listed and can be called
	Unhealthy  State = "unhealthy"  // connected, but its last listing failed: its tools are those of the one before
	Suspended  State = "suspended"  // failed several calls in a row: until Status.Until none is sent
	Trying     State = "trying"     // was Suspended: the next call, or the one under way, decides
	Idle       State = "idle"       // stopped because nothing used it; a call starts it
	Failed     State = "failed"     // tried again after a pause, or when a call needs it
	// Parked servers are tried again by Reconnect and when their Spec changes.
	// If the process failed again and again, or waited for a login that nobody
	// made, a call after Status.Until tries it, too; nothing else does if the
	// server refused our credentials.
	Parked State = "parked"
	// NeedsLogin is like Parked, and also tried again when Spec.Auth is ready.
	NeedsLogin State = "needs-login"
)

// A Status is what is known about one server. Every text that comes from the server is
// cut, stripped of the secrets in its Spec, and has its control characters escaped.
type Status struct {
	Name  string
	Kind  Kind
	State State
	// Err says why the server is Failed, Parked, Suspended, Trying or
	// Unhealthy, or which login it waits for; empty if nothing is wrong.
	Err string
	// Plain is as much of Err as is in our own words, without any of the server's; empty
	// if nothing is.
	Plain string
	// Said is what the process of a Connecting server wrote last to its stderr, the
	// lines joined by " | "; if it fails to connect, that is in Err.
	Said string
	// Login is the link for a login that the process of a Connecting server waits
	// for; calls fail until a person has logged in there. Untrusted.
	Login string
	Tools int       // how many it listed last, after Allow and Deny
	Since time.Time // of the State
	// Until is when a Failed server is tried again automatically, or when a call
	// may first try a Suspended or Parked one; zero: see the State.
	Until    time.Time
	Failures int       // in a row: to connect and, if it is connected, of calls
	Answered time.Time // when it last answered a call or a listing; zero: never
	Protocol string    // the protocol version that was agreed on
	Program  string    // what the server calls itself
	Version  string    // the server's own version
	PID      int       // of the child process; 0 if there is none
	Sessions int       // and persons that have a connection of their own
	// Box is what holds the child; nil if it has no box or there is no child.
	Box *Boxed
}

// Options are the settings of a Set. The zero value is ready to use.
type Options struct {
	Logger *slog.Logger // nil: no log
	// Changed is called when the tools or the status of some server changed.
	// It is called from a server's goroutine and must not block. nil: nobody
	// is told.
	Changed func()
	// ClientName and ClientVersion are what we call ourselves to the servers;
	// empty: "codemode-bridge" and "dev".
	ClientName, ClientVersion string
	// Poll is the time between two listings of a server's tools where no
	// change is announced; 0: 5 minutes.
	Poll time.Duration
	// RetryMin and RetryMax bound the pause before a failed server is tried
	// again. It doubles with each failure and is randomized by half.
	// 0: 500 ms and 1 minute.
	RetryMin, RetryMax time.Duration
	// MaxFailures is how many calls in a row a server may fail before it is
	// Suspended: first for Suspend, then each time twice as long, up to RetryMax.
	// Only the server's own faults count: no connection, no answer within
	// Limits.Timeout, no valid MCP. 0: 5 calls and 10 s.
	MaxFailures int
	Suspend     time.Duration
	// MaxRestarts is how many times in a row a process may fail to start, or end
	// before it has answered a call or lived for half a minute; then its server is
	// Parked for at least RetryMax. 0: 10.
	MaxRestarts int
	// Environ is the environment that children's variables are taken from, in
	// the form of os.Environ; nil: os.Environ itself.
	Environ []string
	// Hasty has processes that no call has used end by a signal at once, without the
	// time to end by themselves that others get: for a Set that lasts for one script.
	Hasty bool
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

func (o Options) changed() {
	if o.Changed != nil {
		o.Changed()
	}
}

func (o Options) implementation() *mcp.Implementation {
	i := &mcp.Implementation{Name: o.ClientName, Version: o.ClientVersion}
	if i.Name == "" {
		i.Name = "codemode-bridge"
	}
	if i.Version == "" {
		i.Version = "dev"
	}
	return i
}

func (o Options) poll() time.Duration { return orDefault(o.Poll, 5*time.Minute) }

func (o Options) environ() []string {
	if o.Environ == nil {
		return os.Environ()
	}
	return o.Environ
}

// pause returns how long to wait after a number of failures in a row.
func (o Options) pause(failures int) time.Duration {
	shortest, longest := orDefault(o.RetryMin, 500*time.Millisecond), o.longest()
	d := shortest
	for range failures - 1 {
		if d *= 2; d >= longest {
			d = longest
			break
		}
	}
	return d/2 + rand.N(d/2+1)
}

func (o Options) longest() time.Duration { return orDefault(o.RetryMax, time.Minute) }
func (o Options) maxRestarts() int       { return orDefault(o.MaxRestarts, 10) }

func (s Spec) kind() Kind {
	switch {
	case s.Kind != "":
		return s.Kind
	case s.InProcess != nil:
		return InProcess
	case s.Command == "" && s.URL != "":
		return HTTP
	}
	return Stdio
}

func (s Spec) sampling() Sampling {
	if s.Sampling == "" {
		return NoSampling
	}
	return s.Sampling
}
