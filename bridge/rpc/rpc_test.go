package rpc

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Whatever is let through, the SDK can read, too, and gives its id back unchanged.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a\u0062","method":"ping","params":{}}`, `{"jsonrpc":"2.0","method":"x"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":-0,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, `{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`,
		`{"jsonrpc":"2.0","Method":"ping"}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `[]`, `null`, ``, ` `, `{`, `{"jsonrpc":"2.0","method":""}`,
		strings.Repeat("[", 100), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":7}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"eval","inputResponses":{"q1":{"action":"accept"},"q2":7}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"p\u0069ng","params":null}`, `{"jsonrpc":"2.0","id":0,"method":"x","params":[ 1,2 ]}`, `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 998) + strings.Repeat("]", 998) + `}`, `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, bad := Read(text)
		if bad != nil {
			if !json.Valid(bad.Bytes()) || bad.Code == 0 || bad.ID != nil && key(bad.ID) != Peek(bad.Bytes()).Key() {
				t.Fatalf("%q is answered %s", text, bad.Bytes())
			}
			return
		}
		read, err := jsonrpc.DecodeMessage(text)
		if err != nil {
			t.Fatalf("%q is let through: %v", text, err)
		}
		if !reflect.DeepEqual(read, m.decoded) {
			t.Fatalf("%q is %#v to the SDK, and passed on as %#v", text, read, m.decoded)
		}
		again, err := jsonrpc.EncodeMessage(read)
		if err != nil {
			t.Fatal(err)
		}
		if m.ID != nil && Peek(again).Key() != m.Key() {
			t.Fatalf("the id of %q comes back as %s", text, again)
		}
		if p := Peek(text); p.Method != m.Method || p.Key() != m.Key() || string(p.Result) != string(m.Result) && m.Method != "" {
			t.Fatalf("%q is read as %+v and %+v", text, m, p)
		}
		if request, ok := read.(*jsonrpc.Request); ok != (m.Method != "") || ok && request.IsCall() != m.IsRequest() {
			t.Fatalf("%q is read as %+v and %+v", text, m, read)
		}
	})
}

// If an answer to a question cannot be read, the error names it and shows a valid one.
func TestAnswersThatCannotBeRead(t *testing.T) {
	for answers, want := range map[string]string{
		`{"q1":{"action":"accept","content":{"decision":"no"}},"q2":{"action":"cancel"}}`: "",
		`null`:                           "",
		`7`:                              "inputResponses must be an object",
		`[]`:                             "inputResponses must be an object",
		`{"q1":{"action":"x"},"q2":"y"}`: `inputResponses["q2"] cannot be read`,
		`{"q1":{"content":{}}}`:          `inputResponses["q1"] cannot be read; the answer to a form is {"action": "accept"`,
		`{"q1":{"action":7}}`:            `inputResponses["q1"] cannot be read`,
	} {
		_, bad := Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"eval","arguments":{},"inputResponses":` + answers + `}}`))
		switch {
		case want == "" && bad != nil:
			t.Errorf("%s: %v", answers, bad)
		case want != "" && (bad == nil || bad.Code != jsonrpc.CodeInvalidParams || !strings.Contains(bad.Message, want)):
			t.Errorf("%s: %+v, want %s", answers, bad, want)
		}
	}
}

// What chooses the protocol is read as the SDK reads it, by its exact name.
func TestMetaHasOneReading(t *testing.T) {
	for params, want := range map[string]string{
		`{"_meta":{"v":"new"}}`:                     "new",
		`{"\u005fmeta":{"v":"new"}}`:                "new",
		`{"_meta":{"v":"new"},"_META":{"v":"old"}}`: "new",
		`{"_META":{"v":"old"}}`:                     "",
		`{"_meta":{"V":"old"}}`:                     "",
		`{"_meta":{"v":7}}`:                         "",
		`{"_meta":7}`:                               "",
		`[]`:                                        "",
	} {
		m, bad := Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + params + `}`))
		if got := m.Meta("v"); bad != nil || got != want {
			t.Errorf("%s is read as %q, want %q (%v)", params, got, want, bad)
		}
	}
}
