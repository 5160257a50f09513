package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// A describer writes the schemas of one side of one operation as one JSON Schema
// 2020-12, with what they refer to in $defs. Schemas of OpenAPI 3.0 are translated;
// what validates nothing (examples, XML, extensions) is dropped.
//
// A document can describe more than anybody wants to read, and refer in circles. So
// what is referred to is described in the order of its distance, and once there is no
// room left, the rest becomes {}, which allows anything.
type describer struct {
	answer bool // of an answer: writeOnly is left out, else readOnly
	room   int  // how many bytes may still be written, by estimate
	names  map[*openapi3.Schema]string
	defs   map[string]any
	taken  map[string]bool
	queue  []definition // referred to, and not yet described
}

type definition struct {
	name   string
	schema *openapi3.Schema
}

// Bounds of what is described.
const (
	maxSchema = 16 << 10 // bytes of one schema, about
	maxDepth  = 24       // of the nesting within one definition
)

// describe returns the schema that write gives, with what it refers to.
func describe(answer bool, write func(*describer) map[string]any) json.RawMessage {
	for room := maxSchema; ; room /= 4 {
		d := &describer{answer: answer, room: room, names: map[*openapi3.Schema]string{}, defs: map[string]any{}, taken: map[string]bool{}}
		whole := write(d)
		for len(d.queue) > 0 {
			next := d.queue[0]
			d.queue = d.queue[1:]
			d.defs[next.name] = d.body(next.schema, 0)
		}
		if len(d.defs) > 0 {
			whole["$defs"] = d.defs
		}
		if text := encode(whole); len(text) <= 2*maxSchema || room == 0 {
			return text
		}
	}
}

// schema describes what ref says, in place or by a reference.
func (d *describer) schema(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil {
		return map[string]any{}
	}
	if ref.Ref == "" {
		return d.body(ref.Value, depth)
	}
	name, known := d.names[ref.Value]
	if !known {
		if d.room <= 0 {
			return map[string]any{}
		}
		name = d.newName(ref.Ref)
		d.names[ref.Value] = name
		d.queue = append(d.queue, definition{name, ref.Value})
		d.room -= 2 * len(name)
	}
	d.room -= len(name) + 20
	return map[string]any{"$ref": "#/$defs/" + name}
}

// newName makes a name from the last part of a reference, in characters that need no
// escape.
func (d *describer) newName(ref string) string {
	base := strings.Trim(notInName.ReplaceAllString(ref[strings.LastIndexByte(ref, '/')+1:], "_"), "_")
	if base == "" {
		base = "Schema"
	}
	name := base
	for n := 2; d.taken[name]; n++ {
		name = fmt.Sprintf("%s%d", base, n)
	}
	d.taken[name] = true
	return name
}

// body describes a schema itself.
func (d *describer) body(s *openapi3.Schema, depth int) any {
	if depth > maxDepth || d.room <= 0 {
		return map[string]any{}
	}
	if s.Always != nil {
		return *s.Always
	}
	out := plain(s)
	d.room -= size(out)
	for _, one := range []struct {
		key  string
		refs openapi3.SchemaRefs
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}, {"prefixItems", s.PrefixItems}} {
		var all []any
		for _, ref := range one.refs {
			all = append(all, d.schema(ref, depth+1))
		}
		if all != nil {
			out[one.key] = all
		}
	}
	d.properties(s, out, depth)
	for _, one := range []struct {
		key string
		ref *openapi3.SchemaRef
	}{
		{"items", s.Items}, {"contains", s.Contains}, {"propertyNames", s.PropertyNames}, {"not", s.Not},
		{"if", s.If}, {"then", s.Then}, {"else", s.Else},
	} {
		if one.ref != nil {
			out[one.key] = d.schema(one.ref, depth+1)
		}
	}
	for _, one := range []struct {
		key string
		openapi3.BoolSchema
	}{
		{"additionalProperties", s.AdditionalProperties}, {"unevaluatedItems", s.UnevaluatedItems}, {"unevaluatedProperties", s.UnevaluatedProperties},
	} {
		switch {
		case one.Has != nil:
			out[one.key] = *one.Has
		case one.Schema != nil:
			out[one.key] = d.schema(one.Schema, depth+1)
		}
	}
	for _, one := range []struct {
		key     string
		schemas openapi3.Schemas
	}{{"patternProperties", s.PatternProperties}, {"dependentSchemas", s.DependentSchemas}} {
		if len(one.schemas) > 0 {
			all := map[string]any{}
			for _, name := range slices.Sorted(maps.Keys(one.schemas)) {
				all[name] = d.schema(one.schemas[name], depth+1)
			}
			out[one.key] = all
		}
	}
	if s.Nullable {
		return orNull(out)
	}
	return out
}

