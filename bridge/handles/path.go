package handles

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
)

// A step of a path: a key, an index, or a slice.
type step struct {
	key      string
	isKey    bool
	from, to int // of a slice; index: from only
	slice    bool
	open     bool // the slice has no end
}

// parsePath reads a path such as items[0:50].title, ["odd key"][3] or [-10:].
func parsePath(path string) ([]step, error) {
	var steps []step
	bad := func(at int, why string) error {
		return fmt.Errorf("path %q, character %d: %s", path, at+1, why)
	}
	for i := 0; i < len(path); {
		switch {
		case path[i] == '.' && i > 0 && i+1 < len(path) && path[i+1] != '[':
			i++
			fallthrough
		case i == 0 && path[i] != '[' && path[i] != '.':
			end := i + strings.IndexAny(path[i:], ".[")
			if end < i {
				end = len(path)
			}
			if end == i {
				return nil, bad(i, "a name is missing")
			}
			steps = append(steps, step{key: path[i:end], isKey: true})
			i = end
		case path[i] == '[' && i+1 < len(path) && path[i+1] == '"':
			quoted, err := strconv.QuotedPrefix(path[i+1:])
			if err != nil || !strings.HasPrefix(path[i+1+len(quoted):], "]") {
				return nil, bad(i, `a key in brackets is written ["like this"]`)
			}
			var key string
			if json.Unmarshal([]byte(quoted), &key) != nil {
				return nil, bad(i, "the key is no JSON string")
			}
			steps = append(steps, step{key: key, isKey: true})
			i += len(quoted) + 2
		case path[i] == '[':
			end := strings.IndexByte(path[i:], ']')
			if end < 0 {
				return nil, bad(i, "the bracket is not closed")
			}
			s, err := parseSlice(path[i+1 : i+end])
			if err != nil {
				return nil, bad(i, err.Error())
			}
			steps = append(steps, s)
			i += end + 1
		default:
			return nil, bad(i, `a path is written like items[0:50].title`)
		}
	}
	return steps, nil
}

// parseSlice reads what stands between brackets: 3, 0:50, :10, -10: or :.
func parseSlice(s string) (step, error) {
	from, to, slice := strings.Cut(s, ":")
	st := step{slice: slice}
	var err error
	if from = strings.TrimSpace(from); from != "" || !slice {
		if st.from, err = strconv.Atoi(from); err != nil {
			return st, errors.New("an index is a whole number, a slice two of them: [0:50]")
		}
	}
	if to = strings.TrimSpace(to); to == "" {
		st.open = true
	} else if st.to, err = strconv.Atoi(to); err != nil {
		return st, errors.New("a slice ends with a whole number: [0:50]")
	}
	return st, nil
}

// bounds are the slice's ends within n elements; negative ones count from the
// end, as in JavaScript.
func (st step) bounds(n int) (from, to int) {
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	from, to = clip(st.from), n
	if !st.open {
		to = max(from, clip(st.to))
	}
	return from, to
}

// pathKey writes a key as the beginning of a path.
func pathKey(key string) string {
	if key == "" || strings.ContainsAny(key, `.["\`) || canon.Escape(key) != key {
		return "[" + quoted(key) + "]"
	}
	return key
}

// quoted is a string as JSON and JavaScript write it.
func quoted(text string) string {
	b, err := canon.JSON(text)
	if err != nil {
		return `""` // a string has a JSON form
	}
	return string(b)
}
