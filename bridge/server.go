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
	"encoding/base32"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/dialogs"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/bridge/surface"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Upstreams is what the bridge may know of its upstream servers. It has no
// way to call one.
type Upstreams interface {
	Status() []upstream.Status
}

// Options are the parts of a bridge. Gate, Pool and Upstreams are required.
type Options struct {
	Gate      *gate.Gate
	Pool      *sandbox.Pool
	Upstreams Upstreams
	// Version is what the bridge tells clients it is.
	Version string
	// Full shows clients get_tool_schema and codemode_status as well.
	Full bool
	// Limits bound each run; zero fields mean the defaults of package sandbox.
	Limits sandbox.Limits
	// MaxResult is how many bytes of result go to the model; a larger one is
	// summarised. 0 means 64 KB.
	MaxResult int
	// Problem, if not nil, returns what is wrong with the configuration that
	// could not be loaded, for codemode_status; "" if nothing is.
	Problem func() string
	// Held, if not nil, returns what waits to be confirmed before a changed
	// configuration is taken over, for codemode_status; "" if nothing does.
	Held func() string
	// Unrecorded, if not nil, says why records cannot be written, so that
	// calls are refused, for codemode_status; "" if they can.
	Unrecorded func() string
	// ApproveAt, if not nil, returns where approvers answer for a run, such as
	// the address of a page; "" if nowhere.
	ApproveAt func(run string) string
	// ReadAt, if not nil, says where all of a request can be read, for what a
	// dialog has no room for.
	ReadAt func(request string) approval.DescribeOptions
	// SummaryWait is how long a client's model may take to summarise long
	// arguments for the person; 0 means that it is not asked to.
	SummaryWait time.Duration
	// Observed, if not nil, is told of each answer of a tool without an output
	// schema, errors excepted. It must not block.
	Observed func(tool *catalog.Tool, answer gate.Answer)
	// Ended, if not nil, is told the name of a session that has ended. It must
	// not block.
	Ended func(session string)
	// Journal, if not nil, is where runs are kept that can outlive this
	// process. Bridge is its name there, JournalBytes bounds what is kept of one
	// run (0: 32 MB), KeepJournals is how long that stays after the run has
	// ended, and Gone reports whether the bridge of a name has ended.
	Journal      ledger.Journal
	Bridge       string
	JournalBytes int64
	KeepJournals time.Duration
	Gone         func(bridge string) bool
	// Folder is where the servers run that have no folder of their own; empty if
	// all have one. A run that began in one does not go on in another. Nil says
	// that all have one.
	Folder func() string
	// Seal, if not nil, is the key of the states that stateless clients carry,
	// 32 bytes; nil makes one, which no other process has.
	Seal []byte
	// Ready, if not nil, waits until the tools of servers that have just been
	// started are known, for as long as that is worth waiting for.
	Ready  func(context.Context)
	Logger *slog.Logger // nil means slog.Default()
	Now    func() time.Time
}

// A Server is the bridge. Its methods may be called by any number of
// goroutines.
type Server struct {
	o    Options
	mcp  *mcp.Server
	seal *seal.Seal

	levels      elicit.Levels // of logging, that clients want
	dialogs     *dialogs.Open
	withdrawals dialogs.Withdrawals // of dialogs in HTTP sessions
	reflexes    sync.Map            // principal -> *forms.Reflex, of stateless clients

	runs        sync.WaitGroup
	mu          sync.Mutex
	closed      bool
	sessions    map[*mcp.ServerSession]*session
	live        map[string]*run   // by ID
	ended       []*run            // kept for clients that come back, the oldest first
	turned      chan struct{}     // closed when a run starts or ends; nil until somebody asks
	tools       map[string]string // by name: the tool as it was added
	rebuild     sync.Mutex        // held while tools are rewritten; guards tools
	known       sync.Map          // of the present view: *catalog.View -> *sandbox.Names, and what runs begin with (commonText)
	begun       sync.Map          // run ID -> beginning, without its script, of runs that no bridge has
	acquiring   locks             // held while a run is resumed, or ended where it is suspended
	seed        func(*[32]byte)   // makes the seed of a run
	began       time.Time
	suspended   sync.Map // suspendedKey -> run ID, of runs that were suspended here
	stopLeases  context.CancelFunc
	leasesEnded chan struct{} // closed when keepLeases has ended
}

