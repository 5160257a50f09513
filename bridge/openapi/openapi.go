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
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
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
	a, err := newAPI(o)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, a.client.CloseIdleConnections)
	doc, err := a.load(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	if err := a.learn(doc, o.Credentials); err != nil {
		return nil, err
	}
	all, left, err := operations(ctx, doc, a)
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

// Stamp stands for the present content of a document in a file, so that a change
// can be seen; it is empty for one that is not there, or not a file.
func Stamp(document string) string {
	if isURL(document) {
		return ""
	}
	info, err := os.Stat(document)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %v", info.Size(), info.ModTime().UnixNano())
}

func isURL(document string) bool {
	return strings.HasPrefix(document, "https://") || strings.HasPrefix(document, "http://")
}

// Bounds.
const (
	maxComplaints = 20
	maxOperations = 10_000
	maxParameters = 200      // of an operation
	maxName       = 64       // bytes of a tool's name, before what makes it unique
	maxText       = 2_000    // bytes of a description
	maxNote       = 500      // bytes of the description of one parameter
	maxSchema     = 16 << 10 // bytes of one schema, about
	maxAddress    = 64 << 10 // bytes of a request's URL
	maxError      = 4_000    // bytes of a body that are shown with an error
	maxCopy       = 64 << 10 // bytes of JSON that are repeated as text
	pageSize      = 64       // tools in one message
	maxRedirects  = 5
)

// An api is the far side: where requests go, and what is sent with all of them.
type api struct {
	base    *url.URL // without user, query and fragment; its path does not end in a slash
	user    *url.Userinfo
	query   url.Values // of the base URL
	headers http.Header
	schemes map[string]credential
	client  *http.Client
	limit   int64
	hide    *strings.Replacer // takes credentials out of answers
}

func newAPI(o Options) (*api, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the base URL is not an http or https URL with a host")
	}
	a := &api{user: u.User, query: u.Query(), headers: http.Header{}, limit: cmp.Or(o.MaxReply, 16<<20)}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	a.base = u
	for name, value := range o.Headers {
		a.headers.Set(name, value)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 256 << 10
	transport.MaxIdleConnsPerHost = 16
	a.client = &http.Client{Transport: transport, CheckRedirect: a.redirect}
	return a, nil
}

// redirect follows within the origin and hands on what leads elsewhere as an
// answer: the credentials are for this origin only.
func (a *api) redirect(req *http.Request, via []*http.Request) error {
	if origin(req.URL) != origin(via[0].URL) || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// origin is the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// tool describes an operation.
func (op *operation) tool() *mcp.Tool {
	yes, no := true, false
	notes := &mcp.ToolAnnotations{Title: op.title}
	switch op.method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		notes.ReadOnlyHint, notes.DestructiveHint, notes.IdempotentHint = true, &no, true
	case http.MethodPut:
		notes.IdempotentHint = true
	case http.MethodDelete:
		notes.IdempotentHint, notes.DestructiveHint = true, &yes
	}
	t := &mcp.Tool{Name: op.name, Title: op.title, Description: op.description, InputSchema: op.input, Annotations: notes}
	if op.output != nil {
		t.OutputSchema = op.output
	}
	return t
}

// cut returns the start of a text that has at most so many bytes, with an
// ellipsis where something is missing.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// encode is JSON as it is, without the escapes that HTML needs.
func encode(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // v is made of what a reader of JSON or YAML gave
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}
