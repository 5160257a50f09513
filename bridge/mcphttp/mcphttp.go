// Package mcphttp serves a bridge over HTTP: MCP on /mcp, for both eras of clients, and
// on /mcp/p/PROFILE bound to that profile; /healthz and /readyz.
//
// A request passes four checks before the SDK sees it:
//
//	guard         the host and origin are this endpoint's, else 403
//	authenticate  the bearer token is known, if any are configured or an issuer of
//	              tokens is, else 401
//	dispatch      the message can be read in one way only, and its body says which
//	              protocol it speaks: sessions up to 2025-11-25, stateless from
//	              2026-07-28 on
//	sessions      there is room for its session; others are ended if necessary
//
// Refusals that the SDK writes as plain text leave as JSON-RPC.
package mcphttp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/identity"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/webguard"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Bridge is what the endpoint serves.
type Bridge interface {
	// MCP is the server that answers in every session.
	MCP() *mcp.Server
	// Used reports whether scripts ran in a session, and whether one runs now.
	Used(*mcp.ServerSession) (ran, running bool)
	// Abandon stops the runs of the session of this id that its owner, a principal,
	// ends. The SDK waits for them.
	Abandon(id, owner string)
	// Events wraps the store of the events that streams resume from, to see what is
	// sent to clients, in the order in which it is sent.
	Events(mcp.EventStore) mcp.EventStore
}

// A Token lets its bearer in. Only its hash is kept.
type Token struct {
	Name   string // of the principal
	Groups []string
	SHA256 [sha256.Size]byte
}

// Options say who may come in over HTTP, and how much they may use.
type Options struct {
	// Tokens returns the current tokens; nil means that there are never any. If there are any, one is required: without it the answer is 401.
	Tokens func() []Token
	// Resource, if not nil, lets in the bearers of an issuer's tokens as well, and tells
	// clients where they get one. Its host is let in like those of Hosts.
	Resource *identity.Resource
	// Hosts are Host headers that are let in beside loopback names.
	Hosts []string
	// Origins are let in beside the endpoint's own.
	Origins []string
	// IdleTimeout ends a session that is silent this long; 0 means 30 minutes.
	IdleTimeout time.Duration
	// MaxSessions bounds the sessions of the older protocol; 0 means 1,000. When no
	// room is left, quiet sessions are ended for new ones.
	MaxSessions int
	// SessionsOf, if not nil, says how many of those one principal may have, and which
	// part of the configuration says so; 0 is any number.
	SessionsOf func(name string, groups []string) (most int, where string)
	// MaxBody bounds a request's body in bytes; 0 means 4 MB.
	MaxBody int64
	// Ready, if not nil, says why /readyz should not answer 200; nil if it should.
	Ready func() error
	// Draining, if not nil, reports whether the bridge is about to end: what would begin
	// something is refused, so that it begins at another bridge.
	Draining func() bool
	Logger   *slog.Logger     // nil means slog.Default()
	Now      func() time.Time // nil means time.Now
}

// Handler serves a bridge.
func Handler(b Bridge, o Options) http.Handler {
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 30 * time.Minute
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 1000
	}
	if o.MaxBody == 0 {
		o.MaxBody = 4 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b.MCP().AddReceivingMiddleware(named)
	mux := http.NewServeMux()
	if o.Resource != nil {
		o.Hosts = append(slices.Clone(o.Hosts), o.Resource.Host())
		o.Resource.Handle(mux)
	}
	endpoint := o.authenticate(newDispatcher(b, o))
	mux.Handle("/mcp", endpoint)
	mux.HandleFunc("/mcp/p/{profile}", func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r.WithContext(access.Bind(r.Context(), r.PathValue("profile"))))
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		var err error
		switch {
		case o.draining():
			err = errDraining
		case o.Ready != nil:
			err = o.Ready()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return o.guard(mux)
}

// guard lets in only what names this endpoint: a web page that was rebound to
// our address, or that posts here from another site, is refused whatever the
// method.
func (o Options) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "codemode-bridge")
		if !webguard.Host(r, o.Hosts) {
			http.Error(w, fmt.Sprintf("Forbidden: host %q is not ours; add it to http.allowedHosts if it is", r.Host), http.StatusForbidden)
			return
		}
		if !webguard.Origin(r, o.Origins) {
			http.Error(w, "Forbidden: cross-origin request; add the origin to http.allowedOrigins if it is yours", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if o.draining() {
			w.Header().Set("Connection", "close") // the next request meets another bridge
		}
		next.ServeHTTP(w, r)
	})
}

