package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"
)

// A summary is small whatever the result is made of, and the path that it
// names as an example can be read.
func TestSummariesAreSmall(t *testing.T) {
	wide := func(depth int) any { return nil }
	wide = func(depth int) any {
		if depth == 0 {
			return strings.Repeat("text ", 100)
		}
		object := map[string]any{}
		for i := range 24 {
			object[fmt.Sprintf("key%02d", i)] = wide(depth - 1)
		}
		return object
	}
	long := strings.Repeat("k", 5000)
	for _, row := range []struct {
		what   string
		result any
		read   string
	}{
		{"objects in objects", wide(3), `"key00"`},
		{"long keys", map[string]any{long: strings.Repeat("x", 90_000)}, `""`},
		{"a long key and a list", map[string]any{long: []any{1}, "a": make([]any, 50_000)}, `"a[0:50]"`},
		{"odd keys", map[string]any{`a.b["c"]`: make([]any, 50_000)}, `"[\"a.b[\\\"c\\\"]\"][0:50]"`},
		{"hidden characters", map[string]any{"a\u202eb\U000e0041": make([]any, 50_000)}, ``},
		{"an empty key", map[string]any{"": strings.Repeat("x", 90_000)}, `"[\"\"]"`},
		{"a text", strings.Repeat("grüße ", 20_000), `"[0:50]"`},
		{"lists in lists", []any{[]any{[]any{strings.Repeat("x", 90_000)}}}, `"[0:50]"`},
	} {
		value, err := json.Marshal(row.result)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{64 << 10, 1 << 10} {
			r := &run{maxResult: limit, session: &session{handles: newHandles(time.Now)}}
			out := r.fit(value)
			var sum struct{ Shape, Handle, Read string }
			if err := json.Unmarshal(out, &sum); err != nil {
				t.Fatalf("%s: %v in %s", row.what, err, out)
			}
			if len(out) > min(limit, maxSummary) {
				t.Errorf("%s: a summary of %d bytes where %d are allowed", row.what, len(out), limit)
			}
			_, path, _ := strings.Cut(sum.Read, ", ")
			path = strings.TrimSuffix(path, ")")
			if row.read != "" && path != row.read {
				t.Errorf("%s: to be read by %s, want %s", row.what, path, row.read)
			}
			var plain string
			if err := json.Unmarshal([]byte(path), &plain); err != nil {
				t.Fatalf("%s: %v in %s", row.what, err, path)
			}
			if _, err := r.session.handles.read(sum.Handle, plain); err != nil {
				t.Errorf("%s: reading %s: %v", row.what, path, err)
			}
		}
	}
}

// Any key can be written as a path and is found by it.
func TestPathKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		value, err := json.Marshal(map[string]any{key: "found"})
		if err != nil {
			t.Fatal(err)
		}
		h := newHandles(time.Now)
		id := h.put("result", "", "", jsonItem(value), nil).Handle
		got, err := h.read(id, pathKey(key))
		if err != nil || string(got) != `"found"` {
			t.Fatalf("path %s of key %q: %s, %v", pathKey(key), key, got, err)
		}
	})
}

