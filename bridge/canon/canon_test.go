package canon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codemode-bridge/bridge/canon"
)

func mustParse(t testing.TB, text string) canon.Args {
	t.Helper()
	a, err := canon.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.200q): %v", text, err)
	}
	return a
}

func TestCanonicalForm(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", `{}`},
		{" { } ", `{}`},
		{`{"b" : 1 ,` + "\n\t" + `"a" : [ 1 , { } , [ ] ] }`, `{"a":[1,{},[]],"b":1}`},
		{`{"":0,"a":1,"A":2,"aa":3,"1":4}`, `{"":0,"1":4,"A":2,"a":1,"aa":3}`},
		{`{"a":true,"b":false,"c":null}`, `{"a":true,"b":false,"c":null}`},

		// The example of RFC 8785 section 3.2.3: order by UTF-16 code units.
		{
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
		{`{"\uffff":1,"\ud800\udc00":2,"\ud7ff":3,"\ue000":4}`, "{\"\ud7ff\":3,\"\U00010000\":2,\"\ue000\":4,\"\uffff\":1}"},

		// Strings.
		{`{"s":"\u0041\/\"\\\b\f\n\r\t\u0000\u001F\u007f"}`, "{\"s\":\"A/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\u007f\"}"},
		{`{"s":"<\u003e&\u2028"}`, "{\"s\":\"<>&\u2028\"}"},
		{`{"e\u0301":1,"\u00e9":2}`, "{\"e\u0301\":1,\"é\":2}"}, // no normalisation

		// Numbers, among them those of RFC 8785 appendix B.
		{`{"n":[0,-0,-0.0,0e10,1.0,1.50,10e-1,100,1E2,1e+2]}`, `{"n":[0,0,0,0,1,1.5,1,100,100,100]}`},
		{`{"n":[333333333.33333329,1e30,4.50,2e-3,0.000000000000000000000000001]}`, `{"n":[333333333.3333333,1e+30,4.5,0.002,1e-27]}`},
		{`{"n":[5e-324,1.7976931348623157e308,-1.7976931348623157e308,1e-400]}`, `{"n":[5e-324,1.7976931348623157e+308,-1.7976931348623157e+308,0]}`},
		{`{"n":[1e21,1e20,999999999999999999999.0,0.000001,0.0000001,1e-6,1e-7,123e-20]}`, `{"n":[1e+21,100000000000000000000,1e+21,0.000001,1e-7,0.000001,1e-7,1.23e-18]}`},
		{`{"n":[9007199254740993,-9007199254740993,123456789012345678901234567890]}`, `{"n":[9007199254740993,-9007199254740993,123456789012345678901234567890]}`},
		{`{"n":9007199254740993.0}`, `{"n":9007199254740992}`},
	} {
		a := mustParse(t, test.in)
		if got := string(a.Bytes()); got != test.want {
			t.Errorf("Parse(%s)\n got %s\nwant %s", test.in, got, test.want)
		}
	}
	long := strings.Repeat("9", 308)
	if got := string(mustParse(t, `{"n":`+long+`}`).Bytes()); got != `{"n":`+long+`}` {
		t.Errorf("an integer of 308 digits became %s", got)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct{ in, path, reason string }{
		{`[]`, "", "arguments must be an object"},
		{`"x"`, "", "arguments must be an object"},
		{`null`, "", "arguments must be an object"},
		{` `, "", "unexpected end of the text"},
		{`{`, "", "unexpected end of the text"},
		{`{"a"`, "/a", "unexpected end of the text"},
		{`{"a":[1,`, "/a/1", "unexpected end of the text"},
		{`{"a":"\`, "/a", "unexpected end of the text"},
		{"\uFEFF{}", "", "byte order mark before the value"},
		{`{} {}`, "", "unexpected text after the object"},
		{`{}x`, "", "unexpected text after the object"},
		{`{"a":1,}`, "", "expected a name in double quotes"},
		{`{'a':1}`, "", "expected a name in double quotes"},
		{`{a:1}`, "", "expected a name in double quotes"},
		{`{"a" 1}`, "/a", "expected : after the name"},
		{`{"a":1 "b":2}`, "/a", "expected , or } after the member"},
		{`{"a":[1 2]}`, "/a/0", "expected , or ] after the element"},
		{`{"a":[1,]}`, "/a/1", "expected a value"},
		{`{"a":/**/1}`, "/a", "expected a value"},
		{`{"a":tru}`, "/a", "expected a value"},
		{`{"a":undefined}`, "/a", "expected a value"},

		{`{"a":1,"b":2,"a":1}`, "/a", "the name occurs twice in its object"},
		{`{"x":{"a":1,"\u0061":2}}`, "/x/a", "the name occurs twice in its object"},
		{`{"x":[0,{"__proto__":{}}]}`, "/x/1/__proto__", `the name "__proto__" is not accepted`},
		{`{"\u005f_proto__":1}`, "/__proto__", `the name "__proto__" is not accepted`},
		{`{"a/b~c":{"d":x}}`, "/a~1b~0c/d", "expected a value"},

		{`{"a":"\ud800"}`, "/a", "lone surrogate in a string"},
		{`{"a":"\udc00\ud800"}`, "/a", "lone surrogate in a string"},
		{`{"a":"\ud800\u0041"}`, "/a", "lone surrogate in a string"},
		{`{"a":"\ud83dx"}`, "/a", "lone surrogate in a string"},
		{`{"\ud800":1}`, "", "lone surrogate in a string"},
		{"{\"a\":\"\xff\"}", "/a", "invalid UTF-8 in a string"},
		{"{\"a\":\"\\n\xc3(\"}", "/a", "invalid UTF-8 in a string"},
		{"{\"a\":\"\xed\xa0\x80\"}", "/a", "invalid UTF-8 in a string"}, // a surrogate in UTF-8
		{"{\"a\":\"\xc0\xaf\"}", "/a", "invalid UTF-8 in a string"},     // overlong
		{"{\"a\":\"x\ny\"}", "/a", "control character in a string"},
		{"{\"a\":\"x\x00y\"}", "/a", "control character in a string"},
		{`{"a":"\x41"}`, "/a", "unknown escape in a string"},
		{`{"a":"\u00g0"}`, "/a", `expected four hexadecimal digits after \u`},
		{`{"a":"\u12"}`, "/a", `expected four hexadecimal digits after \u`},

		{`{"a":NaN}`, "/a", "NaN and Infinity are not JSON"},
		{`{"a":[-Infinity]}`, "/a/0", "NaN and Infinity are not JSON"},
		{`{"a":1e400}`, "/a", "number too large"},
		{`{"a":-1e309}`, "/a", "number too large"},
		{`{"a":` + strings.Repeat("9", 400) + `}`, "/a", "number too large"},
		{`{"a":01}`, "/a", "number with a leading zero"},
		{`{"a":-}`, "/a", "expected a digit"},
		{`{"a":+1}`, "/a", "expected a value"},
		{`{"a":.5}`, "/a", "expected a value"},
		{`{"a":1.}`, "/a", "expected a digit after the point"},
		{`{"a":1e}`, "/a", "expected a digit in the exponent"},
		{`{"a":0x10}`, "/a", "expected , or } after the member"},
	} {
		_, err := canon.Parse([]byte(test.in))
		var refused *canon.Error
		if !errors.As(err, &refused) {
			t.Errorf("Parse(%q): got error %v, want %s", test.in, err, test.reason)
			continue
		}
		if refused.Path != test.path || refused.Reason != test.reason {
			t.Errorf("Parse(%q): got %q %s, want %q %s", test.in, refused.Path, refused.Reason, test.path, test.reason)
		}
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	a := mustParse(t, nest(canon.MaxDepth))
	canon.Display(a, canon.DisplayOptions{MaxDepth: 1000})
	if _, err := canon.Parse([]byte(nest(canon.MaxDepth + 1))); err == nil || !strings.Contains(err.Error(), "nested deeper than 128 levels") {
		t.Errorf("one level too many: %v", err)
	}
	if _, err := canon.Parse([]byte(strings.Repeat(`{"a":`, 1_000_000))); err == nil {
		t.Error("a million levels are accepted")
	}
}

// TestErrorIsSafeToShow: an error's text goes to logs and people, its path
// comes from the script.
func TestErrorIsSafeToShow(t *testing.T) {
	secret := "ghp_" + strings.Repeat("a1", 18)
	_, err := canon.Parse([]byte(`{"\u001b[2J` + secret + `":{"` + strings.Repeat("x", 10_000) + `":NaN}}`))
	if err == nil {
		t.Fatal("accepted")
	}
	got := err.Error()
	if strings.Contains(got, secret) || strings.Contains(got, "\x1b") || len(got) > 400 {
		t.Errorf("got %q", got)
	}
	if !strings.HasPrefix(got, `reading arguments at /\u{1B}[2J[hidden: looks like a GitHub token]/xxx`) || !strings.HasSuffix(got, ": NaN and Infinity are not JSON") {
		t.Errorf("got %q", got)
	}
}

func TestZeroArgs(t *testing.T) {
	var zero canon.Args
	empty := mustParse(t, "{}")
	if string(zero.Bytes()) != "{}" || zero.Digest() != empty.Digest() || len(zero.Value()) != 0 || zero.Value() == nil {
		t.Errorf("the zero Args is %s, %s, %v", zero.Bytes(), zero.Digest(), zero.Value())
	}
}

func TestArgsKeepNothingOfTheInput(t *testing.T) {
	raw := []byte(`{"a":"b"}`)
	a, err := canon.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] = 'x'
	}
	if string(a.Bytes()) != `{"a":"b"}` {
		t.Errorf("the frozen bytes changed to %s", a.Bytes())
	}
	a.Value()["a"] = "changed"
	if got := a.Value()["a"]; got != "b" {
		t.Errorf("a change of one tree shows in the next: %v", got)
	}
}

func TestDigest(t *testing.T) {
	const empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	d := mustParse(t, "").Digest()
	if d.String() != empty {
		t.Errorf("digest of {} is %s, want %s", d, empty)
	}
	text, err := json.Marshal(map[string]canon.Digest{"d": d})
	if err != nil || string(text) != `{"d":"`+empty+`"}` {
		t.Errorf("got %s, %v", text, err)
	}
	var back map[string]canon.Digest
	if err := json.Unmarshal(text, &back); err != nil || back["d"] != d {
		t.Errorf("got %v, %v", back, err)
	}
	for _, bad := range []string{"", "sha256:", empty[7:], strings.ToUpper(empty), empty + "0", empty[:70], "sha256:" + strings.ToUpper(empty[7:]), strings.Replace(empty, "4", "g", 1)} {
		if got, err := canon.ParseDigest(bad); err == nil {
			t.Errorf("ParseDigest(%q) = %v", bad, got)
		}
	}
}

// jsonValue generates what encoding/json decodes with UseNumber.
func jsonValue(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(fmt.Sprint(n)) }),
		rapid.Map(rapid.StringMatching(`-?[1-9][0-9]{0,30}`), func(s string) any { return json.Number(s) }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})\.[0-9]{1,20}([eE][+-]?[0-9]{1,2})?`), func(s string) any { return json.Number(s) }),
	)
	if depth == 0 {
		return scalar
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return jsonValue(depth - 1) })
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(inner, 0, 5), func(l []any) any { return l }),
		rapid.Map(object(depth-1), func(m map[string]any) any { return m }),
	)
}

