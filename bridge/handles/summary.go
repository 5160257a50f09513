package handles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// maxSummary bounds the summary of a result, which must stay small whatever
// the result is made of.
const maxSummary = 16 << 10

// A detail is how much a summary shows.
type detail struct {
	depth int // objects and arrays within one another
	items int // elements of an array
	keys  int // of an object
	chars int // of a text
}

var details = []detail{{3, 3, 24, 200}, {2, 3, 24, 200}, {2, 2, 8, 100}, {1, 2, 24, 80}, {1, 1, 8, 40}, {0, 0, 0, 20}}

// Fit returns a result unchanged if it has at most most bytes. Otherwise it returns a
// summary: the shape, a sample, and a handle to the whole, which keep then holds. If
// keep is nil there is no handle, since no later script could read it.
func Fit(value json.RawMessage, most int, keep *Store) json.RawMessage {
	if len(value) <= most {
		return value
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return json.RawMessage(strconv.Quote("the result is no JSON: " + err.Error()))
	}
	summary := struct {
		Truncated bool   `json:"truncated"`
		Bytes     int    `json:"bytes"`
		Shape     string `json:"shape"`
		Sample    any    `json:"sample"`
		Handle    string `json:"handle,omitempty"`
		Read      string `json:"read"`
	}{
		Truncated: true, Bytes: len(value), Read: fmt.Sprintf("the result is larger than %s; return less of it", canon.Size(most)),
	}
	if keep != nil {
		it := Item{Kind: "result", MIMEType: "application/json", JSON: value}
		if text, ok := tree.(string); ok {
			it.JSON, it.Text = nil, text
		}
		summary.Handle = keep.Put(it).Handle
		summary.Read = fmt.Sprintf("in your next script: await codemode.read(%q, %s)", summary.Handle, quoted(exampleSlice(tree)))
	}
	for i, d := range details {
		summary.Shape, summary.Sample = shape(tree, d.depth), sample(tree, d)
		out, err := canon.JSON(summary)
		if err != nil {
			return json.RawMessage(strconv.Quote("the result could not be summarised: " + err.Error()))
		}
		if len(out) <= min(most, maxSummary) || i == len(details)-1 {
			return out
		}
	}
	return nil // not reached: the last of them is taken as it is
}

// exampleSlice is a path that reads a first part of a large value.
func exampleSlice(tree any) string {
	object, ok := tree.(map[string]any)
	if !ok {
		return "[0:50]"
	}
	largest, most := "", -1
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if list, ok := object[key].([]any); ok && len(list) > most && len(key) <= maxShownKey {
			largest, most = key, len(list)
		}
	}
	switch keys := slices.Sorted(maps.Keys(object)); {
	case most >= 0:
		return pathKey(largest) + "[0:50]"
	case len(keys) == 0 || len(keys[0]) > maxShownKey:
		return ""
	default:
		return pathKey(keys[0])
	}
}

// sample is a small copy of a value: the first elements of its arrays and
// keys of its objects, the start of its texts.
func sample(v any, d detail) any {
	inner := d
	inner.depth--
	switch v := v.(type) {
	case string:
		return canon.Cut(v, d.chars)
	case []any:
		if d.depth == 0 {
			return shape(v, 0)
		}
		out := []any{}
		for _, e := range v[:min(d.items, len(v))] {
			out = append(out, sample(e, inner))
		}
		return out
	case map[string]any:
		if d.depth == 0 {
			return shape(v, 0)
		}
		out := map[string]any{}
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i == d.keys {
				break
			}
			out[canon.Cut(key, maxShownKey)] = sample(v[key], inner)
		}
		return out
	}
	return v
}

// maxShownKey is how much of a key is shown.
const maxShownKey = 80

// shape describes a JSON value in a few words: types and counts, down to a
// depth, never values.
func shape(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number, float64:
		return "number"
	case string:
		return fmt.Sprintf("text of %s characters", canon.Thousands(utf8.RuneCountInString(v)))
	case []any:
		if len(v) == 0 || depth <= 0 {
			return fmt.Sprintf("array of %s", canon.Thousands(len(v)))
		}
		return fmt.Sprintf("array of %s, the first %s", canon.Thousands(len(v)), shape(v[0], depth-1))
	case map[string]any:
		if depth <= 0 {
			return fmt.Sprintf("object with %s keys", canon.Thousands(len(v)))
		}
		return objectShape(v, depth)
	default:
		return "unknown"
	}
}

// objectShape lists an object's keys, in order, with their shapes.
func objectShape(v map[string]any, depth int) string {
	const most = 24
	var parts []string
	for i, key := range slices.Sorted(maps.Keys(v)) {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more keys", len(v)-most))
			break
		}
		parts = append(parts, canon.Cut(key, maxShownKey)+": "+shape(v[key], depth-1))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
