package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"
)

// Timing of one server.
const (
	// settled is how long a session must have lived to count as a success;
	// a server that ends sooner each time is waited for longer each time.
	settled = 30 * time.Second
	// eager is how long a call waits for a server that has failed before.
	eager = 5 * time.Second
	// Announced changes are gathered for calm, and two listings are restful
	// apart.
	calm    = 100 * time.Millisecond
	restful = time.Second
	// listPatience bounds a listing after the first.
	listPatience = time.Minute
)

var (
	errUnknownServer = errors.New("no server of this name is configured")
	errDisabled      = errors.New("the server is disabled in the configuration")
	errStopped       = errors.New("the server was taken out of the configuration")
)

// A server is one upstream of a Set and its current session, if it has one.
type server struct {
	spec    Spec
	options Options
	log     *slog.Logger
	shown   redactor
	slots   chan struct{} // one for each call that may be under way
	wake    chan bool     // asks for a connection; true: even if parked

	life  context.Context // ends with stop
	kill  context.CancelCauseFunc
	ready chan struct{} // closed after the first attempt to connect, by once
	once  sync.Once
	ended chan struct{} // closed when run has returned

	mu      sync.Mutex
	now     Status
	tools   []Tool
	names   map[string]bool
	listing bool          // tools have been listed at least once
	session *session      // if Connected
	failed  int           // failures in a row
	tries   int           // failures ever
	changed chan struct{} // closed and replaced when the state changes
	legacy  bool          // Auto has found out that the server speaks the old era only
}

func newServer(spec Spec, o Options) *server {
	s := &server{
		spec:    spec,
		options: o,
		log:     o.logger().With("server", spec.Name),
		shown:   newRedactor(spec, o.environ()),
		slots:   make(chan struct{}, spec.concurrency()),
		wake:    make(chan bool, 1),
		ready:   make(chan struct{}),
		ended:   make(chan struct{}),
		changed: make(chan struct{}),
	}
	s.now = Status{Name: spec.Name, Kind: spec.kind(), State: Connecting, Since: time.Now()}
	if spec.Disabled {
		s.now.State = Disabled
		s.attempted()
	}
	s.life, s.kill = context.WithCancelCause(context.Background())
	return s
}

// run is the server's goroutine:
//
//	connecting --> connected --(lost)--> connecting, at once the first time
//	    |  ^                                 |
//	    v  |                                 v
//	  failed (until a pause is over, a call wants it, or Reconnect)
//	  parked (until Reconnect)
func (s *server) run() {
	defer close(s.ended)
	defer s.attempted() // nobody waits for a server that is gone
	if s.spec.Disabled {
		<-s.life.Done()
		return
	}
	for {
		lost, err := s.live()
		if s.life.Err() != nil {
			return
		}
		if lost && s.failures() <= 1 && !parks(err) {
			continue
		}
		s.rest(err)
		s.attempted()
		if s.pause(parks(err)); s.life.Err() != nil {
			return
		}
	}
}

// live connects to the server and stays with it for as long as that lasts. It
// returns why it ended, and whether that was after the server was connected.
func (s *server) live() (lost bool, err error) {
	sess, tools, err := s.connect()
	if err != nil {
		s.disconnected(err, false)
		return false, err
	}
	defer sess.end()
	began := time.Now()
	s.connected(sess, tools)
	s.attempted()
	err = s.watch(sess)
	s.disconnected(err, time.Since(began) >= settled)
	return true, err
}

// attempted lets WaitReady go on.
func (s *server) attempted() { s.once.Do(func() { close(s.ready) }) }

func parks(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}

