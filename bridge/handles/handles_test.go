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
		got, err := h.Read("r1", row.handle, row.path)
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
		if out, err := h.Read("r1", id, path); err == nil && !json.Valid(out) {
			t.Errorf("path %q reads %q, which is no JSON", path, out)
		}
	})
}

func TestHandlesMakeRoomAndExpire(t *testing.T) {
	now := time.Unix(0, 0)
	h := New(func() time.Time { return now })
	first := h.Put(Item{Kind: "result", Text: strings.Repeat("x", maxBytes/2)}).Handle
	second := h.Put(Item{Kind: "result", Text: strings.Repeat("y", maxBytes/2+1)}).Handle
	if _, err := h.find("r1", first); err == nil {
		t.Error("the oldest did not make room")
	}
	if _, err := h.find("r1", second); err != nil {
		t.Errorf("the newest is gone: %v", err)
	}
	now = now.Add(lifetime + time.Second)
	if _, err := h.find("r1", second); err == nil {
		t.Error("a handle outlived its time")
	}
}

// Handles can be guessed. Before the call that made one is recorded, its own run alone has
// it; and nobody has it if that fails.
func TestHandlesOfWhatIsNotRecorded(t *testing.T) {
	image := json.RawMessage(`{"type":"image","data":"eA==","mimeType":"image/png"}`)
	for _, recorded := range []bool{true, false} {
		h := New(time.Now)
		before := h.Put(Item{Text: "before"}).Handle
		on, other := h.Shelf("r1"), h.Shelf("r2")
		made := on.Put(Item{Text: "made", Block: image}).Handle
		others := other.Put(Item{Text: "other's"}).Handle
		has := func(when, run, handle string, want bool) {
			t.Helper()
			_, err := h.Read(run, handle, "")
			_, emits := h.Content(run, json.RawMessage(`"`+handle+`"`))
			if (err == nil) != want || handle == made && (emits == nil) != want {
				t.Errorf("recorded %v: %s, %s has %s: %v, %v; want %v", recorded, when, run, handle, err, emits, want)
			}
		}
		has("before", "r1", made, true)
		has("before", "r2", made, false)
		has("before", "r2", before, true)
		h.Settle(on.Made, recorded)
		has("after", "r1", made, recorded)
		has("after", "r2", made, recorded)
		has("after", "r1", others, false)
		has("after", "r1", before, true)
		h.Settle(on.Made, false) // it is settled
		has("told again", "r2", made, recorded)
		if want := len("before"+"other's") + map[bool]int{true: len("made") + len(image)}[recorded]; h.bytes != want {
			t.Errorf("recorded %v: %d bytes, want %d", recorded, h.bytes, want)
		}
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
