package flow

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"codemode-bridge/sandbox/racing"

	"pgregory.net/rapid"
)

// reply is a CallToolResult with one text.
func reply(text string) []byte {
	r, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
	if err != nil {
		panic(err)
	}
	return r
}

func body(text string) map[string]any { return map[string]any{"body": text} }

const salaries = "Name,Salary\nAda Lovelace,120000 per year\nGrace Hopper,131000 per year, since March\n"

// The encodings in which a text may be sent.
var encodings = map[string]func(string) string{
	"":            func(s string) string { return s },
	"upper":       strings.ToUpper,
	"JSON":        func(s string) string { b, _ := json.Marshal(map[string]string{"x": s}); return string(b) },
	"URL":         url.QueryEscape,
	"form":        func(s string) string { return strings.ReplaceAll(s, " ", "+") }, // all that a text of words needs
	"path":        url.PathEscape,
	"base64":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64url":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"hexadecimal": func(s string) string { return hex.EncodeToString([]byte(s)) },
	"dump":        func(s string) string { return fmt.Sprintf("% X", s) },
	"spread":      func(s string) string { return strings.Join(strings.Fields(s), "\n\t  ") },
	"closed up":   func(s string) string { return strings.Join(strings.Fields(s), "") },
}

func TestFindInEachEncoding(t *testing.T) {
	for name, encode := range encodings {
		var m Memory
		m.Read(7, reply("nothing of the kind, and more of that"))
		m.Read(8, reply(salaries))
		found := m.Find(0, "mail", body("Dear Bob, "+encode(salaries[12:])))
		if len(found.Finds) == 0 || found.Finds[0].Source != 8 || found.Finds[0].Line != 2 || found.Partly {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// Any part of what was read that is long enough is found, wherever it begins, in each
// encoding, and whatever was read besides.
func TestEverySubstringIsFound(t *testing.T) {
	words := rapid.StringOfN(rapid.RuneFrom([]rune("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789 ,.;-é日\n\"\\")), 0, 150, -1)
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		for n := range rapid.IntRange(0, 4).Draw(t, "others") {
			m.Read(n, reply(words.Draw(t, "other")))
		}
		planted := []rune(rapid.StringMatching(`[a-zA-Z0-9 é日,.]{40,120}`).Draw(t, "planted"))
		m.Read(9, reply(words.Draw(t, "before")+string(planted)+words.Draw(t, "behind")))
		from := rapid.IntRange(0, len(planted)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(planted)).Draw(t, "to")
		part := string(planted[from:to])
		letters := strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return unicode.ToLower(r)
		}, part)
		distinct := map[byte]bool{}
		for _, c := range []byte(letters) {
			distinct[c] = true
		}
		if len([]rune(letters)) < MinRun || len(distinct) < minLetters {
			t.Skip("too short to be reported")
		}
		name := rapid.SampledFrom([]string{"", "upper", "JSON", "URL", "form", "path", "base64", "base64url", "hexadecimal", "dump", "spread", "closed up"}).Draw(t, "encoding")
		sent := encodings[name](part)
		if name != "base64" && name != "base64url" && name != "hexadecimal" && name != "dump" {
			sent = words.Draw(t, "sent before") + "|" + sent // what stands beside an encoded text may look like a part of it
		}
		if found := m.Find(0, "mail", body(sent)); len(found.Finds) == 0 {
			t.Fatalf("%q, sent as %q, is not found", part, sent)
		}
	})
}

// What is sent in parts to one place is found once enough of it is there.
func TestPartsAreFound(t *testing.T) {
	for _, size := range []int{5, 10, 20} {
		var m Memory
		m.Read(1, reply(salaries))
		hit := -1
		for i := 0; i+size <= 60; i += size {
			args := body(salaries[i : i+size])
			if found := m.Find(0, "mail", args); hit < 0 && len(found.Finds) > 0 {
				hit = i + size
				if !found.Finds[0].Parts {
					t.Errorf("%d characters at a time: %+v", size, found.Finds[0])
				}
			}
			if found := m.Find(0, "elsewhere", args); len(found.Finds) > 0 {
				t.Errorf("the parts went to another place: %+v", found)
			}
			m.Send("mail", args)
		}
		if hit < MinRun || hit > MinRun+2*size+6 {
			t.Errorf("parts of %d characters are found after %d", size, hit)
		}
	}
	var m Memory
	m.Read(1, reply(salaries))
	if found := m.Find(0, "mail", map[string]any{"lines": []any{salaries[:15], salaries[15:33], salaries[33:50]}}); len(found.Finds) == 0 {
		t.Error("the elements of a list are parts of one text")
	}
}

