// Package tap stands between an MCP session of the SDK and its wire.
//
// The SDK makes the handshake, negotiates the version and numbers the requests. A
// [Tap] sees each message below it as bytes: it checks size and envelope, keeps the
// result of a call as the bytes that arrived, hands the SDK an empty stand-in, and
// bounds whatever a hostile server could send in any number.
//
//	       stdio, inprocess                         http, sse
//	SDK  <- Lines <- tap <- stdout        SDK <- its transport <- HTTP <- tap <- body
//	SDK  -> Lines -> tap -> stdin         SDK -> its transport -> HTTP -> tap -> request
//
// [Lines] replaces the SDK's transport. [HTTP] is the http.RoundTripper beneath it,
// since wrapping the SDK's connections would lose what they do behind their
// interface. An [Exchange] is one request: its caller puts it into the request's
// context and finds the server's answer in it.
//
// # Why it is needed
//
// This is also written for the authors of the SDK. The package would be unnecessary
// if the SDK's client
//
//  1. returned the result of tools/call as the json.RawMessage that arrived. Decoding
//     into Go values rounds numbers beyond 2^53, reorders members and drops unknown
//     ones; whoever audits or signs results needs the bytes;
//  2. had an option that bounds the bytes of one message, and a larger one ended the
//     request that it answers instead of the session. The id is found by reading on
//     without keeping the rest (see skeleton);
//  3. skipped a line of stdout that is not a message, and told a hook. Programs print
//     banners, and the first one ends the session;
//  4. bounded its queues of notifications and of server requests, which a server can
//     fill faster than handlers empty them;
//  5. said, with the error of a call, whether the request was written and whether the
//     server refused it unread (404 for its session): this decides whether the call
//     may be sent again, and what is said of a call whose outcome is unknown;
//  6. told the handler of a server request (elicitation, sampling) which call it
//     belongs to: over HTTP that of its stream, over stdio the only one under way;
//  7. let a caller bound how long server/discover and subscriptions/listen may go
//     unanswered, and reopened the latter's stream when it ends.
package tap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"
)

// maxAsked bounds the requests of a server to us that are open at a time. The
// SDK queues them without a bound.
const maxAsked = 64

// Options are what a tap must know of its server.
type Options struct {
	Server string // its configured name
	Limit  int64  // bytes of one message of the server
	// Done is closed when the session ends: nothing waits beyond it.
	Done <-chan struct{}
	Log  *slog.Logger // nil: no log
	// Hide takes secrets out of a text that is shown; nil: there are none.
	Hide func(text string) string
}

// A Tap stands between the wire and the SDK of one session. It sees every
// message in both directions, in goroutines of the transport.
type Tap struct {
	server string
	limit  int64
	log    *slog.Logger
	hide   func(text string) string
	done   <-chan struct{}
	// changed gets a token when the server says that its tools changed.
	changed chan struct{}
	// refused is the HTTP status with which the server refused our
	// credentials, 0 if it did not.
	refused atomic.Int32
	// login is the error of an Authorizer with which the session ends.
	login atomic.Pointer[error]
	// status is that of the last answer over HTTP if it was an error, else 0.
	status atomic.Int32

	mu    sync.Mutex
	open  map[string]*Exchange // our requests without an answer, by id as JSON
	ties  map[string]*Exchange // those of them with a listener, by their tie
	asked map[string]bool      // the server's requests that the SDK has not answered

	noise    *rate.Limiter
	patience *rate.Limiter // for what is of no use: see waste
	useless  atomic.Int64  // how many of these there were
	dropped  atomic.Int64
	stray    atomic.Pointer[string] // the first line that was no message, to be shown
}

