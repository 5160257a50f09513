package observed

import (
	"encoding/json"
	"maps"
	"slices"

	"codemode-bridge/bridge/tsdecl"
)

// Bounds on a shape. A tool whose answers go beyond one of them is told of in
// coarser terms, not forgotten.
const (
	maxDepth = 8   // arrays and objects within one another
	maxKeys  = 128 // of an object; one with more is a map
	maxKey   = 40  // bytes of a key; an object with a longer one is a map
)

// A shape is what a set of JSON values looks like: which kinds there were,
// and the shape of what they hold. The zero shape is that of no values at all.
// Shapes are not changed once they are made, and parts are shared.
//
// Shapes with join are a semilattice: the order in which values are seen, and
// how often, makes no difference.
type shape struct {
	kinds
	Items  *shape  `json:"items,omitempty"` // not nil if there was an array
	Object *object `json:"object,omitempty"`
}

// kinds are those of values without parts that can be told.
type kinds struct {
	Any     bool `json:"any,omitempty"` // arrays or objects, too deep to tell
	Null    bool `json:"null,omitempty"`
	Boolean bool `json:"boolean,omitempty"`
	Number  bool `json:"number,omitempty"`
	String  bool `json:"string,omitempty"`
}

// An object is the shape of a set of objects: by field, or of maps, whose keys
// are data and are not kept.
type object struct {
	Fields map[string]field `json:"fields,omitempty"`
	Map    *shape           `json:"map,omitempty"` // of any value; if not nil, there are no fields
}

// A field is a key that was seen.
type field struct {
	Is *shape `json:"is"`
	// Optional is set when an object that had other keys did not have this
	// one. The empty object says nothing of keys.
	Optional bool `json:"optional,omitempty"`
}

// join is the shape of the values of both.
func (s *shape) join(t *shape) *shape {
	switch {
	case s == nil:
		return t
	case t == nil || s == t:
		return s
	}
	return &shape{
		kinds: kinds{
			Any: s.Any || t.Any, Null: s.Null || t.Null, Boolean: s.Boolean || t.Boolean,
			Number: s.Number || t.Number, String: s.String || t.String,
		},
		Items: s.Items.join(t.Items), Object: s.Object.join(t.Object),
	}
}

func (o *object) join(p *object) *object {
	switch {
	case o == nil:
		return p
	case p == nil || o == p:
		return o
	case o.Map != nil || p.Map != nil:
		return &object{Map: o.values().join(p.values())}
	case len(o.Fields) == 0:
		return p
	case len(p.Fields) == 0:
		return o
	}
	fields := make(map[string]field, max(len(o.Fields), len(p.Fields)))
	for key, f := range o.Fields {
		g, both := p.Fields[key]
		fields[key] = field{f.Is.join(g.Is), !both || f.Optional || g.Optional}
	}
	for key, g := range p.Fields {
		if _, both := o.Fields[key]; !both {
			fields[key] = field{g.Is, true}
		}
	}
	return newObject(fields)
}

// newObject is an object with these fields, or a map where they are too many.
func newObject(fields map[string]field) *object {
	o := &object{Fields: fields}
	if len(fields) > maxKeys {
		return &object{Map: o.values()}
	}
	return o
}

// values is the shape of the values of all keys.
func (o *object) values() *shape {
	all := o.Map
	if all == nil {
		all = &shape{}
	}
	for _, f := range o.Fields {
		all = all.join(f.Is)
	}
	return all
}

// sound reports whether a shape that was read from a file is one that could
// have been made here.
func (s *shape) sound(depth int) bool {
	if s == nil {
		return true
	}
	if depth == 0 && (s.Items != nil || s.Object != nil) {
		return false
	}
	if !s.Items.sound(depth - 1) {
		return false
	}
	o := s.Object
	if o == nil {
		return true
	}
	if o.Map != nil && len(o.Fields) > 0 || !o.Map.sound(depth-1) || len(o.Fields) > maxKeys {
		return false
	}
	for key, f := range o.Fields {
		if f.Is == nil || !isName(key) || !f.Is.sound(depth-1) {
			return false
		}
	}
	return true
}

// text writes the shape as a TypeScript type of at most limit bytes.
func (s *shape) text(limit int) string {
	b, err := json.Marshal(s.schema())
	if err != nil {
		return "unknown" // a tree of maps and strings can be written
	}
	return tsdecl.Type(b, limit)
}

// schema is the shape as a JSON Schema.
func (s *shape) schema() map[string]any {
	if s == nil || s.Any {
		return map[string]any{}
	}
	var kinds []any
	add := func(name string, there bool) {
		if there {
			kinds = append(kinds, map[string]any{"type": name})
		}
	}
	add("string", s.String)
	add("number", s.Number)
	add("boolean", s.Boolean)
	if s.Items != nil {
		kinds = append(kinds, map[string]any{"type": "array", "items": s.Items.schema()})
	}
	if s.Object != nil {
		kinds = append(kinds, s.Object.schema())
	}
	add("null", s.Null)
	switch len(kinds) {
	case 0:
		return map[string]any{}
	case 1:
		return kinds[0].(map[string]any)
	}
	return map[string]any{"anyOf": kinds}
}

func (o *object) schema() map[string]any {
	if o.Map != nil || o.varies() {
		return map[string]any{"type": "object", "additionalProperties": o.values().schema()}
	}
	properties, required := map[string]any{}, []string{}
	for _, key := range slices.Sorted(maps.Keys(o.Fields)) {
		f := o.Fields[key]
		properties[key] = f.Is.schema()
		if !f.Optional {
			required = append(required, key)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "required": required}
	if len(properties) == 0 {
		s["additionalProperties"] = false
	}
	return s
}

// varies reports whether no two of the objects need have had a key in common:
// then the keys are as likely as not data that look like names.
func (o *object) varies() bool {
	const few = 4
	for _, f := range o.Fields {
		if !f.Optional {
			return false
		}
	}
	return len(o.Fields) >= few
}
