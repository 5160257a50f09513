package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the picture of a run's phases into docs/tour.md")

// transitions has a row for each thing that can happen to a run, and a column
// for each phase that the run may be in then: the phase that it is in
// afterwards, a dot where it stays, a dash where nothing happens.
const transitions = `
                                           starting   running    waiting    suspended  ended

begins                                     running    -          -          -          -
asks people                                -          waiting    .          -          -
asks nobody any more                       -          .          running    -          -
idles                                      .          .          .          -          -
moves                                      .          .          .          -          -
sends a call                               -          .          .          -          -
has a call back                            .          .          .          .          .

is attached to                             .          .          .          .          .
is detached from                           .          .          .          .          .
is detached from, and none was attached    -          -          -          -          -
is left                                    .          .          .          .          .
is delivered                               -          -          -          -          .

is suspended                               -          -          suspended  -          -
is handed over                             -          -          suspended  -          -
is handed over, and a request is attached  -          -          -          -          -
is evicted                                 -          -          suspended  -          -
is evicted, and is run again               suspended  -          suspended  -          -
is evicted, and its script may move        -          -          suspended  -          -
outgrows its journal                       .          .          .          -          -
loses its lease                            suspended  suspended  suspended  .          -

is stopped                                 .          .          .          -          -
ends                                       ended      ended      ended      -          -
is not written down                        -          -          -          ended      -
is not written down, its lease is lost     -          -          -          -          -
`

// circumstances are what the rows of transitions say after the comma.
var circumstances = map[string]func(*State){
	"and none was attached":     func(l *State) { l.Attached = 0 },
	"and a request is attached": func(l *State) { l.Attached = 1 },
	"and is run again":          func(l *State) { l.Resumed = true },
	"and its script may move":   func(l *State) { l.Idle = 0 },
	"its lease is lost":         func(l *State) { l.LeaseLost = true },
}

// A transition is a cell of the table.
type transition struct {
	event    Event
	label    string // the row
	given    func(*State)
	from, to Phase
	refused  bool
}

func readTransitions(t *testing.T) (all []transition) {
	t.Helper()
	for line := range strings.Lines(transitions) {
		label, cells := strings.TrimSpace(line[:min(43, len(line)-1)]), strings.Fields(line[min(43, len(line)-1):])
		if label == "" {
			if len(cells) > 0 && !slices.Equal(cells, phases) {
				t.Fatalf("the columns are %q", cells)
			}
			continue
		}
		name, circumstance, _ := strings.Cut(label, ", ")
		e, given := Event{Calls: 1, Call: 7, At: time.Unix(1, 0)}, circumstances[circumstance]
		if name == "asks nobody any more" {
			e.Kind, e.Calls = AsksPeople, 0
		} else if i := slices.Index(eventKinds, name); i >= 0 {
			e.Kind = EventKind(i)
		} else {
			t.Fatalf("there is no event %q", name)
		}
		if len(cells) != len(phases) || (given == nil) != (circumstance == "") {
			t.Fatalf("cannot read %q", line)
		}
		for from, cell := range cells {
			one := transition{event: e, label: label, given: given, from: Phase(from), to: Phase(from), refused: cell == "-"}
			if cell != "-" && cell != "." {
				one.to = Phase(slices.Index(phases, cell))
			}
			all = append(all, one)
		}
	}
	return all
}

// lifeIn is a run in a phase, whose script does nothing until a person answers
// if it is one that waits.
func lifeIn(p Phase, e EventKind) State {
	l := State{Phase: p, Journal: WholeJournal}
	if e == Detaches {
		l.Attached = 1
	}
	if p == Waiting {
		l.people, l.Idle = 1, 1
	}
	return l
}

