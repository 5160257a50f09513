package tsdecl

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden sections anew")

// Each file has a schema (input.json, perhaps output.json and description) and
// what is made of it: short and long from Func, type from Type.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			section := map[string][]byte{}
			for _, f := range archive.Files {
				section[f.Name] = f.Data
			}
			input, output := json.RawMessage(section["input.json"]), json.RawMessage(section["output.json"])
			description := string(section["description"])
			got := []txtar.File{
				{Name: "short", Data: []byte(Func("srv__"+name, input, output, Options{}) + "\n")},
				{Name: "long", Data: []byte(Func("srv__"+name, input, output, Options{Doc: true, Description: description}) + "\n")},
				{Name: "type", Data: []byte(Type(input, 0) + "\n")},
			}
			if *update {
				kept := archive.Files[:0:0]
				for _, f := range archive.Files {
					if f.Name != "short" && f.Name != "long" && f.Name != "type" {
						kept = append(kept, f)
					}
				}
				archive.Files = append(kept, got...)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, f := range got {
				if want := string(section[f.Name]); string(f.Data) != want {
					t.Errorf("%s of %s:\n%s\nwant (run with -update if that is right):\n%s", f.Name, file, f.Data, want)
				}
				if err := parses(f.Name, string(f.Data)); err != nil {
					t.Errorf("%s of %s is not TypeScript: %v", f.Name, file, err)
				}
			}
		})
	}
}

// parses reports what the TypeScript parser says of a declaration, made into
// a statement that TypeScript knows.
func parses(form, text string) error {
	text = strings.TrimSpace(text)
	if form == "type" {
		text = "type T = " + text
	} else {
		text = regexp.MustCompile(`(?m)^codemode\.`).ReplaceAllString(text, "declare function ")
	}
	r := api.Transform(text, api.TransformOptions{Loader: api.LoaderTS})
	if len(r.Errors) > 0 {
		return fmt.Errorf("%s at %+v in\n%s", r.Errors[0].Text, r.Errors[0].Location, text)
	}
	if code := strings.TrimSpace(string(r.Code)); code != "" {
		return fmt.Errorf("more than types: %s", code)
	}
	return nil
}

// schemas draws JSON that is mostly a schema.
func schemas() *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "class", "x-y", "*/", "\u202e", "\n", "", "__proto__", "`${x}`", "//", "Tree"}),
		rapid.String())
	reference := rapid.SampledFrom([]string{
		"#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/properties/a", "#/anyOf/0", "#/$defs/a/items", "http://x/y", "#/", "",
	})
	kinds := rapid.SampledFrom([]string{"string", "number", "integer", "object", "array", "null", "boolean", "other"})
	var schema func(depth int) *rapid.Generator[any]
	schema = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			if depth == 0 || rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				return rapid.SampledFrom([]any{true, false, nil, "x", 1, []any{}, map[string]any{}, map[string]any{"type": "string"}}).Draw(t, "leaf")
			}
			sub := schema(depth - 1)
			list := rapid.SliceOfN(sub, 0, 3)
			table := rapid.MapOfN(text, sub, 0, 3)
			s := map[string]any{}
			for range rapid.IntRange(0, 4).Draw(t, "keywords") {
				switch rapid.IntRange(0, 12).Draw(t, "keyword") {
				case 0:
					s["type"] = kinds.Draw(t, "type")
				case 1:
					s["type"] = rapid.SliceOfN(kinds, 0, 3).Draw(t, "types")
				case 2:
					s["properties"] = table.Draw(t, "properties")
				case 3:
					s["required"] = rapid.SliceOfN(text, 0, 3).Draw(t, "required")
				case 4:
					s["items"] = sub.Draw(t, "items")
				case 5:
					s["prefixItems"] = list.Draw(t, "prefixItems")
				case 6:
					s["anyOf"] = list.Draw(t, "anyOf")
				case 7:
					s["allOf"] = list.Draw(t, "allOf")
				case 8:
					s["additionalProperties"] = sub.Draw(t, "additionalProperties")
				case 9:
					s["$ref"] = reference.Draw(t, "$ref")
				case 10:
					s["enum"] = rapid.SliceOfN(rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Just[any](1.5), rapid.Just[any](nil)), 0, 3).Draw(t, "enum")
				case 11:
					s["description"] = text.Draw(t, "description")
				case 12:
					s["const"] = sub.Draw(t, "const")
				}
			}
			if depth == 4 {
				s["$defs"] = map[string]any{"a": sub.Draw(t, "a"), "b": sub.Draw(t, "b"), "c": sub.Draw(t, "c")}
			}
			return s
		})
	}
	return schema(4)
}