func object(depth int) *rapid.Generator[map[string]any] {
	name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "b", "é", "\uffff", "\U00010000", "\n", "password", "url"})).
		Filter(func(s string) bool { return s != "__proto__" })
	return rapid.MapOfN(name, jsonValue(depth), 0, 6)
}

// spell writes a value as JSON in one of many ways: members in any order,
// white space anywhere, characters escaped or not.
func spell(b *bytes.Buffer, v any, r *rand.Rand) {
	space := func() { b.WriteString([]string{"", "", " ", "\n", "\t\r "}[r.IntN(5)]) }
	space()
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			spell(b, name, r)
			b.WriteByte(':')
			spell(b, v[name], r)
		}
		space()
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			spell(b, e, r)
		}
		space()
		b.WriteByte(']')
	case string:
		b.WriteByte('"')
		for _, c := range v {
			switch {
			case c > 0xFFFF && r.IntN(2) == 0:
				c -= 0x10000
				fmt.Fprintf(b, `\u%04x\u%04X`, 0xD800+c>>10, 0xDC00+c&0x3FF)
			case c <= 0xFFFF && (c < 0x20 || c == '"' || c == '\\' || r.IntN(4) == 0):
				fmt.Fprintf(b, `\u%04x`, c)
			default:
				b.WriteRune(c)
			}
		}
		b.WriteByte('"')
	case json.Number:
		b.WriteString(v.String())
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
	space()
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := object(3).Draw(t, "arguments")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "spelling"), 0))
		var one, other bytes.Buffer
		spell(&one, v, r)
		spell(&other, v, r)

		a, err := canon.Parse(one.Bytes())
		if err != nil {
			t.Fatalf("Parse(%s): %v", one.Bytes(), err)
		}
		b, err := canon.Parse(other.Bytes())
		if err != nil {
			t.Fatalf("Parse(%s): %v", other.Bytes(), err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) || a.Digest() != b.Digest() {
			t.Fatalf("two spellings of one value differ:\n%s\n%s", a.Bytes(), b.Bytes())
		}
		stable(t, a)
	})
}

