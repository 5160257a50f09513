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

// A large text reads as the engine's own JSON.parse reads it, though it makes values that occur often
// only once: a text that is a number and one that is a string stay apart, and so do keys that
// a setter waits for.
func TestDecodeLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := 0; b.Len() <= largeText; i++ {
		// Enough different values that they take each other's places.
		fmt.Fprintf(&b, `{"n":%d,"s":"%d","neg":-%d,"f":%d.5,"e":"","o":{},"u":"é%d","zero":-0,"__proto__":%d,"trap":%d,"a":1,"a":[%d,"%[1]d"]},`,
			i%700, i%700, i%700, i%700, i%700, i%700, i%700, i%700)
	}
	text := b.String()[:b.Len()-1] + "]"

	vm := goja.New()
	if _, err := vm.RunString(`
		const parse = JSON.parse;
		Object.defineProperty(Object.prototype, "trap", { set() { throw new Error("a setter ran") }, configurable: true })`); err != nil {
		t.Fatal(err)
	}
	v, err := New(vm, 0, nil).Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	vm.Set("got", v)
	vm.Set("text", text)
	same, err := vm.RunString(`
		const want = parse(text);
		const show = (list) => list.map((o) => Object.entries(o).map(([k, v]) => [k, typeof v, Object.is(v, -0), JSON.stringify(v)].join()).join(" "));
		const a = show(got), b = show(want);
		[a.length === b.length && a.every((line, i) => line === b[i]),
			got.every((o) => Object.getPrototypeOf(o) === Object.prototype && Object.isExtensible(o) && Object.hasOwn(o, "__proto__") && Object.getPrototypeOf(o.o) === Object.prototype),
			Object.keys(Object.getOwnPropertyDescriptors(got[0])).every((k) => { const d = Object.getOwnPropertyDescriptor(got[0], k); return d.writable && d.enumerable && d.configurable }),
		].join()`)
	if err != nil {
		t.Fatal(err)
	}
	if same.String() != "true,true,true" {
		t.Errorf("values, prototypes, properties: %s", same)
	}
}

// Reading a large text makes fewer values than the text has.
func TestDecodeSharesValues(t *testing.T) {
	record := `{"state":"open","login":"octocat","id":583231},`
	count := largeText/len(record) + 100
	text := "[" + strings.Repeat(record, count) + "{}]"
	r := New(goja.New(), 0, nil)
	allocated := testing.AllocsPerRun(3, func() {
		if _, err := r.Decode(text); err != nil {
			t.Fatal(err)
		}
	})
	// An object, its table of properties and the list of their names, none for their values.
	if each := allocated / float64(count); each > 10 {
		t.Errorf("%.1f allocations for a record of three known values", each)
	}
}

func BenchmarkDecode(b *testing.B) {
	record := `{"number":1234,"title":"issue 1234: something is wrong","open":true,"labels":["bug","help wanted"],"user":{"login":"octocat","id":583231},"score":1.5},`
	text := "[" + strings.Repeat(record, 1<<20/len(record)) + "{}]"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := New(goja.New(), 0, nil).Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}
