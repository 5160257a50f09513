package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"
)

// An exchange is one request to a server and what came back. It travels in the
// context of the request from Call to the tap.
type exchange struct {
	// capture makes the tap keep the result here and hand the SDK standIn
	// instead.
	capture bool
	// standIn makes what the SDK gets for a result; nil: an empty result.
	standIn func(result []byte) []byte
	client  Client // whom the request is for; nil: nobody in particular
	tie     string // names the exchange to the server, as its progress token; empty without a client
	// life ends with the call that the exchange is of, by end.
	life context.Context
	end  context.CancelFunc

	// sent is set when the request is on its way and unset when the server
	// refused it unread.
	sent atomic.Bool
	// unread reports that the server has forgotten the session and did not
	// read the request.
	unread atomic.Bool

	mu     sync.Mutex
	result []byte
	err    error // why there is no result, if it is not the server's error

	reports chan func(Client) // to the goroutine that tells the client; nil until there is something to tell
	told    chan struct{}     // closed when that goroutine has ended
	over    bool              // nobody wants reports any more
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return new(exchange)
}

func (x *exchange) settle(result []byte, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.result, x.err = result, err
}

// tell passes on what the server says without waiting for who is told. Most
// calls have nothing, so the first report starts the goroutine.
func (x *exchange) tell(report func(Client)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.client == nil {
		return
	}
	if x.reports == nil {
		x.reports, x.told = make(chan func(Client), 64), make(chan struct{})
		go func(reports <-chan func(Client)) {
			defer close(x.told)
			for report := range reports {
				report(x.client)
			}
		}(x.reports)
	}
	select {
	case x.reports <- report:
	default: // the receiver is slower than the server
	}
}

// stopTelling ends the exchange's life. It returns when all reports were
// passed on.
func (x *exchange) stopTelling() {
	x.end()
	x.mu.Lock()
	x.over = true
	told := x.told
	if told != nil {
		close(x.reports)
	}
	x.mu.Unlock()
	if told != nil {
		<-told
	}
}

func (x *exchange) settled() ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result, x.err
}

// errTooLarge is settled on an exchange whose answer is beyond the limit.
type errTooLarge struct{ limit int64 }

