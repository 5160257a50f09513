package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// Timing of one server.
const (
	// proven is how long a session must have lived to count as a success. If a
	// server keeps ending sooner, the pauses between attempts grow.
	proven = 30 * time.Second
	// reconnectPatience is how long a call waits for a server that has failed before.
	reconnectPatience = 5 * time.Second
	// loginPoll is the time between two looks for a login that was made elsewhere.
	loginPoll = 2 * time.Second
	// Announced changes are gathered for gatherTime, and between two listings is
	// listGap.
	gatherTime = 100 * time.Millisecond
	listGap    = time.Second
	// A server that keeps announcing changes is listed less and less often, down
	// to this.
	longestListGap = 30 * time.Second
)

// A server is one upstream of a Set and its current session, if it has one.
type server struct {
	spec    Spec
	options Options
	log     *slog.Logger
	shown   redactor
	slots   chan struct{} // one for each call that may be under way
	limiter *rate.Limiter // of calls; nil: no limit
	wake    chan bool     // asks for a connection; true: even if parked

	life  context.Context // ends with stop
	kill  context.CancelCauseFunc
	ready chan struct{} // closed after the first attempt to connect, by once
	once  sync.Once
	ended chan struct{} // closed when run has returned

	mine struct { // of run
		token  string // what the child was given as Spec.TokenEnv; empty: nothing
		warned string // the last warning logged since the server was connected
	}

	mu      sync.Mutex
	now     Status
	list    toolList
	session *session               // if Connected or Unhealthy
	caps    mcp.ServerCapabilities // of the last session
	use     use                    // of the session
	breaker breaker                // of calls
	failed  int                    // failures to connect, or to stay connected, in a row
	tries   int                    // such failures ever
	changed chan struct{}          // closed and replaced when the state changes
	legacy  bool                   // Auto has found out that the server speaks only the old era
	child   *process               // the last that was started, even if it has not answered; nil: none
}

// A use counts the calls that are using a session.
type use struct {
	calls int
	last  time.Time // when the last of them ended, or the session began
}

// A toolList is what a server has listed.
type toolList struct {
	known  bool // it has been read at least once
	tools  []Tool
	names  map[string]bool // of tools
	failed int             // listings that failed in a row, in this session
}

func newServer(spec Spec, o Options) *server {
	s := &server{
		spec:    spec,
		options: o,
		log:     o.logger().With("server", spec.Name),
		shown:   newRedactor(spec, o.environ()),
		slots:   make(chan struct{}, spec.Limits.concurrency()),
		limiter: spec.Limits.Rate.limiter(),
		breaker: newBreaker(o),
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
	s.life, s.kill = context.WithCancelCause(context.Background()) // until stop, whoever applied it
	return s
}

// run is the server's goroutine:
//
//	connecting --> connected --(lost)--> connecting, at once the first time
//	    |  ^           |                     |
//	    v  |           v                     v
//	    |  +-- idle (until a call wants it, or Reconnect)
//	  failed (until a pause is over, a call wants it, or Reconnect)
//	  parked (until Reconnect, or a call after too many failures and a long pause)
//
// Whether calls are let through to a connected server is its breaker's concern.
func (s *server) run() {
	defer close(s.ended)
	defer s.attempted() // nobody must wait for a server that is gone
	if s.spec.Disabled {
		<-s.life.Done()
		return
	}
	for {
		wasConnected, err := s.live()
		if s.life.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, errIdle):
			s.sleep()
		case wasConnected && s.failures() <= 1 && !parks(err):
			continue
		default:
			r := s.planRetry(err)
			s.attempted()
			s.awaitRetry(r)
		}
		if s.life.Err() != nil {
			return
		}
	}
}

// live connects to the server and watches the session until it ends. It returns why
// it ended, and whether the server had been connected.
func (s *server) live() (wasConnected bool, err error) {
	sess, tools, err := s.connect()
	if sess == nil {
		s.disconnected(err, false)
		return false, err
	}
	defer sess.end()
	began := time.Now()
	s.connected(sess, tools, err)
	s.attempted()
	if err = s.watch(sess); !errors.Is(err, errIdle) {
		s.disconnected(err, sess.useful.Load() || time.Since(began) >= proven)
	}
	return true, err
}

