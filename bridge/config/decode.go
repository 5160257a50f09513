package config

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/strict"

	"github.com/tailscale/hujson"
)

// A decoder fills Go values from a syntax tree and collects what is wrong. It
// is stricter than encoding/json: exact case, no unknown and no repeated keys,
// no null, no number where a string stands. It reads these struct tags:
//
//	json    the key; "-" for none
//	alias   a second spelling of the key
//	range   least and greatest value, "1..100", "1ms..1h", "1KB..1GB"
//	expand  "yes" fills variables in, in this field and all below; "no" ends that
//	show    how a Value shows itself: "never" or "url"; otherwise as written
//	keys    "fold": keys of this map that differ only in case are one key
type decoder struct {
	*findings
	env Env
	reading
	named []placed // the secrets that the texts name, except those of disabled servers
}

// A reading is how a configuration is read.
type reading struct {
	lenient bool // no variable has to be set
	// found are the secrets that were asked for; if it is nil, none were.
	found map[secrets.Reference]secrets.Secret

	overlay  string // the absolute name of the overlay; empty if there is none
	included Included
	only     *only // if not nil, which conflicts with the included are for the file
}

// placed is a reference to a secret in a value.
type placed struct {
	path string
	secrets.Reference
}

// A spot is a value's place in the file together with what it inherits there.
type spot struct {
	path    string // JSON pointer
	name    string // as a person would call it: timeout, args[2]
	expand  bool
	show    string
	bounds  string
	fold    bool
	lenient bool // unset variables are no mistake
}

// below returns the spot of a member.
func (s spot) below(key string) spot {
	s.path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	s.name, s.bounds, s.fold = key, "", false
	return s
}

// item returns the spot of a list's element.
func (s spot) item(i int) spot {
	s.path += "/" + strconv.Itoa(i)
	s.name += "[" + strconv.Itoa(i) + "]"
	s.bounds = ""
	return s
}

// A field is one key that an object may have.
type field struct {
	key, alias string
	index      []int
	tag        reflect.StructTag
	typ        reflect.Type
}

// fieldsOf lists the keys of a struct, those of embedded structs included.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" || !f.IsExported() || f.Anonymous && key == "" {
			continue
		}
		if key == "" {
			key = f.Name
		}
		fields = append(fields, field{key, f.Tag.Get("alias"), f.Index, f.Tag, f.Type})
	}
	return fields
}

// A defaulter is filled with its defaults before anything is read into it.
type defaulter interface{ setDefaults() }

var (
	valueType = reflect.TypeFor[Value]()
	rawType   = reflect.TypeFor[json.RawMessage]()

	durationType = reflect.TypeFor[Duration]()
	sizeType     = reflect.TypeFor[Size]()
	unitHint     = map[reflect.Type]string{
		durationType: `write a number and a unit: "500ms", "60s", "2m", "1h"`,
		sizeType:     `write a whole number and a unit: "512B", "64KB", "16MB", "1GB"`,
	}
)

// decode fills dst from v. What can't be read leaves dst as it was.
func (d *decoder) decode(v hujson.Value, dst reflect.Value, s spot) {
	d.note(v, s)
	if v.Value.Kind() == 'n' {
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q may not be null", s.name), "leave it out")
		return
	}
	t := dst.Type()
	if t.Kind() == reflect.Pointer {
		fresh := reflect.New(t.Elem())
		if def, ok := fresh.Interface().(defaulter); ok {
			def.setDefaults()
		}
		d.decode(v, fresh.Elem(), s)
		dst.Set(fresh)
		return
	}
	switch {
	case t == valueType:
		if value, ok := d.text(v, s); ok || s.lenient || value.origin != nil {
			dst.Set(reflect.ValueOf(value))
		}
		return
	case t == rawType, reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		d.free(v, dst, s)
		return
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		d.worded(v, dst, s)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		d.object(v, dst, s)
	case reflect.Map:
		d.mapping(v, dst, s)
	case reflect.Slice:
		d.list(v, dst, s)
	case reflect.String:
		if text, _, ok := d.plain(v, s); ok {
			dst.SetString(text)
		}
	case reflect.Bool:
		if kind := v.Value.Kind(); kind != 't' && kind != 'f' {
			d.wrongType(v, s, "true or false")
			return
		}
		dst.SetBool(v.Value.Kind() == 't')
	default:
		d.number(v, dst, s)
	}
}

