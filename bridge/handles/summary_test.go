package handles

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"

	"pgregory.net/rapid"
)

// A summary is small whatever the result is made of, and the path that it
// names as an example can be read.
func TestSummariesAreSmall(t *testing.T) {
	racing.Alone(t)
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
			store := New(time.Now)
			out := Fit(value, limit, store)
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
			if _, err := store.Read("r1", sum.Handle, plain); err != nil {
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
		h := New(time.Now)
		id := h.Put(Item{Kind: "result", JSON: value}).Handle
		got, err := h.Read("r1", id, pathKey(key))
		if err != nil || string(got) != `"found"` {
			t.Fatalf("path %s of key %q: %s, %v", pathKey(key), key, got, err)
		}
	})
}
