// Package rpc reads JSON-RPC messages before the SDK does. The SDK ends a
// session at a message that it cannot read, and confuses some ids; this package
// finds and answers such messages, so that the session lives on.
package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Message is what is read of a request, a notification or a response.
type Message struct {
	ID     json.RawMessage // nil for a notification
	Method string          // empty for a response
	Params json.RawMessage
	Result json.RawMessage

	decoded jsonrpc.Message // the same, as the SDK has it; of Read
}

// IsRequest reports whether the message must be answered.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsResponse reports whether the message is an answer.
func (m Message) IsResponse() bool { return m.Method == "" }

// Meta returns the text of a member of params._meta; empty if there is none. Like
// the SDK it knows no other spelling of _meta.
func (m Message) Meta(name string) string {
	var params, meta map[string]json.RawMessage
	var text string
	if json.Unmarshal(m.Params, &params) != nil || json.Unmarshal(params["_meta"], &meta) != nil || json.Unmarshal(meta[name], &text) != nil {
		return ""
	}
	return text
}

// Key is the message's id in a form that is the same for the same id, however
// it was written.
func (m Message) Key() string { return key(m.ID) }

func key(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) != nil {
		return string(id)
	}
	return strconv.Quote(text)
}

// An Error says why a message is refused, and is the answer to it.
type Error struct {
	ID      json.RawMessage // of the message, nil if it has none that could be sent back
	Code    int
	Message string
	// Response is set if the message was a response itself: those are not
	// answered, or two sides could go on for ever.
	Response bool
}

func (e *Error) Error() string { return e.Message }

// Bytes returns the answer as JSON-RPC writes it.
func (e *Error) Bytes() []byte {
	id := e.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": e.Code, "message": e.Message}})
	if err != nil { // cannot be: an id is one that was read
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return text
}

// Read reads one message, or says why it is not one. What it lets through, the SDK
// reads the same way.
func Read(text []byte) (Message, *Error) {
	var m Message
	refuse := func(code int, format string, args ...any) (Message, *Error) {
		return Message{}, &Error{ID: echo(m.ID), Code: code, Message: fmt.Sprintf(format, args...), Response: m.Result != nil}
	}
	if !utf8.Valid(text) || !json.Valid(text) {
		return refuse(jsonrpc.CodeParseError, "parse error: no JSON")
	}
	if t := bytes.TrimSpace(text); t[0] != '{' {
		return refuse(jsonrpc.CodeInvalidRequest, "invalid request: a message is an object")
	}
	members, twice := membersOf(text)
	m.ID, m.Params, m.Result = members["id"], members["params"], members["result"]
	method, named := members["method"]
	if failed, ok := members["error"]; ok && !named {
		m.Result = failed // a response all the same
	}
	if twice != "" {
		return refuse(jsonrpc.CodeInvalidRequest, "invalid request: it has %q twice", twice)
	}
	if m.ID != nil {
		if err := checkID(m.ID); err != nil {
			return refuse(jsonrpc.CodeInvalidRequest, "invalid request: %v", err)
		}
	}
	var err error
	if m.decoded, err = decode(text, members); err != nil {
		return refuse(jsonrpc.CodeInvalidRequest, "invalid request: %v", err)
	}
	if !named {
		return m, nil
	}
	if json.Unmarshal(method, &m.Method) != nil || m.Method == "" {
		return refuse(jsonrpc.CodeInvalidRequest, "invalid request: method must be a text")
	}
	if m.Method == "initialize" {
		// The SDK answers one that it cannot read with the code 0.
		var params *mcp.InitializeParams
		if err := json.Unmarshal(m.Params, &params); err != nil || params == nil {
			return refuse(jsonrpc.CodeInvalidParams, "invalid params: initialize takes protocolVersion, capabilities and clientInfo")
		}
	}
	if m.Method == "tools/call" {
		if err := checkAnswers(m.Params); err != nil {
			return refuse(jsonrpc.CodeInvalidParams, "invalid params: %v", err)
		}
	}
	return m, nil
}

// decode is jsonrpc.DecodeMessage, but cheaper in the usual case, a request about which
// readers do not differ: the SDK's decoder takes a buffer of 32 KB for each message.
func decode(text []byte, members map[string]json.RawMessage) (jsonrpc.Message, error) {
	for name := range members {
		switch name {
		case "jsonrpc", "id", "method", "params":
		default:
			return jsonrpc.DecodeMessage(text)
		}
	}
	method := members["method"]
	plain := len(method) > 2 && method[0] == '"' && !bytes.ContainsRune(method, '\\') && string(members["jsonrpc"]) == `"2.0"` &&
		string(members["params"]) != "null" && bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) < maxDepth
	if !plain {
		return jsonrpc.DecodeMessage(text)
	}
	var raw any
	if id := members["id"]; id != nil && json.Unmarshal(id, &raw) != nil {
		return jsonrpc.DecodeMessage(text)
	}
	id, err := jsonrpc.MakeID(raw)
	if err != nil {
		return nil, err
	}
	return &jsonrpc.Request{ID: id, Method: string(method[1 : len(method)-1]), Params: members["params"]}, nil
}

