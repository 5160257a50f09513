package tap

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// A Listener is told what a server says in the middle of a request of its own.
// Progress and Log are called in order, one at a time, and never after
// [Exchange.End] has returned; what comes faster than it is taken is dropped.
type Listener interface {
	Progress(Progress)
	Log(Log)
	// LogLevel is the least severe level that the listener wants to hear of, as
	// MCP names it; empty: none.
	LogLevel() string
}

// A Progress is one report of a call that is under way.
type Progress struct {
	Server          string
	Progress, Total float64 // Total is 0 if it is not known
	Message         string  // untrusted, but fit to be shown
}

// A Log is one line that a server logs during a call.
type Log struct {
	Server, Level string
	Text          string // untrusted, but fit to be shown
}

// An Exchange is one request to a server and what came back. It travels in the
// context of the request from the caller, past the SDK, to the tap.
type Exchange struct {
	// capture makes the tap keep the result here and hand the SDK standIn
	// instead.
	capture bool
	// standIn makes what the SDK gets for a result; nil: no more than that there is
	// one.
	standIn  func(result []byte) []byte
	listener Listener                // nil: nobody in particular
	tie      string                  // names the exchange to the server, as its progress token; empty without a listener
	check    func() error            // says why the request may not be sent any more; nil: it may
	stop     context.CancelCauseFunc // ends the SDK's request; nil without check
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

	reports chan func(Listener) // to the goroutine that tells the listener; nil until there is something to tell
	told    chan struct{}       // closed when that goroutine has ended
	over    bool                // nobody wants reports any more
}

// ties numbers the exchanges that servers may refer to.
var ties atomic.Int64

// NewExchange makes the exchange of one call, which ends with ctx at the latest.
// The result is kept as the server sent it, and the SDK gets what standIn makes of
// it; nil: ErrAnswered, over HTTP an empty result. What the server says meanwhile goes to l, under a
// progress token of our own: no token of a client of ours, which two clients may
// choose alike, ever reaches a server. l may be nil. The caller calls End.
func NewExchange(ctx context.Context, l Listener, standIn func(result []byte) []byte) *Exchange {
	x := &Exchange{capture: true, standIn: standIn, listener: l}
	x.check, _ = ctx.Value(checkKey{}).(func() error)
	x.life, x.end = context.WithCancel(ctx)
	if l != nil {
		x.tie = "codemode-" + strconv.FormatInt(ties.Add(1), 10)
	}
	return x
}

type checkKey struct{}

// WithCheck returns a context for calls that check has the last word on: none is sent
// once it returns an error. It is asked right before the request goes to the system.
func WithCheck(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, checkKey{}, check)
}

// barred returns why the request may not be sent any more, and ends it with that: for the
// SDK it was cancelled, since another error of a transport would end the session.
func (x *Exchange) barred() error {
	if x == nil || x.check == nil {
		return nil
	}
	err := x.check()
	if err != nil {
		x.sent.Store(false)
		err = &barredError{err}
		x.resolve(nil, err)
		x.stop(err)
	}
	return err
}

// A barredError says why a request was not sent. It says nothing about the server.
type barredError struct{ error }

func (e *barredError) Error() string { return "it was not sent: " + e.error.Error() }

func (e *barredError) Unwrap() error { return e.error }

// Barred reports whether a request was not sent because its check refused it.
func Barred(err error) bool { return errors.As(err, new(*barredError)) }

type exchangeKey struct{}

// In returns a context for the SDK's request that is the exchange.
func (x *Exchange) In(ctx context.Context) context.Context {
	if x.check != nil {
		ctx, x.stop = context.WithCancelCause(ctx)
		stop := x.stop
		context.AfterFunc(x.life, func() { stop(nil) })
	}
	return context.WithValue(ctx, exchangeKey{}, x)
}

// exchangeOf returns the exchange of a request; those that the SDK makes by itself
// have one of their own, of which nothing is kept.
func exchangeOf(ctx context.Context) *Exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*Exchange); ok {
		return x
	}
	return new(Exchange)
}

// Life returns the context of the call. It has the values of the one that NewExchange
// was given, and ends with End.
func (x *Exchange) Life() context.Context { return x.life }

// Tie returns the progress token that names the exchange to the server; empty without
// a listener.
func (x *Exchange) Tie() string { return x.tie }

// Sent reports whether the request may have reached the server.
func (x *Exchange) Sent() bool { return x.sent.Load() }

// Unread reports whether the server said that the session is over and the request
// was not looked at.
func (x *Exchange) Unread() bool { return x.unread.Load() }

// Outcome returns the result as the server sent it, or why there is none where the
// tap knows better than the SDK. Both are nil while there is no answer.
func (x *Exchange) Outcome() ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result, x.err
}

// resolve notes what came of the request.
func (x *Exchange) resolve(result []byte, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.result, x.err = result, err
}

// tell passes on what the server says without waiting for the listener. Most calls
// have no report, so the first one starts the goroutine.
func (x *Exchange) tell(report func(Listener)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.listener == nil {
		return
	}
	if x.reports == nil {
		x.reports, x.told = make(chan func(Listener), 64), make(chan struct{})
		go func(reports <-chan func(Listener)) {
			defer close(x.told)
			for report := range reports {
				report(x.listener)
			}
		}(x.reports)
	}
	select {
	case x.reports <- report:
	default: // the receiver is slower than the server
	}
}

// End ends the exchange's life. It returns when all reports were passed on.
func (x *Exchange) End() {
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

// A TooLargeError is why there is no result: the answer is beyond the limit.
type TooLargeError struct{ Limit int64 }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than the limit of %s for one reply: ask for less at a time", Size(e.Limit))
}
