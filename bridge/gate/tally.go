package gate

import (
	"maps"
	"slices"
	"sync"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A tally counts what the calls of a run do: for rules, for the person who is asked,
// and for the model when its script fails.
type tally struct {
	mu      sync.Mutex
	facts   profiles.RunFacts
	effects []Effect                   // in the order the calls were decided
	passed  map[analysis.Position]bool // where calls were made that are over
}

// pass notes that a call that was made at a place of the script is over.
func (t *tally) pass(at analysis.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.passed == nil {
		t.passed = map[analysis.Position]bool{}
	}
	t.passed[at] = true
}

// places returns where calls were made that are over.
func (t *tally) places() map[analysis.Position]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.passed)
}

// judge returns what by decides of c when it is told of the other calls, and then
// counts c, once. No other call is counted in the meantime, since a rule may allow
// only so many. A call that is refused later stays counted.
func (t *tally) judge(c *call, by func(others profiles.RunFacts) profiles.Decision) profiles.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	decision := by(t.othersLocked(c))
	t.countLocked(c)
	return decision
}

// count counts c, once, without judging it.
func (t *tally) count(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countLocked(c)
}

func (t *tally) countLocked(c *call) {
	if c.counted {
		return
	}
	c.counted, c.bytes = true, int64(len(c.args.Bytes()))
	t.addLocked(c.tool.Path(), c.bytes)
}

// addLocked counts a call of a tool with the number of bytes that it sends.
func (t *tally) addLocked(path string, bytes int64) {
	t.facts.Calls++
	t.facts.Bytes += bytes
	if !slices.Contains(t.facts.Tools, path) {
		t.facts.Tools = append(t.facts.Tools, path)
	}
}

// others returns the facts that rules may ask of the run, without c.
func (t *tally) others(c *call) profiles.RunFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.othersLocked(c)
}

func (t *tally) othersLocked(c *call) profiles.RunFacts {
	facts := t.facts
	facts.Tools = slices.Clone(facts.Tools)
	if c.counted {
		facts.Calls--
		facts.Bytes -= c.bytes
	}
	return facts
}

// add adds the effect of a call.
func (t *tally) add(e Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.effects = append(t.effects, e)
}

// mark sets the state of the call with the given number, and counts what was
// received.
func (t *tally) mark(number int, state string, received int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.facts.Bytes += int64(received)
	for i := len(t.effects) - 1; i >= 0; i-- {
		if t.effects[i].Number == number {
			t.effects[i].State = state
			return
		}
	}
}

// recall counts a call of an earlier part of the run.
func (t *tally) recall(p Past) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.effects = append(t.effects, p.Effect)
	if p.Path != "" {
		t.addLocked(p.Path, p.Sent)
		t.facts.Bytes += int64(p.Received)
	}
}

// made counts the calls that were sent so far, without those that were refused.
func (t *tally) made() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	made := 0
	for _, e := range t.effects {
		if e.State != ledger.Refused {
			made++
		}
	}
	return made
}

// all returns the effects so far.
func (t *tally) all() []Effect {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.effects)
}