// maxDepth is how deep the SDK reads JSON.
const maxDepth = 1000

// checkAnswers says which answer to a question of ours cannot be read. The other
// parameters are for others to check.
func checkAnswers(params json.RawMessage) error {
	var sent struct {
		Answers json.RawMessage `json:"inputResponses"`
	}
	if json.Unmarshal(params, &sent) != nil || sent.Answers == nil {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(sent.Answers, &all) != nil {
		return errors.New("inputResponses must be an object: the answers by the names that inputRequests gave the questions")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, err := json.Marshal(map[string]json.RawMessage{name: all[name]})
		if err == nil {
			err = json.Unmarshal(text, new(mcp.InputResponseMap))
		}
		if err != nil {
			return fmt.Errorf(`inputResponses[%q] cannot be read; the answer to a form is {"action": "accept", "content": {...}}, or an action "decline" or "cancel" without content`, name)
		}
	}
	return nil
}

// Peek reads a message that has been checked before, or that we wrote ourselves.
func Peek(text []byte) Message {
	var members map[string]json.RawMessage
	var m Message
	if json.Unmarshal(text, &members) != nil {
		return m
	}
	json.Unmarshal(members["method"], &m.Method) // a response has none
	m.ID, m.Params, m.Result = members["id"], members["params"], members["result"]
	return m
}

// Batch returns the elements of text, if it is a batch. JSON-RPC does not allow an
// empty one.
func Batch(text []byte) (elements []json.RawMessage, ok bool) {
	if t := bytes.TrimSpace(text); len(t) == 0 || t[0] != '[' || json.Unmarshal(t, &elements) != nil {
		return nil, false
	}
	return elements, true
}

// HasBatches reports whether a protocol version has batches: 2025-03-26 requires
// servers to accept them, 2025-06-18 removed them.
func HasBatches(version string) bool { return version != "" && version < "2025-06-18" }

// membersOf returns the members of an object by their exact names, and one that
// it has twice: readers differ in which of the two counts.
func membersOf(object []byte) (members map[string]json.RawMessage, twice string) {
	members = map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(object))
	d.Token() // the brace
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return members, ""
		}
		text := name.(string) // a name, in an object that is JSON
		if _, ok := members[text]; ok {
			twice = text
		}
		members[text] = value
	}
	return members, twice
}

// exact is the largest integer that the SDK, which reads ids as doubles, gives
// back as it was.
const exact = 1<<53 - 1

// checkID refuses an id that the protocol does not allow, and one that would be sent
// back as another: "The Request ID MUST be a string or an integer, and MUST NOT
// be null".
func checkID(id json.RawMessage) error {
	switch {
	case id[0] == '"':
		if _, err := canon.Parse(append(append([]byte(`{"id":`), id...), '}')); err != nil {
			return fmt.Errorf("its id is no text: %v", err)
		}
		return nil
	case id[0] != '-' && (id[0] < '0' || id[0] > '9'):
		return fmt.Errorf("its id must be a text or a whole number")
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || n > exact || n < -exact || string(id) == "-0" {
		return fmt.Errorf("its id must be a whole number of at most %d, or a text", exact)
	}
	return nil
}

// echo returns the id to answer with: the one that was sent if it is a text or a
// number, so that the client knows which of its requests is meant.
func echo(id json.RawMessage) json.RawMessage {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') {
		return id
	}
	return nil
}
