package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dop251/goja"

	"codemode-bridge/analysis"
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
// globals does not reach the other, and errors are told in the lines of the
// script they arose in. Limits, clock and console are the run's.
type savedRuns struct {
	depth   int                 // saved scripts around this one; 0 for the run's own script
	running map[*realm]*pending // by which call; until it has ended
	inner   map[int]*realm      // which of them made an open call

	mu          sync.Mutex // guards what interrupt needs, which any goroutine calls
	live        map[*realm]struct{}
	interrupted *wire.Failure
}

// A source is the parent's answer to codemode.run.
type source struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Check  bool   `json:"check"` // only whether it could run
}

// innerHost is the host of a saved script's realm.
type innerHost struct {
	host         // of the realm that runs it
	outer, realm *realm
	by           *pending
}

// call numbers a call and notes where its answer goes. The parent knows the
// lines of the run's own script only: there the call stands where that runs the
// saved script.
func (h *innerHost) call(op wire.Op, name string, args []byte, _ analysis.Position) (int, error) {
	number, err := h.host.call(op, name, args, h.by.at)
	if err == nil {
		h.outer.saved.inner[number] = h.realm
	}
	return number, err
}

// seed differs for each saved script, and is the same when the run is run again.
func (h *innerHost) seed() [32]byte {
	outer := h.host.seed()
	return sha256.Sum256(binary.BigEndian.AppendUint64(outer[:], uint64(h.by.number)))
}

func (h *innerHost) now() time.Time { return h.host.now() }

// mayRun reports whether the script may run a saved script, by depth.
func (r *realm) mayRun() error {
	if r.saved.depth >= maxSaved {
		return &limitError{"saved scripts", fmt.Sprintf("%d saved scripts within one another", maxSaved)}
	}
	return nil
}

// runSaved runs the saved script that the parent answered call p with.
func (r *realm) runSaved(p *pending, body []byte) error {
	var from source
	if err := json.Unmarshal(body, &from); err != nil {
		return r.failSaved(p, failText("Error", "reading the saved script: "+err.Error(), ""))
	}
	p.name = from.Name
	h := &innerHost{host: r.host, outer: r, by: p}
	c := newRealm(h)
	c.saved.depth, h.realm = r.saved.depth+1, c
	if !r.adoptSaved(c, p) {
		return nil // the run is being stopped, and says so itself
	}
	_, fail := c.load(r.names, from.Source, p.input)
	if from.Check {
		r.dropSaved(c)
		return r.checked(p, fail)
	}
	if fail != nil {
		c.done, c.failed = true, fail
		return r.follow(c)
	}
	c.begin()
	return r.follow(c)
}

// checked answers the call that only asks whether a script can be run, with
// the place of what is wrong in fields of the error.
func (r *realm) checked(p *pending, fail *wire.Failure) error {
	defer r.letGo(p)
	if fail == nil {
		return p.resolve(goja.Undefined())
	}
	fields, err := json.Marshal(fail.Position)
	if err != nil {
		return r.failSaved(p, fail)
	}
	return p.reject(r.thrownError(p, &wire.Thrown{Name: fail.Name, Message: fail.Message, Fields: fields}))
}

// adoptSaved takes up a realm before it runs, unless the run is interrupted.
func (r *realm) adoptSaved(c *realm, p *pending) bool {
	s := &r.saved
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

func (r *realm) dropSaved(c *realm) {
	delete(r.saved.running, c)
	r.saved.mu.Lock()
	defer r.saved.mu.Unlock()
	delete(r.saved.live, c)
}

// interruptSaved stops the saved scripts, and those that would begin.
func (r *realm) interruptSaved(reason *wire.Failure) {
	r.saved.mu.Lock()
	defer r.saved.mu.Unlock()
	r.saved.interrupted = reason
	for c := range r.saved.live {
		c.interrupt(reason)
	}
}

// answerSaved hands an answer to the saved script that made the call, and
// reports whether one did. One that has returned goes no further.
func (r *realm) answerSaved(number int, reply wire.Reply, body []byte) bool {
	c := r.saved.inner[number]
	if c == nil {
		return false
	}
	delete(r.saved.inner, number)
	if c.ended() {
		return true
	}
	c.answer(number, reply, body)
	if err := r.follow(c); err != nil {
		r.stop(err)
		return true
	}
	r.look()
	return true
}

// follow settles the call that runs a saved script once that has ended.
func (r *realm) follow(c *realm) error {
	if !c.ended() {
		if len(c.pending)+len(c.saved.running) > 0 {
			return nil
		}
		c.stuck() // whatever else is open, nothing can move it
	}
	p := r.saved.running[c]
	defer r.letGo(p)
	body, notes, fail := c.finish()
	r.dropSaved(c)
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
		return r.failSaved(p, fail)
	case body == nil:
		return p.resolve(goja.Undefined())
	}
	v, err := r.decode(string(body))
	if err != nil {
		return r.failSaved(p, failText("Error", "reading its result: "+err.Error(), ""))
	}
	return p.resolve(v)
}

// failSaved rejects the call that ran a saved script, with an error of the
// same class and fields as the one that ended it.
func (r *realm) failSaved(p *pending, fail *wire.Failure) error {
	defer r.letGo(p)
	p.failed, p.within = true, fail
	text := fail.Message + " (in saved script " + cutText(p.name, 80)
	if at := fail.Position; at.Line > 0 {
		text += fmt.Sprintf(", line %d, column %d", at.Line, at.Column)
	}
	return p.reject(r.thrownError(p, &wire.Thrown{Name: fail.Name, Message: text + ")", Fields: fail.Fields}))
}

// savedFrame shows where the run's own script runs a saved script, and below
// it the lines of that.
func (r *realm) savedFrame(at analysis.Position, name, within string) string {
	frame := r.script.frame(at)
	if within == "" {
		return frame
	}
	return cutText(frame+"\nsaved script "+cutText(name, 80)+":\n"+within, wire.MaxNote)
}
