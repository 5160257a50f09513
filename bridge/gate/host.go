package gate

import "codemode-bridge/bridge/approval"

// A Host is whoever runs the script of a run, as the gate needs it: it has what
// only the runner knows at any moment, and what only the runner can do. Its methods
// may be called by any number of goroutines. Partial implementations embed
// [Unattended].
type Host interface {
	// Profiles names further profiles that must allow each call.
	Profiles() []string
	// Scope is what the run reaches at this moment; nil: every server.
	Scope() Scope
	// AnswersItself reports whether the client answers questions by itself,
	// before anybody can read them: then there is nobody to ask.
	AnswersItself() bool
	// ApproveAt returns where approvers answer for the run; "" if that is not
	// known.
	ApproveAt() string
	// Attended reports whether a client waits for the run. If none does, the run
	// ends when nobody answers in time, rather than going on alone.
	Attended() bool

	// Asks is told that a call waits for people from now on, unless the answer is
	// there at once.
	Asks(call int)
	// Idle says when no further calls come that could be asked about together, as
	// [approval.Request.Idle] does.
	Idle() (calls int, changed <-chan struct{})
	// Sends is told that a call is about to be sent, and reports whether it may
	// be: no, once the run is suspended. The run is not suspended before
	// Returns is called, since the answer would be lost.
	Sends(call int) bool
	Returns(call int)
	// Suspended reports whether the run continues elsewhere, from its journal: then
	// its calls are neither made nor refused, and nothing is recorded about them.
	Suspended() bool

	// Withholds reports whether nobody sees what the run has done before [Run.Flush]
	// or [Run.End] has returned nil, and Stop ends it: then its records may be written a
	// moment later, together.
	Withholds() bool
	// Stop ends the run: a person wants that, or too many of its questions were
	// asked without success.
	Stop(why error)
	// Unasked is told of each call that was denied because there was nobody to
	// ask, whether or not the script handles the error. It must not block.
	Unasked(*approval.DeniedError)
}

// Unattended is the host of a run that nobody suspends or stops, and that no
// further profile binds.
type Unattended struct{}

func (Unattended) Profiles() []string            { return nil }
func (Unattended) Scope() Scope                  { return nil }
func (Unattended) AnswersItself() bool           { return false }
func (Unattended) ApproveAt() string             { return "" }
func (Unattended) Attended() bool                { return true }
func (Unattended) Asks(int)                      {}
func (Unattended) Idle() (int, <-chan struct{})  { return -1, nil }
func (Unattended) Sends(int) bool                { return true }
func (Unattended) Returns(int)                   {}
func (Unattended) Suspended() bool               { return false }
func (Unattended) Withholds() bool               { return false }
func (Unattended) Stop(error)                    {}
func (Unattended) Unasked(*approval.DeniedError) {}

var _ Host = Unattended{}
