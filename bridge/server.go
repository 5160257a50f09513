// Package bridge serves the code tool over MCP: `eval` and the discovery
// tools, to any number of clients, and owns the runs that they start.
//
// One mcp.Server serves every session of an endpoint. When the tools that may
// be called or the profiles change, [Server.Replace] swaps what is decided on
// and rewrites the tools whose text changed; the SDK tells the clients.
package bridge

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/dialogs"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/bridge/surface"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Versions of the protocol.
const statelessProtocol, newestSessionProtocol = rpc.StatelessProtocol, rpc.NewestSessionProtocol

// A Server is the bridge: the door to its runs, for MCP clients and for those who
// run it. Its methods may be called by any number of goroutines.
type Server struct {
	o      *Options // with the defaults filled in
	mcp    *mcp.Server
	roster *roster // who is here
	leases *leases // the runs that have journals
	runner *runner // starts and resumes runs
	began  time.Time

	seal        *seal.Seal
	dialogs     *dialogs.Open
	withdrawals dialogs.Withdrawals // of dialogs in HTTP sessions
	reflexes    sync.Map            // principal -> *forms.Reflex, of stateless clients

	rebuild sync.Mutex        // held while tools are rewritten
	tools   map[string]string // guarded by rebuild, by name: the tool as it was added
	menus   menus
}

// New makes a server that shows the tools of the gate's present view.
func New(o Options) *Server {
	o.setDefaults()
	sealing, err := seal.New(o.Seal)
	if err != nil {
		panic("bridge: AES is missing: " + err.Error()) // it is part of Go
	}
	s := &Server{o: &o, roster: newRoster(), began: o.Now(), seal: sealing, dialogs: dialogs.New(), tools: make(map[string]string)}
	s.menus.s = s
	s.leases = newLeases(s.o, s.roster)
	s.runner = newRunner(s.o, s.roster, s.leases)
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "codemode", Title: "codemode-bridge", Version: o.Version}, &mcp.ServerOptions{
		GetSessionID:       func() string { return strings.TrimPrefix(o.Name+"."+rand.Text(), ".") },
		Instructions:       surface.Instructions,
		InitializedHandler: func(_ context.Context, req *mcp.InitializedRequest) { s.greet(req) },
		Logger:             o.Logger.With("part", "mcp"),
		//lint:ignore SA1019 logging is deprecated by the newest protocol; servers use it
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}},
	})
	s.mcp.AddReceivingMiddleware(rpc.Conform, s.runner.levels.Middleware, s.awaitTools)
	s.mcp.AddSendingMiddleware(forms.Overhear)
	s.retool()
	return s
}

// Replace makes the bridge decide on, and show, another view.
func (s *Server) Replace(view *gate.View) {
	s.o.Gate.Replace(view)
	s.runner.shared.Forget()
	s.retool()
}

// Serve serves one client over a transport until it goes away or ctx ends.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	conn, err := s.mcp.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- conn.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	defer s.dialogs.Leave(conn)()
	_ = conn.Close() // what goes wrong now changes nothing
	<-ended
	return context.Cause(ctx)
}

// Close refuses new runs, gives those under way grace to end, stops the rest,
// and returns when all have ended. What is still open at clients is withdrawn.
func (s *Server) Close(grace time.Duration) {
	defer s.dialogs.Close()
	live := s.roster.close()
	s.leases.close()
	ended := make(chan struct{})
	go func() { s.roster.underWay.Wait(); close(ended) }()
	for over, look := time.After(grace), time.NewTicker(50*time.Millisecond); over != nil; {
		for _, r := range live {
			if r.quiet() && !r.evict() {
				r.stop(ErrClosed) // it waits for a person, who cannot answer any more
			}
		}
		select {
		case <-ended:
			look.Stop()
			return
		case <-look.C:
		case <-over:
			look.Stop()
			over = nil
		}
		live, _ = s.roster.runs()
	}
	for _, r := range live {
		if !r.evict() {
			r.stop(ErrClosed)
		}
	}
	<-ended
}

// Reclaim ends the runs that other bridges have acquired meanwhile, without a word.
func (s *Server) Reclaim(ctx context.Context) error { return s.leases.reclaim(ctx) }

// Running counts the runs that are under way.
func (s *Server) Running() int { return s.roster.running() }

// MakeRoom suspends the run that its request has left the longest ago, of those
// that can be, so that a run that waits for a worker gets its.
func (s *Server) MakeRoom() {
	for _, r := range s.roster.left(nil) {
		if r.evict() {
			return
		}
	}
}

// awaitTools has a list of tools wait for servers that are just being started: a
// client may ask at once and never again.
func (s *Server) awaitTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" {
			s.o.Ready(ctx)
		}
		result, err := next(ctx, method, req)
		if err == nil {
			s.menus.list(ctx, req.GetExtra(), result)
		}
		return result, err
	}
}

// What an HTTP endpoint needs of the bridge: see mcphttp.Bridge.

// MCP is the server that answers in every session.
func (s *Server) MCP() *mcp.Server { return s.mcp }

// Used reports whether scripts ran in the session of a connection, and whether
// one runs now.
func (s *Server) Used(conn *mcp.ServerSession) (ran, running bool) { return s.roster.used(conn) }

// Abandon stops the runs of the HTTP session of an id that its owner, a principal,
// ends. The SDK waits for them, and would wait as long as they like.
func (s *Server) Abandon(id, owner string) { s.roster.abandon(id, owner) }

// Events wraps the store of what is sent to HTTP sessions, to see what clients
// are told.
func (s *Server) Events(store mcp.EventStore) mcp.EventStore {
	return s.withdrawals.Events(store)
}
