package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A refused call says little of what it was refused for, however much that is:
// to the log, to people, and to the run's journal, which keeps the error.
func TestRefusalsAreSmall(t *testing.T) {
	const size = 400_000
	long := strings.Repeat("x", size)
	for name, args := range map[string]string{
		"a value of the wrong form": `{"path":"` + long + `"}`,
		"a value of the wrong type": `{"n":"` + long + `"}`,
		"a name":                    `{"` + long + `":1}`,
		"a name, twice":             `{"` + long + `":1,"` + long + `":2}`,
		"two names of a kind":       `{"a":{"` + long + `":1,"` + long[1:] + `X":2}}`,
		"many names":                `{"n":1` + many(size/20) + `}`,
		"no JSON":                   long,
	} {
		t.Run(name, func(t *testing.T) {
			b := &book{}
			g := namesGate(t, `{"type":"object","properties":{"path":{"pattern":"^/"},"n":{"type":"integer"},"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"required":["`+strings.Repeat("x", 100)+`"]}},"additionalProperties":false}`,
				profiles.ProfileSpec{Rules: []profiles.RuleSpec{{Tools: []string{"*"}, Action: new("notify"), Display: &profiles.DisplaySpec{MaxDepth: new(128), MaxString: new(size)}}}}, &fakeCaller{reply: okReply}, b)
			_, err := g.Call(t.Context(), begin(t, g, "p"), Call{Number: 1, Name: "fs__put", Args: json.RawMessage(args)})
			if err == nil || len(err.Error()) > 8<<10 {
				t.Errorf("got an error of %d bytes", len(fmt.Sprint(err)))
			}
			last := b.records[len(b.records)-1]
			body, encodes := ledger.Encode(last, time.Now)
			if encodes != nil || last.Event != ledger.Refusal || len(body) > 8<<10 || len(last.Args) > ledger.MaxText {
				t.Errorf("recorded are %d bytes, with arguments of %d: %.300s, %v", len(body), len(last.Args), body, encodes)
			}
		})
	}
}

// many are n more members of an object.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"member%d":%d`, i, i)
	}
	return b.String()
}
