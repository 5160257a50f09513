package misfit

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Step is one part of the path to a value in a call's arguments.
type Step struct {
	Name    string
	Element bool // of an array; the name does not matter
}

// A Budget bounds the search of a schema: once more than Most parts are Spent, it ends
// with what it has found.
type Budget struct{ Spent, Most int }

// Declared collects the names that a schema declares, in all of its parts that may apply
// to the object at the end of a path.
func (b *Budget) Declared(schema *jsonschema.Schema, way []Step) (names []string) {
	here := b.alternatives([]*jsonschema.Schema{schema})
	for _, s := range way {
		var next []*jsonschema.Schema
		for _, schema := range here {
			if s.Element {
				next = append(next, elementsOf(schema)...)
			} else {
				next = append(next, membersOf(schema, s.Name)...)
			}
		}
		here = b.alternatives(next)
	}
	for _, schema := range here {
		names = slices.AppendSeq(names, maps.Keys(schema.Properties))
		names = append(names, schema.Required...)
	}
	return names
}

// alternatives returns schemas together with all those that they are composed of.
func (b *Budget) alternatives(from []*jsonschema.Schema) (all []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	for len(from) > 0 && b.Spent <= b.Most {
		s := from[len(from)-1]
		from = from[:len(from)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		b.Spent++
		all = append(all, s)
		from = append(from, s.Ref, s.RecursiveRef, s.If, s.Then, s.Else)
		if s.DynamicRef != nil {
			from = append(from, s.DynamicRef.Ref)
		}
		from = slices.Concat(from, s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
		for _, needs := range s.Dependencies {
			if schema, ok := needs.(*jsonschema.Schema); ok {
				from = append(from, schema)
			}
		}
	}
	return all
}

// membersOf returns the schemas of an object's member.
func membersOf(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Properties[name], s.UnevaluatedProperties}
	for pattern, schema := range s.PatternProperties {
		if pattern.MatchString(name) {
			all = append(all, schema)
		}
	}
	if schema, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		all = append(all, schema)
	}
	return all
}

// elementsOf returns the schemas of an array's elements, at any index.
func elementsOf(s *jsonschema.Schema) []*jsonschema.Schema {
	all := append([]*jsonschema.Schema{s.Items2020, s.UnevaluatedItems, s.Contains}, s.PrefixItems...)
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		all = append(all, items)
	case []*jsonschema.Schema:
		all = append(all, items...)
	}
	if schema, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		all = append(all, schema)
	}
	return all
}

// BeyondSchema returns an argument that the schema does not have; empty if it has
// all of them.
func BeyondSchema(input json.RawMessage, args map[string]any) string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(input, &schema) != nil {
		schema.Properties = nil
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		property, ok := schema.Properties[name]
		if !ok {
			return name
		}
		var inner struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		object, isObject := args[name].(map[string]any)
		if isObject && json.Unmarshal(property, &inner) == nil && len(inner.Properties) > 0 {
			if beyond := BeyondSchema(property, object); beyond != "" {
				return name + "." + beyond
			}
		}
	}
	return ""
}
