package tsdecl

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxSchema  = 2 << 20 // bytes of a schema that is read at all
	maxNesting = 64      // depth to which a schema is followed
	maxNodes   = 20000   // subschemas that are looked at
	maxEnum    = 40      // values of an enum that are written
	maxLiteral = 200     // characters of a string literal

	unknown = "unknown"
)

type kind int

const (
	anything kind = iota // unknown
	word                 // text: a keyword or a literal
	object               // fields, index
	array                // members[0]
	tuple                // fields as elements, index as the rest
	union                // members
	intersection
	reference // ref
)

// A typ is a type as far as a schema tells it. A tree of them is made once and
// printed as often as it takes to fit; only references make it a graph.
type typ struct {
	kind    kind
	text    string
	members []*typ
	fields  []field
	index   *typ // type of further properties or elements, or nil
	empty   bool // an object with no properties because it has none, not because any will do
	ref     *def
}

type field struct {
	name     string
	optional bool
	typ      *typ
	note     note
}

// A note is what JSDoc says of a property.
type note struct {
	text string
	tags string
}

// A def is the target of a $ref.
type def struct {
	name      string
	body      *typ
	uses      int
	size      int // nodes in body
	recursive bool
	open      bool // its body is being made
}

// named reports whether the def is written as a type of its own.
func (d *def) named() bool { return d.recursive || d.uses > 1 && d.size > 4 }

var (
	unknownType = &typ{kind: anything}
	neverType   = &typ{kind: word, text: "never"}
	nullType    = &typ{kind: word, text: "null"}
)

type builder struct {
	root     any
	rootName string // name of "#", should it be recursive
	args     bool   // the document is the schema of a tool's arguments
	defs     map[string]*def
	names    map[string]bool
	nodes    int // subschemas looked at
}

func newBuilder() *builder {
	return &builder{rootName: "Self", names: map[string]bool{}}
}

// schema starts on a new document.
func (b *builder) schema(raw json.RawMessage) *typ {
	b.root, b.defs, b.nodes = nil, map[string]*def{}, 0
	if len(raw) > maxSchema {
		return unknownType
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&b.root) != nil {
		return unknownType
	}
	// The root is a def too, so that "$ref": "#" finds it.
	root := &typ{kind: reference, ref: b.def("#", b.root, 0)}
	if !root.ref.recursive {
		return root.ref.body
	}
	return root
}

// def makes, or finds, the def of the subschema at pointer.
func (b *builder) def(pointer string, schema any, depth int) *def {
	if d := b.defs[pointer]; d != nil {
		d.uses++
		d.recursive = d.recursive || d.open
		return d
	}
	d := &def{uses: 1, open: true, body: unknownType}
	b.defs[pointer] = d
	before := b.nodes
	body := b.typ(schema, depth)
	d.size = b.nodes - before
	d.open = false
	// A chain of references that leads back to itself says nothing.
	for end, steps := body, 0; end.kind == reference; end, steps = end.ref.body, steps+1 {
		if end.ref == d || steps > maxNesting {
			body = unknownType
			d.recursive = false
			break
		}
	}
	d.body = body
	if d.named() || d.size > 4 {
		d.name = b.name(pointer)
	}
	return d
}

// name makes a name of its own from the last word of a JSON pointer.
func (b *builder) name(pointer string) string {
	last := pointer[strings.LastIndexByte(pointer, '/')+1:]
	if pointer == "#" {
		last = b.rootName
	}
	var s strings.Builder
	up := true
	for _, r := range last {
		switch {
		case r >= '0' && r <= '9' && s.Len() > 0, r >= 'A' && r <= 'Z':
			s.WriteRune(r)
			up = false
		case r >= 'a' && r <= 'z':
			if up {
				r -= 'a' - 'A'
			}
			s.WriteRune(r)
			up = false
		default:
			up = true
		}
		if s.Len() >= 40 {
			break
		}
	}
	name := s.String()
	if name == "" || builtinType[name] {
		name += "Type"
	}
	for base, n := name, 2; b.names[name]; n++ {
		name = base + strconv.Itoa(n)
	}
	b.names[name] = true
	return name
}

// builtinType has the names that already mean something in TypeScript.
var builtinType = map[string]bool{
	"Array": true, "Boolean": true, "Date": true, "Error": true, "Function": true, "JSON": true, "Map": true,
	"Number": true, "Object": true, "Promise": true, "Record": true, "RegExp": true, "Set": true, "String": true,
	"Symbol": true, "Math": true, "Partial": true, "Required": true, "Readonly": true, "Pick": true, "Omit": true,
}

