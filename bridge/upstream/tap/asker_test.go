package tap

import (
	"context"
	"encoding/json"
	"testing"
)

// A deaf listener hears nothing.
type deaf struct{ _ int }

func (*deaf) Progress(Progress) {}
func (*deaf) Log(Log)           {}
func (*deaf) LogLevel() string  { return "" }

// A question that may belong to several calls of one listener has a call as long as one of
// them is under way, whichever was answered between the question and its reading.
func TestAskerOfSeveralCalls(t *testing.T) {
	for _, row := range []struct {
		what     string
		answered []string
		asks     bool
	}{
		{"none is answered", nil, true},
		{"the first is answered", []string{"1"}, true},
		{"the second is answered", []string{"2"}, true},
		{"both are answered", []string{"1", "2"}, false},
	} {
		for range 10 { // in whatever order the calls are looked through
			tap, listener := New(Options{Server: "x", Limit: 1 << 20}), new(deaf)
			for _, id := range []string{"1", "2"} {
				x := NewExchange(t.Context(), listener, nil)
				defer x.End()
				tap.outgoing(x.In(t.Context()), []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{}}`))
			}
			text := []byte(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m"}}`)
			e, err := parseEnvelope(text)
			if err != nil {
				t.Fatal(err)
			}
			var asked struct {
				Params struct {
					Meta map[string]any `json:"_meta"`
				}
			}
			if err := json.Unmarshal(tap.request(e, text, nil), &asked); err != nil {
				t.Fatal(err)
			}
			for _, id := range row.answered {
				tap.take([]byte(id)).End()
			}
			_, cancel := context.WithCancelCause(t.Context())
			if x := tap.Asker(asked.Params.Meta, cancel); (x != nil) != row.asks || x != nil && x.Life().Err() != nil {
				t.Errorf("%s: the question's call is %+v", row.what, x)
			}
			cancel(nil)
		}
	}
}
