package bridge

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/lifecycle"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A roster knows who is here: the sessions of clients, the live runs, and for a
// while the runs that have ended, for clients that come back. All three are under
// one lock, since a run holds its session.
type roster struct {
	underWay sync.WaitGroup // live runs, until all that they held is given back

	mu       sync.Mutex
	closed   bool // nobody enters any more
	sessions map[*mcp.ServerSession]*session
	live     map[string]*run // by ID
	ended    []*run          // the oldest first
	turned   chan struct{}   // closed when a run starts or ends; nil until somebody asks
}

func newRoster() *roster {
	return &roster{sessions: make(map[*mcp.ServerSession]*session), live: make(map[string]*run)}
}

// close has nobody enter any more, and returns the live runs.
func (ro *roster) close() []*run {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	ro.closed = true
	return slices.Collect(maps.Values(ro.live))
}

// runs are the live runs and those that have ended.
func (ro *roster) runs() (live, ended []*run) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	return slices.Collect(maps.Values(ro.live)), slices.Clone(ro.ended)
}

// running counts the live runs.
func (ro *roster) running() int {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	return len(ro.live)
}

// admit returns the session of a connection, which it has made if there is none
// yet: then first is true. Else it is met again.
func (ro *roster) admit(conn *mcp.ServerSession, made func() *session, met func(*session)) (sess *session, first bool, err error) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if ro.closed {
		return nil, false, ErrClosed
	}
	if sess := ro.sessions[conn]; sess != nil {
		met(sess)
		return sess, false, nil
	}
	sess = made()
	ro.sessions[conn] = sess
	return sess, true, nil
}

// sessionOf is the session of a connection; nil if it has none.
func (ro *roster) sessionOf(conn *mcp.ServerSession) *session {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	return ro.sessions[conn]
}

// disconnect notes that the connection of a session is over.
func (ro *roster) disconnect(sess *session) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	delete(ro.sessions, sess.conn)
	sess.closed = true
}

// dismiss reports, once, that a session is over: its connection is, and its last
// run has ended. Its twin, if it has one, goes on under its id.
func (ro *roster) dismiss(sess *session) (over, twin bool) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if !sess.closed || sess.runs > 0 || sess.gone {
		return false, false
	}
	sess.gone = true
	return true, ro.twinLocked(sess) != nil
}

// twinLocked is another session of the same id that goes on, nil if there is
// none: a run that is resumed has a session of its own, which stands for the one
// that it began in.
func (ro *roster) twinLocked(sess *session) *session {
	for _, other := range ro.sessions {
		if other != sess && other.id == sess.id {
			return other
		}
	}
	for _, r := range ro.live {
		if r.session != sess && r.session.id == sess.id {
			return r.session
		}
	}
	return nil
}

// sessionStates are the clients' connections, the oldest first.
func (ro *roster) sessionStates() []SessionState {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	var all []SessionState
	for _, sess := range ro.sessions {
		all = append(all, SessionState{ID: sess.id, Client: sess.client, Profile: sess.addedProfile, Started: sess.started})
	}
	slices.SortFunc(all, func(a, b SessionState) int { return a.Started.Compare(b.Started) })
	return all
}

// tighten has one more profile bind a session; the empty one takes that back.
func (ro *roster) tighten(session, profile string) error {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	for _, sess := range ro.sessions {
		if sess.id == session {
			sess.addedProfile = profile
			return nil
		}
	}
	return ErrNoSession
}

// addedProfiles are the profiles that bind a session beside the one of its tool.
func (ro *roster) addedProfiles(sess *session) []string {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	all := slices.Clone(sess.boundBefore)
	add := func(profile string) {
		if profile != "" && !slices.Contains(all, profile) {
			all = append(all, profile)
		}
	}
	add(sess.addedProfile)
	if twin := ro.twinLocked(sess); twin != nil {
		add(twin.addedProfile)
	}
	return all
}

// used reports whether scripts ran in the session of a connection, and whether
// one runs now.
func (ro *roster) used(conn *mcp.ServerSession) (ran, running bool) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	sess := ro.sessions[conn]
	return sess != nil && sess.ran, sess != nil && sess.runs > 0
}

// abandon stops the runs of the HTTP session of an id that its owner ends.
func (ro *roster) abandon(id, owner string) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	for _, r := range ro.live {
		if conn := r.session.conn; conn != nil && id != "" && conn.ID() == id && r.session.owner == owner {
			r.stop(errSessionEnded)
		}
	}
}

