package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
		{"audio", get("audio") + `return [v.text, v.media.length, v.media[0].kind, v.media[0].mimeType, v.media[0].size]`, `["",1,"audio","audio/wav",5]`},
		{"a resource, read by slice", get("resource") + `const [h] = v.media; return [v.text, h.uri, h.size, await codemode.read(h, "[0:5]"), await codemode.read(h.handle, "[-4:]")]`, `["see","file:///a",13,"grüße","welt"]`},
		{"a blob, as base64", get("blob") + `const [h] = v.media; return [h.size, atob(await codemode.read(h))]`, `[5,"hello"]`},
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

// A run that is resumed sees the sizes that it was told, also where an earlier
// program wrote them.
func TestAResumedRunKeepsItsSizes(t *testing.T) {
	f := newFleet()
	first := f.bridge(t, "one", queued())
	first.up.tools["b__echo"] = func(context.Context, json.RawMessage) (string, error) {
		return `{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]}`, nil
	}
	id := f.startPaused(t, first, `const {media: [h]} = await codemode.b__echo({}); await codemode.a__echo({}); return h.size`, 1)
	waitUntil(t, func() bool { r, ok := first.roster.lookup(id); return ok && r.quiet() })
	first.Close(0)
	f.answer(t, f.open(t, 1)[0], yes)
	second := f.bridge(t, "two", queued(), func(o *Options) {
		o.Journal = rewritten{Journal: f.records, from: `"size":5`, to: `"size":8`}
	})
	res, err := second.Resume(t.Context(), id, "the test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if out := string(res.StructuredContent.(json.RawMessage)); !strings.Contains(out, `"result":8`) {
		t.Errorf("it was told 8, and answers %s", out)
	}
}

// A rewritten store reads journals with another text in the place of one.
type rewritten struct {
	ledger.Journal
	from, to string
}

func (s rewritten) Read(ctx context.Context, run string) (ledger.JournaledRun, []ledger.JournalEntry, error) {
	kept, entries, err := s.Journal.Read(ctx, run)
	for i := range entries {
		entries[i].Body = bytes.ReplaceAll(entries[i].Body, []byte(s.from), []byte(s.to))
	}
	return kept, entries, err
}
