package bridge

import (
	"errors"
	"maps"
	"time"
)

// A phase says where a run is. docs/tour.md has a picture of how it gets from
// one to another.
type phase int

const (
	starting  phase = iota // it waits for room in its session, or is run again to where it was
	running                // its script runs, and asks people nothing
	waiting                // at least one of its calls waits for people
	suspended              // it goes on from its journal, in whichever bridge acquires it
	ended                  // it is over, and its answer stays as it is
)

var phases = []string{"starting", "running", "waiting", "suspended", "ended"}

func (p phase) String() string { return phases[p] }

// An event is what happens to a run.
type event struct {
	kind  eventKind
	calls int       // of asksPeople and idles: how many calls
	call  int       // of sends and returns: which one
	at    time.Time // of leaves
	why   error     // of stops
}

type eventKind int

const (
	begins         eventKind = iota // its script runs, and is where it was if it ran before
	asksPeople                      // so many of its calls wait for people now
	idles                           // its script does nothing until one of so many open calls is answered
	moves                           // its script gets an answer
	sends                           // a call is about to be sent to a server
	returns                         // that call has come back
	attaches                        // a request waits at it
	detaches                        // that request no longer does
	leaves                          // a request is answered before the run is done: people may take their time
	delivers                        // a request gets its answer
	outgrows                        // its journal has become too large: it cannot go on from there
	losesLease                      // another bridge has acquired it
	stops                           // it is to end
	suspends                        // it is to go on from its journal, if all that it does is wait for people
	handsOver                       // the same, for another bridge
	evicts                          // the same, whatever else it does, if that harms nothing: there is no room
	failsToSuspend                  // what suspends it could not be written down
	ends                            // it is over
)

var eventKinds = []string{"begins", "asks people", "idles", "moves", "sends a call", "has a call back", "is attached to", "is detached from", "is left", "is delivered",
	"outgrows its journal", "loses its lease", "is stopped", "is suspended", "is handed over", "is evicted", "is not written down", "ends"}

func (k eventKind) String() string { return eventKinds[k] }

// A journalState says what a run could go on from.
type journalState int

const (
	noJournal journalState = iota
	wholeJournal
	outgrownJournal
)

// A lifecycle is where a run is, with all that decides where it may go. Only
// step changes it.
//
// What the calls of a run wait for are three sets, each kept by the one who
// knows first what is in it: the broker has the calls that wait for people, the
// session's prompt queue what servers want to ask its client, and the calls
// that are under way at servers are here.
type lifecycle struct {
	phase phase

	attached  int       // requests that wait at the run
	left      time.Time // when a request last left it; zero: none has
	delivered bool      // a request got its answer

	people  int          // size of the broker's set, as last told
	servers map[int]bool // calls under way at servers
	idle    int          // open calls when the script was last idle; 0 while it may move

	journal   journalState
	resumed   bool // it is run again from its journal
	leaseLost bool // another bridge has acquired it
	stopping  bool // it is to end
}

// step is the only function that changes where a run is. It reports whether the
// event may happen to the run now; if not, nothing changes.
func (l *lifecycle) step(e event) bool {
	live := l.phase < suspended
	switch e.kind {
	case attaches:
		l.attached++
	case detaches:
		if l.attached == 0 {
			return false
		}
		l.attached--
	case leaves:
		l.left = e.at
	case delivers:
		if l.phase != ended {
			return false
		}
		l.delivered = true
	case returns:
		delete(l.servers, e.call)

	case failsToSuspend:
		if l.phase != suspended || l.leaseLost {
			return false
		}
		l.phase = ended
	case losesLease:
		if l.phase == ended {
			return false
		}
		l.phase, l.leaseLost = suspended, true
	default:
		return live && l.stepLive(e)
	}
	return true
}

// stepLive is step for what only happens to a run that is under way here.
func (l *lifecycle) stepLive(e event) bool {
	movable := !l.stopping && l.journal == wholeJournal && len(l.servers) == 0
	quiet := l.phase == waiting && l.quiet()
	switch e.kind {
	case begins:
		if l.phase != starting {
			return false
		}
		l.phase = running
	case asksPeople:
		if l.phase == starting {
			return false
		}
		if l.people, l.phase = e.calls, running; l.people > 0 {
			l.phase = waiting
		}
	case idles:
		l.idle = e.calls
	case moves:
		l.idle = 0
	case sends:
		if l.phase == starting {
			return false
		}
		if l.servers == nil {
			l.servers = map[int]bool{}
		}
		l.servers[e.call] = true
	case outgrows:
		l.journal = outgrownJournal
	case stops:
		l.stopping = true
	case suspends:
		if !movable || !quiet {
			return false
		}
		l.phase = suspended
	case handsOver:
		if !movable || !quiet || l.attached > 0 {
			return false
		}
		l.phase = suspended
	case evicts:
		if again := l.phase == starting && l.resumed; !movable || l.phase != waiting && !again {
			return false
		}
		l.phase = suspended
	case ends:
		l.phase = ended
	}
	return true
}

// quiet reports whether the script can do nothing until people answer: it is
// idle, and every open call of it waits for them.
func (l *lifecycle) quiet() bool { return l.idle > 0 && l.idle == l.people }

// attended reports whether a request waits at the run, or none has left it yet.
func (l *lifecycle) attended() bool { return l.attached > 0 || l.left.IsZero() }

// Why the context of a run ends that goes on elsewhere.
var (
	errSuspended = errors.New("the run was suspended")
	errLeaseLost = errors.New("another bridge goes on with the run")
)

// update has an event happen to the run, with what follows from it, and reports
// whether it did.
func (r *run) update(e event) bool {
	r.lifeMu.Lock()
	happened := r.life.step(e)
	r.lifeMu.Unlock()
	if !happened {
		return false
	}
	switch e.kind {
	case stops:
		r.cancel(e.why) // the first reason is kept
	case losesLease:
		r.cancel(errLeaseLost)
	case suspends, handsOver, evicts:
		r.server.o.Gate.Broker().Suspend(r.id) // no call is sent any more, and what is asked stays open
		r.cancel(errSuspended)
	}
	return true
}

// now is where the run is at this moment.
func (r *run) now() lifecycle {
	r.look()
	r.lifeMu.Lock()
	defer r.lifeMu.Unlock()
	l := r.life
	l.servers = maps.Clone(l.servers)
	return l
}

// look asks the broker how many calls of the run wait for people.
func (r *run) look() {
	r.update(event{kind: asksPeople, calls: r.server.o.Gate.Broker().Waiting(r.id)})
}

// suspend has the run go on from its journal, if all that it does is wait for
// people. It reports whether the run ends here.
func (r *run) suspend() bool {
	r.look()
	return r.update(event{kind: suspends})
}

// handOver does so for another bridge, if no request waits at the run.
func (r *run) handOver() bool {
	r.look()
	return r.update(event{kind: handsOver})
}

// evict does so whatever else the run does, if it asks people anything, or is not
// where it was yet: for a bridge that ends, or has no room. Its timers begin anew
// when it goes on.
func (r *run) evict() bool {
	r.look()
	return r.update(event{kind: evicts})
}

// stop ends the run, for a reason.
func (r *run) stop(why error) { r.update(event{kind: stops, why: why}) }
