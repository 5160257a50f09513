package observed

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var issues = Tool{"github", "list_issues", "sha256:1"}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s := Open(dir, Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return s
}

func text(text string) Answer  { return Answer{Text: text} }
func value(text string) Answer { return Answer{Value: json.RawMessage(text)} }

func TestWhatIsSaid(t *testing.T) {
	for _, row := range []struct {
		what           string
		answers        []Answer
		answer, remark string
	}{
		{"nothing was seen", nil, "", ""},
		{"a list", []Answer{text(`[{"number": 41, "title": "A bug", "state": "open"}]`)}, "",
			"observed: JSON text of {number: number; state: string; title: string}[]"},
		{"a field that is not always there", []Answer{text(`[{"a": 1}, {"a": 2, "b": null}]`), text(`[{"a": 1, "b": "x"}]`)}, "",
			"observed: JSON text of {a: number; b?: string | null}[]"},
		{"an empty list says nothing of elements", []Answer{text(`[]`)}, "", "observed: JSON text of unknown[]"},
		{"and spoils nothing", []Answer{text(`[]`), text(`[true]`)}, "", "observed: JSON text of boolean[]"},
		{"an empty object makes nothing optional", []Answer{text(`{}`), text(`{"a": [1, "x"]}`)}, "", "observed: JSON text of {a: (string | number)[]}"},
		{"plain text", []Answer{text("3 issues found")}, "", "observed: plain text"},
		{"what only begins like JSON", []Answer{text("[3 issues found]")}, "", "observed: plain text"},
		{"a number is text", []Answer{text("42")}, "", "observed: plain text"},
		{"JSON and something behind it", []Answer{text(`{"a": 1} and more`)}, "", "observed: plain text"},
		{"both", []Answer{text(`{"a": 1}`), text("nothing found")}, "", "observed: JSON text of {a: number}, or plain text"},
		{"structured content", []Answer{value(`{"items": [{"id": 1}], "total": 1}`)}, "{items: {id: number}[]; total: number}", "observed"},
		{"structured content at times", []Answer{value(`{"total": 1}`), text("none")}, "{total: number} | string", "observed; the text: plain text"},
		{"media", []Answer{{Media: true}}, "{text: string; media: {handle: string; kind: string; mimeType?: string; size: number}[]}", "observed"},
		{"a map by ids", []Answer{text(`{"U12345678": {"name": "a"}, "U87654321": {"name": "b"}}`)}, "", "observed: JSON text of Record<string, {name: string}>"},
		{"a map by its looks", []Answer{text(`{"ann": {"x":1,"y":1}, "bob": {"x":1,"y":1}, "cy": {"x":1,"y":1}, "dan": {"x":1,"y":1}, "eve": {"x":1,"y":1}, "flo": {"x":1,"y":1}}`)}, "",
			"observed: JSON text of Record<string, {x: number; y: number}>"},
		{"elements with nothing in common", []Answer{text(`[{"ann": 1}, {"bob": 2}, {"cy": 3}, {"dan": 4}]`)}, "", "observed: JSON text of Record<string, number>[]"},
		{"answers with nothing in common", []Answer{text(`{"ann": 1}`), text(`{"bob": 2}`), text(`{"cy": 3}`), text(`{"dan": 4}`)}, "", "observed: JSON text of Record<string, number>"},
		{"too deep to tell", []Answer{text(strings.Repeat("[", 12) + strings.Repeat("]", 12))}, "", "observed: JSON text of unknown[][][][][][][][]"},
	} {
		s := open(t, "")
		for _, a := range row.answers {
			s.Note(issues, a)
		}
		if got := s.Type(issues, 700); got.Answer != row.answer || got.Remark != row.remark {
			t.Errorf("%s:\ngot  %q, %q\nwant %q, %q", row.what, got.Answer, got.Remark, row.answer, row.remark)
		}
	}
}

