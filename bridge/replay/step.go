package replay

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Step is one call of a run that is looked at again.
type Step struct {
	Call   int             `json:"call"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`
	Line   int             `json:"line,omitempty"`
	Time   time.Time       `json:"time"`             // that the script saw when it got the answer
	State  string          `json:"state"`            // done, failed, refused or unknown, or answered if it was none of the gate's
	Value  json.RawMessage `json:"value,omitempty"`  // what the script got
	Thrown string          `json:"thrown,omitempty"` // or the error
}

// A NoAnswerError says where the journal ends of a run that has not ended itself.
type NoAnswerError struct {
	Call int
	Name string
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("the journal ends here: call %d (%s) has no answer in it", e.Call, e.Name)
}
