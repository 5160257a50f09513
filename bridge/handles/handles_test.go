package handles

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestReadByPath(t *testing.T) {
	h := New(time.Now)
	object := h.Put(Item{Kind: "result", JSON: json.RawMessage(`{"items":[{"n":12345678901234567890},{"n":2}],"odd key":{"a.b":"héllo"},"s":"<&>"}`)}).Handle
	plain := h.Put(Item{Kind: "resource", MIMEType: "text/plain", Text: "héllo world"}).Handle
	for _, row := range []struct{ handle, path, want, err string }{
		{object, "items[0].n", "12345678901234567890", ""},
		{object, "items[-1:]", `[{"n":2}]`, ""},
		{object, "items[5:9]", `[]`, ""},
		{object, `["odd key"]["a.b"][0:2]`, `"hé"`, ""},
		{object, "s", `"<&>"`, ""},
		{plain, "[0:5]", `"héllo"`, ""},
		{plain, "", `"héllo world"`, ""},
		{object, "items[7]", "", "has 2 elements and no [7]"},
		{object, "nope", "", `has no "nope"`},
		{object, "items.n", "", "array of 2"},
		{object, "items[a]", "", "whole number"},
		{object, "items[0", "", "not closed"},
		{object, "items..n", "", "a name is missing"},
		{object, "s.x", "", `and has no "x"`},
		{plain, "[3]", "", "with a slice"},
		{"h99", "", "", "no handle"},
	} {
		got, err := h.Read(row.handle, row.path)
		switch {
		case row.err == "" && (err != nil || string(got) != row.want):
			t.Errorf("%s %q: got %s, %v; want %s", row.handle, row.path, got, err, row.want)
		case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
			t.Errorf("%s %q: got %s, %v; want an error with %q", row.handle, row.path, got, err, row.err)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"a.b[0:5]", `["x"][1]`, "[", "..", `["\`, "a[-1:].b"} {
		f.Add(seed)
	}
	h := New(time.Now)
	id := h.Put(Item{Kind: "result", JSON: json.RawMessage(`{"a":{"b":[1,2,{"c":"d"}]}}`)}).Handle
	f.Fuzz(func(t *testing.T, path string) {
		if out, err := h.Read(id, path); err == nil && !json.Valid(out) {
			t.Errorf("path %q reads %q, which is no JSON", path, out)
		}
	})
}

func TestHandlesMakeRoomAndExpire(t *testing.T) {
	now := time.Unix(0, 0)
	h := New(func() time.Time { return now })
	first := h.Put(Item{Kind: "result", Text: strings.Repeat("x", maxBytes/2)}).Handle
	second := h.Put(Item{Kind: "result", Text: strings.Repeat("y", maxBytes/2+1)}).Handle
	if _, err := h.find(first); err == nil {
		t.Error("the oldest did not make room")
	}
	if _, err := h.find(second); err != nil {
		t.Errorf("the newest is gone: %v", err)
	}
	now = now.Add(lifetime + time.Second)
	if _, err := h.find(second); err == nil {
		t.Error("a handle outlived its time")
	}
}

// A handle's size is that of the content, however its base64 is written.
func TestSizeIsOfTheContent(t *testing.T) {
	h := New(time.Now)
	for n := range 7 {
		content := strings.Repeat("x", n)
		encoded := base64.StdEncoding.EncodeToString([]byte(content))
		for _, it := range []Item{
			{Text: content},
			{Text: encoded, Base64: true},
			{Text: strings.TrimRight(encoded, "="), Base64: true},
			{Text: strings.Join(strings.SplitAfter(encoded, "x4"), "\r\n") + "\n", Base64: true},
		} {
			if got := h.Put(it).Size; got != n {
				t.Errorf("%q (base64 %v) has %d bytes, want %d", it.Text, it.Base64, got, n)
			}
		}
	}
}