// Of a long answer the beginning is enough, however long a value in it is.
func TestLongAnswers(t *testing.T) {
	for _, row := range []struct{ long, want string }{
		{`[` + strings.Repeat(`{"id": 1, "name": "x"},`, 100_000) + `{}]`, "observed: JSON text of {id: number; name: string}[]"},
		{`[{"id": 1, "name": "x"}, "` + strings.Repeat("y", 1<<20) + `"]`, "observed: JSON text of {id: number; name: string}[]"},
		{`[` + strings.Repeat("1, ", 1<<20) + ` and so on`, "observed: plain text"},
		{`[` + strings.Repeat("1 2", 1<<20) + `]`, "observed: plain text"},
	} {
		s := open(t, "")
		s.Note(issues, text(row.long))
		if got := s.Type(issues, 700).Remark; got != row.want {
			t.Errorf("got %q", got)
		}
	}
	s := open(t, "")
	s.Note(issues, value(`{"total": 5, "items": [`+strings.Repeat(`{"id": 1},`, 100_000)+`{"id": 1}], "more": true}`))
	if got := s.Type(issues, 700).Answer; got != "{items: {id: number}[]; total: number}" {
		t.Errorf("got %q", got)
	}
}

func TestNames(t *testing.T) {
	for _, key := range []string{"id", "title", "html_url", "createdAt", "created_at", "Content-Type", "@type", "$schema", "_links", "__typename",
		"sha256", "base64", "ipv4", "HTMLURL", "https", "xmlns", "nextCursor", "pull_request_review_comments_url", "isBase64Encoded", "s3Key", "line1"} {
		if !isName(key) {
			t.Errorf("%q is taken for data", key)
		}
	}
	for _, key := range []string{"", "41", "12345678", "2026-11-21", "user_2026_11_21", "bob@example.com", "example.com", "/etc/passwd", "a b", "Ann Smith", "*/ x",
		"550e8400-e29b-41d4-a716-446655440000", "deadbeefcafe", "sk-proj-4f8Kx0Qz9LmN2", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE",
		"aGVsbG8gd29ybGQ", "dXNlcjpwYXNzd29yZA", "QmFzZVNpeHR5Rm91ckVuY29k", "xkqzvbnmtrwplkjhgfd", "U12345678", "größe", "a\u202eb", "k\nv",
		strings.Repeat("long", 11), "supercalifragilisticexpialidocious"} {
		if isName(key) {
			t.Errorf("%q is taken for a name", key)
		}
	}
}

const canary = "Canary"

// jsonValue draws JSON whose every value, and every key that is data, holds
// the canary.
func jsonValue(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just(any(nil)), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.StringMatching(`[a-z "\\*/]{0,6}`), func(s string) any { return s + canary }),
		rapid.Map(rapid.IntRange(-5, 1_000_000), func(n int) any { return n }),
	)
	if depth == 0 {
		return scalar
	}
	key := rapid.OneOf(rapid.SampledFrom([]string{"id", "title", "items", "created_at", "next", "owner"}), rapid.SampledFrom([]string{"id", "n"}),
		rapid.Map(rapid.IntRange(10_000, 99_999), func(n int) string { return fmt.Sprint(canary, n) }))
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(jsonValue(depth-1), 0, 5), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(key, jsonValue(depth-1), 0, 5), func(m map[string]any) any { return m }))
}

func drawShapes(t *rapid.T) shapes {
	b, err := json.Marshal(jsonValue(rapid.IntRange(0, 10).Draw(t, "depth")).Draw(t, "value"))
	if err != nil {
		t.Fatal(err)
	}
	a := Answer{Media: rapid.Bool().Draw(t, "media")}
	if a.Text = string(b); rapid.Bool().Draw(t, "structured") {
		a.Value, a.Text = b, ""
	}
	return shapesOf(a)
}

func TestJoinIsASemilattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawShapes(t), drawShapes(t), drawShapes(t)
		same := func(what string, x, y shapes) {
			if x.encode() != y.encode() {
				t.Fatalf("%s:\n%s\n%s", what, x.encode(), y.encode())
			}
		}
		same("order", a.join(b), b.join(a))
		same("grouping", a.join(b).join(c), a.join(b.join(c)))
		same("repetition", a.join(b).join(b), a.join(b))
		same("nothing", a.join(shapes{}), a)
	})
}