func TestValues(t *testing.T) {
	const read = "Ann <ann.b@acme.example>, card 4111-1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00, id 7d444840-9dc0-11d1-b245-5ffdce74fad2, " +
		"see https://wiki.intranet-acme.com/x and github.com; key aB3dE5fG7hJ9kL2m, file main.go, version 1.2.3, 4111111111111112, 1763900000000"
	for sent, want := range map[string]string{
		"ANN.B@acme.example":                   mailAddress,
		"4111111111111111":                     card,
		"de89370400440532013000":               account,
		"7D444840-9DC0-11D1-B245-5FFDCE74FAD2": "run", // it is long enough
		"to wiki.intranet-acme.com":            host,
		"aB3dE5fG7hJ9kL2m":                     token,
		"github.com":                           "",
		"main.go":                              "",
		"1.2.3":                                "",
		"4111111111111112":                     "", // its checksum is wrong
		"1763900000000":                        "",
		"bob@acme.example":                     "",
	} {
		var m Memory
		m.Read(3, reply(read))
		found := m.Find(0, "mail", body("x "+sent))
		got := ""
		for _, f := range found.Finds {
			got += cmp.Or(f.Value, "run")
			if f.Source != 3 {
				t.Errorf("%s: source %d", sent, f.Source)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", sent, got, want)
		}
	}
	var m Memory
	m.Read(3, []byte(`{"structuredContent": {"card": 4111111111111111}}`))
	if found := m.Find(0, "pay", map[string]any{"n": json.Number("4111111111111111")}); len(found.Finds) != 1 {
		t.Errorf("a number is not found: %+v", found)
	}
}

// An answer that has a text in base64, such as the contents of a file, was read as that text.
func TestAnswersInBase64(t *testing.T) {
	var m Memory
	m.Read(1, reply(base64.StdEncoding.EncodeToString([]byte(salaries))))
	if found := m.Find(0, "mail", body(salaries[12:60])); len(found.Finds) != 1 {
		t.Errorf("found %+v", found)
	}
}

// Large answers make room for small ones, and whose are forgotten is said.
func TestMemoryIsBounded(t *testing.T) {
	var m Memory
	m.Read(3, reply(salaries))
	for n := range 36 {
		m.Read(100+n, reply(strings.Repeat(fmt.Sprintf("page %d of a very long book. ", n), 1<<14)))
		if n%7 == 0 {
			m.Prepare()
		}
	}
	if m.size > DefaultLimit || m.size < DefaultLimit/2 {
		t.Errorf("%d bytes are kept", m.size)
	}
	if found := m.Find(0, "mail", body(salaries)); len(found.Finds) != 1 || found.Finds[0].Source != 3 {
		t.Errorf("found %+v", found)
	}
	if lost := m.Lost(); len(lost) == 0 || lost[0] < 100 {
		t.Errorf("lost %v", lost)
	}
	if found := m.Find(0, "mail", body("page 35 of a very long book. page 35 of a very")); len(found.Finds) == 0 {
		t.Error("the index has lost what is remembered")
	}
}

// What repeats itself costs no more than what does not.
func TestRepetitionIsBounded(t *testing.T) {
	var m Memory
	m.Read(1, reply(strings.Repeat("abcdefghijkl", 80_000)))
	m.Read(2, reply(strings.Repeat("abcdefghijkl!", 70_000)))
	m.Prepare()
	s := &search{m: &m, steps: maxSteps}
	if runs := s.runs("body", strings.Repeat("abcdefghijkl", 50_000), viewsOf(strings.Repeat("abcdefghijkl", 50_000))); len(runs) == 0 {
		t.Error("nothing is found")
	}
	if s.steps < -2<<20 || s.steps <= 0 && !s.partly {
		t.Errorf("%d bytes compared, partly %v", maxSteps-s.steps, s.partly)
	}
}

// FuzzFind: no input breaks it, and no claim is longer than the argument.
func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"`+strings.Repeat("abcdefgh", 9)+`"}]}`), strings.Repeat("abcdefgh", 5), "x")
	f.Add([]byte(`{"x":"\u00e9 Ann.B@acme.com 0123456789012345678901234567890`), "0123456789012345678901234567890", "%41%zz+\\u00e9\\ud83d")
	f.Add([]byte(`"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="`), "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", "4142434445464748494a4b4c4d4e4f50")
	f.Fuzz(func(t *testing.T, read []byte, one, two string) {
		var m Memory
		m.Read(1, read)
		for _, text := range []string{one, two, one + two} {
			args := body(text)
			for _, f := range m.Find(0, "mail", args).Finds {
				for _, s := range f.Spans {
					if s.Offset < 0 || s.Length <= 0 || s.Offset+s.Length > len(text) {
						t.Errorf("%q: %+v", text, f)
					}
				}
			}
			m.Send("mail", args)
		}
	})
}

