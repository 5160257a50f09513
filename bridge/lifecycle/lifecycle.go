// Package lifecycle says in which phase a run is, what may happen to it there,
// and in which phase it is afterwards.
//
// A State belongs to one run. Whatever happens to the run is an Event, and Step is
// the one function that applies it to the State, or refuses it:
//
//	starting -> running <-> waiting -> suspended -> (resumed: another State)
//
// A run may end in any phase. All transitions are in the table of
// lifecycle_test.go, from which the picture in docs/tour.md is drawn. A State does
// nothing itself and is not locked, which a [Life] is: what follows from an event, such as the end of
// the worker of a run that is suspended, is up to whoever owns the run. [Locks] keep
// two from resuming or ending the same run.
package lifecycle

import (
	"maps"
	"time"
)

// A Phase says where a run is. docs/tour.md has a picture of how it gets from
// one to another.
type Phase int

const (
	Starting  Phase = iota // it waits for room in its session, or is run again to where it was
	Running                // its script runs, and asks people nothing
	Waiting                // at least one of its calls waits for people
	Suspended              // it goes on from its journal, in whichever bridge acquires it
	Ended                  // it is over, and its answer stays as it is
)

var phases = []string{"starting", "running", "waiting", "suspended", "ended"}

func (p Phase) String() string { return phases[p] }

// An Event is what happens to a run.
type Event struct {
	Kind  EventKind
	Calls int       // of AsksPeople and Idles: how many calls
	Call  int       // of Sends and Returns: which one
	At    time.Time // of Leaves
}

// An EventKind says which event it is.
type EventKind int

const (
	Begins         EventKind = iota // its script runs; if it ran before, it is where it was
	AsksPeople                      // so many of its calls wait for people now
	Idles                           // its script does nothing until one of so many open calls is answered
	Moves                           // its script gets an answer
	Sends                           // a call is about to be sent to a server
	Returns                         // that call has come back
	Attaches                        // a request waits at it
	Detaches                        // that request no longer does
	Leaves                          // a request is answered before the run is done: people may take their time
	Delivers                        // a request gets its answer
	Outgrows                        // its journal has become too large: it cannot go on from there
	LosesLease                      // another bridge has acquired it
	Stops                           // it is to end
	Suspends                        // it is to go on from its journal, if all that it does is wait for people
	HandsOver                       // the same, for another bridge
	Evicts                          // the same, whatever else it does, if that harms nothing: there is no room
	FailsToSuspend                  // what suspends it could not be written down
	Ends                            // it is over
)

var eventKinds = []string{"begins", "asks people", "idles", "moves", "sends a call", "has a call back", "is attached to", "is detached from", "is left", "is delivered",
	"outgrows its journal", "loses its lease", "is stopped", "is suspended", "is handed over", "is evicted", "is not written down", "ends"}

func (k EventKind) String() string { return eventKinds[k] }

// A JournalState says what a run could go on from.
type JournalState int

const (
	NoJournal JournalState = iota
	WholeJournal
	OutgrownJournal
)

// A State is where a run is, with all that decides where it may go. Whoever makes
// one sets Journal and Resumed; from then on only Step changes it.
//
// What the calls of a run wait for are three sets, each kept by the one who
// knows first what is in it: the broker has the calls that wait for people, the
// session's prompt queue what servers want to ask its client, and the calls
// that are under way at servers are here.
type State struct {
	Phase Phase

	Attached  int       // requests that wait at the run
	Left      time.Time // when a request last left it; zero: none has
	Delivered bool      // a request got its answer

	people  int          // size of the broker's set, as last told
	servers map[int]bool // calls under way at servers
	Idle    int          // open calls when the script was last idle; 0 while it may move

	Journal   JournalState
	Resumed   bool // it is run again from its journal
	LeaseLost bool // another bridge has acquired it
	stopping  bool // it is to end
}

// Step is the only function that changes where a run is. It reports whether the
// event may happen to the run now; if not, nothing changes.
func (s *State) Step(e Event) bool {
	live := s.Phase < Suspended
	switch e.Kind {
	case Attaches:
		s.Attached++
	case Detaches:
		if s.Attached == 0 {
			return false
		}
		s.Attached--
	case Leaves:
		s.Left = e.At
	case Delivers:
		if s.Phase != Ended {
			return false
		}
		s.Delivered = true
	case Returns:
		delete(s.servers, e.Call)

	case FailsToSuspend:
		if s.Phase != Suspended || s.LeaseLost {
			return false
		}
		s.Phase = Ended
	case LosesLease:
		if s.Phase == Ended || s.LeaseLost {
			return false
		}
		s.Phase, s.LeaseLost = Suspended, true
	default:
		return live && s.stepLive(e)
	}
	return true
}

// stepLive is Step for what only happens to a run that is under way here.
func (s *State) stepLive(e Event) bool {
	movable := !s.stopping && s.Journal == WholeJournal && len(s.servers) == 0
	quiet := s.Phase == Waiting && s.Quiet()
	switch e.Kind {
	case Begins:
		if s.Phase != Starting {
			return false
		}
		s.Phase = Running
	case AsksPeople:
		if s.Phase == Starting {
			return false
		}
		if s.people, s.Phase = e.Calls, Running; s.people > 0 {
			s.Phase = Waiting
		}
	case Idles:
		s.Idle = e.Calls
	case Moves:
		s.Idle = 0
	case Sends:
		if s.Phase == Starting {
			return false
		}
		if s.servers == nil {
			s.servers = map[int]bool{}
		}
		s.servers[e.Call] = true
	case Outgrows:
		s.Journal = OutgrownJournal
	case Stops:
		s.stopping = true
	case Suspends:
		if !movable || !quiet {
			return false
		}
		s.Phase = Suspended
	case HandsOver:
		if !movable || !quiet || s.Attached > 0 {
			return false
		}
		s.Phase = Suspended
	case Evicts:
		if again := s.Phase == Starting && s.Resumed; !movable || s.Phase != Waiting && !again {
			return false
		}
		s.Phase = Suspended
	case Ends:
		s.Phase = Ended
	}
	return true
}

// Quiet reports whether the script can do nothing until people answer: it is
// idle, and every open call of it waits for them.
func (s *State) Quiet() bool { return s.Idle > 0 && s.Idle == s.people }

// Attended reports whether a request waits at the run, or none has left it yet.
func (s *State) Attended() bool { return s.Attached > 0 || s.Left.IsZero() }

// Copy returns the state as it is now.
func (s *State) Copy() State {
	c := *s
	c.servers = maps.Clone(s.servers)
	return c
}
