package values

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dop251/goja"
)

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdef", 5, "ab…"}, {"ééé", 5, "é…"}, {"abc", 2, ""}} {
		if got := Cut(c.text, c.n); got != c.want || len(got) > c.n {
			t.Errorf("cutText(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// FuzzDecode holds that the decoder takes what encoding/json takes, and that
// what it reads is written back with the same meaning.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x",null,true,false,{}]}`, `"\ud83d\ude00\n\u0000"`, `12345678901234567890`, `-0`, `[1,]`, `{"a":1,"a":2}`, `01`, `1.`, `"`, ` [ ] `, `{"__proto__":{}}`, `1e400`, "\"\x01\"", `nul`, `[[[[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		r := New(goja.New(), 0, nil)
		v, err := r.Decode(text)
		if valid := json.Valid([]byte(text)); valid != (err == nil) {
			if _, ok := err.(*jsonError); ok && valid {
				return // deeper or longer than is taken
			}
			t.Fatalf("decode(%q): %v, but valid is %v", text, err, valid)
		}
		if err != nil {
			return
		}
		e := encoder{r: r, max: math.MaxInt32}
		once, err := e.encode(v)
		if err != nil {
			t.Fatalf("encoding %q: %v", text, err)
		}
		again, err := r.Decode(string(once))
		if err != nil {
			t.Fatalf("decoding %s again: %v", once, err)
		}
		e = encoder{r: r, max: math.MaxInt32}
		twice, err := e.encode(again)
		if err != nil || string(twice) != string(once) {
			t.Errorf("%s became %s (%v)", once, twice, err)
		}
	})
}

// What crossing the border costs.

// records is a megabyte of JSON: a list of records.
func records() string {
	var list []map[string]any
	for i := range 5500 {
		list = append(list, map[string]any{"number": i, "title": fmt.Sprintf("issue %d: something is wrong", i), "open": i%2 == 0,
			"labels": []string{"bug", "help wanted"}, "user": map[string]any{"login": "octocat", "id": 583231}, "score": 1.5, "body": strings.Repeat("x", 20)})
	}
	text, _ := json.Marshal(list)
	return string(text)
}

func BenchmarkDecodeMegabyte(b *testing.B) {
	text := records()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := New(goja.New(), 0, nil)
		if _, err := r.Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEngineParseMegabyte(b *testing.B) {
	text := records()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		vm := goja.New()
		vm.Set("text", text)
		if _, err := vm.RunString("JSON.parse(text)"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeMegabyte(b *testing.B) {
	text := records()
	b.SetBytes(int64(len(text)))
	r := New(goja.New(), 0, nil)
	v, err := r.Decode(text)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e := encoder{r: r, max: 64 << 20}
		if out, err := e.encode(v); err != nil || len(out) < 1<<19 {
			b.Fatal(err)
		}
	}
}
