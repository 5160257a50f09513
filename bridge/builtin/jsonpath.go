package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ohler55/ojg/jp"
)

// maxSteps bounds the values that a path looks at. The parser of paths is
// ojg's; the walk is ours, for that of the library has no bound, and two ".."
// on a large document take minutes.
const maxSteps = 1_000_000

// query gives the values that path selects, in document order, with members
// of objects sorted by name.
func query(raw json.RawMessage, path string) ([]any, error) {
	if len(path) > 1000 {
		return nil, errors.New("the path has more than 1,000 bytes")
	}
	// A regular expression runs in the bridge's own process, and nothing
	// could stop it in the middle of a long text.
	for _, word := range []string{"=~", "~=", "match(", "search("} {
		if strings.Contains(path, word) {
			return nil, fmt.Errorf("regular expressions (%s) are not supported in a path: select with jsonpath, then filter in the script", word)
		}
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("reading json: %w", err)
	}
	if text, ok := v.(string); ok {
		// A tool's answer is often JSON in a text.
		if inner, err := decode([]byte(text)); err == nil {
			v = inner
		}
	}
	v = filterable(v)
	expr, err := jp.ParseString(path)
	if err != nil {
		return nil, fmt.Errorf("reading path %q: %w", cut(path), err)
	}
	w := walker{}
	found := []any{v}
	for _, frag := range expr {
		next := []any{}
		for _, node := range found {
			if next, err = w.step(next, node, frag); err != nil {
				return nil, err
			}
		}
		found = next
	}
	// A value comes again in all that contain it, so what was found may be
	// many times as large as the document.
	left := maxOutput
	for _, v := range found {
		if weigh(v, &left); left < 0 {
			return nil, fmt.Errorf("the values have more than %d bytes: make the path narrower", maxOutput)
		}
	}
	return found, nil
}

// weigh takes about the length of v as JSON off left, and stops when that is
// used up.
func weigh(v any, left *int) {
	*left -= 4
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case json.Number:
		*left -= len(v)
	case []any:
		for i := 0; i < len(v) && *left >= 0; i++ {
			weigh(v[i], left)
		}
	case map[string]any:
		for k, e := range v {
			if *left -= len(k); *left < 0 {
				return
			}
			weigh(e, left)
		}
	}
}

// filterable replaces the numbers that filters can compare by what ojg
// compares: int64 and float64. Others stay exact and compare with nothing.
func filterable(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return v
		}
		if short := strconv.FormatFloat(f, 'f', -1, 64); short == v.String() {
			return f
		}
		return v
	case []any:
		for i := range v {
			v[i] = filterable(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = filterable(v[k])
		}
	}
	return v
}

type walker struct{ steps int }

// children are the elements or members of v.
func children(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		out := make([]any, len(keys))
		for i, k := range keys {
			out[i] = v[k]
		}
		return out
	}
	return nil
}

func (w *walker) count(n int) error {
	if w.steps += n; w.steps > maxSteps {
		return fmt.Errorf("the path looks at more than %d values: make it narrower", maxSteps)
	}
	return nil
}

// step appends what one fragment of the path selects in v.
func (w *walker) step(out []any, v any, frag jp.Frag) ([]any, error) {
	if err := w.count(1); err != nil {
		return nil, err
	}
	switch f := frag.(type) {
	case jp.Root, jp.At, jp.Bracket:
		return append(out, v), nil
	case jp.Child:
		if m, ok := v.(map[string]any); ok {
			if e, ok := m[string(f)]; ok {
				return append(out, e), nil
			}
		}
		return out, nil
	case jp.Nth:
		return at(out, v, int(f)), nil
	case jp.Wildcard:
		c := children(v)
		return append(out, c...), w.count(len(c))
	case jp.Descent:
		return w.descend(out, v)
	case jp.Union:
		for _, u := range f {
			switch u := u.(type) {
			case string:
				if m, ok := v.(map[string]any); ok {
					if e, ok := m[u]; ok {
						out = append(out, e)
					}
				}
			case int64:
				out = at(out, v, int(u))
			case int:
				out = at(out, v, u)
			}
		}
		return out, w.count(len(f))
	case jp.Slice:
		return w.slice(out, v, f)
	case *jp.Filter:
		if !plainFilter(f.String()) {
			return nil, fmt.Errorf("a filter may use paths like @.name and @.list[0] only, not %q", cut(f.String()))
		}
		c := children(v)
		if err := w.count(4 * len(c)); err != nil {
			return nil, err
		}
		for _, e := range c {
			if f.Match(e) {
				out = append(out, e)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("%q is not supported in a path", string(frag.Append(nil, true, false)))
}

func at(out []any, v any, i int) []any {
	if l, ok := v.([]any); ok {
		if i < 0 {
			i += len(l)
		}
		if i >= 0 && i < len(l) {
			return append(out, l[i])
		}
	}
	return out
}

// descend appends v and all that it contains.
func (w *walker) descend(out []any, v any) ([]any, error) {
	if err := w.count(1); err != nil {
		return nil, err
	}
	out = append(out, v)
	for _, c := range children(v) {
		var err error
		if out, err = w.descend(out, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// slice is [start:end:step] of RFC 9535, section 2.3.4.2.
func (w *walker) slice(out []any, v any, f jp.Slice) ([]any, error) {
	l, ok := v.([]any)
	if !ok {
		return out, nil
	}
	const unset = jp.SliceNotSet
	start, end, step := f[0], f[1], f[2]
	if step == unset {
		step = 1
	}
	if step == 0 {
		return out, nil
	}
	n := len(l)
	bound := func(i, low, high int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	if step > 0 {
		if start == unset {
			start = 0
		}
		for i := bound(start, 0, n); i < bound(end, 0, n); i += min(step, n+1) {
			out = append(out, l[i])
		}
	} else {
		if start == unset {
			start = n - 1
		}
		last := -1
		if end != unset {
			last = bound(end, -1, n-1)
		}
		for i := bound(start, -1, n-1); i > last; i += max(step, -n-1) {
			out = append(out, l[i])
		}
	}
	return out, w.count(n)
}

// plainFilter reports whether the work of a filter, as ojg writes it, stays at
// the element: whether none of its paths starts at the root, descends or fans
// out. (Filter.Inspect, which would tell by structure, panics on [?(@.a)].)
func plainFilter(text string) bool {
	text = strings.TrimPrefix(text, "[?")
	var last, before byte // the last two characters but for spaces
	for i := 0; i < len(text); i++ {
		c := text[i]
		// Strings, and regular expressions, which follow "~=" or "=~".
		matching := before == '~' && last == '=' || before == '=' && last == '~'
		if c == '\'' || c == '"' || c == '/' && matching {
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			before, last = last, c
			continue
		}
		if c == '$' || c == '*' || c == '?' || c == '.' && last == '.' {
			return false
		}
		if c != ' ' {
			before, last = last, c
		}
	}
	return true
}