// size estimates how many bytes a result of plain will have.
func size(out map[string]any) int {
	n := 2
	for key, v := range out {
		n += len(key) + 8
		switch v := v.(type) {
		case string:
			n += len(v)
		case []any, map[string]any:
			n += len(encode(v))
		}
	}
	return n
}

// properties describes the properties of an object, without those that this side does
// not have.
func (d *describer) properties(s *openapi3.Schema, out map[string]any, depth int) {
	hidden := map[string]bool{}
	if len(s.Properties) > 0 {
		all := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			if p != nil && p.Value != nil && (d.answer && p.Value.WriteOnly || !d.answer && p.Value.ReadOnly) {
				hidden[name] = true
				continue
			}
			all[name] = d.schema(p, depth+1)
			d.room -= len(name) + 4
		}
		out["properties"] = all
	}
	if required := slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return hidden[name] }); len(required) > 0 {
		out["required"] = required
	}
}

// plain returns the members of a schema that are not schemas themselves.
func plain(s *openapi3.Schema) map[string]any {
	out := map[string]any{}
	put := func(key string, v any, there bool) {
		if there {
			out[key] = v
		}
	}
	put("type", s.Type, !s.Type.IsEmpty())
	put("title", cut(s.Title, maxNote), s.Title != "")
	put("description", cut(s.Description, maxNote), s.Description != "")
	put("format", s.Format, s.Format != "")
	put("enum", s.Enum, len(s.Enum) > 0)
	put("const", s.Const, s.Const != nil)
	put("default", s.Default, s.Default != nil)
	put("pattern", s.Pattern, s.Pattern != "")
	put("uniqueItems", true, s.UniqueItems)
	put("multipleOf", s.MultipleOf, s.MultipleOf != nil)
	put("minLength", s.MinLength, s.MinLength > 0)
	put("maxLength", s.MaxLength, s.MaxLength != nil)
	put("minItems", s.MinItems, s.MinItems > 0)
	put("maxItems", s.MaxItems, s.MaxItems != nil)
	put("minContains", s.MinContains, s.MinContains != nil)
	put("maxContains", s.MaxContains, s.MaxContains != nil)
	put("minProperties", s.MinProps, s.MinProps > 0)
	put("maxProperties", s.MaxProps, s.MaxProps != nil)
	put("dependentRequired", s.DependentRequired, len(s.DependentRequired) > 0)
	put("contentEncoding", s.ContentEncoding, s.ContentEncoding != "")
	put("contentMediaType", s.ContentMediaType, s.ContentMediaType != "")
	put("deprecated", true, s.Deprecated)
	bound := func(key, exclusive string, limit *float64, e openapi3.ExclusiveBound) {
		if e.Bool != nil && *e.Bool { // 3.0: a boolean beside the limit
			key = exclusive
		}
		put(key, limit, limit != nil)
		put(exclusive, e.Value, e.Value != nil)
	}
	bound("minimum", "exclusiveMinimum", s.Min, s.ExclusiveMin)
	bound("maximum", "exclusiveMaximum", s.Max, s.ExclusiveMax)
	return out
}

// orNull translates nullable, which is a word of 3.0.
func orNull(out map[string]any) map[string]any {
	types, typed := out["type"].(*openapi3.Types)
	if !typed {
		for _, key := range []string{"allOf", "anyOf", "oneOf", "enum"} {
			if _, ok := out[key]; ok {
				return map[string]any{"anyOf": []any{out, map[string]any{"type": openapi3.TypeNull}}}
			}
		}
		return out
	}
	with := types.Clone()
	with.With(openapi3.TypeNull)
	out["type"] = &with
	if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
		out["enum"] = append(slices.Clone(values), nil)
	}
	return out
}

// withNote replaces the description of a schema, if there is a note.
func withNote(schema any, note string) any {
	out, ok := schema.(map[string]any)
	if !ok || strings.TrimSpace(note) == "" {
		return schema
	}
	out = maps.Clone(out)
	out["description"] = cut(strings.TrimSpace(note), maxNote)
	return out
}
