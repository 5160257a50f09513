package sandbox

import (
	"fmt"
	"strings"

	"codemode-bridge/sandbox/wire"
)

// unheard are the failed calls of a run, in the order in which they were answered. A
// script that does not await a call may end before the answer comes: the failure would
// then go unnoticed, so it becomes a note.
type unheard struct {
	answers int // given so far, including successful ones and timers
	failed  []failedCall
}

type failedCall struct {
	answer  int // how many were given before
	number  int
	name    string
	failure string
}

// answered takes note of an answer to an open call.
func (u *unheard) answered(number int, c *openCall, reply Reply) {
	if reply.Err != nil {
		u.failed = append(u.failed, failedCall{u.answers, number, c.name, reply.Err.Name + ": " + short(reply.Err.Message)})
	}
	u.answers++
}

// notes returns remarks about failures beyond the answers that the script was given.
func (u *unheard) notes(taken int) (notes []string) {
	for _, f := range u.failed {
		if f.answer < taken {
			continue
		}
		if len(notes) == maxOpenNamed {
			notes = append(notes, "more calls failed after the script had ended")
			break
		}
		notes = append(notes, fmt.Sprintf("call %d %s failed and nobody awaited it: %s", f.number, f.name, f.failure))
	}
	return notes
}

// short is the beginning of a message.
func short(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// title is how notes name a call: its tool, or what it asks of the bridge.
func title(op wire.Op, name string) string {
	if op == wire.OpTool {
		return name
	}
	return "codemode." + string(op)
}
