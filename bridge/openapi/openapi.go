// Package openapi turns an OpenAPI 3 document into an MCP server: each operation
// becomes a tool, and a call of the tool becomes one HTTP request to the base URL.
//
//	document ─ load ─▶ openapi3.T ─ operations ─▶ operation ─ tool ─▶ mcp.Server
//	                                                  │
//	        arguments ─ parameters, body ─▶ request ──┴─▶ answer ─▶ CallToolResult
//
// # What is trusted
//
// The person who wrote the configuration chose the document and the base URL. The
// document's text is untrusted all the same: requests go only to paths below the
// base URL, and the document's references are read only from its own folder or, if
// it came from the web, from its own origin. The arguments come from a script:
// whatever they hold, the request goes to the operation's path in the document, with
// the credentials that the configuration has for it and no others.
//
// # What is sent and answered
//
// The arguments of a tool are one object: the parameters by name, and the request's
// body as "body". Parameters that share a name become NAME_in_path, NAME_in_query and
// so on. Numbers keep all their digits: a JSON body is sent as the bytes it came in.
// JSON answers become structured content; images, audio and other binary data become
// content of their kind, and everything else becomes text. A status of 400 or above
// is an error with the start of the body, and so is a redirect to another origin.
// Credentials that the API repeats in an answer are removed from it.
package openapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options say what to make a server of.
type Options struct {
	// Document is the path of a file or an http or https URL.
	Document string
	// BaseURL is what the paths of the document are appended to. A user, a
	// password and query values in it are sent with every request.
	BaseURL string
	// Headers are sent with every request to the origin of BaseURL. What they
	// set, no argument can.
	Headers map[string]string
	// Credentials are for the document's security schemes, by their names: a
	// key, a token, or "user:password".
	Credentials map[string]string
	// MaxReply bounds the body of an answer in bytes; 0: 16 MB.
	MaxReply int64
	// LoadTimeout is how long the document may take to arrive; 0: 30 s.
	LoadTimeout time.Duration
	Logger      *slog.Logger `json:"-"` // nil: no log
}

// New loads the document and makes the server. The server's connections are
// closed when the context ends. Operations that cannot be called are left out,
// and the log says so.
func New(ctx context.Context, o Options) (*mcp.Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a, err := newAPI(o.BaseURL, o.Headers, o.MaxReply)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, a.client.CloseIdleConnections)
	doc, err := a.load(ctx, o.Document, o.LoadTimeout)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	if err := a.credentials.place(doc, o.Credentials); err != nil {
		return nil, err
	}
	a.hide = a.credentials.hider(o.Credentials)
	all, left, err := operations(ctx, doc, &a.credentials)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	for i, why := range left {
		if i == maxComplaints {
			o.Logger.Warn("more operations are left out", "count", len(left)-i)
			break
		}
		o.Logger.Warn("an operation is left out", "why", why)
	}
	version := "1"
	if doc.Info != nil {
		version = cmp.Or(cut(doc.Info.Version, maxName), version)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "codemode-bridge-openapi", Version: version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		PageSize:     pageSize,
	})
	for _, op := range all {
		s.AddTool(op.tool(), func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return a.call(ctx, op, req.Params.Arguments), nil
		})
	}
	return s, nil
}

// Bounds.
const (
	maxComplaints = 20 // operations that the log says are left out
	pageSize      = 64 // tools in one message
)
