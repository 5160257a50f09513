package gate

import (
	"slices"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// othersLocked returns a copy of the facts that rules may ask of the run,
// without c.
func (r *Run) othersLocked(c *call) profiles.RunFacts {
	facts := r.facts
	facts.Tools = slices.Clone(facts.Tools)
	if c.counted {
		facts.Calls--
		facts.Bytes -= c.bytes
	}
	return facts
}

// countLocked counts c, once. A call that is refused later stays counted.
func (r *Run) countLocked(c *call) {
	if c.counted {
		return
	}
	c.counted, c.bytes = true, int64(len(c.args.Bytes()))
	r.tallyLocked(c.tool.Path(), c.bytes)
}

// tallyLocked counts a call of a tool with the number of bytes that it sends.
func (r *Run) tallyLocked(path string, bytes int64) {
	r.facts.Calls++
	r.facts.Bytes += bytes
	if !slices.Contains(r.facts.Tools, path) {
		r.facts.Tools = append(r.facts.Tools, path)
	}
}

// madeLocked counts the calls that were sent so far, without those that were refused.
func (r *Run) madeLocked() int {
	made := 0
	for _, e := range r.effects {
		if e.State != ledger.Refused {
			made++
		}
	}
	return made
}

// mark sets the state of the call with the given number, and counts what was
// received.
func (r *Run) mark(number int, state string, received int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.Bytes += int64(received)
	for i := len(r.effects) - 1; i >= 0; i-- {
		if r.effects[i].Number == number {
			r.effects[i].State = state
			return
		}
	}
}