// worded fills a type that reads itself from a string.
func (d *decoder) worded(v hujson.Value, dst reflect.Value, s spot) {
	if v.Value.Kind() == '0' && (dst.Type() == durationType || dst.Type() == sizeType) {
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q must be a string with a unit, found a number", s.name), unitHint[dst.Type()])
		return
	}
	text, shown, ok := d.plain(v, s)
	if !ok {
		return
	}
	fresh := reflect.New(dst.Type())
	err := fresh.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	switch {
	case err == nil:
		d.setInRange(v, dst, fresh.Elem(), s)
	case text != shown:
		// The error may repeat what a variable held.
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q is not usable with what the variable holds", s.name), unitHint[dst.Type()])
	case dst.Type() == durationType:
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q is not a duration", s.name), unitHint[durationType])
	case dst.Type() == sizeType:
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q is not a size", s.name), unitHint[sizeType])
	default:
		d.complainErr(v.StartOffset, s, err)
	}
}

// note remembers where the value stands.
func (d *decoder) note(v hujson.Value, s spot) {
	p := d.places[s.path]
	if p.key == 0 {
		p.key = v.StartOffset
	}
	p.value, p.object = v.StartOffset, v.Value.Kind() == '{'
	if v.Value.Kind() == '"' {
		p.literal, _ = v.Value.(hujson.Literal)
	}
	d.places[s.path] = p
}

func (d *decoder) complainErr(offset int, s spot, err error) {
	var m *strict.Mistake
	if errors.As(err, &m) {
		d.complain(offset, s.path, fmt.Sprintf("%q %s", s.name, m.Message), m.Hint)
		return
	}
	d.complain(offset, s.path, fmt.Sprintf("%q: %v", s.name, err), "")
}

func (d *decoder) wrongType(v hujson.Value, s spot, want string) {
	hint := ""
	switch found := v.Value.Kind(); {
	case want == "a list" && found == '"':
		hint = `write a list of one: ["..."]`
	case want == "a string" && found == '0':
		hint = "put the number in double quotes"
	case want == "a string" && (found == 't' || found == 'f'):
		hint = "put it in double quotes"
	case want == "true or false" && found == '"', want == "a number" && found == '"':
		hint = "write it without quotes"
	}
	d.complain(v.StartOffset, s.path, fmt.Sprintf("%q must be %s, found %s", s.name, want, strict.KindName(v.Value)), hint)
}

// object fills a struct.
func (d *decoder) object(v hujson.Value, dst reflect.Value, s spot) {
	fields := fieldsOf(dst.Type())
	used := map[string]string{} // key of the struct to the spelling in the file
	d.members(v, s, func(key string, m hujson.ObjectMember) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key || f.alias != "" && f.alias == key })
		if i < 0 {
			d.unknownKeys[s.path] = true
			if len(d.problems) > strict.MaxProblems {
				// Only counted: looking for near names takes time.
				d.complain(m.Name.StartOffset, s.below(key).path, "unknown key", "")
				return
			}
			message, hint := unknownKey(key, fields, s)
			d.complain(m.Name.StartOffset, s.below(key).path, message, hint)
			return
		}
		f := fields[i]
		if before, twice := used[f.key]; twice {
			d.complain(m.Name.StartOffset, s.below(key).path, fmt.Sprintf("%q and %q are two names of one section", before, key), "keep one of them")
			return
		}
		used[f.key] = key
		at := s.below(key)
		at.bounds = f.tag.Get("range")
		at.fold = f.tag.Get("keys") == "fold"
		switch f.tag.Get("expand") {
		case "yes":
			at.expand = true
		case "no":
			at.expand = false
		}
		if show := f.tag.Get("show"); show != "" {
			at.show = show
		}
		d.decode(m.Value, dst.FieldByIndex(f.index), at)
	})
}