// Objects that together have too many keys become a map in whatever order.
func TestJoinOfManyKeys(t *testing.T) {
	part := func(from int) shapes {
		fields := map[string]field{}
		for i := from; i < from+60; i++ {
			fields["key"+strings.Repeat("a", i%7)+"_"+strings.Repeat("e", i/7)] = field{&shape{kinds: kinds{Number: i%2 == 0, Null: i == 100}}, false}
		}
		return shapes{JSON: &shape{Object: newObject(fields)}}
	}
	a, b, c := part(0), part(50), part(100)
	left, right := a.join(b).join(c), a.join(b.join(c))
	if left.encode() != right.encode() || left.JSON.Object.Map == nil {
		t.Errorf("got\n%s\n%s", left.encode(), right.encode())
	}
}

func TestNothingOfAValueIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := shapes{}
		for range rapid.IntRange(1, 5).Draw(t, "answers") {
			all = all.join(drawShapes(t))
		}
		told := all.text(700)
		for _, text := range []string{all.encode(), told.Answer, told.Remark} {
			if strings.Contains(text, canary) || strings.ContainsAny(text, "0123456789*") {
				t.Fatalf("a value, or a key that is data, is in %s", text)
			}
		}
		if !all.JSON.sound(maxDepth) || !all.Value.sound(maxDepth) {
			t.Fatalf("what was made would be refused: %s", all.encode())
		}
		if len(told.Answer)+len(told.Remark) > 2*700+200 {
			t.Fatalf("%d bytes", len(told.Answer)+len(told.Remark))
		}
	})
}

// A tool whose answers are never alike takes no more than its part.
func TestBounded(t *testing.T) {
	s := open(t, "")
	branch := func(i int) string {
		inner := "1"
		for j := range 6 {
			inner = fmt.Sprintf(`{"%s": %s, "%s": [%s]}`, strings.Repeat("ab", 1+i%17), inner, strings.Repeat("ij", 1+(i+j)%19), inner)
		}
		return inner
	}
	for i := range 400 {
		s.Note(issues, text(branch(i)))
	}
	e := s.tools[name{issues.Server, issues.Name}]
	if len(e.text) > maxTool {
		t.Errorf("a tool has %d bytes", len(e.text))
	}
	for i := range maxTools + 10 {
		s.Note(Tool{"many", fmt.Sprint(i), "d"}, text("x"))
	}
	if len(s.tools) > maxTools {
		t.Errorf("%d tools are kept", len(s.tools))
	}
	if got := s.Type(Tool{"many", "0", "d"}, 700); got != (Type{}) {
		t.Errorf("the oldest did not make room: %v", got)
	}
	if got := s.Type(Tool{"many", fmt.Sprint(maxTools + 9), "d"}, 700); got.Remark == "" {
		t.Error("the newest was forgotten")
	}
}

func TestAChangedToolBeginsAnew(t *testing.T) {
	s := open(t, t.TempDir())
	s.Note(issues, text(`{"a": 1}`))
	changed := issues
	changed.Digest = "sha256:2"
	if got := s.Type(changed, 700); got != (Type{}) {
		t.Errorf("the old shape is told of the new definition: %v", got)
	}
	s.Note(changed, text(`{"b": 1}`))
	if got := s.Type(changed, 700).Remark; got != "observed: JSON text of {b: number}" {
		t.Errorf("got %q", got)
	}
	if got := s.Type(issues, 700); got != (Type{}) {
		t.Errorf("the old definition is still known: %v", got)
	}
}

func TestKeptForTheNextStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	first, second := open(t, dir), open(t, dir)
	first.Note(issues, text(`{"a": 1}`))
	second.Note(issues, text(`{"a": "x", "b": 1}`))
	second.Note(Tool{"mail", "list", "d"}, text("none"))
	first.Close()
	second.Close() // joins what the first wrote
	third := open(t, dir)
	if got := third.Type(issues, 700).Remark; got != "observed: JSON text of {a: string | number; b?: number}" {
		t.Errorf("got %q", got)
	}
	if got := third.Type(Tool{"mail", "list", "d"}, 700).Remark; got != "observed: plain text" {
		t.Errorf("got %q", got)
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file: %v, %v; want it readable by its owner only", info.Mode(), err)
	}
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("left in the folder: %v", all)
	}
}

