package mcphttp

import (
	"errors"
	"net/http"

	"codemode-bridge/bridge/rpc"
)

// A bridge that is about to end answers what is under way, and begins nothing. What it
// refuses with 503 has had no effect: a load balancer may send it to another bridge.

var errDraining = errors.New("this bridge is ending: it begins nothing any more; try again, which meets another one if there is one")

func (o Options) draining() bool { return o.Draining != nil && o.Draining() }

// codeDraining is the code of the JSON-RPC error: one of those that are a server's own.
const codeDraining = -32000

// begins refuses a message that would begin something, and reports whether it did. A
// session in which nothing is under way is over: its client opens another one, elsewhere.
func (d *dispatcher) begins(w http.ResponseWriter, m rpc.Message, id string, stateless bool) bool {
	switch {
	case stateless && m.IsRequest(), m.Method == "initialize":
	case id == "" || m.Method != "tools/call":
		return false
	case !d.sessions.inUse(id):
		http.Error(w, "session not found", http.StatusNotFound)
		return true
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusServiceUnavailable, &rpc.Error{ID: m.ID, Code: codeDraining, Message: errDraining.Error()})
	return true
}