func (e errTooLarge) Error() string {
	return fmt.Sprintf("the answer is larger than the limit of %s for one reply: ask for less at a time", bytesText(e.limit))
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + " KB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// maxAsked bounds the requests of a server to us that are open at a time. The
// SDK queues them without a bound.
const maxAsked = 64

// A tap stands between the wire and the SDK of one session. It sees every
// message in both directions, in goroutines of the transport.
type tap struct {
	server string
	limit  int64
	log    *slog.Logger
	shown  redactor
	// changed gets a token when the server says that its tools changed.
	changed chan struct{}
	// refused is the HTTP status with which the server refused our
	// credentials, 0 if it did not.
	refused atomic.Int32
	// login is the error of an Authorizer with which the session ends.
	login atomic.Pointer[error]

	mu    sync.Mutex
	open  map[string]*exchange // our requests without an answer, by id as JSON
	ties  map[string]*exchange // those of them with a client, by their tie
	asked map[string]bool      // the server's requests that the SDK has not answered

	noise    *rate.Limiter
	patience *rate.Limiter   // for what is of no use: see waste
	useless  atomic.Int64    // how many of these there were
	over     <-chan struct{} // closed when the session ends
	// status is that of the last answer over HTTP if it was an error, else 0.
	status  atomic.Int32
	dropped atomic.Int64
	stray   atomic.Pointer[string] // the first line that was no message, to be shown
}

func newTap(spec Spec, log *slog.Logger, shown redactor) *tap {
	return &tap{
		server:   spec.Name,
		limit:    spec.maxReply(),
		log:      log,
		shown:    shown,
		changed:  make(chan struct{}, 1),
		open:     map[string]*exchange{},
		ties:     map[string]*exchange{},
		asked:    map[string]bool{},
		noise:    rate.NewLimiter(5, 20),
		patience: rate.NewLimiter(wastePerSecond, wasteAtOnce),
	}
}

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
func (t *tap) waste(size int) {
	if t.useless.Add(1)%32 == 0 {
		runtime.Gosched() // others, who have work of use, come first
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
	case <-t.over:
	}
}

// drop logs what is not handed on, at most a few times a second.
func (t *tap) drop(why string, msg []byte) {
	if !t.noise.Allow() {
		t.dropped.Add(1)
		return
	}
	t.log.Debug("message of the server dropped", "why", why, "start", t.shown.show(string(msg[:min(len(msg), 300)]), 200),
		"bytes", len(msg), "unlogged", t.dropped.Swap(0))
}

// notMessage drops a line that is no message, such as a banner.
func (t *tap) notMessage(line []byte) {
	if t.stray.Load() == nil {
		text := strconv.Quote(t.shown.Replace(string(line[:min(len(line), maxLine)])))
		text = visible(text, maxName)
		t.stray.CompareAndSwap(nil, &text)
	}
	t.drop("it is not a message", line)
}

// garbage is the first line that was no message, quoted, or empty.
func (t *tap) garbage() string {
	if text := t.stray.Load(); text != nil {
		return *text
	}
	return ""
}

// outgoing notes a message that is about to be sent, and returns its envelope
// and, if it is a request, the exchange that its answer belongs to.
func (t *tap) outgoing(ctx context.Context, msg []byte) (envelope, *exchange) {
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

// forget removes an exchange whose caller has gone. What still comes for it is
// dropped.
func (t *tap) forget(x *exchange) {
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
func (t *tap) take(id []byte) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.open[string(id)]
	delete(t.open, string(id))
	if x != nil && x.tie != "" {
		delete(t.ties, x.tie)
	}
	return x
}

// tied returns the exchange of a tie, nil if there is none.
func (t *tap) tied(tie string) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ties[tie]
}

// sibling returns another exchange with the same client, nil if there is none.
func (t *tap) sibling(x *exchange) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.ties {
		if other != x && other.client == x.client && other.life.Err() == nil {
			return other
		}
	}
	return nil
}

// belongs returns the exchange that a message of the server belongs to which
// names none. On a stream that answers one request it is that one's; else all
// exchanges with a client must be for the same one.
func (t *tap) belongs(stream []byte) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stream != nil {
		if x := t.open[string(stream)]; x != nil && x.client != nil {
			return x
		}
		return nil
	}
	var found *exchange
	for _, x := range t.ties {
		if found != nil && found.client != x.client {
			return nil
		}
		found = x
	}
	return found
}

// incoming takes a message from the server and returns what the SDK is to get
// for it, nil for nothing. stream is the id of the request that the message came
// in answer to, nil if it did not come on a stream of its own.
func (t *tap) incoming(msg, stream []byte) []byte {
	e, err := parseEnvelope(msg)
	if err != nil {
		t.drop(err.Error(), msg)
		return nil
	}
	switch {
	case e.method != nil && e.id == nil:
		return t.notification(e, msg, stream)
	case e.method != nil:
		return t.request(e, msg, stream)
	}
	x := t.take(e.id)
	if x == nil {
		// A second answer, one that came too late, or one to nothing.
		t.drop("it answers no open request", msg)
		return nil
	}
	return t.answer(e, x)
}

func (t *tap) answer(e envelope, x *exchange) []byte {
	switch {
	case e.err != nil:
		answered, encoded := wireError(e.err)
		x.settle(nil, answered)
		return response(e.id, "error", encoded)
	case !json.Valid(e.result):
		x.settle(nil, errors.New("the answer is not valid JSON, or is nested more than 10,000 deep"))
		return response(e.id, "error", failed)
	case e.result[0] != '{':
		x.settle(nil, errors.New("the answer's result is not an object"))
		return response(e.id, "error", failed)
	}
	if !x.capture {
		return response(e.id, "result", e.result)
	}
	// Bytes that are not UTF-8 are no JSON, though json.Valid takes them:
	// replaced, as every decoder of JSON does.
	result := bytes.ToValidUTF8(e.result, []byte("\uFFFD"))
	x.settle(result, nil)
	standIn := []byte(`{"content":[],"tools":[]}`)
	if x.standIn != nil {
		standIn = x.standIn(result)
	}
	return response(e.id, "result", standIn)
}

