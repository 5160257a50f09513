package builtin

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/profiles/known"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden sections anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is what the clock shows in tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC)

// connect starts a server in memory and gives a client's session with it.
func connect(t *testing.T, s *mcp.Server) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	ctx := context.Background()
	serving, err := s.Connect(ctx, far, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		serving.Wait()
	})
	return session
}

func servers(t *testing.T) map[string]*mcp.ClientSession {
	t.Helper()
	made := map[string]*mcp.ClientSession{}
	for _, name := range Names() {
		s, ok := New(name)
		if !ok {
			t.Fatalf("there is no server %q", name)
		}
		if name == "time" {
			s = clock{now: func() time.Time { return noon }}.server().Server
		}
		made[name] = connect(t, s)
	}
	return made
}

// Each file of testdata has calls ("server tool arguments") and what they answer:
// the structured content, or "error: " and the text.
func TestCalls(t *testing.T) {
	sessions := servers(t)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := false
			for i, f := range archive.Files {
				server, tool, ok := strings.Cut(f.Name, " ")
				if !ok {
					t.Fatalf("%s: section %q is no call", file, f.Name)
				}
				call, arguments, _ := strings.Cut(tool, " ")
				got := answer(t, sessions[server], call, json.RawMessage(arguments)) + "\n"
				if got != string(f.Data) {
					changed = true
					if !*update {
						t.Errorf("%s: %s\ngives  %swanted %s", file, f.Name, got, f.Data)
					}
					archive.Files[i].Data = []byte(got)
				}
			}
			if *update && changed {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func answer(t *testing.T, session *mcp.ClientSession, tool string, arguments any) string {
	t.Helper()
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("calling %s with %.200s: %v", tool, arguments, err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		if result.StructuredContent != nil {
			t.Errorf("%s: an error with structured content", tool)
		}
		return "error: " + text
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(structured, &a) != nil || json.Unmarshal([]byte(text), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%s: structured content %s and text %s differ", tool, structured, text)
	}
	return text
}

// The tools say what they are: complete schemas, honest annotations.
func TestDefinitions(t *testing.T) {
	clocked := []string{"now", "convert", "add", "diff", "parse", "format"} // "09:00" is today's
	for name, session := range servers(t) {
		for tool, err := range session.Tools(context.Background(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			a := tool.Annotations
			harmless := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false), DestructiveHint: new(false)}
			if diff := cmp.Diff(harmless, a, cmpopts.IgnoreFields(mcp.ToolAnnotations{}, "Title", "IdempotentHint")); diff != "" {
				t.Errorf("%s %s: annotations (-want +got)\n%s", name, tool.Name, diff)
			} else if a.IdempotentHint == slices.Contains(clocked, tool.Name) {
				t.Errorf("%s %s: idempotent is %v", name, tool.Name, a.IdempotentHint)
			}
			if tool.Title == "" || tool.Description == "" || tool.OutputSchema == nil {
				t.Errorf("%s %s lacks a title, a description or an output schema", name, tool.Name)
			}
			input, err := json.Marshal(tool.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			var s jsonschema.Schema
			if err := json.Unmarshal(input, &s); err != nil {
				t.Fatal(err)
			}
			if s.AdditionalProperties == nil || s.AdditionalProperties.Not == nil {
				t.Errorf("%s %s takes arguments that it doesn't name", name, tool.Name)
			}
			for p, sub := range s.Properties {
				if sub.Description == "" {
					t.Errorf("%s %s: argument %s has no description", name, tool.Name, p)
				}
			}
		}
	}
}

// Answers meet the output schemas.
func TestAnswersFitTheirSchemas(t *testing.T) {
	sessions := servers(t)
	schemas := map[string]*jsonschema.Resolved{}
	for name, session := range sessions {
		for tool, err := range session.Tools(context.Background(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(tool.OutputSchema)
			var s jsonschema.Schema
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			resolved, err := s.Resolve(nil)
			if err != nil {
				t.Fatal(err)
			}
			schemas[name+" "+tool.Name] = resolved
		}
	}
	checked := map[string]bool{}
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasPrefix(string(f.Data), "error: ") {
				continue
			}
			words := strings.Fields(f.Name)
			name := words[0] + " " + words[1]
			var v any
			if err := json.Unmarshal(f.Data, &v); err != nil {
				t.Fatal(err)
			}
			if err := schemas[name].Validate(v); err != nil {
				t.Errorf("%s answers %s: %v", f.Name, f.Data, err)
			}
			checked[name] = true
		}
	}
	if len(checked) != len(schemas) {
		t.Errorf("%d of %d tools have an answer in testdata", len(checked), len(schemas))
	}
}

func TestUnknownServer(t *testing.T) {
	if _, ok := New("filesystem"); ok {
		t.Error("there is a server that Names doesn't name")
	}
}

// Small arguments that stand for a lot of data are refused before the work is done.
func TestBombs(t *testing.T) {
	sessions := servers(t)
	row := func(server, tool string, arguments map[string]any, want string) {
		t.Helper()
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		got := answer(t, sessions[server], tool, json.RawMessage(raw))
		if !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s %s gives %.200s, want an error with %q", server, tool, got, want)
		}
	}
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	row("utils", "yaml_parse", map[string]any{"text": laughs}, "")
	row("utils", "yaml_parse", map[string]any{"text": "a: &a " + strings.Repeat("x", 100_000) + "\nb:\n" + strings.Repeat("- *a\n", 10_000)}, "too large")
	row("utils", "yaml_parse", map[string]any{"text": "a: &a\n  b: *a\n"}, "contains itself")
	for _, open := range []string{"[", "{a: ", "- ", "? ", "!!seq [", "&a ["} {
		row("utils", "yaml_parse", map[string]any{"text": strings.Repeat(open, 20_000)}, "")
		row("utils", "yaml_parse", map[string]any{"text": strings.Repeat(open, 400) + "x"}, "")
	}
	row("utils", "yaml_parse", map[string]any{"text": "!!int 1" + strings.Repeat("0", 5000)}, "5001 digits")
	deep := json.RawMessage(strings.Repeat("[", 150) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", 150))
	row("utils", "yaml_stringify", map[string]any{"value": deep, "indent": 8}, "more than 8388608 bytes")
	nested := json.RawMessage(strings.Repeat("[", 400) + strings.Repeat("]", 400))
	row("utils", "yaml_stringify", map[string]any{"value": nested}, "nested more than")
	row("utils", "csv_parse", map[string]any{"text": strings.Repeat("h", 100_000) + "\n" + strings.Repeat("x\n", 100_000)}, "more than 8388608 bytes")
	row("utils", "csv_stringify", map[string]any{"rows": json.RawMessage("[" + strings.Repeat("{},", 5_000) + `{"` + strings.Repeat("h", 10) + `":1}]`), "columns": slices.Repeat([]string{"column"}, 2000)}, "more than 8388608 bytes")
	row("utils", "hash", map[string]any{"text": strings.Repeat("x", maxInput)}, "at most 2097152")
	row("time", "format", map[string]any{"time": 0, "pattern": strings.Repeat("%A", 100_000)}, "1,000 bytes")
	row("time", "add", map[string]any{"time": 0, "duration": "999999999d"}, "too long")
	row("time", "parse", map[string]any{"text": strings.Repeat("1", 100_000)}, "too long")
}

// What is written as YAML is read back as the same value.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,null,true,"x","true","1e3","0x1f","~","- a"," lead"]}`, `"line\nbreak"`, `12345678901234567890123`, `{"":{"<<":"x"}}`, `[[],{},""]`, `-0`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		want, err := decode([]byte(raw))
		if err != nil {
			return
		}
		text, err := writeYAML(json.RawMessage(raw), 2)
		if err != nil {
			return
		}
		got, err := readYAML(text, false)
		if err != nil {
			t.Fatalf("reading what was written for %s: %v\n%s", raw, err, text)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			t.Fatalf("%s became %s by way of\n%s", a, b, text)
		}
	})
}