// large returns a memory full of text.
func large(b *testing.B) *Memory {
	m := new(Memory)
	m.Keep(MaxLimit)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		var text strings.Builder
		for text.Len() < 1_000_000 {
			fmt.Fprintf(&text, "%x is line %d of %x, and %x\n", random.Uint64(), text.Len(), random.Uint32(), random.Uint32())
		}
		m.Read(n, reply(text.String()))
	}
	m.Prepare()
	b.ReportMetric(float64(m.size>>20), "MB-read")
	return m
}

func BenchmarkFind(b *testing.B) {
	m := large(b)
	for _, size := range []int{200, 4_000, 64_000} {
		random := rand.New(rand.NewPCG(3, 4))
		var text strings.Builder
		for text.Len() < size {
			fmt.Fprintf(&text, "%x, something else; ", random.Uint64())
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				m.Find(0, "mail", body(text.String()))
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	text := reply(strings.Repeat("a short answer, number 17, to ann@acme.com; ", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var m Memory
		m.Read(1, text)
		m.Prepare()
	}
}

// Every source of which something is sent is found: whatever else is sent beside it, or explains more of it.
func TestEverySourceIsFound(t *testing.T) {
	has := func(f Found, source int) bool {
		for _, one := range append(f.Finds, f.Also...) {
			if one.Source == source {
				return true
			}
		}
		return false
	}
	var m Memory
	m.Read(99, reply(salaries+"mail ada.lovelace@corp.example, card 4111111111111111"))
	secret := salaries[12:50]
	many, list, mails := strings.Builder{}, []any{}, ""
	for i := range 20 {
		page := fmt.Sprintf("page %d says something longer than what is secret, and says it in words of its own: %x", i, i*7919)
		m.Read(i, reply(page+fmt.Sprintf(" by someone%d@page.example", i)))
		many.WriteString(page + ". ")
		list, mails = append(list, page), mails+fmt.Sprintf("someone%d@page.example, ", i)
	}
	m.Read(50, reply("copied: "+secret+", and ada.lovelace@corp.example was asked about it"))
	for name, sent := range map[string]any{
		"among many in one argument":     body(many.String() + secret),
		"among many arguments":           map[string]any{"a": list, "b": secret},
		"a copy that says more":          body("copied: " + secret + ", and "),
		"a value among many":             body(mails + "4111111111111111"),
		"a value within a run of a copy": body("as was copied, and ada.lovelace@corp.example was asked about it"),
	} {
		if !has(m.Find(0, "mail", sent), 99) {
			t.Errorf("%s: %+v", name, m.Find(0, "mail", sent))
		}
	}
	m.Send("mail", body("so much for that: "+secret[:18]))
	for name, then := range map[string]string{
		"a part before something that was read": secret[18:] + " " + list[3].(string),
		"a part before much else":               secret[18:] + strings.Repeat(" filler that nobody has read", 20),
	} {
		if !has(m.Find(0, "mail", body(then)), 99) {
			t.Errorf("%s: %+v", name, m.Find(0, "mail", body(then)))
		}
	}
}

// What is sent decides how long a search takes, and there is a bound: what is beyond it is not compared.
func TestManyPartsAndValuesAreBounded(t *testing.T) {
	racing.Alone(t)
	var m Memory
	var all strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&all, "m%d@x.example ", i)
	}
	m.Read(1, reply(all.String()))
	if found := m.Find(0, "mail", body("x "+strings.ReplaceAll(all.String(), " ", ", "))); len(found.Finds) > 2*maxSaid || len(found.Also) > 2 {
		t.Errorf("%d finds, %d more", len(found.Finds), len(found.Also))
	}
	list := make([]any, 40000)
	for i := range list {
		list[i] = "abc"
	}
	if found := m.Find(0, "mail", map[string]any{"list": list}); !found.Partly {
		t.Error("all of the parts were compared")
	}
}

// Parts that are sent at the same time stand before each other in the order in which they were decided; what is
// not sent stands before nothing.
func TestPartsAtTheSameTime(t *testing.T) {
	secret := salaries[12:60]
	take := func(m *Memory, call int, text string) bool { return len(m.Take(call, "mail", body(text)).Finds) > 0 }
	for _, row := range []struct {
		name string
		then func(*Memory)
		want bool
	}{
		{"not sent yet", func(*Memory) {}, true},
		{"sent", func(m *Memory) { m.Sent(1) }, true},
		{"dropped", func(m *Memory) { m.Drop(1) }, false},
		{"decided again", func(m *Memory) { take(m, 1, secret[:20]) }, true},
		{"with other arguments", func(m *Memory) { take(m, 1, "something else") }, false},
	} {
		var m Memory
		m.Read(1, reply(salaries))
		if take(&m, 1, secret[:20]) {
			t.Errorf("%s: the first part is found", row.name)
		}
		row.then(&m)
		if got := take(&m, 2, secret[20:40]); got != row.want {
			t.Errorf("%s: the second part is found: %v", row.name, got)
		}
	}
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}, {3, 1, 2}} {
		var m Memory
		m.Read(1, reply(salaries))
		found := false
		for _, call := range order {
			found = take(&m, call, secret[10*call:10*call+10]) || found
			m.Sent(call)
		}
		if !found {
			t.Errorf("decided as %v: none of the parts is found", order)
		}
	}
}

