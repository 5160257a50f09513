package realm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dop251/goja"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// maxSaved is how deep saved scripts may run one another.
const maxSaved = 8

// savedRuns are the saved scripts that a realm's script runs. codemode.run is
// a call like others; the parent answers it with the script's text. Then:
//
//	script of this realm                    saved script, a realm of its own
//	codemode.run(name, input) ──▶ parent
//	                          ◀── source ──▶ load, begin
//	                                         calls: numbered by the same loop,
//	                                         answers come through this realm
//	result, as JSON           ◀───────────── finish
//
// A realm of its own means a runtime of its own: what either script does to its
// globals does not reach the other, and errors have the line numbers of
// the script they arose in. Limits, clock and console are the run's.
type savedRuns struct {
	outer   *realm
	depth   int                 // saved scripts around this one; 0 for the run's own script
	running map[*realm]*pending // by which call; until it has ended
	inner   map[int]*realm      // which of them made an open call

	mu          sync.Mutex // guards what interrupt needs, which any goroutine calls
	live        map[*realm]struct{}
	interrupted *wire.Failure
}

// A savedSource is the parent's answer to codemode.run.
type savedSource struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Check  bool   `json:"check"` // only whether it could run
}

// innerHost is the host of a saved script's realm.
type innerHost struct {
	Host         // of the realm that runs it
	outer, realm *realm
	by           *pending
}

// Call numbers a call and notes where its answer goes. The parent knows only the
// lines of the run's own script, so the call's position is where that runs the
// saved script.
func (h *innerHost) Call(op wire.Op, name string, args []byte, _ analysis.Position) (int, error) {
	number, err := h.Host.Call(op, name, args, h.by.at)
	if err == nil {
		h.outer.saved.inner[number] = h.realm
	}
	return number, err
}

// Seed differs for each saved script, and is the same when the run is replayed.
func (h *innerHost) Seed() [32]byte {
	outer := h.Host.Seed()
	return sha256.Sum256(binary.BigEndian.AppendUint64(outer[:], uint64(h.by.number)))
}

func (h *innerHost) Now() time.Time { return h.Host.Now() }

// mayRun returns an error if saved scripts already run one another too deep.
func (s *savedRuns) mayRun() error {
	if s.depth >= maxSaved {
		return &LimitReached{Limit: "saved scripts", Value: fmt.Sprintf("%d saved scripts within one another", maxSaved)}
	}
	return nil
}

// run runs the saved script that the parent answered call p with.
func (s *savedRuns) run(p *pending, body []byte) error {
	r := s.outer
	var from savedSource
	if err := json.Unmarshal(body, &from); err != nil {
		return s.fail(p, failText("Error", "reading the saved script: "+err.Error(), ""))
	}
	p.name = from.Name
	h := &innerHost{Host: r.host, outer: r, by: p}
	c := newRealm(h)
	c.saved.depth, h.realm = s.depth+1, c
	if !s.adopt(c, p) {
		return nil // the run is being stopped, and says so itself
	}
	_, fail := c.load(r.tools.names, from.Source, p.input)
	if from.Check {
		s.drop(c)
		return s.checked(p, fail)
	}
	if fail != nil {
		c.done, c.failed = true, fail
		return s.follow(c)
	}
	c.begin()
	return s.follow(c)
}

// checked answers the call that only asks whether a script can be run, with
// the place of what is wrong in fields of the error.
func (s *savedRuns) checked(p *pending, fail *wire.Failure) error {
	r := s.outer
	defer r.discard(p)
	if fail == nil {
		return p.resolve(goja.Undefined())
	}
	fields, err := json.Marshal(fail.Position)
	if err != nil {
		return s.fail(p, fail)
	}
	return p.reject(r.thrownError(p, &wire.Thrown{Name: fail.Name, Message: fail.Message, Fields: fields}))
}

// adopt adds a realm before it runs, and reports false if the run was
// interrupted.
func (s *savedRuns) adopt(c *realm, p *pending) bool {
	if s.running == nil {
		s.running, s.inner = make(map[*realm]*pending), make(map[int]*realm)
	}
	s.running[c] = p
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = make(map[*realm]struct{})
	}
	s.live[c] = struct{}{}
	return s.interrupted == nil
}

func (s *savedRuns) drop(c *realm) {
	delete(s.running, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, c)
}

// interrupt stops the saved scripts, and those that would begin.
func (s *savedRuns) interrupt(reason *wire.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = reason
	for c := range s.live {
		c.interrupt(reason)
	}
}

// answer hands an answer to the saved script that made the call, if one did and
// has not returned.
func (s *savedRuns) answer(number int, reply wire.Reply, body []byte) {
	r := s.outer
	c := s.inner[number]
	if c == nil {
		return
	}
	delete(s.inner, number)
	if c.ended() {
		return
	}
	c.answer(number, reply, body)
	if err := s.follow(c); err != nil {
		r.stop(err)
		return
	}
	r.look()
}

// follow answers the call that runs a saved script once that has ended.
func (s *savedRuns) follow(c *realm) error {
	r := s.outer
	if !c.ended() {
		if len(c.pending)+len(c.saved.running) > 0 {
			return nil
		}
		c.deadlocked() // whatever else is open, nothing can move it
	}
	p := s.running[c]
	defer r.discard(p)
	body, notes, fail := c.finish()
	s.drop(c)
	for _, n := range notes {
		r.note("saved script " + p.name + ": " + n)
	}
	switch {
	case fail != nil && fail.Kind == wire.FailureLimit: // nothing may catch it
		limit := *fail
		limit.Position, limit.Stack = p.at, append(limit.Stack, p.stack...)
		limit.Frame = r.savedFrame(p.at, p.name, fail.Frame)
		r.failed, r.done = &limit, true
		return nil
	case fail != nil:
		return s.fail(p, fail)
	case body == nil:
		return p.resolve(goja.Undefined())
	}
	v, err := r.Decode(string(body))
	if err != nil {
		return s.fail(p, failText("Error", "reading its result: "+err.Error(), ""))
	}
	return p.resolve(v)
}

// fail rejects the call that ran a saved script, with an error of the
// same class and fields as the one that ended it.
func (s *savedRuns) fail(p *pending, fail *wire.Failure) error {
	r := s.outer
	defer r.discard(p)
	p.failed, p.within = true, fail
	text := fail.Message + " (in saved script " + values.Cut(p.name, 80)
	if at := fail.Position; at.Line > 0 {
		text += fmt.Sprintf(", line %d, column %d", at.Line, at.Column)
	}
	return p.reject(r.thrownError(p, &wire.Thrown{Name: fail.Name, Message: text + ")", Fields: fail.Fields}))
}