// A dispatcher sends a request to the handler of its protocol: sessions up to
// 2025-11-25, stateless from 2026-07-28 on. What the body says counts; the header
// alone may be a proxy's.
type dispatcher struct {
	bridge    Bridge
	o         Options
	sessions  *sessions
	stateful  http.Handler
	stateless http.Handler
}

// statelessProtocol is the first protocol without sessions.
const statelessProtocol = "2026-07-28"

func newDispatcher(b Bridge, o Options) *dispatcher {
	logger := o.Logger.With("part", "http")
	server := func(*http.Request) *mcp.Server { return b.MCP() }
	return &dispatcher{
		bridge: b, o: o, sessions: newSessions(b, o),
		stateful: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			Logger: logger, SessionTimeout: o.IdleTimeout, MaxRequestBodyBytes: o.MaxBody,
			EventStore:                 b.Events(mcp.NewMemoryEventStore(nil)), // resumable streams
			DisableLocalhostProtection: true,                                   // guard has checked the host
		}),
		stateless: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			Logger: logger, Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: o.MaxBody,
			DisableLocalhostProtection: true,
		}),
	}
}

func (d *dispatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bare := w // which the server knows how to close
	w = &hiding{ResponseWriter: w}
	id := r.Header.Get("Mcp-Session-Id")
	if !d.sessions.may(id, openerOf(r)) || !d.sessions.belongs(id, access.Bound(r.Context())) {
		http.Error(w, "session not found", http.StatusNotFound) // as for one that never was
		return
	}
	d.sessions.hear(id)
	defer d.sessions.hear(id)
	if r.Method == http.MethodDelete {
		d.bridge.Abandon(id, openerOf(r).principal)
	}
	if r.Method != http.MethodPost {
		d.stateful.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(bare, r.Body, d.o.MaxBody))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, fmt.Sprintf("the body is larger than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		} else {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
		}
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m rpc.Message
	var bad *rpc.Error
	if elements, ok := rpc.Batch(body); ok {
		bad = checkBatch(elements, d.sessions.version(id))
	} else {
		m, bad = readMessage(body)
	}
	if bad != nil {
		refuse(w, http.StatusBadRequest, bad)
		return
	}
	d.post(w, r, id, m)
}

// post serves a message, which is empty for a batch, of a session, if there is one.
func (d *dispatcher) post(w http.ResponseWriter, r *http.Request, id string, m rpc.Message) {
	reply := &reply{ResponseWriter: w, message: m}
	defer reply.finish()
	version := m.Meta(mcp.MetaKeyProtocolVersion)
	stateless := version >= statelessProtocol || version == "" && r.Header.Get("Mcp-Protocol-Version") >= statelessProtocol
	switch {
	case d.o.draining() && d.begins(w, m, id, stateless):
	case stateless:
		d.stateless.ServeHTTP(reply, r)
	case m.Method == "initialize" && id == "":
		who := openerOf(r)
		most, where := d.o.sessionsOf(r)
		if !d.sessions.open(who, most) {
			w.Header().Set("Retry-After", "60")
			why := fmt.Sprintf("all sessions that you may have are in use; http.maxSessions is %d", d.o.MaxSessions)
			if where != "" {
				why = fmt.Sprintf("every session that you may have (%d by %s) is in use: end one, or wait until one is quiet", most, where)
			}
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		defer func() { d.sessions.opened(who, w.Header().Get("Mcp-Session-Id")) }()
		d.stateful.ServeHTTP(reply, r)
	case id == "" && m.IsRequest() && m.Method != "ping" && m.Method != "server/discover":
		refuse(w, http.StatusBadRequest, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest,
			Message: "invalid request: it has no Mcp-Session-Id; initialize opens a session"})
	case !d.sessions.enter(id):
		http.Error(w, "the session was ended to make room for another one", http.StatusNotFound)
	default:
		defer d.sessions.leave(id)
		d.stateful.ServeHTTP(reply, r)
	}
}

// Address is the address of the endpoint for clients, where it listens at addr.
func Address(addr net.Addr) string {
	host := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = fmt.Sprintf("THIS-MACHINE:%d", tcp.Port)
	}
	return "http://" + host + "/mcp"
}
