package tap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How long a server may keep certain requests without so much as a status.
const (
	listenPatience = 10 * time.Second // subscriptions/listen; the SDK's Connect waits for it without a deadline
	deletePatience = 2 * time.Second  // the end of a session, on Close
)

// maxErrorBody bounds the body of an answer that is not a success.
const maxErrorBody = 64 << 10

// HTTP is the http.RoundTripper under the SDK's HTTP transports. It is where
// the tap listens: the SDK's connections cannot be wrapped without losing what
// they do behind their interface.
type HTTP struct {
	tap     *Tap
	url     string
	sse     bool
	base    *http.Transport
	origin  string // no request goes to another
	headers map[string]string
	auth    Authorizer    // may be nil
	probe   time.Duration // how long server/discover may take
	life    context.Context
	stop    context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]bool // open; nil once the tap has ended
}

// HTTPOptions say how a server is reached over HTTP.
type HTTPOptions struct {
	URL string // http or https
	SSE bool   // by the transport of 2024-11-05
	// Headers are sent with every request to the URL's own origin, and to no other.
	Headers map[string]string
	Auth    Authorizer // nil: nobody authorizes the requests
	// Probe is how long server/discover may take.
	Probe time.Duration
	Conns int // idle connections that are kept
}

// NewHTTP makes the tap's way to a server over HTTP.
func NewHTTP(t *Tap, o HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("the URL is not an http or https URL with a host")
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = o.Conns
	base.MaxResponseHeaderBytes = 256 << 10
	w := &HTTP{tap: t, url: o.URL, sse: o.SSE, base: base, origin: origin(u), headers: o.Headers, auth: o.Auth, probe: o.Probe}
	w.life, w.stop = context.WithCancel(context.Background()) // until Close: the SDK makes requests by itself
	w.conns = map[net.Conn]bool{}
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return w.keep(c)
	}
	return w, nil
}

// keep notes a connection, to be closed with the tap: a Transport dials ahead,
// and a connection for a request that is over may become idle after the idle ones
// were closed.
func (w *HTTP) keep(c net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		c.Close()
		return nil, net.ErrClosed
	}
	w.conns[c] = true
	return &keptConn{c, w}, nil
}

// A keptConn is a connection that its tap knows of.
type keptConn struct {
	net.Conn
	tap *HTTP
}

func (c *keptConn) Close() error {
	c.tap.mu.Lock()
	delete(c.tap.conns, c.Conn)
	c.tap.mu.Unlock()
	return c.Conn.Close()
}

// Close ends what is under way and closes the connections. Nothing is sent after
// that: the SDK sends cancellations in the background, for whose sake a
// connection would be opened again.
func (w *HTTP) Close() {
	w.stop()
	w.base.CloseIdleConnections()
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// client returns the http.Client for the SDK's transport. It follows redirects
// within the origin only: a header of the Spec must never reach another host.
func (w *HTTP) client() *http.Client { return &http.Client{Transport: w} }

// origin is scheme, host and port, the default port written out.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Transport returns the SDK's transport over it.
func (w *HTTP) Transport() mcp.Transport {
	// The bounds of the events are the tap's; the SDK's own, which would end
	// the session, is out of the way.
	slack := int(w.tap.limit) + 1<<20
	if w.sse {
		return &mcp.SSEClientTransport{Endpoint: w.url, HTTPClient: w.client(), MaxEventSize: slack}
	}
	return &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: w.client(), MaxEventSize: slack}
}