// tooLarge settles the request that the id of a message beyond the limit names,
// and returns what the SDK is to get for it, nil for nothing.
func (t *tap) tooLarge(id []byte) []byte {
	x := t.take(id)
	if x == nil {
		t.drop("it is larger than the limit", nil)
		return nil
	}
	x.settle(nil, errTooLarge{t.limit})
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
	_ = members(raw, func(key string, value []byte) error {
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
	e.Message = e.Message[:min(len(e.Message), 4*maxMessage)]
	encoded, err := json.Marshal(e)
	if err != nil {
		return e, failed
	}
	return e, encoded
}

// notification handles a notification. None is handed to the SDK, whose queue
// has no bound, except the withdrawal of a request that the SDK is handling.
func (t *tap) notification(e envelope, msg, stream []byte) []byte {
	switch string(e.method) {
	case `"notifications/tools/list_changed"`:
		t.announce()
	case `"notifications/progress"`:
		t.progress(e.params)
	case `"notifications/cancelled"`:
		var id []byte
		_ = members(e.params, func(key string, value []byte) error {
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
			t.log.Debug("log message of the server", "params", t.shown.show(string(e.params[:min(len(e.params), 2*maxLine)]), maxLine))
		} else {
			t.dropped.Add(1)
		}
	}
	return nil
}

// announce has the tools listed again before long.
func (t *tap) announce() {
	select {
	case t.changed <- struct{}{}:
	default: // one is waiting already
	}
}

func (t *tap) progress(params []byte) {
	var tie string
	var p Progress
	var bad bool
	_ = members(params, func(key string, value []byte) error {
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
	p.Server, p.Message = t.server, t.shown.show(p.Message, maxMessage)
	x.tell(func(c Client) { c.Progress(p) })
}

// logged passes a line of the server's log on, if its client wants to hear it.
func (t *tap) logged(x *exchange, params []byte) {
	var level string
	var text []byte
	_ = members(params, func(key string, value []byte) error {
		switch key {
		case "level":
			_ = json.Unmarshal(value, &level)
		case "data":
			text = value[:min(len(value), 64<<10)]
		}
		return nil
	})
	if want := severity(x.client.LogLevel()); want < 0 || severity(level) < want {
		return
	}
	said := string(text)
	if unquoted := ""; json.Unmarshal(text, &unquoted) == nil {
		said = unquoted
	}
	l := Log{Server: t.server, Level: level, Text: t.shown.show(said, maxMessage)}
	x.tell(func(c Client) { c.Log(l) })
}

// request passes a request of the server to the SDK, which answers it, unless
// too many are open.
func (t *tap) request(e envelope, msg, stream []byte) []byte {
	if method := string(e.method); method == `"elicitation/create"` || method == `"sampling/createMessage"` {
		msg = t.tie(e, stream)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, twice := t.asked[string(e.id)]; twice || len(t.asked) >= maxAsked || !json.Valid(msg) {
		t.drop("too many requests, or one that cannot be read", msg)
		return nil
	}
	t.asked[string(e.id)] = true
	return msg
}

// tie writes a request of the server anew, with the name of the call that it
// belongs to in place of its _meta.
func (t *tap) tie(e envelope, stream []byte) []byte {
	name := ""
	if x := t.belongs(stream); x != nil {
		if name = x.tie; stream == nil && t.sibling(x) != nil {
			name += oneOfSeveral
		}
	}
	params := []byte(`{"_meta":{"` + tieKey + `":"` + name + `"}`)
	_ = members(e.params, func(key string, value []byte) error {
		if quoted, err := json.Marshal(key); err == nil && !strings.EqualFold(key, "_meta") {
			params = append(append(append(append(params, ','), quoted...), ':'), value...)
		}
		return nil
	})
	msg := append([]byte(`{"jsonrpc":"2.0","id":`), e.id...)
	msg = append(append(append(msg, `,"method":`...), e.method...), `,"params":`...)
	return append(append(msg, params...), "}}"...)
}
