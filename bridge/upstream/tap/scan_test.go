package tap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEnvelope(t *testing.T) {
	for msg, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":[1,"}"]}}`:      `1 {"a":[1,"}"]}`,
		` { "result" : "\"" , "id" : "x" , "jsonrpc":"2.0" } `: `"x" "\""`,
		`{"json\u0072pc":"2.0","id":1,"result":7}`:             `1 7`,
		`{"jsonrpc":"2.0","ID":1,"Result":7}`:                  ` `,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":7}`:           "error",
		`{"jsonrpc":"2.0","id":1,"result":7}}`:                 "error",
		`{"jsonrpc":"2.0","id":1,"result":}`:                   "error",
		`{"jsonrpc":"1.0","id":1,"result":7}`:                  "error",
		`{"id":1,"result":7}`:                                  "error",
		`[]`:                                                   "error",
		`{"jsonrpc":"2.0","id":1,"result":[`:                   "error",
		``:                                                     "error",
	} {
		e, err := parseEnvelope([]byte(msg))
		got := string(e.id) + " " + string(e.result)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s reads as %s (%v), want %s", msg, got, err, want)
		}
	}
}

// In valid JSON the scanner finds the members that encoding/json finds, as they are in
// the text; and no input makes it panic.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{"c":"]\\\""}],"d":{},"e":-1.5e3,"":null}`, `{}`, ` {"a" : "\u0061" } `, `{"a":[[[[`, `{"a":"\`, `[1,{"a":2}]`, `{,}`, `{"a":}`, `{"a"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		err := Members(b, func(key string, value []byte) error {
			got[key] = string(value)
			return nil
		})
		_ = Elements(b, func([]byte) error { return nil })
		var want map[string]json.RawMessage
		if !json.Valid(b) || json.Unmarshal(b, &want) != nil || want == nil {
			return
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s has %q (%v), want %q", b, got, err, want)
		}
		for key, value := range want {
			if bytes.IndexByte(b, '\\') < 0 && strings.ToValidUTF8(key, "") == key && got[key] != string(value) {
				t.Errorf("%s has %q at %q, want %q", b, got[key], key, value)
			}
		}
	})
}

// The skeleton of a message tells the same id as the message, in whatever pieces
// it comes.
func FuzzSkeleton(f *testing.F) {
	f.Add([]byte(`{"result":{"id":[9,"{"]},"jsonrpc":"2.0","id":3}`), 5)
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a\"}","error":{"x":1}}`), 1)
	f.Add([]byte(`{"jsonrpc":"2.0","id":[1],"result":[[2],{"a":{}}]}`), 2)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n <= 0 {
			n = 1
		}
		s := new(skeleton)
		for i := 0; i < len(b); i += n {
			s.add(b[i:min(i+n, len(b))])
		}
		got := s.id()
		e, err := parseEnvelope(b)
		if err != nil || !json.Valid(b) || e.method != nil {
			return // not an answer
		}
		if len(b) > maxSkeleton || bytes.ContainsAny(e.id, "{[") {
			return // more than a skeleton keeps
		}
		if !bytes.Equal(got, e.id) {
			t.Errorf("%s: the skeleton %s tells id %s", b, s.kept, got)
		}
	})
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	tooLong := `{"jsonrpc":"2.0","result":{"a":"` + strings.Repeat("x", 400<<10) + `"},"id":7}`
	input := "one\r\n\n" + long + "\n" + tooLong + "\nlast"
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(input), "by the byte": iotest.OneByteReader(strings.NewReader(input))} {
		l := &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: 300 << 10}
		for _, want := range []string{"one", "", long, "7", "last"} {
			line, over, err := l.next()
			if over != nil {
				line = over.id()
			}
			if err != nil || string(line) != want {
				t.Fatalf("%s: got %.20q and %v, want %.20q", name, line, err, want)
			}
		}
		if _, _, err := l.next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v at the end", name, err)
		}
	}
}
