package handles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tree draws a value and texts of it, with white space and escapes of all kinds.
func tree(t *rapid.T, depth int) (any, string) {
	gap := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "gap") }
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch kind {
	case 0:
		n := rapid.IntRange(-5, 5).Draw(t, "n")
		return json.Number(fmt.Sprint(n)), fmt.Sprint(n)
	case 1:
		return nil, "null"
	case 2:
		return drawnText(t)
	case 3:
		all, texts := []any{}, []string{}
		for range rapid.IntRange(0, 5).Draw(t, "elements") {
			v, s := tree(t, depth-1)
			all, texts = append(all, v), append(texts, gap()+s+gap())
		}
		return all, "[" + gap() + strings.Join(texts, ",") + "]"
	default:
		object, texts := map[string]any{}, []string{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			key, name := drawnText(t)
			v, s := tree(t, depth-1)
			object[key.(string)] = v // of two, the last counts
			texts = append(texts, gap()+name+gap()+":"+gap()+s+gap())
		}
		return object, "{" + gap() + strings.Join(texts, ",") + "}"
	}
}

func drawnText(t *rapid.T) (any, string) {
	s := rapid.SampledFrom([]string{"", "a", "b", `q"\`, "é", "]}", ",:", "a\nb"}).Draw(t, "text")
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "escaped") {
		quoted = bytes.ReplaceAll(quoted, []byte("a"), []byte(`\u0061`))
	}
	return s, string(quoted)
}

// walked is the plain way: decode everything, then walk.
func walked(value any, steps []step) (any, bool) {
	for i, st := range steps {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[st.key]
			if !st.isKey || !ok {
				return nil, false
			}
			value = next
		case []any:
			from, to := st.bounds(len(v))
			switch {
			case st.isKey, !st.slice && from >= len(v):
				return nil, false
			case st.slice:
				value = v[from:to]
			default:
				value = v[from]
			}
		case string:
			if st.isKey || !st.slice || i < len(steps)-1 {
				return nil, false
			}
			runes := []rune(v)
			from, to := st.bounds(len(runes))
			value = string(runes[from:to])
		default:
			return nil, false
		}
	}
	return value, true
}

// Walking the text finds what walking the decoded value finds.
func TestWalkOverTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, raw := tree(t, 3)
		var steps []step
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			st := step{from: rapid.IntRange(-6, 6).Draw(t, "from"), to: rapid.IntRange(-6, 6).Draw(t, "to"), slice: rapid.Bool().Draw(t, "slice")}
			st.open = st.slice && rapid.Bool().Draw(t, "open")
			if rapid.Bool().Draw(t, "key") {
				st = step{isKey: true, key: rapid.SampledFrom([]string{"", "a", "b", `q"\`, "é", "]}"}).Draw(t, "which")}
			}
			steps = append(steps, st)
		}
		want, ok := walked(value, steps)
		got, err := pick(json.RawMessage(raw), steps, "")
		if (err == nil) != ok {
			t.Fatalf("%s at %+v: %s, %v; want %v, %v", raw, steps, got, err, want, ok)
		}
		if !ok {
			return
		}
		d := json.NewDecoder(bytes.NewReader(got))
		d.UseNumber()
		var have any
		if err := d.Decode(&have); err != nil || !cmp.Equal(want, have) {
			t.Fatalf("%s at %+v: %s, %v (-want +got)\n%s", raw, steps, got, err, cmp.Diff(want, have))
		}
	})
}

// What is no JSON is an error at most.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{`[1,[2`, `{"a"`, `{"a":1,}`, `[`, `"`, `{]`, ``, ` `, `[1 2]`, `{1:2}`} {
		f.Add(seed, "[0:1].a[-1]")
	}
	h := New(time.Now)
	f.Fuzz(func(t *testing.T, raw, path string) {
		id := h.Put(Item{Kind: "result", JSON: json.RawMessage(raw)}).Handle
		_, _ = h.Read("r1", id, path) // must only not panic or hang
	})
}

// A part of a large value costs little, however often it is read.
func TestReadingAPartKeepsNothing(t *testing.T) {
	racing.Alone(t)
	h := New(time.Now)
	large := "[" + strings.Repeat(`{"a":1},`, 200_000) + `{"a":2}]`
	id := h.Put(Item{Kind: "result", JSON: json.RawMessage(large)}).Handle
	for path, want := range map[string]string{"[0]": `{"a":1}`, "[-1].a": "2", "[199999:]": `[{"a":1},{"a":2}]`} {
		const reads = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range reads {
			if got, err := h.Read("r1", id, path); err != nil || string(got) != want {
				t.Fatalf("%s: %s, %v", path, got, err)
			}
		}
		runtime.ReadMemStats(&after)
		bytes := (after.TotalAlloc - before.TotalAlloc) / reads
		if bytes > 4<<10 {
			t.Errorf("%s allocates %d bytes", path, bytes)
		}
	}
}
