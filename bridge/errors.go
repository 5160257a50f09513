package bridge

import (
	"errors"
	"fmt"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
)

// ErrClosed is returned for what arrives after Close has begun.
var ErrClosed = errors.New("the bridge is shutting down")

// ErrNoSession is returned for a session that is over, or never was.
var ErrNoSession = errors.New("there is no such session")

// ErrEnded: the run has ended, and its answer is still kept.
var ErrEnded = errors.New("the run has ended")

// ErrNoRun: nobody knows the run, or it has ended, or it is another's.
var ErrNoRun = errors.New("there is no such run")

// An ElsewhereError is a run that belongs to another configuration than this
// bridge's: nobody goes on with it, answers for it or ends it here.
type ElsewhereError struct {
	Run           string
	Configuration gate.Configuration // zero: it began in a release that kept none
}

func (e *ElsewhereError) Error() string {
	if e.Configuration.ID == "" {
		return fmt.Sprintf("run %s began in an older release, which did not write down whose configuration it belongs to, so it can only be ended: run its script again", e.Run)
	}
	return fmt.Sprintf("run %s belongs to another configuration, %s, and goes on only under that one", e.Run, canon.Escape(e.Configuration.Name))
}

// Why a run does not go on here.
var (
	errBusyElsewhere = errors.New("another bridge has the run and is busy with it; try again in a moment")
	errExpired       = errors.New("the run expired: it waited too long for a person")
	errNoPolicy      = errors.New("its journal does not have the policy that it began with")
)

// Why a run is stopped that did not end by itself.
var (
	errClientGone   error = &approval.StoppedError{By: "the client", Why: "the client cancelled the call"}
	errSessionEnded error = &approval.StoppedError{By: "the client", Why: "the client ended its session"}
)

// Why the context of a run ends that goes on elsewhere.
var (
	errSuspended = errors.New("the run was suspended")
	errLeaseLost = errors.New("another bridge goes on with the run")
)