func TestEveryTransition(t *testing.T) {
	walked := map[EventKind]bool{}
	for _, one := range readTransitions(t) {
		walked[one.event.Kind] = true
		l := lifeIn(one.from, one.event.Kind)
		if one.given != nil {
			one.given(&l)
		}
		before := fmt.Sprintf("%+v", l)
		happened := l.Step(one.event)
		if happened == one.refused || l.Phase != one.to {
			t.Errorf("a run that is %v %s: happened %v, and is %v now, want %v", one.from, one.label, happened, l.Phase, one.to)
		}
		if after := fmt.Sprintf("%+v", l); !happened && after != before {
			t.Errorf("a run that is %v %s: refused, and changed from %s to %s", one.from, one.label, before, after)
		}
	}
	for i, name := range eventKinds {
		if !walked[EventKind(i)] {
			t.Errorf("no row says what happens when a run %s", name)
		}
	}
}

// What keeps a run from being suspended, however that is wished for, and ends
// when it is over.
func TestWhatIsNotSuspended(t *testing.T) {
	for name, row := range map[string]struct{ before, after []Event }{
		"a call is at a server":      {[]Event{{Kind: Sends, Call: 7}}, []Event{{Kind: Returns, Call: 7}}},
		"two calls are at a server":  {[]Event{{Kind: Sends, Call: 7}, {Kind: Sends, Call: 8}, {Kind: Returns, Call: 7}}, []Event{{Kind: Returns, Call: 8}}},
		"it is to end":               {[]Event{{Kind: Stops}}, nil},
		"its journal is too large":   {[]Event{{Kind: Outgrows}}, nil},
		"people have answered":       {[]Event{{Kind: AsksPeople, Calls: 0}}, []Event{{Kind: AsksPeople, Calls: 1}}},
		"one call waits for a timer": {[]Event{{Kind: Idles, Calls: 2}}, []Event{{Kind: AsksPeople, Calls: 2}}},
		"its script moves":           {[]Event{{Kind: Moves}}, []Event{{Kind: Idles, Calls: 1}}},
	} {
		for _, kind := range []EventKind{Suspends, HandsOver, Evicts} {
			mayMove := kind == Evicts && (name == "one call waits for a timer" || name == "its script moves")
			l := lifeIn(Waiting, kind)
			for _, e := range row.before {
				l.Step(e)
			}
			if l.Step(Event{Kind: kind}) != mayMove {
				t.Errorf("%s: a run that %s: %v, want %v", name, kind, !mayMove, mayMove)
			}
			for _, e := range row.after {
				l.Step(e)
			}
			if !mayMove && l.Step(Event{Kind: kind}) != (row.after != nil) {
				t.Errorf("%s no more: a run that %s: %v", name, kind, row.after == nil)
			}
		}
	}
	if l := (State{Phase: Waiting, people: 1, Idle: 1}); l.Step(Event{Kind: Suspends}) {
		t.Error("a run without a journal is suspended")
	}
}

const (
	pictureBegins = "<!-- the phases of a run: go test ./bridge/lifecycle -run TestTourShowsPhases -update -->\n"
	pictureEnds   = "<!-- end of the phases -->\n"
)

// picture draws the transitions from one phase to another. A run that is resumed
// is another value, in whichever bridge.
func picture(all []transition) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> starting\n")
	for from := range phases {
		for to := range phases {
			var labels []string
			for _, one := range all {
				seen := slices.ContainsFunc(labels, func(had string) bool { return strings.HasPrefix(one.label, had) })
				if int(one.from) == from && int(one.to) == to && from != to && !one.refused && !seen {
					labels = append(labels, strings.Replace(one.label, ", and", " if it", 1))
				}
			}
			if len(labels) > 0 {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", phases[from], phases[to], strings.Join(labels, " / "))
			}
		}
	}
	b.WriteString("    suspended --> starting: resumed, in this bridge or another\n    ended --> [*]\n```\n")
	return b.String()
}

func TestTourShowsPhases(t *testing.T) {
	const file = "../../docs/tour.md"
	tour, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(tour), pictureBegins)
	_, after, ended := strings.Cut(rest, pictureEnds)
	if !begun || !ended {
		t.Fatalf("%s has no place for the phases of a run", file)
	}
	want := before + pictureBegins + picture(readTransitions(t)) + pictureEnds + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(tour) {
		t.Errorf("%s does not show the phases as they are; run this test with -update", file)
	}
}