// What a call resolves to, by the kinds of content in the answer.
func TestValuesOfAnswers(t *testing.T) {
	answers := map[string]string{
		"structured": `{"content":[{"type":"text","text":"seven"}],"structuredContent":{"n":7}}`,
		"scalar":     `{"content":[],"structuredContent":12345678901234567890}`,
		"nothing":    `{"content":[],"structuredContent":null}`,
		"lines":      `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		"json":       `{"content":[{"type":"text","text":"{\"n\":7}"}]}`,
		"audio":      `{"content":[{"type":"audio","data":"aGVsbG8=","mimeType":"audio/wav"}]}`,
		"resource":   `{"content":[{"type":"text","text":"see"},{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"grüße, welt"}}]}`,
		"blob":       `{"content":[{"type":"resource","resource":{"uri":"file:///b","blob":"aGVsbG8="}}]}`,
		"link":       `{"content":[{"type":"resource_link","uri":"file:///c","name":"c","mimeType":"text/plain"}]}`,
		"failed":     `{"isError":true,"content":[{"type":"text","text":"no ink"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]}`,
	}
	b := newBench(t, profiles.Spec{})
	b.up.tools["a__echo"] = func(_ context.Context, args json.RawMessage) (string, error) {
		var which struct{ Kind string }
		if err := json.Unmarshal(args, &which); err != nil {
			return "", err
		}
		return answers[which.Kind], nil
	}
	c := b.connect(t, nil)
	get := func(kind string) string { return `const v = await codemode.a__echo({kind: "` + kind + `"}); ` }
	for _, row := range []struct{ what, code, want string }{
		{"structured content", get("structured") + `return v.n`, "7"},
		{"an exact integer", get("scalar") + `return [typeof v, String(v)]`, `["bigint","12345678901234567890"]`},
		{"nothing", get("nothing") + `return v`, `""`},
		{"texts", get("lines") + `return v`, `"a\nb"`},
		{"text that is JSON stays text", get("json") + `return [typeof v, json(v).n]`, `["string",7]`},
		{"audio", get("audio") + `return [v.text, v.media.length, v.media[0].kind, v.media[0].mimeType, v.media[0].size]`, `["",1,"audio","audio/wav",8]`},
		{"a resource, read by slice", get("resource") + `const [h] = v.media; return [v.text, h.uri, h.size, await codemode.read(h, "[0:5]"), await codemode.read(h.handle, "[-4:]")]`, `["see","file:///a",13,"grüße","welt"]`},
		{"a blob, as base64", get("blob") + `return atob(await codemode.read(v.media[0]))`, `"hello"`},
		{"a link is not fetched", get("link") + `return v.media`, `[{"kind":"resource_link","mimeType":"text/plain","name":"c","uri":"file:///c"}]`},
		{"a path into text", get("resource") + `return await codemode.read(v.media[0], "a.b")`, "Error: codemode.read: the value is text"},
		{"raw is the whole", `const r = await codemode.raw("a__echo", {kind: "structured"}); return [r.content[0].text, r.structuredContent.n]`, `["seven",7]`},
		{"media of a failure", `try { ` + get("failed") + `} catch (e) { return [e.name, e.message, e.content[1].kind, await codemode.read(e.content[1])] }`, `["ToolError","no ink","image","aGVsbG8="]`},
		{"no such handle", `return await codemode.read("h99")`, `Error: codemode.read: there is no handle "h99"`},
		{"no handle at all", `return await codemode.read(7)`, "Error: codemode.read: "},
		{"emit of a result's handle", get("link") + `await emit(v.media[0])`, "Error: emit: it takes a handle, or an image"},
		{"emit of text", `await emit({type: "text", text: "x"})`, "Error: emit: it takes a handle, or an image"},
		{"emit too often", get("audio") + `for (let i = 0; i < 33; i++) await emit(v.media[0])`, "Error: emit: an answer carries at most 32 pieces of media"},
	} {
		if got := eval(t, c, row.code); got != row.want && !(strings.HasPrefix(row.want, "Error") && strings.HasPrefix(got, row.want)) {
			t.Errorf("%s:\ngot  %s\nwant %s", row.what, got, row.want)
		}
	}
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": get("audio") + `emit(v.media[0]); ` + strings.Replace(get("resource"), "v", "w", 1) + `emit(w.media[0])`}})
	if err != nil || len(res.Content) != 3 {
		t.Fatalf("emitted: %+v, %v", res, err)
	}
	if audio, ok := res.Content[1].(*mcp.AudioContent); !ok || string(audio.Data) != "hello" {
		t.Errorf("the first: %+v", res.Content[1])
	}
	if text, ok := res.Content[2].(*mcp.EmbeddedResource); !ok || text.Resource.Text != "grüße, welt" {
		t.Errorf("the second: %+v", res.Content[2])
	}
}