// typ reads one subschema.
func (b *builder) typ(schema any, depth int) *typ {
	b.nodes++
	if b.nodes > maxNodes || depth > maxNesting {
		return unknownType
	}
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return neverType
		}
		return unknownType
	}

	// All that a schema says holds together: every keyword group gives one
	// part, and the type is the intersection of the parts.
	var parts []*typ
	if ref, ok := s["$ref"].(string); ok {
		parts = append(parts, b.ref(ref, depth))
	}
	if v, ok := s["const"]; ok {
		parts = append(parts, literal(v, 0))
	} else if values, ok := s["enum"].([]any); ok && len(values) > 0 {
		parts = append(parts, enum(values))
	} else if t := b.plain(s, depth); t != unknownType {
		parts = append(parts, t)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if options, ok := s[word].([]any); ok && len(options) > 0 {
			var members []*typ
			for _, o := range options {
				members = append(members, b.typ(o, depth+1))
			}
			// Options that only say which properties are required, the usual
			// company of "properties", are unknown and so is their union.
			if u := unite(members); u != unknownType {
				parts = append(parts, u)
			}
		}
	}
	if all, ok := s["allOf"].([]any); ok {
		for _, m := range all {
			if t := b.typ(m, depth+1); t != unknownType {
				parts = append(parts, t)
			}
		}
	}

	// "type": "object" beside options adds nothing.
	if len(parts) > 1 && bare(parts[0]) {
		parts = parts[1:]
	}

	var t *typ
	switch {
	case len(parts) == 0:
		return unknownType
	case slices.Contains(parts, neverType):
		t = neverType
	case len(parts) == 1:
		t = parts[0]
	default:
		t = &typ{kind: intersection, members: parts}
	}
	if s["nullable"] == true { // OpenAPI 3.0
		t = unite([]*typ{t, nullType})
	}
	return t
}

// bare reports whether t is an object of which nothing more is known.
func bare(t *typ) bool { return t.kind == object && len(t.fields) == 0 && t.index == nil }

// ref reads a "$ref".
func (b *builder) ref(ref string, depth int) *typ {
	target, ok := b.resolve(ref)
	if !ok {
		return unknownType
	}
	return &typ{kind: reference, ref: b.def(ref, target, depth+1)}
}

// resolve finds "#" and "#/json/pointer" in the document. Anything else would
// have to be fetched, or depends on ids that upstreams get wrong.
func (b *builder) resolve(ref string) (any, bool) {
	if ref == "#" {
		return b.root, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || len(path) > 1024 {
		return nil, false
	}
	at := b.root
	for step := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[step]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// plain reads "type" and the keywords that go with a type.
func (b *builder) plain(s map[string]any, depth int) *typ {
	switch t := s["type"].(type) {
	case string:
		return b.ofType(t, s, depth)
	case []any:
		var members []*typ
		for _, name := range t {
			if name, ok := name.(string); ok && len(members) < 8 {
				members = append(members, b.ofType(name, s, depth))
			}
		}
		return unite(members)
	}
	// Without a type, the keywords tell which one is meant.
	for _, word := range []string{"properties", "additionalProperties", "patternProperties"} {
		if _, ok := s[word].(map[string]any); ok {
			return b.object(s, depth)
		}
	}
	for _, word := range []string{"items", "prefixItems"} {
		if _, ok := s[word]; ok {
			return b.array(s, depth)
		}
	}
	return unknownType
}

// ofType reads a schema as the type of that name.
func (b *builder) ofType(name string, s map[string]any, depth int) *typ {
	switch name {
	case "string", "number", "boolean", "null":
		return &typ{kind: word, text: name}
	case "integer":
		return &typ{kind: word, text: "number"}
	case "object":
		return b.object(s, depth)
	case "array":
		return b.array(s, depth)
	}
	return unknownType
}

func (b *builder) object(s map[string]any, depth int) *typ {
	t := &typ{kind: object}
	properties, _ := s["properties"].(map[string]any)
	seen := map[string]bool{}
	add := func(name string, optional bool) {
		if seen[name] {
			return
		}
		seen[name] = true
		sub, declared := properties[name]
		f := field{name: name, optional: optional, typ: unknownType}
		if declared {
			f.typ = b.typ(sub, depth+1)
			f.note = b.note(sub)
		}
		t.fields = append(t.fields, f)
	}
	if required, ok := s["required"].([]any); ok {
		for _, name := range required {
			if name, ok := name.(string); ok {
				add(name, false)
			}
		}
	}
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, true)
	}

	var further []*typ
	switch a := s["additionalProperties"].(type) {
	case map[string]any:
		further = append(further, b.typ(a, depth+1))
	case bool:
		if a && len(t.fields) == 0 {
			further = append(further, unknownType)
		}
		t.empty = !a
	case nil:
		// Arguments of which none is declared are how a tool says that it
		// takes nothing.
		t.empty = b.args && depth == 0
	}
	if patterns, ok := s["patternProperties"].(map[string]any); ok {
		keys := make([]string, 0, len(patterns))
		for key := range patterns {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			further = append(further, b.typ(patterns[key], depth+1))
		}
	}
	if len(further) > 0 {
		t.index = unite(further)
	}
	return t
}

