package gate

import (
	"encoding/json"
	"errors"

	"codemode-bridge/bridge/approval"
)

// An Effect is what became of one call. The model is told when its script fails, so
// that a second attempt does not do things twice.
type Effect struct {
	Number     int    `json:"call"`
	Tool       string `json:"tool"`
	State      string `json:"state"` // done, failed, refused or unknown, as in package ledger
	Repeatable bool   `json:"repeatable,omitempty"`
	// Retry says, for a refused call, what would stop it in another run as well;
	// it is empty if the same call may pass there.
	Retry string `json:"retry,omitempty"`
	// Edited, if not nil, says that the arguments were not the script's.
	Edited *Edited `json:"edited,omitempty"`
}

// Edited says that a person changed the arguments of a call before they allowed
// it. Both are in display form, cut where they are long: a model reads them.
type Edited struct {
	By   string          `json:"by"`
	From json.RawMessage `json:"from"` // the script's
	To   json.RawMessage `json:"to"`
}

// The values of Retry.
const (
	RetryNever   = "never"   // policy or a person denied it, or nobody can be asked
	RetryChanged = "changed" // its arguments or its name are wrong: with others it may pass
)

// retry says for an effect whether a call that was refused with err may be made
// again in another run.
func retry(err error) string {
	var denied *approval.DeniedError
	var unknown *UnknownToolError
	switch {
	case errors.As(err, &unknown) && unknown.Later:
		return ""
	case !errors.As(err, &denied):
		return RetryChanged // its arguments or its name are wrong
	case denied.Rerunnable():
		return ""
	}
	return RetryNever
}