// New makes the tap of one session.
func New(o Options) *Tap {
	t := &Tap{
		server:   o.Server,
		limit:    o.Limit,
		log:      o.Log,
		hide:     o.Hide,
		done:     o.Done,
		changed:  make(chan struct{}, 1),
		open:     map[string]*Exchange{},
		ties:     map[string]*Exchange{},
		asked:    map[string]bool{},
		noise:    rate.NewLimiter(5, 20),
		patience: rate.NewLimiter(wastePerSecond, wasteAtOnce),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.hide == nil {
		t.hide = func(text string) string { return text }
	}
	return t
}

// Changed gets a token when the server says that its tools changed.
func (t *Tap) Changed() <-chan struct{} { return t.changed }

// Refused returns the HTTP status with which the server refused our credentials, 0 if
// it did not.
func (t *Tap) Refused() int { return int(t.refused.Load()) }

// LoginNeeded returns the error of the Authorizer with which the session ends; nil if
// there is none.
func (t *Tap) LoginNeeded() error {
	if needed := t.login.Load(); needed != nil {
		return *needed
	}
	return nil
}

// Status returns the HTTP status of the last answer if it was an error, else 0.
func (t *Tap) Status() StatusError { return StatusError(t.status.Load()) }

// show makes text of the server fit to be shown.
func (t *Tap) show(text string, limit int) string { return Escape(t.hide(text), limit) }

// A server may send so much that is of no use, such as notifications and lines
// that are no messages, in a second, and so much at once. One message is one
// unit, and one more for each 256 bytes.
const (
	wastePerSecond = 20_000
	wasteAtOnce    = 400_000
)

// waste is told of a message that was of no use. It waits when there are too
// many, so that a flood is slowed down at its source and takes neither our time
// nor that of other servers; what it delays are this server's own messages.
func (t *Tap) waste(size int) {
	if t.useless.Add(1)%32 == 0 {
		runtime.Gosched() // useful work comes first
	}
	now := time.Now()
	delay := t.patience.ReserveN(now, min(1+size/256, wasteAtOnce)).DelayFrom(now)
	if delay < 10*time.Millisecond { // a timer would cost more than it saves
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.done:
	}
}

// Drop logs what is not handed on, at most a few times a second.
func (t *Tap) Drop(why string, msg []byte) {
	if !t.noise.Allow() {
		t.dropped.Add(1)
		return
	}
	t.log.Debug("message of the server dropped", "why", why, "start", t.show(string(msg[:min(len(msg), 300)]), 200),
		"bytes", len(msg), "unlogged", t.dropped.Swap(0))
}

// notMessage drops a line that is no message, such as a banner.
func (t *Tap) notMessage(line []byte) {
	if t.stray.Load() == nil {
		text := strconv.Quote(t.hide(string(line[:min(len(line), MaxLine)])))
		text = Escape(text, MaxName)
		t.stray.CompareAndSwap(nil, &text)
	}
	t.Drop("it is not a message", line)
}

// Garbage returns the first line that was not a message, quoted; empty: there was none.
func (t *Tap) Garbage() string {
	if text := t.stray.Load(); text != nil {
		return *text
	}
	return ""
}

// outgoing notes a message that is about to be sent, and returns its envelope
// and, if it is a request, the exchange that its answer belongs to.
func (t *Tap) outgoing(ctx context.Context, msg []byte) (envelope, *Exchange) {
	e, err := parseEnvelope(msg)
	if err != nil || e.id == nil {
		return e, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.method == nil {
		delete(t.asked, string(e.id))
		return e, nil
	}
	x := exchangeOf(ctx)
	t.open[string(e.id)] = x
	if x.tie != "" {
		t.ties[x.tie] = x
	}
	return e, x
}

// Forget removes an exchange whose caller has gone. What still comes for it is
// dropped.
func (t *Tap) Forget(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, other := range t.open {
		if other == x {
			delete(t.open, id)
		}
	}
	if x.tie != "" {
		delete(t.ties, x.tie)
	}
}

// take removes and returns the exchange of an id, nil if there is none.
func (t *Tap) take(id []byte) *Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.open[string(id)]
	delete(t.open, string(id))
	if x != nil && x.tie != "" {
		delete(t.ties, x.tie)
	}
	return x
}

// incoming takes a message from the server and returns what the SDK is to get
// for it, nil for nothing. stream is the id of the request that the message came
// in answer to, nil if it did not come on a stream of its own.
func (t *Tap) incoming(msg, stream []byte) []byte {
	forward, answered := t.arrival(msg, stream)
	if answered != nil {
		return response(answered, "result", []byte(`{"content":[],"tools":[]}`))
	}
	return forward
}

// arrival is incoming, except that of an answer that is all in the exchange it returns
// only which request is answered: the SDK needs to hear no more than ErrAnswered.
func (t *Tap) arrival(msg, stream []byte) (forward, answered []byte) {
	e, err := parseEnvelope(msg)
	if err != nil {
		t.Drop(err.Error(), msg)
		return nil, nil
	}
	switch {
	case e.method != nil && e.id == nil:
		return t.notification(e, msg, stream), nil
	case e.method != nil:
		return t.request(e, msg, stream), nil
	}
	x := t.take(e.id)
	if x == nil {
		// A second answer, one that came too late, or one to nothing.
		t.Drop("it answers no open request", msg)
		return nil, nil
	}
	if forward = t.answer(e, x); forward == nil {
		return nil, e.id
	}
	return forward, nil
}

// answer resolves an exchange and returns what the SDK is to get; nil if it needs
// nothing of a result.
func (t *Tap) answer(e envelope, x *Exchange) []byte {
	switch {
	case e.err != nil:
		answered, encoded := wireError(e.err)
		x.resolve(nil, answered)
		return response(e.id, "error", encoded)
	case !json.Valid(e.result):
		x.resolve(nil, errors.New("the answer is not valid JSON, or is nested more than 10,000 deep"))
		return response(e.id, "error", failed)
	case e.result[0] != '{':
		x.resolve(nil, errors.New("the answer's result is not an object"))
		return response(e.id, "error", failed)
	}
	if !x.capture {
		return response(e.id, "result", e.result)
	}
	// json.Valid accepts bytes that are not UTF-8. They are replaced, as every
	// decoder of JSON does.
	result := bytes.ToValidUTF8(e.result, []byte("\uFFFD"))
	x.resolve(result, nil)
	if x.standIn == nil {
		return nil
	}
	return response(e.id, "result", x.standIn(result))
}

// ErrAnswered is the SDK's error for a request that was answered over Lines: the result
// is in the exchange. From a result the SDK would read nothing, with two buffers of
// 32 KB.
var ErrAnswered = errors.New("the answer is in the exchange")

// tooLarge resolves the request that the id of a message beyond the limit names,
// and returns what the SDK is to get for it, nil for nothing.
func (t *Tap) tooLarge(id []byte) []byte {
	x := t.take(id)
	if x == nil {
		t.Drop("it is larger than the limit", nil)
		return nil
	}
	x.resolve(nil, TooLargeError{t.limit})
	return response(id, "error", failed)
}

// failed tells the SDK that a request has ended; why is in the exchange.
var failed = []byte(`{"code":-32603,"message":"see the exchange"}`)

func response(id []byte, member string, value []byte) []byte {
	b := make([]byte, 0, len(value)+len(id)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"`...)
	b = append(b, member...)
	b = append(b, `":`...)
	b = append(b, value...)
	return append(b, '}')
}

// wireError reads the error object of an answer, bounded in size, and returns it
// and a form of it that the SDK can read too, whatever the server sent.
func wireError(raw []byte) (*jsonrpc.Error, []byte) {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "an error without a message"}
	_ = Members(raw, func(key string, value []byte) error {
		switch key {
		case "code":
			_ = json.Unmarshal(value, &e.Code)
		case "message":
			_ = json.Unmarshal(value, &e.Message)
		case "data":
			if len(value) <= maxErrorBody && json.Valid(value) {
				e.Data = bytes.Clone(value)
			}
		}
		return nil
	})
	e.Message = e.Message[:min(len(e.Message), 4*MaxMessage)]
	encoded, err := json.Marshal(e)
	if err != nil {
		return e, failed
	}
	return e, encoded
}

// notification handles a notification. None is handed to the SDK, whose queue
// has no bound, except the withdrawal of a request that the SDK is handling.
func (t *Tap) notification(e envelope, msg, stream []byte) []byte {
	switch string(e.method) {
	case `"notifications/tools/list_changed"`:
		t.announce()
	case `"notifications/progress"`:
		t.progress(e.params)
	case `"notifications/cancelled"`:
		var id []byte
		_ = Members(e.params, func(key string, value []byte) error {
			if key == "requestId" {
				id = value
			}
			return nil
		})
		t.mu.Lock()
		known := t.asked[string(id)]
		if known {
			t.asked[string(id)] = false // once is enough
		}
		t.mu.Unlock()
		if known && json.Valid(msg) {
			return msg
		}
	case `"notifications/message"`:
		if x := t.belongs(stream); x != nil {
			t.logged(x, e.params)
		}
		if t.noise.Allow() {
			t.log.Debug("log message of the server", "params", t.show(string(e.params[:min(len(e.params), 2*MaxLine)]), MaxLine))
		} else {
			t.dropped.Add(1)
		}
	}
	return nil
}

// announce has the tools listed again soon.
func (t *Tap) announce() {
	select {
	case t.changed <- struct{}{}:
	default: // one is waiting already
	}
}

func (t *Tap) progress(params []byte) {
	var tie string
	var p Progress
	var bad bool
	_ = Members(params, func(key string, value []byte) error {
		switch key {
		case "progressToken":
			_ = json.Unmarshal(value, &tie) // all of ours are strings
		case "progress":
			bad = bad || json.Unmarshal(value, &p.Progress) != nil
		case "total":
			_ = json.Unmarshal(value, &p.Total)
		case "message":
			if len(value) < 64<<10 {
				_ = json.Unmarshal(value, &p.Message)
			}
		}
		return nil
	})
	x := t.tied(tie)
	if x == nil || bad {
		return
	}
	p.Server, p.Message = t.server, t.show(p.Message, MaxMessage)
	x.tell(func(l Listener) { l.Progress(p) })
}

// logged passes a line of the server's log on, if its listener wants to hear it.
func (t *Tap) logged(x *Exchange, params []byte) {
	var level string
	var text []byte
	_ = Members(params, func(key string, value []byte) error {
		switch key {
		case "level":
			_ = json.Unmarshal(value, &level)
		case "data":
			text = value[:min(len(value), 64<<10)]
		}
		return nil
	})
	if want := Severity(x.listener.LogLevel()); want < 0 || Severity(level) < want {
		return
	}
	said := string(text)
	if unquoted := ""; json.Unmarshal(text, &unquoted) == nil {
		said = unquoted
	}
	l := Log{Server: t.server, Level: level, Text: t.show(said, MaxMessage)}
	x.tell(func(to Listener) { to.Log(l) })
}