func TestADamagedFileIsAsGoodAsNone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Note(issues, text(`{"a": 1}`))
	s.Close()
	path := filepath.Join(dir, fileName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sealed := func(tools string) string {
		return fmt.Sprintf(`{"version":1,"digest":%q,"tools":%s}`, digest([]byte(tools)), tools)
	}
	for _, bad := range []string{"", "{", string(good[:len(good)/2]), string(good) + "{}", strings.Replace(string(good), `"a"`, `"b"`, 1),
		strings.Replace(string(good), `"version":1`, `"version":2`, 1),
		sealed(`[{"server":"github","name":"list_issues","digest":"sha256:1","json":{"object":{"fields":{"bob@example.com":{"is":{"null":true}}}}}}]`),
		sealed(`[{"server":"github","name":"list_issues","digest":"sha256:1","json":{"object":{"fields":{"a":{}}}}}]`),
		sealed(`[{"server":"github","name":"list_issues","digest":"sha256:1","sample":"x"}]`),
	} {
		write(bad)
		again := open(t, dir)
		if got := again.Type(issues, 700); got != (Type{}) {
			t.Errorf("%.60q was believed: %v", bad, got)
		}
		again.Note(issues, text("none"))
		again.Close()
		if got := open(t, dir).Type(issues, 700).Remark; got != "observed: plain text" {
			t.Errorf("after %.60q: got %q", bad, got)
		}
	}
	write(string(good))
	if got := open(t, dir).Type(issues, 700).Remark; got != "observed: JSON text of {a: number}" {
		t.Errorf("the good file: got %q", got)
	}
}

// Changes in quick succession are written once, a moment later, and what is
// owed at the end is written then.
func TestWhenItIsWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	synctest.Test(t, func(t *testing.T) {
		s := Open(dir, Options{Logger: slog.New(slog.DiscardHandler)})
		written := func() bool { _, err := os.Stat(path); return err == nil }
		s.Note(issues, text("x"))
		s.Note(issues, text(`{"a": 1}`))
		if written() {
			t.Error("written at once")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !written() {
			t.Error("not written after 2 s")
		}
		os.Remove(path)
		s.Note(issues, text("x")) // no news
		time.Sleep(time.Minute)
		synctest.Wait()
		if written() {
			t.Error("written although nothing changed")
		}
		s.Note(issues, text(`{"b": 1}`))
		s.Close()
		if !written() {
			t.Error("not written at the end")
		}
		os.Remove(path)
		s.Note(issues, text(`{"c": 1}`))
		time.Sleep(time.Minute)
		if written() {
			t.Error("written after the end")
		}
	})
}

func FuzzLook(f *testing.F) {
	for _, seed := range []string{`{"a": [1, {"b": null}]}`, `[`, `{"a"`, `[1,]`, `{"a": 1}x`, `[[[[[[[[[[1]]]]]]]]]]`, strings.Repeat(`[{"a":`, 9000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		seen := shapesOf(text(s))
		trimmed := strings.TrimSpace(s)
		if seen.JSON != nil && len(trimmed) <= maxLook && !json.Valid([]byte(trimmed)) {
			t.Errorf("%q is taken for JSON", s)
		}
		if !seen.JSON.sound(maxDepth) {
			t.Errorf("%q gives %s", s, seen.encode())
		}
	})
}

func BenchmarkNote(b *testing.B) {
	s := Open("", Options{Logger: slog.New(slog.DiscardHandler)})
	row := `{"number": 41, "title": "A bug", "state": "open", "user": {"login": "ann", "id": 7}, "labels": ["bug"]},`
	for _, n := range []int{20, 1000} {
		a := shapesText(strings.Repeat(row, n))
		b.Run(fmt.Sprintf("%dKB", len(a.Text)>>10), func(b *testing.B) {
			for range b.N {
				s.tools = map[name]*entry{} // as if each answer were the first
				s.Note(issues, a)
			}
		})
	}
}

func shapesText(rows string) Answer { return text("[" + strings.TrimSuffix(rows, ",") + "]") }