// Whatever the schema, what is written is TypeScript and nothing but types,
// within bounds, and the same again.
func TestAlwaysTypeScript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input, err := json.Marshal(schemas().Draw(t, "input"))
		if err != nil {
			t.Fatal(err)
		}
		output, err := json.Marshal(schemas().Draw(t, "output"))
		if err != nil {
			t.Fatal(err)
		}
		description := rapid.String().Draw(t, "description")
		check(t, input, output, description)
	})
}

func check(t interface{ Fatalf(string, ...any) }, input, output []byte, description string) {
	for _, o := range []Options{{}, {Doc: true, Description: description}, {MaxBytes: 1}} {
		form := fmt.Sprintf("%+v", o)
		text := Func("s__t", input, output, o)
		if again := Func("s__t", input, output, o); again != text {
			t.Fatalf("%s: twice not the same:\n%s\n%s", form, text, again)
		}
		if len(text) > o.maxBytes() {
			t.Fatalf("%s: %d bytes, limit %d", form, len(text), o.maxBytes())
		}
		if !o.Doc && strings.Contains(text, "\n") {
			t.Fatalf("%s: more than one line: %q", form, text)
		}
		if err := parses(form, text); err != nil {
			t.Fatalf("%s of %s: %v", form, input, err)
		}
	}
	text := Type(input, 0)
	if len(text) > maxType || strings.Contains(text, "\n") {
		t.Fatalf("type of %s: %q", input, text)
	}
	if err := parses("type", text); err != nil {
		t.Fatalf("type of %s: %v", input, err)
	}
}

func FuzzFunc(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if strings.HasSuffix(part.Name, ".json") {
				f.Add(part.Data, "text */")
			}
		}
	}
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"number","default":1e400}}}`), "\x00\xff")
	f.Fuzz(func(t *testing.T, schema []byte, description string) {
		check(t, schema, schema, description)
	})
}

// Small schemas that are large when written out end soon, within bounds.
func TestBombs(t *testing.T) {
	doubling := func(word string, levels, width int) string {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`)
		for i := range levels {
			ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"},`, i+1)
			fmt.Fprintf(&b, `"d%d":{%q:[%s]},`, i, word, strings.TrimSuffix(strings.Repeat(ref, width), ","))
		}
		fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, levels)
		return b.String()
	}
	bombs := map[string]string{
		"deep objects":      strings.Repeat(`{"properties":{"a":`, 3000) + "true" + strings.Repeat("}}", 3000),
		"deep arrays":       strings.Repeat(`{"type":"array","items":`, 5000) + "true" + strings.Repeat("}", 5000),
		"too deep for JSON": strings.Repeat("[", 1<<20),
		"anyOf doubling":    doubling("anyOf", 40, 2),
		"anyOf wide":        doubling("anyOf", 8, 40),
		"allOf doubling":    doubling("allOf", 40, 2),
		"prefixItems wide":  doubling("prefixItems", 20, 40),
		"many properties":   `{"type":"object","properties":{` + properties(3000) + `}}`,
		"all required":      `{"type":"object","required":["` + strings.Repeat(`x","x`, 1000) + `"],"properties":{` + properties(300) + `}}`,
		"too large":         `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`,
		"long description":  `{"type":"object","properties":{"a":{"description":"` + strings.Repeat(`x\n`, 1<<16) + `"}}}`,
	}
	for name, schema := range bombs {
		t.Run(name, func(t *testing.T) {
			check(t, []byte(schema), []byte(schema), strings.Repeat("line\n", 1<<15))
		})
	}
}

