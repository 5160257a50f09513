// Package jsonc edits configurations: JSON with comments, which stay, as does the order
// of keys.
package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// A Text is a value as it is to be written, with its comments. They are lost if
// Insert has to make the object or list around it.
type Text []byte

// MarshalJSON returns the value without its comments.
func (j Text) MarshalJSON() ([]byte, error) { return hujson.Standardize(bytes.Clone(j)) }

// Insert returns the text of a configuration with a value added at a JSON
// pointer; its comments and the order of its keys stay as they are. A missing
// object or list on the way is made; "-" is the end of a list. It is an error if
// the value is there already. The result is not checked: parse it before use.
func Insert(text []byte, pointer string, value any) ([]byte, error) {
	tree, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	path := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, key := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
	}
	at, depth := &tree, 0
	for ; depth < len(path); depth++ {
		next := step(at, path[depth])
		if next == nil {
			break
		}
		at = next
	}
	if depth == len(path) {
		return nil, fmt.Errorf("the configuration has %s already", pointer)
	}
	for i := len(path) - 1; i > depth; i-- { // what is missing on the way
		if path[i] == "-" {
			value = []any{value}
		} else {
			value = map[string]any{path[i]: value}
		}
	}
	indent := strings.Repeat("  ", depth)
	member, err := valueText(value, indent+"  ")
	if err != nil {
		return nil, err
	}
	switch c := at.Value.(type) {
	case *hujson.Object:
		name := hujson.Value{Value: hujson.String(path[depth])}
		member.BeforeExtra = hujson.Extra(" ")
		name.BeforeExtra, c.AfterExtra = gap(len(c.Members) == 0, c.AfterExtra, indent)
		if n := len(c.Members); n > 0 && c.Members[n-1].Value.AfterExtra != nil {
			member.AfterExtra = hujson.Extra{} // a comma at the end, as before
		}
		c.Members = append(c.Members, hujson.ObjectMember{Name: name, Value: member})
	case *hujson.Array:
		if path[depth] != "-" {
			return nil, fmt.Errorf("%s is not in the configuration", pointer)
		}
		if n := len(c.Elements); n > 0 && c.Elements[n-1].AfterExtra != nil {
			member.AfterExtra = hujson.Extra{}
		}
		member.BeforeExtra, c.AfterExtra = gap(len(c.Elements) == 0, c.AfterExtra, indent)
		c.Elements = append(c.Elements, member)
	default:
		return nil, fmt.Errorf("/%s is not an object or list in the configuration", strings.Join(path[:depth], "/"))
	}
	return tree.Pack(), nil
}

// gap returns what stands before a new last element, and what before the closing
// bracket after it. Extra is what stood before that bracket until now: comments in
// it stay with what they follow.
func gap(first bool, extra hujson.Extra, indent string) (before, after hujson.Extra) {
	kept := strings.TrimRight(string(extra), " \t\r\n")
	if first && strings.TrimSpace(kept) == "" {
		kept = ""
	}
	return hujson.Extra(kept + "\n" + indent + "  "), hujson.Extra("\n" + indent)
}

// valueText writes a value at an indentation.
func valueText(value any, indent string) (hujson.Value, error) {
	var text bytes.Buffer
	if written, ok := value.(Text); ok {
		v, err := hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(written), []byte("\n"), []byte("\n"+indent)))
		if err != nil {
			return hujson.Value{}, fmt.Errorf("writing a value of the configuration: %w", err)
		}
		v.BeforeExtra, v.AfterExtra = nil, nil
		return v, nil
	}
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent(indent, "  ")
	if err := e.Encode(value); err != nil {
		return hujson.Value{}, fmt.Errorf("writing a value of the configuration: %w", err)
	}
	v, err := hujson.Parse(bytes.TrimSpace(text.Bytes()))
	if err != nil {
		return hujson.Value{}, fmt.Errorf("writing a value of the configuration: %w", err)
	}
	v.BeforeExtra, v.AfterExtra = nil, nil
	return v, nil
}

// step returns the value that v holds under a key or index; nil if there is none.
func step(v *hujson.Value, key string) *hujson.Value {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			if name, ok := c.Members[i].Name.Value.(hujson.Literal); ok && name.String() == key {
				return &c.Members[i].Value
			}
		}
	case *hujson.Array:
		if n, err := strconv.Atoi(key); err == nil && 0 <= n && n < len(c.Elements) {
			return &c.Elements[n]
		}
	}
	return nil
}

// Section returns the text of the value at a JSON pointer, with its comments;
// nil if the configuration does not have it.
func Section(text []byte, pointer string) ([]byte, error) {
	v, err := find(text, pointer)
	if err != nil || v == nil {
		return nil, err
	}
	return text[v.StartOffset:v.EndOffset], nil
}

// Replace returns the text of a configuration with another value at a JSON
// pointer. The value stands there as it is written, comments included, and all
// else stays as it was, byte for byte. The result is not checked.
func Replace(text []byte, pointer string, value Text) ([]byte, error) {
	v, err := find(text, pointer)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, fmt.Errorf("%s is not in the configuration", pointer)
	}
	next := closed(value)
	if _, err := hujson.Parse(next); err != nil { // one value, which ends where the text does
		return nil, fmt.Errorf("reading the new value of %s: %w", pointer, err)
	}
	return slices.Concat(text[:v.StartOffset], next, text[v.EndOffset:]), nil
}

// closed returns a value that ends its last comment, so that anything may follow.
func closed(value Text) []byte {
	value = bytes.TrimSpace(value)
	last := value[bytes.LastIndexByte(value, '\n')+1:]
	if bytes.Contains(last, []byte("//")) { // perhaps within a string; one more line break does no harm
		return append(slices.Clone(value), '\n')
	}
	return value
}

func find(text []byte, pointer string) (*hujson.Value, error) {
	tree, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	at := &tree
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if at = step(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(key)); at == nil {
			return nil, nil
		}
	}
	return at, nil
}

// Remove returns the text of a configuration without the value at a JSON
// pointer. Comments before it go with it, all else stays as it is.
func Remove(text []byte, pointer string) ([]byte, error) {
	tree, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	patch, err := json.Marshal([]map[string]string{{"op": "remove", "path": pointer}})
	if err != nil {
		return nil, fmt.Errorf("removing %s: %w", pointer, err)
	}
	if err := tree.Patch(patch); err != nil {
		return nil, fmt.Errorf("removing %s from the configuration: %w", pointer, err)
	}
	return tree.Pack(), nil
}
