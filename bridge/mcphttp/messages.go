package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/rpc"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the protocol demands of a server and the SDK leaves out.

// resourceNotFound is the code up to 2025-11-25; since 2026-07-28 it is that of
// invalid params.
const resourceNotFound = -32002

// strict refuses lists that the bridge does not declare, which the SDK answers as
// if they were empty, and gives a resource that is not there the code of the era,
// and a second initialize one at all.
func strict(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req.GetParams().(type) {
		case *mcp.ListResourcesParams, *mcp.ListResourceTemplatesParams, *mcp.ListPromptsParams:
			return nil, methodNotFound(method)
		}
		res, err := next(ctx, method, req)
		var failed *jsonrpc.Error
		if method == "initialize" && err != nil && !errors.As(err, &failed) { // a second one, which the SDK answers with the code 0
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + err.Error()}
		}
		if read, ok := req.(*mcp.ReadResourceRequest); ok && read.ProtocolVersion() < statelessProtocol && errors.As(err, &failed) && failed.Code == jsonrpc.CodeInvalidParams {
			return nil, &jsonrpc.Error{Code: resourceNotFound, Message: failed.Message, Data: failed.Data}
		}
		return res, err
	}
}

func methodNotFound(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
}

// readMessage reads the body of a POST, which is one message. It must have one
// reading: the dispatcher and the SDK each make theirs.
func readMessage(body []byte) (rpc.Message, *rpc.Error) {
	m, bad := rpc.Read(body)
	if bad == nil {
		if _, err := canon.Parse(body); err != nil { // a name twice, however deep
			bad = &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + err.Error()}
		}
	}
	return m, bad
}

// checkBatch says why a batch is not taken, in a session of a protocol version;
// nil if it is.
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

// finish writes what was held back: a method that there is none of is an answer
// to a request, and nothing to a notification, which nobody answers.
func (r *reply) finish() {
	if !r.held {
		return
	}
	text, m := strings.TrimSpace(r.text.String()), r.message
	unknown := strings.HasSuffix(text, strconv.Quote(m.Method)+" unsupported")
	switch {
	case m.IsRequest() && unknown:
		refuse(r.ResponseWriter, http.StatusOK, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeMethodNotFound, Message: methodNotFound(m.Method).Message})
	case m.Method != "" && m.ID == nil && (unknown || strings.Contains(text, "missing id for")):
		r.Header().Del("Content-Type")
		r.ResponseWriter.WriteHeader(http.StatusAccepted)
	case strings.HasPrefix(text, "Accept must contain"):
		refuse(r.ResponseWriter, http.StatusNotAcceptable, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: text})
	default:
		refuse(r.ResponseWriter, http.StatusBadRequest, &rpc.Error{ID: m.ID, Code: jsonrpc.CodeInvalidRequest, Message: text})
	}
}
