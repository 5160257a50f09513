package bridge

import (
	"context"
	"errors"
	"time"

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
func (rn *runner) leave(r *run) {
	rn.o.Gate.Broker().Extend(r.id, rn.o.Now().Add(rn.o.Gate.View().Profiles.PausedFor()))
	r.update(lifecycle.Event{Kind: lifecycle.Leaves, At: time.Now()})
	left := rn.roster.left(r)
	if len(left) > leftMax && !left[0].evict() {
		left[0].stop(errCrowdedOut)
	}
}

// reattach returns the run that a request means by sending the same script again: one
// of the same session and tool at which no request waits, and whose answer nobody
// got. So a client that gave up, or a model that forgot, runs nothing twice.
func (rn *runner) reattach(ctx context.Context, sess *session, c claimant, profile string, args evalArgs) (*run, error) {
	if r := rn.roster.unattended(sess, c.principal, profile, args); r != nil {
		r.join(c)
		return r, nil
	}
	same := suspendedKey{principal: c.principal, profile: profile, script: scriptDigest(args.Code, args.Input)}
	if !sess.brief {
		same.session = sess.id
	}
	id, ok := rn.leases.suspendedAs(same)
	if !ok {
		return nil, nil
	}
	if _, here := rn.roster.lookup(id); here { // it was resumed since, and a request waits at it or has its answer
		return nil, nil
	}
	r, err := rn.resume(ctx, id, c)
	if errors.Is(err, ErrNoRun) { // it has ended elsewhere
		return nil, nil
	}
	return r, err
}
