package mcphttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/rpc"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readMessage reads the body of a POST, which is one message. There must be only one
// way to read it: the dispatcher and the SDK each do.
func readMessage(body []byte) (rpc.Message, *rpc.Error) {
	m, bad := rpc.Read(body)
	if bad == nil {
		if _, err := canon.Parse(body); err != nil { // a name twice, at any depth
			bad = &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + err.Error()}
		}
	}
	return m, bad
}

// checkBatch says why a batch is refused in a session of a protocol version; nil if
// it is not.
func checkBatch(elements []json.RawMessage, version string) *rpc.Error {
	refuse := func(id json.RawMessage, what string) *rpc.Error {
		return &rpc.Error{ID: id, Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + what}
	}
	if len(elements) == 0 {
		return refuse(nil, "an empty batch")
	}
	if !rpc.HasBatches(version) {
		return refuse(nil, "batches are of protocol 2025-03-26, which this session does not speak")
	}
	for _, text := range elements {
		m, bad := readMessage(text)
		if bad != nil {
			return bad
		}
		if m.Method == "initialize" {
			return refuse(m.ID, "initialize is no part of a batch")
		}
	}
	return nil
}

// refuse answers a POST with an error of JSON-RPC.
func refuse(w http.ResponseWriter, status int, err *rpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(err.Bytes(), '\n')) // a client that is gone needs no answer
}

// A reply is the answer to a POST. The SDK refuses some messages with 400 and a
// plain text, which is held back until finish writes it as JSON-RPC has it.
type reply struct {
	http.ResponseWriter
	message rpc.Message // empty for a batch
	held    bool
	text    bytes.Buffer
}

// Unwrap lets a stream be flushed.
func (r *reply) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *reply) WriteHeader(status int) {
	r.held = status == http.StatusBadRequest && strings.HasPrefix(r.Header().Get("Content-Type"), "text/plain")
	if !r.held {
		r.ResponseWriter.WriteHeader(status)
	}
}

func (r *reply) Write(p []byte) (int, error) {
	if r.held {
		return r.text.Write(p)
	}
	return r.ResponseWriter.Write(p)
}

// finish writes what was held back. An unknown method is an error in answer to a
// request; a notification is never answered.
func (r *reply) finish() {
	if !r.held {
		return
	}
	text, m := strings.TrimSpace(r.text.String()), r.message
	unknown := strings.HasSuffix(text, strconv.Quote(m.Method)+" unsupported")
	switch {
	case m.IsRequest() && unknown:
		refuse(r.ResponseWriter, http.StatusOK, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", m.Method)})
	case m.Method != "" && m.ID == nil && (unknown || strings.Contains(text, "missing id for")):
		r.Header().Del("Content-Type")
		r.ResponseWriter.WriteHeader(http.StatusAccepted)
	case strings.HasPrefix(text, "Accept must contain"):
		refuse(r.ResponseWriter, http.StatusNotAcceptable, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: text})
	default:
		refuse(r.ResponseWriter, http.StatusBadRequest, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: text})
	}
}

// A hiding is the answer to any request. The SDK refuses somebody else's session with
// 403, and nothing else; it looks like one that never was. The table of sessions knows
// a new one only once its client has it.
type hiding struct {
	http.ResponseWriter
	hidden bool
}

// Unwrap lets a stream be flushed.
func (h *hiding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *hiding) WriteHeader(status int) {
	if status == http.StatusForbidden {
		h.hidden = true
		http.Error(h.ResponseWriter, "session not found", http.StatusNotFound)
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

func (h *hiding) Write(p []byte) (int, error) {
	if h.hidden {
		return len(p), nil
	}
	return h.ResponseWriter.Write(p)
}