// enter makes a run live, within what its principal may have. Without an error the
// caller calls exit, and underWay.Done after it.
func (ro *roster) enter(r *run, has []access.Rights) error {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if ro.closed {
		return ErrClosed
	}
	under := 0
	for _, other := range ro.live {
		if other.principal == r.principal {
			under++
		}
	}
	for _, g := range has {
		if most := g.Limits().Runs; most > 0 && under >= most {
			return g.TooMany(under, "runs under way", "wait until one has ended, or end one")
		}
	}
	ro.live[r.id] = r
	ro.turnLocked()
	r.session.runs++
	r.session.ran = true
	ro.underWay.Add(1)
	return nil
}

// exit notes that a run is over, and tells those who wait for it.
func (ro *roster) exit(r *run, at time.Time) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	r.session.runs--
	delete(ro.live, r.id)
	ro.keepLocked(r)
	r.end.at = at
	close(r.done)
	ro.turnLocked()
}

// keepLocked keeps the answer of a run that its request has left.
func (ro *roster) keepLocked(r *run) {
	if at := r.now(); at.Phase == lifecycle.Suspended || at.Left.IsZero() && !r.fetched {
		return // its answer is to come from elsewhere, or was delivered
	}
	ro.ended = append(ro.ended, r)
	if len(ro.ended) > keptMax {
		ro.ended[0] = nil
		ro.ended = ro.ended[1:]
	}
	time.AfterFunc(keptFor, func() {
		ro.mu.Lock()
		defer ro.mu.Unlock()
		for i, old := range ro.ended {
			if old == r {
				ro.ended = append(ro.ended[:i:i], ro.ended[i+1:]...)
				return
			}
		}
	})
}

// changed returns a channel that is closed after the next run starts or ends.
func (ro *roster) changed() <-chan struct{} {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if ro.turned == nil {
		ro.turned = make(chan struct{})
	}
	return ro.turned
}

// turnLocked tells that a run has started or ended.
func (ro *roster) turnLocked() {
	if ro.turned != nil {
		close(ro.turned)
		ro.turned = nil
	}
}

// lookup finds a run that is live or kept, whoever it belongs to.
func (ro *roster) lookup(id string) (*run, bool) {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if r, ok := ro.live[id]; ok {
		return r, true
	}
	for _, r := range ro.ended {
		if r.id == id {
			return r, true
		}
	}
	return nil, false
}

// stop ends a live run in somebody's name. It reports whether there was one.
func (ro *roster) stop(id, by string) bool {
	ro.mu.Lock()
	r := ro.live[id]
	ro.mu.Unlock()
	if r != nil {
		r.stop(&approval.StoppedError{By: by})
	}
	return r != nil
}

// fetched counts the live runs of a requester whose answers are fetched later.
func (ro *roster) fetched(requester string) int {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	n := 0
	for _, r := range ro.live {
		if r.fetched && r.principal == requester {
			n++
		}
	}
	return n
}

// left are the runs that their requests have left, the longest ago first, and
// also if a request is just leaving it.
func (ro *roster) left(also *run) []*run {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	var left []*run
	since := map[*run]time.Time{}
	for _, r := range ro.live {
		if at := r.now(); !at.Left.IsZero() && (at.Attached == 0 || r == also) {
			left, since[r] = append(left, r), at.Left
		}
	}
	slices.SortFunc(left, func(a, b *run) int { return since[a].Compare(since[b]) })
	return left
}

// unattended is a run of the same script, session and tool at which no request waits,
// and whose answer nobody got; nil if there is none.
func (ro *roster) unattended(sess *session, principal, profile string, args evalArgs) *run {
	ro.mu.Lock()
	defer ro.mu.Unlock()
	for _, r := range append(slices.Collect(maps.Values(ro.live)), ro.ended...) {
		same := r.session.id == sess.id || sess.brief && r.session.brief && principal != "" && r.principal == principal
		at := r.now()
		if same && !at.Left.IsZero() && !at.Delivered && at.Attached == 0 && r.gate.Profile == profile &&
			r.gate.Script == args.Code && bytes.Equal(r.gate.Input, args.Input) {
			return r
		}
	}
	return nil
}