func properties(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"property_number_%d":{"type":"object","properties":{"inner":{"type":"string","description":"d"}}}`, i)
	}
	return b.String()
}

// What doesn't fit loses its innermost types first, and keeps what is required.
func TestDetailIsDroppedFromTheInside(t *testing.T) {
	schema := `{"type":"object","required":["zz"],"properties":{"zz":{"type":"string"},` + properties(60) + `}}`
	got := Func("s__t", []byte(schema), nil, Options{MaxBytes: 1000})
	if !strings.HasPrefix(got, "codemode.s__t(args: {zz: string; property_number_0?: Record<string, unknown>; ") {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(got, "more properties */") {
		t.Errorf("nothing says that properties are missing: %s", got)
	}
}

// The order of keys makes no difference.
func TestOrderOfKeys(t *testing.T) {
	a := `{"type":"object","required":["r","q"],"properties":{"b":{"type":"string"},"q":{"type":"number"},"a":{"type":"string"},"r":{"type":"number"}}}`
	b := `{"properties":{"r":{"type":"number"},"a":{"type":"string"},"q":{"type":"number"},"b":{"type":"string"}},"required":["r","q"],"type":"object"}`
	want := "{r: number; q: number; a?: string; b?: string}"
	for _, schema := range []string{a, b} {
		if got := Type([]byte(schema), 0); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	row := func(text string, limit int, want string) {
		t.Helper()
		if got := Plain(text, limit); got != want {
			t.Errorf("Plain(%q, %d) = %q, want %q", text, limit, got, want)
		}
	}
	row("", 10, "")
	row("  two\n\n words\t", 0, "two words")
	row("exactly", 7, "exactly")
	row("one more", 7, "one mor… (+1 characters)")
	row("cut here", 4, "cut… (+4 characters)")
	row(strings.Repeat("x", 5000), 10, "xxxxxxxxxx… (+4,990 characters)")
	row("\x1b[31mred\x1b[0m", 0, "red [2 hidden characters removed]")
	row("a\x00b", 0, "ab [1 hidden character removed]")
	row("pay \u202eecila\u202c", 0, "pay ecila [2 hidden characters removed]")
	row("x\U000E0041\U000E0042", 0, "x [2 hidden characters removed]")
	row("zero\u200bwidth", 0, "zerowidth [1 hidden character removed]")
	row("family 👨‍👩‍👧", 0, "family 👨👩👧")
	row("bad \xff byte", 0, "bad \uFFFD byte")
	row("\x1b", 0, "[1 hidden character removed]")
	row("日本語の説明", 3, "日本語… (+3 characters)")
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31m\u202eb \n c", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := Plain(text, limit)
		for _, r := range got {
			if invisible(r) || r == 0x1b || r == '\n' {
				t.Fatalf("%q keeps %q", got, r)
			}
		}
		if limit > 0 && limit < 1<<20 && len([]rune(got)) > limit+80 {
			t.Fatalf("%d characters, limit %d", len([]rune(got)), limit)
		}
	})
}

func BenchmarkFunc(b *testing.B) {
	archive, err := txtar.ParseFile("testdata/issue.txtar")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == "input.json" {
			for b.Loop() {
				Func("github__create_issue", f.Data, nil, Options{})
			}
		}
	}
}

func TestSavedScript(t *testing.T) {
	days := json.RawMessage(`{"type":"object","properties":{"days":{"type":"number"}},"required":["days"]}`)
	count := json.RawMessage(`{"type":"array","items":{"type":"number"}}`)
	for _, row := range []struct {
		input, output json.RawMessage
		want          string
	}{
		{nil, nil, `codemode.run("weekly"): Promise<unknown>`},
		{days, nil, `codemode.run("weekly", input: {days: number}): Promise<unknown>`},
		{json.RawMessage(`{"type":"object","properties":{"days":{"type":"number"}}}`), count, `codemode.run("weekly", input?: {days?: number}): Promise<number[]>`},
	} {
		if got := Saved("weekly", row.input, row.output, Options{}); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}

// What was observed stands in place of what was not declared, whatever the
// bound on the declaration itself.
func TestAnswerAndRemark(t *testing.T) {
	input := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	for _, row := range []struct {
		o    Options
		want string
	}{
		{Options{Remark: "observed: plain text"}, `codemode.a__b(): Promise<string> /* observed: plain text */`},
		{Options{Answer: "{n: number}", Remark: "observed"}, `codemode.a__b(): Promise<{n: number}> /* observed */`},
		{Options{Remark: "a */ b"}, `codemode.a__b(): Promise<string> /* a * / b */`},
		{Options{Remark: strings.Repeat("x", 1000), MaxBytes: 300}, `codemode.a__b(): Promise<string> /* ` + strings.Repeat("x", 1000) + ` */`},
	} {
		if got := Func("a__b", input, nil, row.o); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
	if got := Func("a__b", input, json.RawMessage(`{"type":"number"}`), Options{Answer: "string"}); got != `codemode.a__b(): Promise<number>` {
		t.Errorf("what is declared did not count: %s", got)
	}
}