// ErrClosed is returned for what arrives after Close has begun.
var ErrClosed = errors.New("the bridge is shutting down")

// New makes a server that shows the tools of the gate's present view.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) {}
	}
	if o.Folder == nil {
		o.Folder = func() string { return "" }
	}
	if o.ApproveAt == nil {
		o.ApproveAt = func(string) string { return "" }
	}
	if o.ReadAt == nil {
		o.ReadAt = func(string) approval.DescribeOptions { return approval.DescribeOptions{} }
	}
	if o.MaxResult == 0 {
		o.MaxResult = 64 << 10
	}
	s := &Server{
		o:        o,
		sessions: make(map[*mcp.ServerSession]*session),
		live:     make(map[string]*run),
		tools:    make(map[string]string),
		began:    o.Now(),
		dialogs:  dialogs.New(),
		seed:     func(seed *[32]byte) { rand.Read(seed[:]) },
	}
	if s.o.JournalBytes == 0 {
		s.o.JournalBytes = 32 << 20
	}
	if s.o.Gone == nil {
		s.o.Gone = func(string) bool { return false }
	}
	var err error
	if s.seal, err = seal.New(o.Seal); err != nil {
		panic("bridge: AES is missing: " + err.Error()) // it is part of Go
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "codemode", Title: "codemode-bridge", Version: o.Version}, &mcp.ServerOptions{
		Instructions:       surface.Instructions,
		InitializedHandler: func(_ context.Context, req *mcp.InitializedRequest) { s.greet(req) },
		Logger:             o.Logger.With("part", "mcp"),
		//lint:ignore SA1019 logging is deprecated by the newest protocol; servers use it
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}},
	})
	s.mcp.AddReceivingMiddleware(strict, clampInitialize, s.levels.Middleware, s.awaitTools)
	s.mcp.AddSendingMiddleware(forms.Overhear)
	s.retool()
	ctx, stop := context.WithCancel(context.Background()) // ends with Close
	s.stopLeases, s.leasesEnded = stop, make(chan struct{})
	go func() {
		defer close(s.leasesEnded)
		if o.Journal != nil {
			s.keepLeases(ctx)
		}
	}()
	return s
}

// Replace makes the bridge decide on, and show, another view.
func (s *Server) Replace(view *gate.View) {
	s.o.Gate.Replace(view)
	s.known.Clear()
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
	s.mu.Lock()
	s.closed = true
	live := slices.Collect(maps.Values(s.live))
	s.mu.Unlock()
	s.stopLeases()
	<-s.leasesEnded
	for _, r := range live {
		if r.quiet() && !r.evict() {
			r.stop(ErrClosed) // it waits for a person, who cannot answer any more
		}
	}
	ended := make(chan struct{})
	go func() { s.runs.Wait(); close(ended) }()
	select {
	case <-ended:
		return
	case <-time.After(grace):
	}
	s.mu.Lock()
	live = slices.Collect(maps.Values(s.live))
	s.mu.Unlock()
	for _, r := range live {
		if !r.evict() {
			r.stop(ErrClosed)
		}
	}
	<-ended
}

// Running counts the runs that are under way.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// awaitTools answers a list of tools when it is worth reading: a client that asks at
// once, and perhaps never again, is not shown tools of which some servers'
// are missing because these are just being started.
func (s *Server) awaitTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" {
			s.o.Ready(ctx)
		}
		return next(ctx, method, req)
	}
}

// newID returns a new name for a run or session: a letter and 60 random bits.
func newID(kind string) string {
	var b [8]byte
	rand.Read(b[:])
	return kind + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:12]
}

// outcomeOf names how a run ended, for its record.
func outcomeOf(err error) string {
	var script *sandbox.ScriptError
	switch {
	case err == nil:
		return ledger.Done
	case errors.As(err, &script):
		return ledger.Failed
	default:
		return ledger.Stopped
	}
}
