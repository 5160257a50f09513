//go:build real

package main_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
)

// A load makes calls at all bridges, each of which is asked about, until it is ended.
type load struct {
	*fleet
	stop atomic.Bool
	all  sync.WaitGroup

	mu   sync.Mutex
	runs map[string]*loaded // by key
}

type loaded struct {
	run      string
	approved bool // a bridge said that a yes counts
}

func (f *fleet) load(workers int, seed uint64) *load {
	l := &load{fleet: f, runs: make(map[string]*loaded)}
	f.Logf("the load has the seed %d", seed)
	for w := range workers {
		dice := rand.New(rand.NewPCG(seed, uint64(w)))
		l.all.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				l.one(dice, fmt.Sprintf("load %d.%d", w, i))
			}
		})
	}
	return l
}

// one makes one call at a bridge, and has it approved at another. If its bridge is lost
// before it asks, it resumes the run, as a client does.
func (l *load) one(dice *rand.Rand, key string) {
	some := func() *member { return l.bridges[dice.IntN(len(l.bridges))] }
	at := some()
	if at.out.Load() {
		return
	}
	is := new(loaded)
	run, err := at.begin("write", key)
	if err != nil {
		return
	}
	is.run = run
	l.mu.Lock()
	l.runs[key] = is
	l.mu.Unlock()
	peace := time.Now() // since when no fault keeps a run from its end, as far as is known
	for ; time.Since(peace) < 2*time.Minute && l.end(run) == nil; time.Sleep(time.Duration(20+dice.IntN(50)) * time.Millisecond) {
		if !l.stop.Load() {
			peace = time.Now()
		}
		open, err := l.requests.Requests(l.Context(), approval.Filter{Run: run, Open: time.Now()})
		if err != nil {
			l.Error(err)
			return
		}
		if len(open) > 1 {
			l.Errorf("run %s asks %d questions at once", run, len(open))
		}
		m := some()
		if m.out.Load() {
			continue
		}
		for _, q := range open {
			if ok, _ := m.yes(q); ok {
				is.approved = true
			}
		}
		if len(open) == 0 && l.left(run) {
			m.say("POST", "/api/runs/"+run+"/resume", map[string]any{})
		}
	}
}

// finish ends the load, and checks what became of all of it: each run that a bridge has
// begun has ended. Unknown are the calls of which nobody knows whether they were made, or
// that were not sent.
func (l *load) finish() (done, unknown int) {
	l.stop.Store(true)
	l.all.Wait()
	refused := 0
	for key, is := range l.runs {
		switch l.became(key, is) {
		case ledger.Done:
			done++
		case ledger.Unknown:
			unknown++
		case ledger.Refused:
			refused++
		}
	}
	l.Logf("%d runs: %d done, %d with a call of which nobody knows whether it was made, or that was not, %d refused before they asked",
		len(l.runs), done, unknown, refused)
	return done, unknown
}

// became checks what became of a run: Done, Unknown, Refused, or what must not be.
func (l *load) became(key string, is *loaded) string {
	n, end := l.count.of(key), l.end(is.run)
	all, err := l.requests.Requests(l.Context(), approval.Filter{Run: is.run})
	if err != nil {
		l.Fatal(err)
	}
	var answered, asks bool
	for _, q := range all {
		answered = answered || q.Verdict != nil && q.Verdict.Approve
		asks = asks || q.Verdict == nil
	}
	switch {
	case n > 1:
		l.Errorf("%s was called %d times (run %s)", key, n, is.run)
	case len(all) > 1:
		l.Errorf("people were asked %d times about %s (run %s)", len(all), key, is.run)
	case n == 1 && !answered:
		l.Errorf("%s was called and approved by nobody (run %s)", key, is.run)
	case is.approved && !answered:
		l.Errorf("a bridge took a yes for %s, and it is lost (run %s): %+v", key, is.run, all)
	case end == nil && answered:
		l.Errorf("%s was approved, and its run %s is lost: %+v", key, is.run, l.kept(is.run))
	case end == nil && asks:
		l.Errorf("%s asks still, and nobody can answer (run %s): %+v", key, is.run, all)
	case end == nil:
		l.Errorf("%s neither asks nor ends (run %s): %+v", key, is.run, l.kept(is.run))
	case answered && end.Outcome == ledger.Done:
		if n != 1 {
			l.Errorf("%s is done, and was called %d times (run %s)", key, n, is.run)
		}
		return ledger.Done
	case answered && (strings.Contains(end.Error, "UnknownOutcomeError") || strings.Contains(end.Error, "was not sent")):
		return ledger.Unknown
	case answered:
		l.Errorf("%s was approved, and its run %s ended %s: %s", key, is.run, end.Outcome, end.Error)
	case len(all) == 0 && unrecorded(end.Error):
		return ledger.Refused
	default:
		l.Errorf("nobody has answered for %s, and its run %s ended %s: %s %+v", key, is.run, end.Outcome, end.Error, all)
	}
	return ""
}

// unrecorded reports whether a run ended because its bridge could record nothing at that
// moment, and says so.
func unrecorded(why string) bool {
	return strings.Contains(why, "could not tell the store in time") || strings.Contains(why, "the database")
}

// left reports whether a run waits for its client: its bridge was lost before it asked, and
// it has not ended.
func (l *load) left(run string) bool {
	all, err := l.requests.Requests(l.Context(), approval.Filter{Run: run})
	if err != nil {
		l.Fatal(err)
	}
	return len(all) == 0 && l.kept(run).State == ledger.Paused
}
