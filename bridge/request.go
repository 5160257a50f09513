package bridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a client's request says of itself: its arguments, who it comes from, and
// how its client can be asked.

// evalArgs are the arguments of an eval tool. There are no others: nothing
// that a model says can choose a profile.
type evalArgs struct {
	Code  string          `json:"code"`
	Input json.RawMessage `json:"input"`
}

// readArguments reads a tool's arguments strictly: what the tool does not
// take is an error and not ignored.
func readArguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	// encoding/json takes what is doubled, and what is spelt in another case.
	if _, err := canon.Parse(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			if wrong.Field == "" {
				return fmt.Errorf("the arguments must be an object, not a %s", wrong.Value)
			}
			return fmt.Errorf("%q must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return errors.New(unprefixed(err))
	}
	return exactKeys(raw, into)
}

// exactKeys refuses keys that encoding/json took for a field of into although
// they are spelt in another case.
func exactKeys(raw json.RawMessage, into any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	t := reflect.TypeOf(into).Elem()
	for key := range keys {
		if !slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("json") == key }) {
			return fmt.Errorf("unknown field %q", key)
		}
	}
	return nil
}

// unprefixed is an error of encoding/json without the package's name.
func unprefixed(err error) string {
	text := err.Error()
	if len(text) > 6 && text[:6] == "json: " {
		return text[6:]
	}
	return text
}

// reach says how the client of a request can reach a person. Only what the
// client declared counts; a declaration of URLs alone is no form.
func reach(req *mcp.CallToolRequest) gate.Reach {
	caps := req.ClientCapabilities()
	switch {
	case caps == nil || caps.Elicitation == nil:
		return gate.NoElicitation
	case caps.Elicitation.Form == nil && caps.Elicitation.URL != nil:
		return gate.ByAddress // it has a person, and we have no form for them
	default:
		return gate.ByElicitation
	}
}

// principal is who a request comes from: the bearer of a token, or nobody in
// particular.
func principal(req *mcp.CallToolRequest) string {
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		return req.Extra.TokenInfo.UserID
	}
	return ""
}

// callDigest is over the tool and the arguments that a state belongs to.
func callDigest(req *mcp.CallToolRequest) string {
	args, err := canon.Parse(req.Params.Arguments)
	text := args.Bytes()
	if err != nil {
		text = req.Params.Arguments
	}
	sum := sha256.Sum256(append([]byte(req.Params.Name+"\x00"), text...))
	return hex.EncodeToString(sum[:])
}

// traceOf is the client's own trace of a request, as W3C Trace Context writes
// it; empty if it has none.
func traceOf(req *mcp.CallToolRequest) string {
	parent, _ := req.Params.Meta["traceparent"].(string)
	if parts := traceparent.FindStringSubmatch(parent); parts != nil {
		return parts[1]
	}
	return ""
}

var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Why a run is stopped that did not end by itself.
var (
	errClientGone   error = &approval.StoppedError{By: "the client", Why: "the client cancelled the call"}
	errSessionEnded error = &approval.StoppedError{By: "the client", Why: "the client ended its session"}
)