// mapping fills a map with keys of any name.
func (d *decoder) mapping(v hujson.Value, dst reflect.Value, s spot) {
	t := dst.Type()
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(t))
	}
	folded := map[string]string{}
	d.members(v, s, func(key string, m hujson.ObjectMember) {
		at := s.below(key)
		if first, twice := folded[strings.ToLower(key)]; twice && s.fold {
			d.complain(m.Name.StartOffset, at.path, fmt.Sprintf("%q and %q differ only in case", first, key), "rename one of them")
			return
		}
		folded[strings.ToLower(key)] = key
		at.lenient = s.lenient || t.Elem() == reflect.TypeFor[*Server]() && disabled(m.Value)
		element := reflect.New(t.Elem()).Elem()
		d.decode(m.Value, element, at)
		if m.Value.Value.Kind() != 'n' {
			dst.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
		}
	})
}

// members calls each for the members of an object, except for repeated keys.
func (d *decoder) members(v hujson.Value, s spot, each func(key string, m hujson.ObjectMember)) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.wrongType(v, s, "an object")
		return
	}
	first := map[string]int{}
	for _, m := range obj.Members {
		key, ok := d.literal(m.Name, s)
		if !ok {
			continue
		}
		if before, twice := first[key]; twice {
			line, _ := d.src.Place(before)
			d.complain(m.Name.StartOffset, s.below(key).path, fmt.Sprintf("the key %q is there twice", key),
				fmt.Sprintf("the first is on line %d", line))
			continue
		}
		first[key] = m.Name.StartOffset
		if path := s.below(key).path; !d.has(path) {
			d.places[path] = place{key: m.Name.StartOffset, value: m.Value.StartOffset}
		}
		each(key, m)
	}
}

func (d *decoder) list(v hujson.Value, dst reflect.Value, s spot) {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		d.wrongType(v, s, "a list")
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(arr.Elements), len(arr.Elements))
	for i, e := range arr.Elements {
		d.decode(e, out.Index(i), s.item(i))
	}
	dst.Set(out)
}

// number fills an integer. The configuration has no other numbers.
func (d *decoder) number(v hujson.Value, dst reflect.Value, s spot) {
	if v.Value.Kind() != '0' {
		d.wrongType(v, s, "a number")
		return
	}
	lit, _ := v.Value.(hujson.Literal)
	n, err := strconv.ParseInt(string(lit), 10, 64)
	fresh := reflect.New(dst.Type()).Elem()
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && fresh.OverflowInt(n):
		low, high, bounded := strings.Cut(s.bounds, "..")
		message := fmt.Sprintf("%q is out of range", s.name)
		if bounded {
			message = fmt.Sprintf("%q must be from %s to %s", s.name, low, high)
		}
		d.complain(v.StartOffset, s.path, message, "")
	case err != nil:
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q must be a whole number", s.name), "")
	default:
		fresh.SetInt(n)
		d.setInRange(v, dst, fresh, s)
	}
}

// setInRange sets dst when the bounds of the spot allow it.
func (d *decoder) setInRange(v hujson.Value, dst, fresh reflect.Value, s spot) {
	low, high, bounded := strings.Cut(s.bounds, "..")
	if bounded {
		n := fresh.Int()
		if n < bound(low, fresh.Type()) || n > bound(high, fresh.Type()) {
			d.complain(v.StartOffset, s.path, fmt.Sprintf("%q must be from %s to %s", s.name, low, high), "")
			return
		}
	}
	dst.Set(fresh)
}

// bound reads one end of a range tag in the form of the field's own type.
func bound(text string, t reflect.Type) int64 {
	fresh := reflect.New(t)
	if u, ok := fresh.Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			panic("config: range tag " + text + ": " + err.Error())
		}
		return fresh.Elem().Int()
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("config: range tag " + text + ": " + err.Error())
	}
	return n
}

// plain is text for what shows itself, and so can hold no secret.
func (d *decoder) plain(v hujson.Value, s spot) (text, shown string, ok bool) {
	value, ok := d.text(v, s)
	if ok && value.origin != nil {
		d.complain(v.StartOffset, s.path, fmt.Sprintf("%q can be no secret", s.name), "write it, or name a variable")
		return "", "", false
	}
	return value.Reveal(), value.String(), ok
}

