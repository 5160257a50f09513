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

	"codemode-bridge/bridge/lifecycle"
)

// Bounds on runs that no request waits at. A run that its request has left while
// people are asked keeps its worker, so there are few of them. Its answer is kept
// for a while after it ended, for the client that comes back.
const (
	leftMax = maxRuns - 4 // or those of one session would keep it from running another script
	keptFor = 10 * time.Minute
	keptMax = 32
)

var errCrowdedOut = errors.New("the run expired: too many runs were waiting for a person")

// leave notes that the request at a run is answered before the run is done: people
// may take their time now. When there are too many such runs, the one that has
// waited longest is suspended, or ends if it cannot be.
func (s *Server) leave(r *run) {
	s.o.Gate.Broker().Extend(r.id, s.o.Now().Add(s.o.Gate.View().Profiles.PausedFor()))
	r.update(lifecycle.Event{Kind: lifecycle.Leaves, At: time.Now()})
	left := s.left(r)
	if len(left) > leftMax && !left[0].evict() {
		left[0].stop(errCrowdedOut)
	}
}

// left are the runs that their requests have left, the longest ago first, and
// also if a request is just leaving it.
func (s *Server) left(also *run) []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*run
	since := map[*run]time.Time{}
	for _, r := range s.live {
		if at := r.now(); !at.Left.IsZero() && (at.Attached == 0 || r == also) {
			left, since[r] = append(left, r), at.Left
		}
	}
	slices.SortFunc(left, func(a, b *run) int { return since[a].Compare(since[b]) })
	return left
}

// MakeRoom suspends the run that its request has left the longest ago, of those
// that can be, so that a run that waits for a worker gets its.
func (s *Server) MakeRoom() {
	for _, r := range s.left(nil) {
		if r.evict() {
			return
		}
	}
}

// keepLocked keeps the answer of a run that its request has left.
func (s *Server) keepLocked(r *run) {
	if at := r.now(); at.Phase == lifecycle.Suspended || at.Left.IsZero() && !r.fetched {
		return // its answer is to come from elsewhere, or was delivered
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

// reattach returns the run that a request means that sends the same script again:
// one of the same session and tool at which no request waits, and whose answer
// nobody got. So a client that gave up, or a model that forgot, runs nothing twice.
func (s *Server) reattach(ctx context.Context, sess *session, req *mcp.CallToolRequest, profile string, args evalArgs) (*run, error) {
	principal := principal(req)
	if r := s.reattachHere(sess, principal, profile, args); r != nil {
		return r, nil
	}
	same := suspendedKey{principal: principal, profile: profile, script: scriptDigest(args.Code, args.Input)}
	if !sess.brief {
		same.session = sess.id
	}
	id, ok := s.suspended.Load(same)
	if !ok {
		return nil, nil
	}
	if _, here := s.lookup(id.(string)); here { // it was resumed since, and a request waits at it or has its answer
		return nil, nil
	}
	r, err := s.resume(ctx, id.(string), s.claimantOf(req, ""))
	if errors.Is(err, ErrNoRun) { // it has ended elsewhere
		return nil, nil
	}
	return r, err
}

// A suspendedKey is what a request has in common that means a run which was
// suspended here, by sending its script again.
type suspendedKey struct {
	session, principal, profile string
	script                      [32]byte
}

// rememberSuspended notes that a run was suspended here.
func (s *Server) rememberSuspended(r *run) {
	key := suspendedKey{session: r.session.id, principal: r.principal, profile: r.gate.Profile, script: scriptDigest(r.gate.Script, r.gate.Input)}
	if r.session.brief && r.replay == nil {
		if key.session = ""; r.principal == "" {
			return // anybody could have sent it
		}
	}
	s.suspended.Store(key, r.id)
}

func scriptDigest(code string, input []byte) [32]byte {
	return sha256.Sum256(append([]byte(code+"\x00"), input...))
}

func (s *Server) reattachHere(sess *session, principal, profile string, args evalArgs) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range append(slices.Collect(maps.Values(s.live)), s.ended...) {
		same := r.session.id == sess.id || sess.brief && r.session.brief && principal != "" && r.principal == principal
		at := r.now()
		if same && !at.Left.IsZero() && !at.Delivered && at.Attached == 0 && r.gate.Profile == profile &&
			r.gate.Script == args.Code && bytes.Equal(r.gate.Input, args.Input) {
			return r
		}
	}
	return nil
}