// asksLogin notes that the program waits until somebody has logged in at link. Nothing
// else waits for it: the link is shown, and calls fail with it.
func (s *server) asksLogin(link string) {
	s.mu.Lock()
	waits := s.session == nil // a connected server has other ways to ask
	if waits {
		s.now.Login, s.now.Err = link, "its program waits for a login: open "+link+" in a browser"
		s.setStateLocked(Connecting)
	}
	s.mu.Unlock()
	if waits {
		s.log.Warn("server waits for a login", "link", link)
		s.options.changed()
		s.attempted()
	}
}

// starts notes the process of a connection that is being made; nil: it has none.
func (s *server) starts(p *process) {
	s.mu.Lock()
	s.child = p
	s.mu.Unlock()
}

// attempted lets WaitReady continue.
func (s *server) attempted() { s.once.Do(func() { close(s.ready) }) }

// A wrongError says why a spec is of no use.
type wrongError struct{ why string }

func (e *wrongError) Error() string { return e.why }

func parks(err error) bool {
	var refused *refusedError
	var wrong *wrongError
	return errors.As(err, &refused) || errors.As(err, &wrong) || tap.NeedsLogin(err)
}

// connect makes a session and lists the tools, all within Limits.ConnectTimeout. If it
// returns both a session and an error, the server has tools but failed to list them.
func (s *server) connect() (*session, []Tool, error) {
	if s.spec.Wrong != "" {
		return nil, nil, &wrongError{s.spec.Wrong}
	}
	spec, err := s.spec.fetched(s.life, s.options.environ(), s.log, s.shown)
	if err != nil {
		return nil, nil, err
	}
	if spec, err = s.withToken(spec); err != nil {
		return nil, nil, err
	}
	end := time.Now().Add(s.spec.Limits.connectTimeout())
	sess, err := s.makeSession(end, func(era Protocol, limit time.Duration) (*session, error) { return connect(s, spec, era, limit) })
	if err != nil {
		return nil, nil, err
	}
	if sess.awaitedLogin {
		end = time.Now().Add(s.spec.Limits.connectTimeout())
	}
	ctx, cancel := context.WithDeadlineCause(s.life, end, errConnectTimeout)
	defer cancel()
	tools, err := sess.list(ctx, s.log)
	if err != nil && !errors.Is(err, errUnlisted) {
		sess.end()
		return nil, nil, err
	}
	return sess, tools, err
}

// makeSession makes a session until end, in the era that the Spec names, or in up to two
// attempts.
func (s *server) makeSession(end time.Time, attempt func(Protocol, time.Duration) (*session, error)) (*session, error) {
	era := s.spec.Protocol
	if era == "" {
		era = Auto
	}
	whole := time.Until(end)
	var sess *session
	var err error
	switch {
	case era != Auto:
		sess, err = attempt(era, whole)
	case s.legacy || s.spec.kind() == SSE:
		sess, err = attempt(Legacy, whole)
		s.legacy = err == nil // it may be another program by now
	default:
		sess, err = attempt(Auto, whole/4*3)
		// Servers of the old era may end, fall silent or answer with anything
		// when the first message is not initialize. So the attempt is repeated
		// without server/discover unless the failure surely has another cause.
		var started *startError
		var missed *missedLoginError
		if err != nil && s.life.Err() == nil && !parks(err) && !errors.As(err, &started) && !errors.As(err, &missed) && s.spec.kind() != InProcess {
			s.log.Debug("trying again without server/discover", "err", err)
			if again, secondErr := attempt(Legacy, time.Until(end)); secondErr == nil {
				sess, err, s.legacy = again, nil, true
			} else {
				err = secondErr
			}
		}
	}
	return sess, err
}

