package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// A parameter is one value that an argument holds.
type parameter struct {
	arg      string // its name among the arguments
	name, in string // its name and place in the request
	style    string
	explode  bool
	reserved bool // leaves reserved characters of a query as they are
	json     bool // is sent as JSON text
	required bool
	schema   *openapi3.SchemaRef
	note     string
}

// A pair is one name and value of a query, a form or a cookie, not encoded yet. If
// the value is a list, parts are its elements and by is what separates them.
type pair struct {
	name  string
	parts []string
	by    string
}

// escape encodes everything but unreserved characters. With reserved, it also keeps
// the reserved ones that separate nothing in a query.
func escape(text string, reserved bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0,
			reserved && strings.IndexByte(":/?@!$'()*,;", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// literal encodes a part of a path of the document, which may be encoded already.
func literal(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case strings.IndexByte("/%:@!$&'()*+,;=", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteString(escape(text[i:i+1], false))
		}
	}
	return b.String()
}

// checkSegments refuses an encoded path that a server, a proxy or a library on the
// way could take for another: one with a segment that means "here" or "up", however
// it is written.
func checkSegments(path string) error {
	for _, segment := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		name, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(segment), "%2e", "."), ";") // some servers drop what follows ";"
		if name == "." || name == ".." {
			return errors.New(`the path would hold "." or ".." as a segment`)
		}
	}
	return nil
}

// checkPathValue refuses values that would change the path once somebody decodes
// it: no encoding of them is safe with every server. That includes slashes: many
// servers decode %2F before they choose the operation.
func checkPathValue(value string) error {
	if value == "" {
		return errors.New("may not be empty, since it is part of the path")
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) || !utf8.ValidString(value) {
		return errors.New("holds a control character")
	}
	for decoded, n := value, 0; n < 3; n++ { // it may be decoded more than once on the way
		if strings.ContainsAny(decoded, `/\`) {
			return errors.New(`may not hold "/" or "\", encoded or not, since it is part of the path`)
		}
		if checkSegments(decoded) != nil {
			return errors.New(`may not be "." or "..", since it is part of the path`)
		}
		decoded = decodeOnce(decoded)
	}
	return nil
}

// decodeOnce decodes what is percent-encoded and leaves the rest.
func decodeOnce(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		var c byte
		if text[i] == '%' && i+2 < len(text) {
			if n, err := fmt.Sscanf(text[i+1:i+3], "%02x", &c); n == 1 && err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// scalar returns a value as text. Numbers keep their digits; what is not a scalar
// becomes JSON.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return string(encode(v))
}

func scalars(list []any) []string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = scalar(v)
	}
	return all
}

// flat lists the names and values of an object in turn, sorted by name.
func flat(object map[string]any) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		all = append(all, name, scalar(object[name]))
	}
	return all
}

// inPath encodes a value for its place in the path, in the styles simple, label
// and matrix.
func (p parameter) inPath(v any) (string, error) {
	var parts []string // encoded
	add := func(value string) error {
		if err := checkPathValue(value); err != nil {
			return err
		}
		parts = append(parts, escape(value, false))
		return nil
	}
	named := false // the parts are name=value
	if p.json {
		v = string(encode(v))
	}
	switch v := v.(type) {
	case []any:
		for _, value := range scalars(v) {
			if err := add(value); err != nil {
				return "", err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := checkPathValue(name); err != nil {
				return "", fmt.Errorf("has a name that %w", err)
			}
			if err := add(scalar(v[name])); err != nil {
				return "", err
			}
			value := parts[len(parts)-1]
			if p.explode {
				parts[len(parts)-1] = escape(name, false) + "=" + value
			} else {
				parts = append(parts[:len(parts)-1], escape(name, false), value)
			}
		}
		named = p.explode
	default:
		if err := add(scalar(v)); err != nil {
			return "", err
		}
	}
	if len(parts) == 0 {
		return "", errors.New("may not be empty, since it is part of the path")
	}
	switch p.style {
	case openapi3.SerializationLabel:
		by := ","
		if p.explode {
			by = "."
		}
		return "." + strings.Join(parts, by), nil
	case openapi3.SerializationMatrix:
		name := ";" + escape(p.name, false) + "="
		switch {
		case named:
			return ";" + strings.Join(parts, ";"), nil
		case p.explode:
			return name + strings.Join(parts, name), nil
		}
		return name + strings.Join(parts, ","), nil
	}
	return strings.Join(parts, ","), nil
}

// pairs gives a value the form that it has in a query, a form or a cookie, in the
// styles form, spaceDelimited, pipeDelimited and deepObject.
func (p parameter) pairs(v any) []pair {
	one := func(name, value string) pair { return pair{name: name, parts: []string{value}} }
	if p.json {
		return []pair{one(p.name, string(encode(v)))}
	}
	by := map[string]string{openapi3.SerializationSpaceDelimited: " ", openapi3.SerializationPipeDelimited: "|"}[p.style]
	if by == "" {
		by = ","
	}
	var all []pair
	switch v := v.(type) {
	case []any:
		if p.explode || p.style == openapi3.SerializationDeepObject {
			for _, value := range scalars(v) {
				all = append(all, one(p.name, value))
			}
		} else if len(v) > 0 {
			all = append(all, pair{p.name, scalars(v), by})
		}
	case map[string]any:
		switch {
		case p.style == openapi3.SerializationDeepObject:
			all = deep(p.name, v)
		case p.explode:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if list, ok := v[name].([]any); ok {
					for _, value := range scalars(list) {
						all = append(all, one(name, value))
					}
					continue
				}
				all = append(all, one(name, scalar(v[name])))
			}
		case len(v) > 0:
			all = append(all, pair{p.name, flat(v), by})
		}
	default:
		all = append(all, one(p.name, scalar(v)))
	}
	return all
}

// deep writes an object as name[key]=value, and objects in it in the same way.
func deep(name string, object map[string]any) []pair {
	var all []pair
	for _, key := range slices.Sorted(maps.Keys(object)) {
		below := name + "[" + key + "]"
		switch v := object[key].(type) {
		case map[string]any:
			all = append(all, deep(below, v)...)
		case []any:
			for _, value := range scalars(v) {
				all = append(all, pair{name: below, parts: []string{value}})
			}
		default:
			all = append(all, pair{name: below, parts: []string{scalar(v)}})
		}
	}
	return all
}

// encoded returns the pair as a query or a form has it.
func (p pair) encoded(reserved bool) string {
	parts := make([]string, len(p.parts))
	for i, part := range p.parts {
		parts[i] = escape(part, reserved)
	}
	by := p.by
	if by != "," {
		by = escape(by, false)
	}
	return escape(p.name, false) + "=" + strings.Join(parts, by)
}

// inHeader returns a value as a header has it.
func (p parameter) inHeader(v any) (string, error) {
	var text string
	switch object, isObject := v.(map[string]any); {
	case p.json:
		text = string(encode(v))
	case isObject && p.explode:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(object)) {
			all = append(all, name+"="+scalar(object[name]))
		}
		text = strings.Join(all, ",")
	case isObject:
		text = strings.Join(flat(object), ",")
	default:
		if list, ok := v.([]any); ok {
			text = strings.Join(scalars(list), ",")
		} else {
			text = scalar(v)
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return "", errors.New("holds a control character, and a header may not")
	}
	return text, nil
}
