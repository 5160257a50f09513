package bridge

import (
	"errors"

	"codemode-bridge/bridge/lifecycle"
)

// Why the context of a run ends that goes on elsewhere.
var (
	errSuspended = errors.New("the run was suspended")
	errLeaseLost = errors.New("another bridge goes on with the run")
)

// update has an event happen to the run, with what follows from it, and reports
// whether it did.
func (r *run) update(e lifecycle.Event) bool {
	r.lifeMu.Lock()
	happened := r.life.Step(e)
	r.lifeMu.Unlock()
	if !happened {
		return false
	}
	switch e.Kind {
	case lifecycle.LosesLease:
		r.cancel(errLeaseLost)
	case lifecycle.Suspends, lifecycle.HandsOver, lifecycle.Evicts:
		r.server.o.Gate.Broker().Suspend(r.id) // no call is sent any more, and what is asked stays open
		r.cancel(errSuspended)
	}
	return true
}

// now is where the run is at this moment.
func (r *run) now() lifecycle.State {
	r.look()
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	return r.life.Copy()
}

// look asks the broker how many calls of the run wait for people.
func (r *run) look() {
	r.update(lifecycle.Event{Kind: lifecycle.AsksPeople, Calls: r.server.o.Gate.Broker().Waiting(r.id)})
}

// suspend has the run go on from its journal, if all that it does is wait for
// people. It reports whether the run ends here.
func (r *run) suspend() bool {
	r.look()
	return r.update(lifecycle.Event{Kind: lifecycle.Suspends})
}

// handOver does so for another bridge, if no request waits at the run.
func (r *run) handOver() bool {
	r.look()
	return r.update(lifecycle.Event{Kind: lifecycle.HandsOver})
}

// evict does so whatever else the run does, if it asks people anything, or is not
// where it was yet: for a bridge that ends, or has no room. Its timers begin anew
// when it goes on.
func (r *run) evict() bool {
	r.look()
	return r.update(lifecycle.Event{Kind: lifecycle.Evicts})
}

// stop ends the run, for a reason; the first is kept.
func (r *run) stop(why error) {
	if r.update(lifecycle.Event{Kind: lifecycle.Stops}) {
		r.cancel(why)
	}
}