// watch waits for the end of the session. It lists the tools again when the server
// announces changes, and from time to time when it does not. It returns why the
// session ended, or errIdle if it should be ended.
func (s *server) watch(sess *session) error {
	poll := time.NewTimer(s.untilPoll())
	defer poll.Stop()
	idle := time.NewTimer(s.spec.IdleStop)
	defer idle.Stop()
	if s.spec.IdleStop <= 0 {
		idle.Stop()
	}
	looks, stop := s.tokenLooks()
	defer stop()
	var due <-chan time.Time // of an announced change
	last, gap := time.Now(), listGap/2
	for {
		select {
		case <-s.life.Done():
			return context.Cause(s.life)
		case <-sess.ended:
			return sess.explain(tap.ErrSessionEnded)
		case <-sess.tap.Changed():
			if due == nil {
				since := time.Since(last)
				if since > 2*gap {
					gap = listGap
				} else {
					gap = min(2*gap, longestListGap)
				}
				due = time.After(max(gatherTime, gap-since))
			}
			continue
		case <-idle.C:
			left, ok := s.fallAsleep()
			if ok {
				return errIdle
			}
			idle.Reset(left)
			continue
		case <-looks:
			if !s.keepsToken() {
				return errTakenBack
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

// untilPoll returns how long to wait before the next listing: less than usual after
// a failed one.
func (s *server) untilPoll() time.Duration {
	d := s.options.poll()
	s.mu.Lock()
	unlisted := s.list.failed
	s.mu.Unlock()
	if unlisted > 0 {
		d = min(d, s.options.pause(unlisted))
	}
	return d - d/10 + rand.N(d/5+1)
}

// fallAsleep removes the session if no call has used it for long enough. Otherwise it
// returns when to check again.
func (s *server) fallAsleep() (left time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.use.calls > 0 {
		return s.spec.IdleStop, false
	}
	if left := s.spec.IdleStop - time.Since(s.use.last); left > 0 {
		return left, false
	}
	select {
	case <-s.wake: // an old request; whoever wants the server now sees that it sleeps
	default:
	}
	s.session, s.failed = nil, 0
	s.now.PID = 0
	s.setStateLocked(Idle)
	return 0, true
}

// sleep waits until the server is wanted.
func (s *server) sleep() {
	s.log.Info("server stopped until it is used", "idle", s.spec.IdleStop)
	s.options.changed()
	select {
	case <-s.life.Done():
	case <-s.wake:
		s.begin()
	}
}

// begin notes that a connection to the server is being made.
func (s *server) begin() {
	s.mu.Lock()
	s.now.Until = time.Time{}
	s.setStateLocked(Connecting)
	s.mu.Unlock()
	s.options.changed()
}

func (s *server) relist(sess *session) {
	ctx, cancel := context.WithTimeoutCause(s.life, listPatience, errListTimeout)
	defer cancel()
	tools, err := sess.list(ctx, s.log)
	if s.life.Err() != nil || sess.isOver() {
		return
	}
	if err != nil {
		s.log.Warn("the server's tools could not be listed again", "err", err)
	}
	s.mu.Lock()
	before, had := s.now, s.list.tools
	s.listedLocked(tools, err)
	same := s.now.Err == before.Err && s.now.State == before.State && (err != nil || reflect.DeepEqual(tools, had))
	s.mu.Unlock()
	if !same {
		s.options.changed()
	}
}

// listedLocked notes the result of a listing. A failed one leaves the tools as they
// were.
func (s *server) listedLocked(tools []Tool, err error) {
	if err != nil {
		s.list.failed++
		s.now.Err, s.now.Plain = err.Error(), plain(err)
		if len(s.list.tools) > 0 {
			s.now.Err += "; its tools are those that it listed before"
		}
		s.setStateLocked(Unhealthy)
		return
	}
	s.list.failed = 0
	s.now.Err, s.now.Plain, s.now.Answered = "", "", time.Now()
	s.keepLocked(tools)
	s.setStateLocked(Connected)
}

func (s *server) keepLocked(tools []Tool) {
	s.list.tools, s.list.known = tools, true
	s.now.Tools = len(tools)
	s.list.names = make(map[string]bool, len(tools))
	for _, t := range tools {
		s.list.names[t.Name] = true
	}
}

// connected notes a new session; problem, if not nil, says why its tools are unknown.
func (s *server) connected(sess *session, tools []Tool, problem error) {
	s.mu.Lock()
	s.session, s.use.last, s.list.failed = sess, time.Now(), 0
	s.caps = sess.capabilities()
	s.breaker.renewed(s.use.last)
	s.now.PID, s.now.Until, s.now.Login = 0, time.Time{}, ""
	if sess.process != nil {
		s.now.PID = sess.process.pid()
	}
	s.now.Protocol, s.now.Program, s.now.Version = tap.Escape(sess.protocol(), tap.MaxName), "", ""
	if info := sess.client.InitializeResult(); info != nil && info.ServerInfo != nil {
		s.now.Program = s.shown.show(info.ServerInfo.Name, tap.MaxName)
		s.now.Version = s.shown.show(info.ServerInfo.Version, tap.MaxName)
	}
	s.listedLocked(tools, problem)
	program := s.now.Program
	s.mu.Unlock()
	s.mine.warned = ""
	s.log.Info("server connected", "program", program, "protocol", sess.protocol(), "tools", len(tools))
	s.options.changed()
}

// disconnected notes a failure to connect or the end of a session.
func (s *server) disconnected(err error, wasProven bool) {
	s.mu.Lock()
	s.session = nil
	s.now.PID, s.now.Login = 0, ""
	if wasProven {
		s.failed = 0
	}
	s.failed++
	s.tries++
	s.now.Err, s.now.Plain = err.Error(), plain(err)
	s.setStateLocked(Connecting)
	s.mu.Unlock()
	s.options.changed()
}

func (s *server) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// A retryPlan says when a server is tried again.
type retryPlan struct {
	shortest time.Time // from here on a call may trigger it; zero: never
	end      time.Time // it is tried by itself; zero: never
	login    bool      // it is tried when Spec.Auth is ready
}

// planRetry decides when the server is tried again, and puts that into the status.
func (s *server) planRetry(err error) retryPlan {
	state, now := Failed, time.Now()
	var missed *missedLoginError
	s.mu.Lock()
	failed := s.failed
	r := retryPlan{shortest: now.Add(s.options.pause(1)), end: now.Add(s.options.pause(failed))}
	s.now.Until = r.end
	switch {
	case tap.NeedsLogin(err):
		state, r = NeedsLogin, retryPlan{login: s.spec.Auth != nil}
		s.now.Until = time.Time{}
	case parks(err):
		state, r = Parked, retryPlan{}
		s.now.Until = time.Time{}
	case errors.As(err, &missed): // another start would open the browser again
		state, r = Parked, retryPlan{shortest: now.Add(s.options.longest())}
		s.now.Until = r.shortest
		s.now.Err = fmt.Sprintf("%s; a call after %s starts it again", err, clock(s.now.Until))
	case failed >= s.options.maxRestarts() && s.spec.kind() == Stdio && !s.spec.Own:
		state, r = Parked, retryPlan{shortest: now.Add(s.options.longest())}
		s.now.Until = r.shortest
		s.now.Err = fmt.Sprintf("it failed %d times in a row and is not started again by itself; a call after %s tries it once more; the last failure: %s",
			failed, clock(s.now.Until), err)
	}
	s.setStateLocked(state)
	s.mu.Unlock()
	s.warn(state, err, failed)
	s.options.changed()
	return r
}

// warn logs why the server is not connected. Repetitions of the same reason are logged
// at debug level.
func (s *server) warn(state State, err error, failed int) {
	level, now := slog.LevelWarn, string(state)+": "+err.Error()
	if now == s.mine.warned {
		level = slog.LevelDebug
	}
	s.mine.warned = now
	s.log.Log(s.life, level, "server "+string(state), "err", err, "failures", failed)
}

// awaitRetry waits until the server is to be tried again.
func (s *server) awaitRetry(r retryPlan) {
	timer := time.NewTimer(time.Until(r.end))
	defer timer.Stop()
	if r.end.IsZero() {
		timer.Stop()
	}
	var look <-chan time.Time
	if r.login {
		ticker := time.NewTicker(loginPoll)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-s.life.Done():
			return
		case <-timer.C:
		case <-look:
			if !s.spec.Auth.Ready() {
				continue
			}
		case force := <-s.wake:
			if r.login && s.spec.Auth.Ready() {
				break
			}
			if r.shortest.IsZero() && !force {
				continue
			}
			if left := time.Until(r.shortest); left > 0 && !force {
				if !r.end.IsZero() {
					timer.Reset(left)
				}
				continue
			}
		}
		s.begin()
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
		case <-s.wake: // replaces a weaker request
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
	return s.list.tools, s.list.known
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.now
	st.Failures = s.failed
	if s.session == nil {
		if s.child != nil && st.State == Connecting {
			st.Said = strings.Join(s.child.said.shownLines(), " | ")
		}
		return st
	}
	st.Failures = s.breaker.failures
	if s.session.process != nil {
		st.Box = s.session.process.status()
	}
	now := time.Now()
	if state := s.breaker.state(now); state != "" {
		st.State, st.Since, st.Until, st.Err = state, s.breaker.opened, s.breaker.until, s.breaker.why(now)
	}
	return st
}