func (b *builder) array(s map[string]any, depth int) *typ {
	elements, ok := s["prefixItems"].([]any)
	rest := s["items"]
	if !ok {
		// Until draft 2019-09 a tuple was an array under "items".
		if elements, ok = s["items"].([]any); ok {
			rest = s["additionalItems"]
		}
	}
	if !ok || len(elements) == 0 {
		element := unknownType
		if items, ok := rest.(map[string]any); ok {
			element = b.typ(items, depth+1)
		}
		return &typ{kind: array, members: []*typ{element}}
	}
	t := &typ{kind: tuple}
	least := len(elements)
	if n, ok := number(s["minItems"]); ok {
		least = n
	}
	for i, e := range elements {
		t.fields = append(t.fields, field{typ: b.typ(e, depth+1), optional: i >= least})
	}
	if rest, ok := rest.(map[string]any); ok {
		t.index = b.typ(rest, depth+1)
	}
	return t
}

// number reads a small whole number.
func number(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}

// unite makes a union. Nested unions are flattened; a union with unknown is unknown,
// and never adds nothing.
func unite(members []*typ) *typ {
	var flat []*typ
	for _, m := range members {
		switch {
		case m.kind == anything:
			return unknownType
		case m == neverType:
		case m.kind == union:
			flat = append(flat, m.members...)
		default:
			flat = append(flat, m)
		}
	}
	switch len(flat) {
	case 0:
		if len(members) > 0 {
			return neverType
		}
		return unknownType
	case 1:
		return flat[0]
	}
	return &typ{kind: union, members: flat}
}

// enum makes the union of some values; what is beyond maxEnum is counted.
func enum(values []any) *typ {
	t := &typ{kind: union}
	for _, v := range values[:min(len(values), maxEnum)] {
		t.members = append(t.members, literal(v, 0))
	}
	if more := len(values) - maxEnum; more > 0 {
		rest := "string"
		if _, ok := values[maxEnum].(string); !ok {
			rest = unknown
		}
		t.members = append(t.members, &typ{kind: word, text: rest + " /* one of " + strconv.Itoa(more) + " more */"})
	}
	if len(t.members) == 1 {
		return t.members[0]
	}
	return t
}

// literal is the type of exactly that value.
func literal(v any, depth int) *typ {
	switch v := v.(type) {
	case nil:
		return nullType
	case bool:
		return &typ{kind: word, text: strconv.FormatBool(v)}
	case json.Number:
		if len(v) > 40 {
			return &typ{kind: word, text: "number"}
		}
		return &typ{kind: word, text: v.String()}
	case string:
		if len(v) > maxLiteral {
			return &typ{kind: word, text: "string"}
		}
		return &typ{kind: word, text: quote(v)}
	case []any:
		t := &typ{kind: tuple}
		if depth < 4 && len(v) <= maxEnum {
			for _, e := range v {
				t.fields = append(t.fields, field{typ: literal(e, depth+1)})
			}
			return t
		}
		return &typ{kind: array, members: []*typ{unknownType}}
	case map[string]any:
		t := &typ{kind: object, empty: true}
		if depth < 4 && len(v) <= maxEnum {
			names := make([]string, 0, len(v))
			for name := range v {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				t.fields = append(t.fields, field{name: name, typ: literal(v[name], depth+1)})
			}
		} else {
			t.empty = false
		}
		return t
	}
	return unknownType
}

// noteTags are the keywords that JSDoc repeats, in this order.
var noteTags = []string{
	"format", "pattern", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
	"contentEncoding", "contentMediaType", "deprecated",
}

// note collects what the type of a property can't say.
func (b *builder) note(schema any) note {
	s, ok := schema.(map[string]any)
	if !ok {
		return note{}
	}
	var n note
	n.text, _ = s["description"].(string)
	if ref, ok := s["$ref"].(string); ok && n.text == "" {
		if target, ok := b.resolve(ref); ok {
			if target, ok := target.(map[string]any); ok {
				n.text, _ = target["description"].(string)
			}
		}
	}
	var tags []string
	if s["type"] == "integer" {
		tags = append(tags, "@integer")
	}
	for _, key := range noteTags {
		v, ok := s[key]
		if !ok || v == false && key != "default" {
			continue
		}
		if v == true && key != "default" {
			tags = append(tags, "@"+key)
			continue
		}
		text, isString := v.(string)
		if !isString || key == "default" {
			text = compact(v)
		}
		tags = append(tags, "@"+key+" "+comment(text, 80))
	}
	if examples, ok := s["examples"].([]any); ok && len(examples) > 0 {
		tags = append(tags, "@example "+comment(compact(examples[0]), 80))
	}
	n.tags = strings.Join(tags, " ")
	return n
}

// compact writes a decoded value as JSON again.
func compact(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}