func FuzzReadYAML(f *testing.F) {
	f.Add("a: &x {b: 1}\nc: *x\n<<: *x\n")
	f.Add("? [a]\n: b\n--- !t x\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := readYAML(text, true)
		if err == nil {
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"2026-03-01", "09:00", "1 March 2026 9:00 AM", "Mon, 02 Jan 2006 15:04:05 MST", "1767225600", "P1DT2H", "1d 12h", "%Y-%m"} {
		f.Add(s, s)
	}
	c := clock{now: func() time.Time { return noon }}
	f.Fuzz(func(t *testing.T, s, duration string) {
		at, err := c.readText(s, time.UTC, "dmy")
		if err != nil {
			return
		}
		if d, err := readDuration(duration); err == nil {
			if at, err = d.addTo(at); err != nil {
				return
			}
		}
		// A time that is out of range is an error; any other can be read back.
		v, err := stampOf(at)
		if err != nil {
			return
		}
		again, err := c.readText(v.(stamp).ISO, time.UTC, "")
		if err != nil || !again.Equal(at) {
			t.Fatalf("%q is %s and then %s, %v", s, v.(stamp).ISO, again, err)
		}
	})
}

// What policy is told of the built-in servers is what they list.
func TestKnown(t *testing.T) {
	for name, session := range servers(t) {
		is, ok := Known(name)
		if !ok || is.Name != name {
			t.Errorf("%s is not known: %v", name, is)
		}
		listed, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(listed.Tools) != len(is.Tools) {
			t.Errorf("%s: %d tools are known, %d listed", name, len(is.Tools), len(listed.Tools))
		}
		for _, tool := range listed.Tools {
			var args map[string]any
			for arg := range tool.InputSchema.(map[string]any)["properties"].(map[string]any) {
				if args == nil {
					args = map[string]any{}
				}
				args[arg] = "x"
			}
			reading := is.Tools[tool.Name].Read(args)
			if len(reading.Unknown) > 0 || len(reading.Values) > 0 || !slices.Equal(reading.Tool.Effects, []known.Effect{known.Read}) || reading.Tool.Repeatable != tool.Annotations.IdempotentHint {
				t.Errorf("%s__%s: %+v", name, tool.Name, reading)
			}
		}
	}
	if _, ok := Known("nosuch"); ok {
		t.Error("a server is known that there is not")
	}
}