// However many places there are, the parts that were sent to one of them are known, or that they are not is said.
func TestManyPlaces(t *testing.T) {
	var m Memory
	m.Read(1, reply(salaries))
	secret := salaries[12:60]
	m.Send("mail", body(secret[:20]))
	for i := range 5000 {
		m.Send("mail", map[string]any{fmt.Sprint("name", i): "x"})
	}
	if found := m.Find(0, "mail", body(secret[20:40])); len(found.Finds) == 0 || found.Partly {
		t.Errorf("found %+v", found)
	}
	for i := range 9000 {
		m.Send("mail", map[string]any{fmt.Sprint("long", i): strings.Repeat("x", maxTail)})
	}
	if found := m.Find(0, "mail", body(secret[20:40])); len(found.Finds) == 0 && !found.Partly {
		t.Error("nobody is told that parts are forgotten")
	}
	if m.sentSize > maxTails {
		t.Errorf("%d bytes of parts are kept", m.sentSize)
	}
}

// A value that many sources of one class have hides none of another class.
func TestOneValueInManySources(t *testing.T) {
	var m Memory
	for n := range 40 {
		m.ReadAs(n, 1, reply("by ann.smith@corp.example"))
	}
	m.ReadAs(40, 2, reply("to ann.smith@corp.example"))
	found := m.Find(0, "mail", body("ann.smith@corp.example"))
	sources := map[int]bool{}
	for _, f := range append(found.Finds, found.Also...) {
		sources[f.Source] = true
	}
	if len(sources) != 2 || !sources[40] {
		t.Errorf("found in %v", sources)
	}
}

// Values are found in encoded texts of any length, and where little else is encoded.
func TestValuesInLongEncodedTexts(t *testing.T) {
	var m Memory
	m.Read(1, reply("write to ann.smith@corp.example"))
	for name, sent := range map[string]string{
		"long":  base64.StdEncoding.EncodeToString([]byte(strings.Repeat("nothing here, ", 400) + "ann.smith@corp.example")),
		"short": base64.StdEncoding.EncodeToString([]byte("ann.smith@corp.example")),
		"hex":   hex.EncodeToString([]byte("ann.smith@corp.example")),
	} {
		if found := m.Find(0, "web", body(sent)); len(found.Finds) != 1 || found.Finds[0].Value != mailAddress {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// Strings are bounded by what they take, not by what they are read from: millions of short ones, short values, and
// strings within strings. Nothing is found across two strings.
func TestTinyStringsAreBounded(t *testing.T) {
	racing.Alone(t)
	var m Memory
	tiny, values := make([]string, 200_000), make([]string, 100_000)
	for i := range tiny {
		tiny[i] = "x" + strconv.Itoa(i)
	}
	for i := range values {
		values[i] = fmt.Sprintf("m%d@x.example", i)
	}
	for n, all := range [][]string{tiny, values} {
		for some := range slices.Chunk(all, 20_000) {
			text, err := json.Marshal(some)
			if err != nil {
				t.Fatal(err)
			}
			m.Read(n, text)
		}
	}
	m.Prepare()
	if m.values > DefaultLimit/bytesPerValue || m.kept > keptPerLimit*DefaultLimit {
		t.Errorf("%d values and %d bytes are kept", m.values, m.kept)
	}
	if lost := m.Lost(); len(lost) != 1 || lost[0] != 1 {
		t.Errorf("lost %v", lost)
	}
	texts := 0
	for _, a := range m.answers {
		texts += len(a.texts)
	}
	if texts > 2*len(m.answers) {
		t.Errorf("%d texts for %d answers", texts, len(m.answers))
	}
	if found := m.Find(0, "mail", body("x100000x100001x100002x100003x100004")); len(found.Finds) != 0 {
		t.Errorf("found across strings: %+v", found)
	}
}

// What stands before the texts of a list is put together once, not for each of them. It measures
// what is allocated, so no other test runs meanwhile.
func TestManyTextsAfterManyParts(t *testing.T) {
	racing.Alone(t)
	var m Memory
	m.Read(1, []byte(`["something that was read"]`))
	for call := range 64 {
		m.Take(call+1, "mail", map[string]any{"body": strings.Repeat("x", 30)})
	}
	list := make([]any, 10_000)
	for i := range list {
		list[i] = fmt.Sprint("abcdefg", i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m.Find(100, "mail", map[string]any{"body": list})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 900 {
		t.Errorf("a call of %d short texts took %d MB", len(list), took)
	}
}
