package bridge

import (
	"context"
	"log/slog"
	"time"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Upstreams is what the bridge may know of its upstream servers. It has no
// way to call one.
type Upstreams interface {
	Status() []upstream.Status
}

// Where says where runs work, for whom, and where that is traced.
type Where struct {
	Tracer *trace.Tracer // nil: nowhere
	// Access, if not nil, returns who may see and call what now; nil rules are no rules.
	Access func() *access.Rules
	// Folder is where the servers run that have no folder of their own; empty if
	// all have one, as nil says. A run that began in one does not go on in another.
	Folder func() string
	// Workspace, if not nil, returns the folders that a new run works on, of a client
	// at conn (nil: none); remote says that it may be on another machine.
	Workspace func(ctx context.Context, conn *mcp.ServerSession, remote bool) workspace.Workspace
}

// Shared is what bridges with the same store have in common, and what tells them apart.
type Shared struct {
	// Seal, if not nil, is the key of the states that stateless clients carry,
	// 32 bytes; nil makes one, which no other process has.
	Seal []byte
	// Name is what the ids of this bridge's HTTP sessions begin with, before a '.'; empty
	// for nothing.
	Name string
	// Handles, if not nil, is where other bridges find what handles of a principal stand
	// for. With it, journals also keep the answers that nobody has fetched yet.
	Handles handles.Shared
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
	ReadAt func(request string) wording.DescribeOptions
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
	Where
	Shared
	// Ready, if not nil, waits until the tools of servers that have just been
	// started are known, for as long as a client may wait that lists tools.
	Ready  func(context.Context)
	Logger *slog.Logger // nil means slog.Default()
	Now    func() time.Time
}

func (o *Options) setDefaults() {
	if o.Access == nil {
		o.Access = func() *access.Rules { return nil }
	}
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
	if o.Workspace == nil {
		o.Workspace = func(context.Context, *mcp.ServerSession, bool) (none workspace.Workspace) { return none }
	}
	if o.ApproveAt == nil {
		o.ApproveAt = func(string) string { return "" }
	}
	if o.ReadAt == nil {
		o.ReadAt = func(string) wording.DescribeOptions { return wording.DescribeOptions{} }
	}
	if o.MaxResult == 0 {
		o.MaxResult = 64 << 10
	}
	if o.JournalBytes == 0 {
		o.JournalBytes = 32 << 20
	}
	if o.Gone == nil {
		o.Gone = func(string) bool { return false }
	}
}