// connect makes a session and lists the tools.
func (s *server) connect() (*session, []Tool, error) {
	era := s.spec.Protocol
	if era == "" {
		era = Auto
	}
	patience := s.spec.connectTimeout()
	var sess *session
	var err error
	switch {
	case era != Auto:
		sess, err = connect(s.life, s.spec, s.options, era, patience, s.log, s.shown)
	case s.legacy || s.spec.kind() == SSE:
		sess, err = connect(s.life, s.spec, s.options, Legacy, patience, s.log, s.shown)
		s.legacy = err == nil // it may be another program by now
	default:
		sess, err = connect(s.life, s.spec, s.options, Auto, patience, s.log, s.shown)
		// Servers of the old era may end, fall silent or answer with anything
		// when the first message is not initialize. So what is not certain to
		// be something else is tried again without the question.
		var started *startError
		if err != nil && s.life.Err() == nil && !parks(err) && !errors.As(err, &started) && s.spec.kind() != InProcess {
			s.log.Debug("trying again without server/discover", "err", err)
			if again, secondErr := connect(s.life, s.spec, s.options, Legacy, patience, s.log, s.shown); secondErr == nil {
				sess, err, s.legacy = again, nil, true
			} else {
				err = secondErr
			}
		}
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(s.life, patience, errConnectTimeout)
	defer cancel()
	tools, err := sess.list(ctx, s.log)
	if err != nil {
		sess.end()
		return nil, nil, err
	}
	return sess, tools, nil
}

// watch waits for the end of the session, and lists the tools again when the
// server says that they changed, and now and then when it does not. It returns
// why the session ended.
func (s *server) watch(sess *session) error {
	poll := time.NewTimer(s.untilPoll())
	defer poll.Stop()
	var due <-chan time.Time // of an announced change
	last := time.Now()
	for {
		select {
		case <-s.life.Done():
			return context.Cause(s.life)
		case <-sess.ended:
			return sess.explain(errSessionEnded)
		case <-sess.tap.changed:
			if due == nil {
				due = time.After(max(calm, restful-time.Since(last)))
			}
			continue
		case <-due:
		case <-poll.C:
		}
		due = nil
		s.relist(sess)
		last = time.Now()
		poll.Reset(s.untilPoll())
	}
}

func (s *server) untilPoll() time.Duration {
	d := s.options.poll()
	return d - d/10 + rand.N(d/5+1)
}

func (s *server) relist(sess *session) {
	ctx, cancel := context.WithTimeoutCause(s.life, listPatience, errCallTimeout)
	defer cancel()
	tools, err := sess.list(ctx, s.log)
	if s.life.Err() != nil || sess.isOver() {
		return
	}
	var problem string
	if err != nil {
		problem = err.Error()
		s.log.Warn("the server's tools could not be listed again", "err", err)
	}
	s.mu.Lock()
	same := s.now.Err == problem && (err != nil || reflect.DeepEqual(tools, s.tools))
	s.now.Err = problem
	if err == nil {
		s.keepLocked(tools)
	}
	s.mu.Unlock()
	if !same {
		s.options.changed()
	}
}

func (s *server) keepLocked(tools []Tool) {
	s.tools, s.listing = tools, true
	s.now.Tools = len(tools)
	s.names = make(map[string]bool, len(tools))
	for _, t := range tools {
		s.names[t.Name] = true
	}
}

func (s *server) connected(sess *session, tools []Tool) {
	s.mu.Lock()
	s.session = sess
	s.keepLocked(tools)
	s.now.Err, s.now.PID = "", 0
	if sess.process != nil {
		s.now.PID = sess.process.pid()
	}
	s.now.Protocol, s.now.Program, s.now.Version = visible(sess.protocol(), maxName), "", ""
	if info := sess.client.InitializeResult(); info != nil && info.ServerInfo != nil {
		s.now.Program = s.shown.show(info.ServerInfo.Name, maxName)
		s.now.Version = s.shown.show(info.ServerInfo.Version, maxName)
	}
	s.setStateLocked(Connected)
	program := s.now.Program
	s.mu.Unlock()
	s.log.Info("server connected", "program", program, "protocol", sess.protocol(), "tools", len(tools))
	s.options.changed()
}

// disconnected notes a failure to connect or the end of a session.
func (s *server) disconnected(err error, wasSettled bool) {
	s.mu.Lock()
	s.session = nil
	s.now.PID = 0
	if wasSettled {
		s.failed = 0
	}
	s.failed++
	s.tries++
	s.now.Err = err.Error()
	s.setStateLocked(Connecting)
	s.mu.Unlock()
	s.options.changed()
}

func (s *server) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// rest tells that the server is not tried again for a while.
func (s *server) rest(err error) {
	state := Failed
	if parks(err) {
		state = Parked
	}
	s.mu.Lock()
	s.setStateLocked(state)
	failed := s.failed
	s.mu.Unlock()
	s.log.Warn("server "+string(state), "err", err, "failures", failed)
	s.options.changed()
}

// pause waits until the server is to be tried again. A call's wish shortens the
// pause but leaves the shortest one.
func (s *server) pause(parked bool) {
	began := time.Now()
	shortest := s.options.pause(1)
	timer := time.NewTimer(s.options.pause(s.failures()))
	defer timer.Stop()
	due := timer.C
	if parked {
		due = nil
	}
	for {
		select {
		case <-s.life.Done():
			return
		case <-due:
		case force := <-s.wake:
			if parked && !force {
				continue
			}
			if left := shortest - time.Since(began); left > 0 && !force {
				timer.Reset(left)
				continue
			}
		}
		s.mu.Lock()
		s.setStateLocked(Connecting)
		s.mu.Unlock()
		s.options.changed()
		return
	}
}

func (s *server) setStateLocked(state State) {
	if s.now.State != state {
		s.now.State, s.now.Since = state, time.Now()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// wakeUp asks for a connection without waiting for it.
func (s *server) wakeUp(force bool) {
	if force {
		select {
		case <-s.wake: // a weaker wish
		default:
		}
	}
	select {
	case s.wake <- force:
	default:
	}
}

// stop makes run return; it does not wait.
func (s *server) stop() { s.kill(errStopped) }

func (s *server) listed() ([]Tool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.listing
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *server) call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	fail := func(e *Error) error {
		e.Server, e.Tool = s.spec.Name, tool
		if errors.Is(e.Err, errCallTimeout) {
			e.Err = &shownError{text: fmt.Sprintf("no answer within %v", s.spec.timeout()), err: e.Err}
		}
		return e
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.spec.timeout(), errCallTimeout)
	defer cancel()
	again := false
	for {
		sess, failure := s.await(ctx, tool)
		if failure != nil {
			return nil, fail(failure)
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			kind, err := interruption(ctx)
			return nil, fail(&Error{Kind: kind, Err: fmt.Errorf("waiting for other calls of the server: %w", err)})
		}
		result, unread, failure := sess.call(ctx, tool, args)
		<-s.slots
		switch {
		case failure == nil:
			return result, nil
		case unread && !again:
			again = true // in a new session, once
			s.awaitEnd(ctx, sess)
		default:
			return nil, fail(failure)
		}
	}
}

// awaitEnd waits until the server's goroutine has noticed the end of a session.
func (s *server) awaitEnd(ctx context.Context, sess *session) {
	for {
		s.mu.Lock()
		current, changed := s.session, s.changed
		s.mu.Unlock()
		if current != sess {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// await returns the session in which tool can be called, and connects if there
// is none. It waits long for a server that starts, and not so long for one that
// has failed already.
func (s *server) await(ctx context.Context, tool string) (*session, *Error) {
	var patience <-chan time.Time
	var tries, seen int
	for first := true; ; first = false {
		s.mu.Lock()
		now, sess, changed, known := s.now, s.session, s.changed, s.names[tool]
		seen = s.tries
		s.mu.Unlock()
		if first {
			tries = seen
		}
		switch {
		case s.life.Err() != nil:
			return nil, &Error{Kind: Unavailable, Err: context.Cause(s.life)}
		case now.State == Disabled:
			return nil, &Error{Kind: Unavailable, Err: errDisabled}
		case sess != nil && known:
			return sess, nil
		case sess != nil:
			return nil, &Error{Kind: UnknownTool, Err: errors.New("the server has no tool of this name")}
		case now.State == Parked, now.State == Failed && seen > tries:
			return nil, &Error{Kind: Unavailable, Err: fmt.Errorf("the server is not connected: %s", now.Err)}
		case now.State == Failed:
			s.wakeUp(false)
		}
		if seen > 0 && patience == nil {
			timer := time.NewTimer(eager)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-changed:
		case <-s.life.Done():
		case <-patience:
			return nil, &Error{Kind: Unavailable, Err: fmt.Errorf("the server is not connected: %s", now.Err)}
		case <-ctx.Done():
			kind, err := interruption(ctx)
			if now.Err != "" {
				return nil, &Error{Kind: kind, Err: fmt.Errorf("%w while the server is not connected: %s", err, now.Err)}
			}
			return nil, &Error{Kind: kind, Err: fmt.Errorf("waiting for the server to start: %w", err)}
		}
	}
}
