package provenance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"

	"pgregory.net/rapid"
)

func frozen(t interface{ Fatal(...any) }, value any) canon.Args {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	args, err := canon.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// reply is a CallToolResult with one text.
func reply(t interface{ Fatal(...any) }, text string) json.RawMessage {
	r, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const key = "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"

// credentials has read one file, in call 3.
func credentials(t *testing.T) *Memory {
	m := new(Memory)
	m.Read(Source{Call: 3, Server: "filesystem", Tool: "read_file", Args: frozen(t, map[string]any{"path": "~/.aws/credentials", "head": "9"})}, reply(t, key))
	return m
}

func TestFind(t *testing.T) {
	whole := "all 116 characters of body were read in call 3 from filesystem__read_file ~/.aws/credentials"
	for _, row := range []struct {
		name string
		args any
		want string
	}{
		{"as it is", map[string]any{"body": key}, whole},
		{"trimmed", map[string]any{"body": strings.TrimSpace(key)}, strings.Replace(whole, "116", "115", 1)},
		{"with something around it", map[string]any{"body": "Dear Bob,\n\n" + key + "\nBye"}, strings.Replace(strings.TrimPrefix(whole, "all "), "116", "115", 1)},
		{"a part", map[string]any{"body": "x" + key[20:60] + "y"}, "40 characters of body were read in call 3 from filesystem__read_file ~/.aws/credentials"},
		{"two parts", map[string]any{"body": key[:30] + "###" + key[60:90]}, "59 characters of body were read in call 3 from filesystem__read_file ~/.aws/credentials"},
		{"below", map[string]any{"a": []any{map[string]any{"b": key}}}, strings.Replace(whole, "body", "a[0].b", 1)},
		{"in a name", map[string]any{"a": map[string]any{key[10:40]: 1}}, "all 30 characters of a name in a were read in call 3 from filesystem__read_file ~/.aws/credentials"},
		{"too short", map[string]any{"body": key[20:43]}, ""},
		{"something else", map[string]any{"body": strings.Repeat("nothing of the kind ", 20)}, ""},
		{"no text", map[string]any{"n": 12345678901234567, "b": true}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			found := credentials(t).Find(0, "mail", frozen(t, row.args))
			got := ""
			for _, r := range found.Runs {
				got += r.String()
			}
			if got != row.want || found.Partly {
				t.Errorf("%q, partly %v; want %q", got, found.Partly, row.want)
			}
		})
	}
}

// What a script takes out of JSON is found, wherever that stood.
func TestFindInJSON(t *testing.T) {
	inner, err := json.Marshal(map[string]any{"rows": []any{map[string]any{"text": key}}})
	if err != nil {
		t.Fatal(err)
	}
	structured, err := json.Marshal(map[string]any{"structuredContent": map[string]any{"deep": []any{key}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]json.RawMessage{"text that is JSON": reply(t, string(inner)), "structured": structured, "without its end": reply(t, key)[:100]} {
		m := new(Memory)
		m.Read(Source{Call: 1, Server: "s", Tool: "t"}, r)
		if found := m.Find(0, "mail", frozen(t, map[string]any{"body": key})); len(found.Runs) != 1 || found.Runs[0].Characters < 24 {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// Rules and indentation are in every text.
func TestEmptyRunsSayNothing(t *testing.T) {
	m := new(Memory)
	line := strings.Repeat("-", 50) + "\n" + strings.Repeat(" ", 50) + "\n" + strings.Repeat("=+", 30)
	m.Read(Source{Call: 1}, reply(t, line))
	if found := m.Find(0, "mail", frozen(t, map[string]any{"body": line})); len(found.Runs) != 0 {
		t.Errorf("found %v", found)
	}
}

func TestTheAnswersThatExplainMostAreNamed(t *testing.T) {
	m := new(Memory)
	for call := 1; call <= 20; call++ {
		m.Read(Source{Call: call, Server: "s", Tool: "read"}, reply(t, key[:24+call]))
	}
	m.Read(Source{Call: 21, Server: "s", Tool: "read"}, reply(t, strings.Repeat("another text altogether, ", 4)))
	found := m.Find(0, "mail", frozen(t, map[string]any{"body": key + strings.Repeat("another text altogether, ", 4)}))
	var got []string
	for _, r := range found.Runs {
		got = append(got, fmt.Sprintf("%d:%d", r.Call, r.Characters))
	}
	if strings.Join(got, " ") != "21:100 20:44" {
		t.Errorf("found %q", got)
	}
}

// Large answers make room for small ones, and what is forgotten is said.
func TestMemoryIsBounded(t *testing.T) {
	m := credentials(t)
	for call := 4; call < 40; call++ {
		m.Read(Source{Call: call, Server: "web", Tool: "get"}, reply(t, strings.Repeat(fmt.Sprintf("page %d of a very long book. ", call), 1<<14)))
	}
	found := m.Find(0, "mail", frozen(t, map[string]any{"body": key}))
	if len(found.Runs) != 1 || found.Runs[0].Call != 3 || !found.Partly {
		t.Errorf("found %+v", found)
	}
	if found := m.Find(0, "mail", frozen(t, map[string]any{"n": 1})); found.Partly {
		t.Error("of a call that sends no text, nothing can be missed")
	}
}

func TestFromNamesWhatWasRead(t *testing.T) {
	for _, row := range []struct {
		args   map[string]any
		hidden map[string]string
		want   string
	}{
		{map[string]any{}, nil, "s__read"},
		{map[string]any{"mode": "r", "path": "/etc/passwd"}, nil, "s__read /etc/passwd"},
		{map[string]any{"encoding": "utf-8", "b": "x"}, nil, "s__read x"},
		{map[string]any{"token": "abc"}, nil, "s__read [hidden]"},
		{map[string]any{"path": "/etc/shadow"}, map[string]string{"path": "[path]"}, "s__read [path]"},
		{map[string]any{"path": "a\u202eb\x1b"}, nil, `s__read a\u{202E}b\u{1B}`},
		{map[string]any{"path": "a\nb"}, nil, "s__read"},
		{map[string]any{"path": strings.Repeat("x", 300)}, nil, "s__read " + strings.Repeat("x", 200) + "… 300 characters in all"},
	} {
		a := Source{Server: "s", Tool: "read", Args: frozen(t, row.args), Hidden: row.hidden}
		if got := a.from(); got != row.want {
			t.Errorf("%v: %q, want %q", row.args, got, row.want)
		}
	}
}

// Whatever is read and sent, a planted run is found, and what is claimed is
// true: so many characters do stand in both.
func TestPlantedRunsAreFound(t *testing.T) {
	letters := rapid.StringOfN(rapid.RuneFrom([]rune("abcdefghijklmnopqrstuvwxyz é日\n\"\\{[")), 0, 200, -1)
	rapid.Check(t, func(t *rapid.T) {
		planted := rapid.StringMatching(`[a-z0-9é]{24,80}`).Draw(t, "planted")
		m := new(Memory)
		calls := rapid.IntRange(1, 5).Draw(t, "calls")
		where := rapid.IntRange(1, calls).Draw(t, "where")
		for call := 1; call <= calls; call++ {
			text := letters.Draw(t, "read")
			if call == where {
				text += planted + letters.Draw(t, "rest")
			}
			m.Read(Source{Call: call, Server: "s", Tool: "read"}, reply(t, text))
		}
		found := m.Find(0, "mail", frozen(t, map[string]any{"body": letters.Draw(t, "before") + planted + letters.Draw(t, "behind")}))
		distinct := map[byte]bool{}
		for _, c := range []byte(planted) {
			distinct[c] = true
		}
		if len(distinct) < 6 {
			return
		}
		if len(found.Runs) == 0 || found.Runs[0].Characters < utf8.RuneCountInString(planted) && len(found.Runs) < 2 {
			t.Fatalf("found %+v of %q", found, planted)
		}
	})
}

// FuzzFind: no input breaks it, and no claim is shorter than MinRun or longer
// than the argument.
func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"`+strings.Repeat("abcdefgh", 9)+`"}]}`), strings.Repeat("abcdefgh", 5))
	f.Add([]byte(`{"content":[{"text":"{\"a\":\"0123456789012345678901234567890123456789`), "0123456789012345678901234567890123456789")
	f.Add([]byte(`"\ud83d\ude00 a text that is cut in its middle \ud83d`), "a text that is cut in its middle")
	f.Add([]byte(`{"x":`), strings.Repeat("\x00", 50))
	f.Fuzz(func(t *testing.T, read []byte, text string) {
		m := new(Memory)
		m.Read(Source{Call: 1, Server: "s", Tool: "t"}, read)
		sent := strings.ToValidUTF8(text, "?")
		args, err := json.Marshal(map[string]string{"body": sent})
		if err != nil {
			t.Fatal(err)
		}
		frozen, err := canon.Parse(args)
		if err != nil {
			return
		}
		for _, r := range m.Find(0, "mail", frozen).Runs {
			if n := utf8.RuneCountInString(sent); r.Characters < MinRun || r.Characters > n || r.Whole != (r.Characters == n) {
				t.Errorf("%d of %d characters, whole %v", r.Characters, n, r.Whole)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	r := reply(b, strings.Repeat("a short answer ", 100))
	from := Source{Call: 1, Server: "s", Tool: "t"}
	m := new(Memory)
	for b.Loop() {
		m.Read(from, r)
	}
}

func BenchmarkFind(b *testing.B) {
	m := new(Memory)
	for call := range 4 {
		var text strings.Builder
		for n := 0; text.Len() < 1_000_000; n++ {
			fmt.Fprintf(&text, "line %d of answer %d, which holds nothing\n", n, call)
		}
		m.Read(Source{Call: call}, reply(b, text.String()))
	}
	args := frozen(b, map[string]any{"body": strings.Repeat("something else altogether ", 100)})
	for b.Loop() {
		m.Find(0, "mail", args)
	}
}
