package handles

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// pick walks along steps through a kept value and returns what is there. It works on
// the JSON text itself: a script may read parts of a large value a thousand times,
// and must not pay each time for decoding the whole.
func pick(value json.RawMessage, steps []step, at string) (json.RawMessage, error) {
	for ; len(steps) > 0; steps = steps[1:] {
		st := steps[0]
		where := at
		if where == "" {
			where = "the value"
		}
		value = trimJSON(value)
		var err error
		switch {
		case len(value) == 0:
			err = errNotJSON
		case st.isKey && value[0] != '{':
			err = fmt.Errorf("%s is %s and has no %q", where, outline(value), st.key)
		case st.isKey:
			value, err = member(value, st.key, where)
			at = strings.TrimPrefix(at+"."+st.key, ".")
		case value[0] == '[' && st.slice:
			value, err = slice(value, st)
			at += "[:]"
		case value[0] == '[':
			value, err = element(value, st, where)
			at = fmt.Sprintf("%s[%d]", at, st.from)
		case value[0] != '"':
			err = fmt.Errorf("%s is %s and has no elements", where, outline(value))
		case !st.slice || len(steps) > 1:
			err = fmt.Errorf("%s is text: read a part of it with a slice such as [0:1000]", where)
		default:
			var text string
			if err = json.Unmarshal(value, &text); err == nil {
				return canon.JSON(part(text, st))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return value[:len(value):len(value)], nil // nobody appends to what is kept
}

var errNotJSON = errors.New("the kept value is no JSON")

// part is a slice of a text, counted in characters.
func part(text string, st step) string {
	from, to := st.bounds(utf8.RuneCountInString(text))
	start, end, n := len(text), len(text), 0
	for i := range text {
		if n == from {
			start = i
		}
		if n == to {
			end = i
			break
		}
		n++
	}
	return text[min(start, end):end]
}

// member returns the value of a key; if the key occurs twice, the last.
func member(object []byte, key, where string) (json.RawMessage, error) {
	var found json.RawMessage
	err := each(object, func(name, value []byte) error {
		if string(name[1:len(name)-1]) != key {
			if !strings.Contains(string(name), `\`) {
				return nil
			}
			var text string
			if json.Unmarshal(name, &text) != nil || text != key {
				return nil
			}
		}
		found = value
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("%s has no %q; it is %s", where, key, outline(object))
	}
	return found, err
}

// element returns one element of an array.
func element(array []byte, st step, where string) (json.RawMessage, error) {
	n, err := length(array)
	if err != nil {
		return nil, err
	}
	from, _ := st.bounds(n)
	if from >= n {
		return nil, fmt.Errorf("%s has %d elements and no [%d]", where, n, st.from)
	}
	var found json.RawMessage
	i := 0
	err = each(array, func(_, value []byte) error {
		if i == from {
			found = value
			return errEnough
		}
		i++
		return nil
	})
	return found, err
}

// slice returns a part of an array, as an array.
func slice(array []byte, st step) (json.RawMessage, error) {
	n, err := length(array)
	if err != nil {
		return nil, err
	}
	from, to := st.bounds(n)
	var first, last []byte
	i := 0
	err = each(array, func(_, value []byte) error {
		if i == from {
			first = value
		}
		if i == to {
			return errEnough
		}
		last = value
		i++
		return nil
	})
	if err != nil || from >= to {
		return json.RawMessage("[]"), err
	}
	// Both point into the array, with the other elements between them.
	start, end := cap(array)-cap(first), cap(array)-cap(last)+len(last)
	out := make(json.RawMessage, 0, end-start+2)
	return append(append(append(out, '['), array[start:end]...), ']'), nil
}

// length counts the elements of an array.
func length(array []byte) (n int, err error) {
	err = each(array, func(_, _ []byte) error { n++; return nil })
	return n, err
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// each calls f with every value of an array or object, and its key as JSON in
// an object.
func each(value []byte, f func(name, value []byte) error) error {
	object := value[0] == '{'
	i := space(value, 1)
	for i < len(value) && value[i] != ']' && value[i] != '}' {
		var name []byte
		if object {
			end := skip(value, i)
			if end < 0 || value[i] != '"' {
				return errNotJSON
			}
			name = value[i:end]
			if i = space(value, end); i >= len(value) || value[i] != ':' {
				return errNotJSON
			}
			i = space(value, i+1)
		}
		end := skip(value, i)
		if end < 0 {
			return errNotJSON
		}
		switch err := f(name, value[i:end]); {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		}
		if i = space(value, end); i < len(value) && value[i] == ',' {
			i = space(value, i+1)
		}
	}
	if i >= len(value) {
		return errNotJSON
	}
	return nil
}

// skip returns where the value that begins at i ends; negative if it does not.
func skip(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			if i = skipText(data, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default: // a number or a word
			for i < len(data) && !strings.ContainsRune(",:]} \t\n\r", rune(data[i])) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return -1
}

func skipText(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// space returns where the white space at i ends.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

func trimJSON(data []byte) []byte {
	data = data[space(data, 0):]
	for len(data) > 0 && space(data, len(data)-1) == len(data) {
		data = data[:len(data)-1]
	}
	return data
}

// outline says what a value is, for an error: of a large value only the kind.
func outline(value []byte) string {
	const small = 64 << 10
	if len(value) > small {
		switch value[0] {
		case '[':
			if n, err := length(value); err == nil {
				return fmt.Sprintf("an array of %d", n)
			}
		case '{':
			return "a large object"
		case '"':
			return "text"
		}
	}
	var tree any
	if json.Unmarshal(value, &tree) != nil {
		return "no JSON"
	}
	return shape(tree, 1)
}