func (w *HTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	if to := origin(req.URL); to != w.origin {
		closeBody(req)
		return nil, fmt.Errorf("the server leads to another origin (%s), which is not followed", Escape(to, MaxName))
	}
	if w.life.Err() != nil {
		closeBody(req)
		return nil, ErrSessionEnded
	}
	var call envelope
	var x *Exchange
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			closeBody(req)
			return nil, err
		}
		sent, err := io.ReadAll(body)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		call, x = w.tap.outgoing(req.Context(), sent)
	}
	if x.barred() != nil {
		closeBody(req)
		w.tap.take(call.id)
		return standIn(req, http.StatusOK, response(call.id, "error", failed)), nil
	}
	var patience time.Duration
	switch {
	case string(call.method) == `"server/discover"`:
		patience = w.probe
	case string(call.method) == `"subscriptions/listen"`:
		patience = listenPatience
	case req.Method == http.MethodDelete:
		patience = deletePatience
	}
	ctx, cancel := context.WithCancel(req.Context())
	detach := context.AfterFunc(w.life, cancel)
	if x != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) },
		})
	}
	req = req.Clone(ctx)
	x.guard(req)
	for name, value := range w.headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	if patience > 0 {
		timer := time.AfterFunc(patience, cancel)
		defer timer.Stop()
	}
	resp, needed, err := w.send(req)
	if err != nil {
		detach()
		cancel()
		return nil, err
	}
	if needed != nil && resp.StatusCode == http.StatusForbidden && x != nil && string(call.method) == `"tools/call"` {
		// The login is good for other calls: the session goes on, and the SDK
		// is told that this one request was refused.
		_ = resp.Body.Close()
		detach()
		cancel()
		w.tap.take(call.id)
		x.sent.Store(false)
		x.resolve(nil, needed)
		return standIn(req, http.StatusOK, response(call.id, "error", failed)), nil
	}
	if needed != nil {
		w.tap.login.CompareAndSwap(nil, &needed) // the SDK may try in another way
	}
	w.read(req, resp, call, x)
	// The context must live as long as the body is read.
	resp.Body = &ending{ReadCloser: resp.Body, end: func() { detach(); cancel() }}
	return resp, nil
}

// send sends a request with its authorization, and once more where that was
// renewed for it. needed says why a person must log in, if the answer means that.
func (w *HTTP) send(req *http.Request) (resp *http.Response, needed, err error) {
	if w.auth == nil {
		resp, err = w.base.RoundTrip(req)
		return resp, nil, err
	}
	for first := true; ; first = false {
		token, err := w.auth.Token(req.Context())
		switch {
		case NeedsLogin(err):
			closeBody(req)
			return standIn(req, http.StatusUnauthorized, nil), err, nil // as if it had been sent
		case err != nil:
			closeBody(req)
			return nil, nil, err
		case token != "":
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := w.base.RoundTrip(req)
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, nil, nil
		}
		again, err := w.auth.Refused(req.Context(), token, resp.StatusCode, resp.Header)
		switch {
		case NeedsLogin(err):
			return resp, err, nil
		case err != nil:
			_ = resp.Body.Close()
			return nil, nil, err
		case !again || !first:
			return resp, nil, nil
		}
		_ = resp.Body.Close()
		if req.Body != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, nil, err
			}
		}
	}
}

// guard has the check of a request asked once more when its body is read: after the
// connection was made, which may take long.
func (x *Exchange) guard(req *http.Request) {
	if x == nil || x.check == nil || req.Body == nil || req.GetBody == nil {
		return
	}
	again := req.GetBody
	req.Body = &guarded{ReadCloser: req.Body, x: x}
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := again()
		return &guarded{ReadCloser: body, x: x}, err
	}
}

// A guarded body asks before its first byte only: behind that, part of it may be sent.
type guarded struct {
	io.ReadCloser
	x     *Exchange
	asked bool
}

func (g *guarded) Read(p []byte) (int, error) {
	if !g.asked {
		if err := g.x.barred(); err != nil {
			return 0, err
		}
		g.asked = true
	}
	return g.ReadCloser.Read(p)
}

// standIn makes an answer that no server gave.
func standIn(req *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// read puts the tap into the body of an answer.
func (w *HTTP) read(req *http.Request, resp *http.Response, call envelope, x *Exchange) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	w.tap.status.Store(0)
	switch {
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		if resp.StatusCode >= 400 { // what comes of a redirect is said elsewhere
			w.tap.status.Store(int32(resp.StatusCode))
		}
		w.refusal(req, resp, x)
	case media == "text/event-stream" && string(call.method) == `"subscriptions/listen"`:
		resp.Body = newListening(w, req, resp.Body, call.id)
		resp.ContentLength = -1
	case media == "text/event-stream":
		resp.Body = newEvents(resp.Body, w.tap, call.id)
		resp.ContentLength = -1
	case call.method != nil && call.id != nil && !w.sse: // SSE answers on its standing stream
		if media != "application/json" && x != nil {
			// The SDK refuses it, and with it the whole session.
			x.resolve(nil, fmt.Errorf("the answer is of the type %q, which is not MCP", Escape(media, MaxName)))
		}
		resp.Body = &reply{body: resp.Body, tap: w.tap, id: call.id, length: resp.ContentLength}
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	default:
		resp.Body = &limited{ReadCloser: resp.Body, left: w.tap.limit}
	}
}

