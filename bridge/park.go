package bridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on runs that no request holds. A run is parked when it was let go
// while a person is asked; it keeps its worker, so there are few of them. Its
// answer is kept for a while after it ended, for the client that comes back.
const (
	parkedMax = maxRuns - 4 // or those of one session would keep it from running another script
	keptFor   = 10 * time.Minute
	keptMax   = 32
)

var errCrowdedOut = errors.New("the run expired: too many runs were waiting for a person")

// hold notes that a request holds a run.
func (s *Server) hold(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.holders++
}

// letGo notes that a request no longer does.
func (s *Server) letGo(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.holders--
}

// held reports whether a request holds a run, or has not let go of it yet.
func (s *Server) held(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.holders > 0 || r.parked.IsZero()
}

// lastHolder reports whether no other request than the asking one holds a run.
func (s *Server) lastHolder(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.holders <= 1
}

// park notes that a run was let go while it waits for a person, who may take
// their time now. When there are too many, the one that has waited longest is
// put away, or ends if it cannot be.
func (s *Server) park(r *run) {
	s.o.Gate.Broker().Extend(r.id, s.o.Now().Add(s.o.Gate.View().Profiles.PausedFor()))
	if oldest := s.crowd(r); oldest != nil && !oldest.putOff() {
		oldest.stop(errCrowdedOut)
	}
}

// crowd counts r among the parked runs, and returns the one that has to go, if
// one has.
func (s *Server) crowd(r *run) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.parked = time.Now()
	var oldest *run
	n := 0
	for _, other := range s.live {
		if other.parked.IsZero() || other.holders > 0 && other != r {
			continue
		}
		n++
		if oldest == nil || other.parked.Before(oldest.parked) {
			oldest = other
		}
	}
	if n > parkedMax {
		return oldest
	}
	return nil
}

// MakeRoom puts away the run that has been parked longest, of those that can be, so
// that a run that waits for a worker gets its.
func (s *Server) MakeRoom() {
	s.mu.Lock()
	var parked []*run
	for _, r := range s.live {
		if !r.parked.IsZero() && r.holders == 0 {
			parked = append(parked, r)
		}
	}
	slices.SortFunc(parked, func(a, b *run) int { return a.parked.Compare(b.parked) })
	s.mu.Unlock()
	for _, r := range parked {
		if r.putOff() {
			return
		}
	}
}

// deliver notes that a request gets a run's answer, if it is still there.
func (s *Server) deliver(ctx context.Context, r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.delivered = ctx.Err() == nil
}

// keepLocked keeps the answer of a run that was let go.
func (s *Server) keepLocked(r *run) {
	if r.parked.IsZero() && !r.fetched || errors.Is(r.err, errPutAway) || errors.Is(r.err, errTaken) {
		return // its answer was delivered, or is to come from elsewhere
	}
	s.ended = append(s.ended, r)
	if len(s.ended) > keptMax {
		s.ended[0] = nil
		s.ended = s.ended[1:]
	}
	time.AfterFunc(keptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, old := range s.ended {
			if old == r {
				s.ended = append(s.ended[:i:i], s.ended[i+1:]...)
				return
			}
		}
	})
}

// rejoin returns the run that a request means that sends the same script again:
// one of the same session and tool that nobody holds, and whose answer nobody
// got. So a client that gave up, or a model that forgot, runs nothing twice.
func (s *Server) rejoin(ctx context.Context, sess *session, req *mcp.CallToolRequest, profile string, args evalArgs) (*run, error) {
	principal := principal(req)
	if r := s.rejoinHere(sess, principal, profile, args); r != nil {
		return r, nil
	}
	same := rested{principal: principal, profile: profile, script: scriptDigest(args.Code, args.Input)}
	if !sess.brief {
		same.session = sess.id
	}
	id, ok := s.rested.Load(same)
	if !ok {
		return nil, nil
	}
	if _, here := s.lookup(id.(string)); here { // it was taken up since, and somebody holds it or has its answer
		return nil, nil
	}
	r, err := s.takeUp(ctx, id.(string), s.claimOf(req, ""))
	if errors.Is(err, ErrNoRun) { // it has ended elsewhere
		return nil, nil
	}
	return r, err
}

// A rested is what a request has in common that means a run which was put away
// here, by sending its script again.
type rested struct {
	session, principal, profile string
	script                      [32]byte
}

// remember notes that a run was put away.
func (s *Server) remember(r *run) {
	key := rested{session: r.session.id, principal: r.principal, profile: r.gate.Profile, script: scriptDigest(r.gate.Script, r.gate.Input)}
	if r.session.brief && r.replay == nil {
		if key.session = ""; r.principal == "" {
			return // anybody could have sent it
		}
	}
	s.rested.Store(key, r.id)
}

func scriptDigest(code string, input []byte) [32]byte {
	return sha256.Sum256(append([]byte(code+"\x00"), input...))
}

func (s *Server) rejoinHere(sess *session, principal, profile string, args evalArgs) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range append(slices.Collect(maps.Values(s.live)), s.ended...) {
		same := r.session.id == sess.id || sess.brief && r.session.brief && principal != "" && r.principal == principal
		if same && !r.parked.IsZero() && !r.delivered && r.holders == 0 && r.gate.Profile == profile &&
			r.gate.Script == args.Code && bytes.Equal(r.gate.Input, args.Input) {
			return r
		}
	}
	return nil
}
