package rpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Whatever is let through, the SDK reads too, and gives its id back as it was.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a\u0062","method":"ping","params":{}}`, `{"jsonrpc":"2.0","method":"x"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":-0,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, `{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`,
		`{"jsonrpc":"2.0","Method":"ping"}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `[]`, `null`, ``, ` `, `{`, `{"jsonrpc":"2.0","method":""}`,
		strings.Repeat("[", 100), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":7}}`,
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