// refusal reads an answer that is not a success.
func (w *HTTP) refusal(req *http.Request, resp *http.Response, x *Exchange) {
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		w.tap.refused.Store(int32(resp.StatusCode))
	}
	// This much is taken for all of it: the error of a call is short.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body = &refused{Reader: bytes.NewReader(body), Closer: resp.Body}
	if x == nil {
		return
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		x.sent.Store(false)
	case http.StatusNotFound:
		// "The server MAY terminate the session at any time, after which it
		// MUST respond to requests containing that session ID with HTTP 404
		// Not Found": the request was not looked at.
		if req.Header.Get("Mcp-Session-Id") != "" {
			x.sent.Store(false)
			x.unread.Store(true)
		}
	}
	if e, err := parseEnvelope(body); err == nil && e.err != nil {
		answered, _ := wireError(e.err)
		x.resolve(nil, answered)
		return
	}
	x.resolve(nil, StatusError(resp.StatusCode))
}

// ErrSessionEnded is the error of a request whose session has ended.
var ErrSessionEnded = errors.New("the session ended")

// ErrBroken says that an answer has no end.
var ErrBroken = errors.New("the answer broke off")

// An Authorizer supplies the Authorization header of the requests. An error of its
// for which [NeedsLogin] is true lasts until a person does something. Its methods are
// called from several goroutines at once.
type Authorizer interface {
	// Token returns the bearer token for the next request; empty: none.
	Token(ctx context.Context) (string, error)
	// Refused is told that a request with the token was answered with 401 or
	// 403. It reports whether the request is to be sent again, which is done
	// once. Without an error, the answer speaks for itself.
	Refused(ctx context.Context, token string, status int, header http.Header) (again bool, err error)
}

// NeedsLogin reports whether an error lasts until a person logs in: it has a
// method NeedsLogin().
func NeedsLogin(err error) bool {
	var needed interface {
		error
		NeedsLogin()
	}
	return errors.As(err, &needed)
}

// A StatusError is an HTTP status instead of an answer.
type StatusError int

func (e StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered with HTTP status %d %s", int(e), http.StatusText(int(e))))
}

type refused struct {
	io.Reader
	io.Closer
}

// An ending calls end when the body is closed.
type ending struct {
	io.ReadCloser
	end func()
}

func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// A limited body ends after so many bytes.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, io.EOF
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// A reply is the body of a JSON answer to one request: whatever the server sent
// it reads as exactly one message, the answer to that request.
type reply struct {
	body   io.ReadCloser
	tap    *Tap
	id     []byte
	length int64 // -1: unknown
	made   *bytes.Reader
	err    error
}

func (r *reply) Read(p []byte) (int, error) {
	if r.made == nil && r.err == nil {
		r.make()
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.made.Read(p)
}

func (r *reply) make() {
	answer := func(err error) {
		if x := r.tap.take(r.id); x != nil {
			x.resolve(nil, err)
		}
		r.made = bytes.NewReader(response(r.id, "error", failed))
	}
	if r.length > r.tap.limit {
		answer(TooLargeError{r.tap.limit})
		return
	}
	data, over, err := readAll(r.body, r.tap.limit)
	switch {
	case over:
		_ = r.body.Close() // the rest is not fetched
		answer(TooLargeError{r.tap.limit})
	case err != nil:
		answer(fmt.Errorf("%w: %w", ErrBroken, err))
	default:
		data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
		if e, err := parseEnvelope(data); err == nil && e.method == nil && bytes.Equal(e.id, r.id) {
			r.made = bytes.NewReader(r.tap.incoming(data, r.id))
			return
		}
		r.tap.Drop("it is not the answer to the request", data)
		answer(errors.New("the answer is not the JSON-RPC answer to the request"))
	}
}

func (r *reply) Close() error { return r.body.Close() }

// readAll reads r to its end in pieces, so that little more than the limit is ever
// held.
func readAll(r io.Reader, limit int64) (data []byte, over bool, err error) {
	var chunks [][]byte
	var size int64
	for {
		chunk := make([]byte, 64<<10)
		n, err := fill(r, chunk)
		size += int64(n)
		if size > limit {
			return nil, true, nil
		}
		chunks = append(chunks, chunk[:n])
		switch {
		case errors.Is(err, io.EOF):
			if len(chunks) == 1 {
				return chunks[0], false, nil
			}
			return bytes.Join(chunks, nil), false, nil
		case err != nil:
			return nil, false, err
		}
	}
}

// fill reads until p is full. Unlike io.ReadFull it returns the reader's own
// error: io.EOF is the end, and io.ErrUnexpectedEOF that the connection broke.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}
