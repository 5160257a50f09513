package tap

import (
	"context"
	"encoding/json"
	"strings"
)

// This file finds out which call of ours a request of the server belongs to.

// CallKey is the member of _meta in which the tap tells a handler of the SDK which
// call a server's request belongs to. The server's own _meta is taken out.
const CallKey = "codemode-bridge/call"

// Asker returns the exchange that a server's request with such a _meta belongs to,
// nil if that is not certain. cancel is called when that call is over or, where
// the request may belong to several calls of one listener, the last of them.
func (t *Tap) Asker(meta map[string]any, cancel context.CancelCauseFunc) *Exchange {
	names, _ := meta[CallKey].(string)
	ties := strings.Fields(names)
	for _, tie := range ties { // the first of them may be over by now
		if x := t.tied(tie); x != nil {
			t.during(x, len(ties) > 1, cancel)
			return x
		}
	}
	return nil
}

// during calls cancel when x is over or, with oneOf, the last exchange of its
// listener.
func (t *Tap) during(x *Exchange, oneOf bool, cancel context.CancelCauseFunc) {
	context.AfterFunc(x.life, func() {
		if oneOf {
			if next := t.sibling(x); next != nil {
				t.during(next, true, cancel)
				return
			}
		}
		cancel(context.Cause(x.life))
	})
}

// tied returns the exchange of a tie, nil if there is none.
func (t *Tap) tied(tie string) *Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ties[tie]
}

// sibling returns another exchange with the same listener, nil if there is none.
func (t *Tap) sibling(x *Exchange) *Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.ties {
		if other != x && other.listener == x.listener && other.life.Err() == nil {
			return other
		}
	}
	return nil
}

// siblings returns the ties of x and of the other exchanges with its listener, x first.
func (t *Tap) siblings(x *Exchange) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []string{x.tie}
	for tie, other := range t.ties {
		if other != x && other.listener == x.listener && other.life.Err() == nil {
			all = append(all, tie)
		}
	}
	return all
}

// belongs returns the exchange that a message of the server belongs to if it names
// none. On a stream that answers one request it is that one's; otherwise all exchanges
// with a listener must be for the same one.
func (t *Tap) belongs(stream []byte) *Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stream != nil {
		if x := t.open[string(stream)]; x != nil && x.listener != nil {
			return x
		}
		return nil
	}
	var found *Exchange
	for _, x := range t.ties {
		if found != nil && found.listener != x.listener {
			return nil
		}
		found = x
	}
	return found
}

// request passes a request of the server to the SDK, which answers it, unless
// too many are open.
func (t *Tap) request(e envelope, msg, stream []byte) []byte {
	if method := string(e.method); method == `"elicitation/create"` || method == `"sampling/createMessage"` {
		msg = t.tie(e, stream)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, twice := t.asked[string(e.id)]; twice || len(t.asked) >= maxAsked || !json.Valid(msg) {
		t.Drop("too many requests, or one that cannot be read", msg)
		return nil
	}
	t.asked[string(e.id)] = true
	return msg
}

// tie rewrites a request of the server with the name of the call that it belongs to in
// place of its _meta; with those of all calls of its listener if the server did not say for
// which of them it asks.
func (t *Tap) tie(e envelope, stream []byte) []byte {
	name := ""
	if x := t.belongs(stream); x != nil {
		if name = x.tie; stream == nil {
			name = strings.Join(t.siblings(x), " ")
		}
	}
	params := []byte(`{"_meta":{"` + CallKey + `":"` + name + `"}`)
	_ = Members(e.params, func(key string, value []byte) error {
		if quoted, err := json.Marshal(key); err == nil && !strings.EqualFold(key, "_meta") {
			params = append(append(append(append(params, ','), quoted...), ':'), value...)
		}
		return nil
	})
	msg := append([]byte(`{"jsonrpc":"2.0","id":`), e.id...)
	msg = append(append(append(msg, `,"method":`...), e.method...), `,"params":`...)
	return append(append(msg, params...), "}}"...)
}