// stable checks what holds of every Args.
func stable(t interface{ Fatalf(string, ...any) }, a canon.Args) {
	again, err := canon.Parse(a.Bytes())
	if err != nil {
		t.Fatalf("the canonical text %s is refused: %v", a.Bytes(), err)
	}
	if !bytes.Equal(again.Bytes(), a.Bytes()) || again.Digest() != a.Digest() {
		t.Fatalf("parsing the canonical text %s changes it to %s", a.Bytes(), again.Bytes())
	}
	dec := json.NewDecoder(bytes.NewReader(a.Bytes()))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil {
		t.Fatalf("encoding/json refuses the canonical text %s: %v", a.Bytes(), err)
	}
	if diff := cmp.Diff(want, any(a.Value())); diff != "" {
		t.Fatalf("the value of %s is not what encoding/json reads (-want +got):\n%s", a.Bytes(), diff)
	}
}

func TestOtherValuesHaveOtherDigests(t *testing.T) {
	seen := map[canon.Digest]string{}
	for _, text := range []string{
		`{}`, `{"a":null}`, `{"a":0}`, `{"a":"0"}`, `{"a":false}`, `{"a":[]}`, `{"a":{}}`, `{"a":""}`, `{"A":0}`, `{"a":[0]}`,
		`{"a":9007199254740992}`, `{"a":9007199254740993}`, `{"a":"e\u0301"}`, `{"a":"\u00e9"}`, `{"a":[1,2]}`, `{"a":[2,1]}`, `{"a ":0}`,
	} {
		d := mustParse(t, text).Digest()
		if before, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", before, text)
		}
		seen[d] = text
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"a":[1,-2.5e3,true,null,"x\u00e9\n"],"b":{"c":{}}}`, `{"b":1,"a":2}`, `{"\ud83d\ude00":1,"\ufb33":2}`,
		`{"a":9007199254740993}`, `{"a":1e400}`, `{"__proto__":1}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `[1]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := canon.Parse(raw)
		if err != nil {
			var refused *canon.Error
			if !errors.As(err, &refused) || refused.Offset < 0 || refused.Offset > len(raw) {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if len(raw) > 0 && !json.Valid(raw) {
			t.Fatalf("accepts %q, which encoding/json refuses", raw)
		}
		stable(t, a)
		inert(t, canon.Display(a, canon.DisplayOptions{MaxString: 20, MaxArray: 3, MaxObject: 3, MaxDepth: 2, MaxBytes: 1}))
	})
}

// megabyte is 1 MB of arguments such as a file write or a batch has.
func megabyte(kind string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < 1<<20; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		switch kind {
		case "records":
			fmt.Fprintf(&b, `{"id":%d,"name":"item %d","price":%d.25,"tags":["a","b"],"open":true}`, i, i, i)
		case "sorted":
			fmt.Fprintf(&b, `{"id":%d,"name":"item %d","open":true,"price":%d,"tags":["a","b"]}`, i, i, i)
		case "text":
			fmt.Fprintf(&b, `"%s\n"`, strings.Repeat("some words of a long text ", 40))
		}
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	for _, kind := range []string{"records", "sorted", "text"} {
		raw := megabyte(kind)
		b.Run("1MB-"+kind, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canon.Parse(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	small := []byte(`{"owner":"acme","repo":"shop","title":"It is broken","labels":["bug"],"body":"a few words"}`)
	b.Run("small", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			canon.Parse(small)
		}
	})
}

func BenchmarkValue(b *testing.B) {
	a := mustParse(b, string(megabyte("records")))
	b.ReportAllocs()
	for b.Loop() {
		a.Value()
	}
}

func BenchmarkDisplay(b *testing.B) {
	for _, kind := range []string{"records", "text"} {
		a := mustParse(b, string(megabyte(kind)))
		b.Run("1MB-"+kind, func(b *testing.B) {
			for b.Loop() {
				canon.Display(a, canon.DisplayOptions{})
			}
		})
	}
	a := mustParse(b, `{"owner":"acme","repo":"shop","title":"It is broken","token":"x","labels":["bug"],"body":"see https://example.com/?q=1 and a: b"}`)
	b.Run("small", func(b *testing.B) {
		for b.Loop() {
			canon.Display(a, canon.DisplayOptions{})
		}
	})
}
