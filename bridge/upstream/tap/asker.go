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

// oneOfSeveral follows a tie that stands for all calls of its listener: the server
// did not say which of them it asks for.
const oneOfSeveral = "?"

// Asker returns the exchange that a server's request with such a _meta belongs to,
// nil if that is not certain. cancel is called when that call is over or, where
// the request may belong to several calls of one listener, the last of them.
func (t *Tap) Asker(meta map[string]any, cancel context.CancelCauseFunc) *Exchange {
	tie, _ := meta[CallKey].(string)
	tie, oneOf := strings.CutSuffix(tie, oneOfSeveral)
	x := t.tied(tie)
	if x != nil {
		t.during(x, oneOf, cancel)
	}
	return x
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
// place of its _meta.
func (t *Tap) tie(e envelope, stream []byte) []byte {
	name := ""
	if x := t.belongs(stream); x != nil {
		if name = x.tie; stream == nil && t.sibling(x) != nil {
			name += oneOfSeveral
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
