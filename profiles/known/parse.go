package known

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// Parse reads the text of a server's file, JSON with comments. The error says what is
// wrong, and where: its line and column.
func Parse(name string, text []byte) (Server, error) {
	var s Server
	tree, err := hujson.Parse(text)
	if err != nil {
		return s, err // it begins with the line and the column
	}
	if offset, key := unknownKey(&tree, reflect.TypeOf(s)); key != "" {
		return s, located(text, offset, fmt.Sprintf("no such key: %q", key))
	}
	plain := tree.Clone()
	plain.Standardize()
	if err := json.Unmarshal(plain.Pack(), &s); err != nil { // comments became as many spaces
		offset := 0
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			offset = int(wrong.Offset) - 1 // of the value's last byte
		}
		return s, located(text, offset, strings.TrimPrefix(err.Error(), "json: "))
	}
	s.Name = name
	if m := s.check(); m != nil {
		return s, located(text, m.find(&tree), m.String())
	}
	return s, nil
}

// located returns an error about what stands at an offset of text.
func located(text []byte, offset int, what string) error {
	before := text[:min(max(offset, 0), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	return fmt.Errorf("line %d, column %d: %s", line, column, what)
}

// unknownKey returns the first key that the Go type has no field for, and where it
// stands; an empty one if there is none.
func unknownKey(v *hujson.Value, t reflect.Type) (offset int, key string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := v.Value.(type) {
	case *hujson.Object:
		for i := range value.Members {
			m := &value.Members[i]
			name := m.Name.Value.(hujson.Literal).String()
			var inner reflect.Type
			switch t.Kind() {
			case reflect.Map:
				inner = t.Elem()
			case reflect.Struct:
				f, ok := fieldFor(t, name)
				if !ok {
					return m.Name.StartOffset, name
				}
				inner = f.Type
			default:
				return 0, "" // of another type than it must be, as the decoder will say
			}
			if offset, key := unknownKey(&m.Value, inner); key != "" {
				return offset, key
			}
		}
	case *hujson.Array:
		for i := range value.Elements {
			if t.Kind() != reflect.Slice {
				return 0, ""
			}
			if offset, key := unknownKey(&value.Elements[i], t.Elem()); key != "" {
				return offset, key
			}
		}
	}
	return 0, ""
}

func fieldFor(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == key && name != "-" {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}