// text reads a string, variables filled in where the spot says so, and how it
// may be shown.
func (d *decoder) text(v hujson.Value, s spot) (_ Value, ok bool) {
	if v.Value.Kind() != '"' {
		d.wrongType(v, s, "a string")
		return Value{}, false
	}
	written, ok := d.literal(v, s)
	if !ok {
		return Value{}, false
	}
	shown := written
	switch s.show {
	case "never":
		shown = showSecret(written)
	case "url":
		shown = showURL(written)
	}
	if !s.expand {
		return newValue(written, shown), true
	}
	x, slips := secrets.Expand(written, d.env, d.found)
	value := newValue(x.Text, shown)
	if x.Named != nil {
		value.origin, value.missing = &x.Origin, x.Missing
		d.unusable[s.path] = d.unusable[s.path] || x.Missing // nothing can be said of it yet
	}
	for _, r := range x.Named {
		if !s.lenient {
			d.named = append(d.named, placed{s.path, r})
		}
	}
	for _, slip := range slips {
		d.unusable[s.path] = true
		if slip.Unset && (s.lenient || d.lenient) {
			continue
		}
		lit, _ := v.Value.(hujson.Literal)
		message := slip.Message
		if !slip.Unset {
			message = fmt.Sprintf("%q: %s", s.name, message)
		}
		d.complain(v.StartOffset+strict.Within(lit, slip.Offset), s.path, message, slip.Hint)
	}
	return value, slips == nil
}

// literal returns the value of a string or key.
func (d *decoder) literal(v hujson.Value, s spot) (string, bool) {
	lit, _ := v.Value.(hujson.Literal)
	for i := 1; i < len(lit)-1; i++ {
		if lit[i] != '\\' {
			continue
		}
		if i++; lit[i] != 'u' {
			continue
		}
		switch r := strict.Hex4(lit[i+1:]); {
		case r == 0:
			d.complain(v.StartOffset+i-1, s.path, "a NUL character in a string", "")
			return "", false
		case 0xd800 <= r && r < 0xdc00 && i+6 < len(lit) && lit[i+5] == '\\' && lit[i+6] == 'u' && strict.Hex4(lit[i+7:])>>10 == 0xdc00>>10:
			i += 10
		case 0xd800 <= r && r < 0xe000:
			d.complain(v.StartOffset+i-1, s.path, "half a surrogate pair in a string", "write the character itself")
			return "", false
		default:
			i += 4
		}
	}
	return lit.String(), true
}

// free fills a field that reads JSON itself, or keeps it as it is. Repeated keys
// are a mistake there, too.
func (d *decoder) free(v hujson.Value, dst reflect.Value, s spot) {
	before := len(d.problems)
	d.walk(v, s)
	if len(d.problems) > before {
		return
	}
	plain := v.Clone()
	plain.Minimize()
	if err := json.Unmarshal([]byte(plain.String()), dst.Addr().Interface()); err != nil {
		d.complainErr(v.StartOffset, s, err)
	}
}

// walk notes the places below v and finds repeated keys and broken strings.
func (d *decoder) walk(v hujson.Value, s spot) {
	d.note(v, s)
	switch v.Value.Kind() {
	case '{':
		d.members(v, s, func(key string, m hujson.ObjectMember) { d.walk(m.Value, s.below(key)) })
	case '[':
		for i, e := range v.Value.(*hujson.Array).Elements {
			d.walk(e, s.item(i))
		}
	case '"':
		d.literal(v, s)
	}
}

// disabled reports whether v is a server with "disabled": true.
func disabled(v hujson.Value) bool {
	obj, ok := v.Value.(*hujson.Object)
	return ok && slices.ContainsFunc(obj.Members, func(m hujson.ObjectMember) bool {
		name, _ := m.Name.Value.(hujson.Literal)
		return name.String() == "disabled" && m.Value.Value.Kind() == 't'
	})
}
