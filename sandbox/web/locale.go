package web

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/intl"
	"codemode-bridge/sandbox/values"
)

// intlParts gives prelude/intl.js what package intl can do. A maker takes
// locales, options and the name for messages, and returns an object of functions,
// of which the prelude makes what the script sees.
func (r *World) intlParts() []goja.Value {
	makers := r.VM.NewObject()
	add := func(name string, make func(tag, where string, get intl.Options, c goja.FunctionCall) (map[string]any, error)) {
		makers.Set(name, func(c goja.FunctionCall) goja.Value {
			tag := r.localeTag(c.Argument(0))
			parts, err := make(tag, c.Argument(2).String(), r.intlOptions(c.Argument(1)), c)
			if err != nil {
				panic(r.intlError(err))
			}
			o := r.VM.NewObject()
			for key, f := range parts {
				o.Set(key, f)
			}
			return o
		})
	}
	type call = goja.FunctionCall
	resolved := func(fields func() []intl.Field) func(call) goja.Value {
		return func(call) goja.Value { return r.intlFields(fields()) }
	}
	add("number", func(tag, where string, get intl.Options, _ call) (map[string]any, error) {
		n, err := intl.NewNumber(tag, where, get)
		return map[string]any{
			"format":   func(c call) goja.Value { return r.VM.ToValue(n.Format(r.decimal(c.Argument(0)))) },
			"parts":    func(c call) goja.Value { return r.intlPieces(n.Parts(r.decimal(c.Argument(0))), "") },
			"resolved": resolved(func() []intl.Field { return n.Resolved() }),
		}, err
	})
	add("date", func(tag, where string, get intl.Options, c call) (map[string]any, error) {
		d, err := intl.NewDate(tag, where, c.Argument(3).String(), c.Argument(4).String(), get)
		at := func(c call) time.Time {
			ms := c.Argument(0).ToFloat()
			if math.IsNaN(ms) || math.Abs(ms) > 8.64e15 {
				panic(r.intlError(&intl.Error{Name: "RangeError", Message: "Invalid time value"}))
			}
			return time.UnixMilli(int64(ms))
		}
		return map[string]any{
			"format":   func(c call) goja.Value { return r.VM.ToValue(d.Format(at(c))) },
			"parts":    func(c call) goja.Value { return r.intlPieces(d.Parts(at(c)), "") },
			"resolved": resolved(func() []intl.Field { return d.Resolved() }),
		}, err
	})
	add("collator", func(tag, where string, get intl.Options, _ call) (map[string]any, error) {
		col, err := intl.NewCollator(tag, where, get)
		return map[string]any{
			"compare": func(c call) goja.Value {
				return r.VM.ToValue(col.Compare(c.Argument(0).String(), c.Argument(1).String()))
			},
			"resolved": resolved(func() []intl.Field { return col.Resolved() }),
		}, err
	})
	add("plural", func(tag, _ string, get intl.Options, _ call) (map[string]any, error) {
		p, err := intl.NewPlural(tag, get)
		return map[string]any{
			"select":   func(c call) goja.Value { return r.VM.ToValue(p.Select(r.decimal(c.Argument(0)))) },
			"resolved": resolved(func() []intl.Field { return p.Resolved() }),
		}, err
	})
	add("list", func(tag, _ string, get intl.Options, _ call) (map[string]any, error) {
		l, err := intl.NewList(tag, get)
		items := func(c call) (list []string) {
			o := c.Argument(0).ToObject(r.VM)
			for i := range int(o.Get("length").ToInteger()) {
				list = append(list, o.Get(fmt.Sprint(i)).String())
			}
			return list
		}
		return map[string]any{
			"format":   func(c call) goja.Value { return r.VM.ToValue(intl.Join(l.Parts(items(c)))) },
			"parts":    func(c call) goja.Value { return r.intlPieces(l.Parts(items(c)), "") },
			"resolved": resolved(func() []intl.Field { return l.Resolved() }),
		}, err
	})
	add("relative", func(tag, _ string, get intl.Options, _ call) (map[string]any, error) {
		rel, err := intl.NewRelative(tag, get)
		parts := func(c call) ([]intl.Part, string) {
			list, unit, err := rel.Parts(r.decimal(c.Argument(0)), c.Argument(1).String())
			if err != nil {
				panic(r.intlError(err))
			}
			return list, unit
		}
		return map[string]any{
			"format":   func(c call) goja.Value { list, _ := parts(c); return r.VM.ToValue(intl.Join(list)) },
			"parts":    func(c call) goja.Value { return r.intlPieces(parts(c)) },
			"resolved": resolved(func() []intl.Field { return rel.Resolved() }),
		}, err
	})
	add("segmenter", func(tag, _ string, get intl.Options, _ call) (map[string]any, error) {
		name, err := intl.Known(tag)
		if err != nil {
			return nil, err
		}
		granularity, err := intl.Granularity(get)
		return map[string]any{
			"segment": func(c call) goja.Value { return r.segments(c.Argument(0).String(), granularity) },
			"resolved": resolved(func() []intl.Field {
				if tag == "" {
					name = intl.Default
				}
				return []intl.Field{{Name: "locale", Value: name}, {Name: "granularity", Value: granularity}}
			}),
		}, err
	})
	known := func(c call) goja.Value {
		tag, err := intl.Known(c.Argument(0).String())
		if err != nil {
			return goja.Undefined()
		}
		return r.VM.ToValue(tag)
	}
	zones := func(call) goja.Value { return r.textArray(intl.TimeZones()) }
	return []goja.Value{makers, r.VM.ToValue(known), r.VM.ToValue(zones)}
}

// installLocale replaces the toLocale family and localeCompare: goja's take no
// options. Scripts use them often, so they are not in a prelude.
func (r *World) installLocale() {
	method := func(class, name string, f func(c goja.FunctionCall) goja.Value) {
		o, ok := r.VM.Get(class).(*goja.Object)
		if !ok {
			return
		}
		if o, ok = o.Get("prototype").(*goja.Object); ok {
			o.DefineDataProperty(name, r.Function(name, f), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
		}
	}
	for _, class := range []string{"Number", "BigInt"} {
		where := class + ".prototype.toLocaleString"
		method(class, "toLocaleString", func(c goja.FunctionCall) goja.Value {
			n, err := intl.NewNumber(r.localeTag(c.Argument(0)), where, r.intlOptions(c.Argument(1)))
			if err != nil {
				panic(r.intlError(err))
			}
			return r.VM.ToValue(n.Format(r.decimal(c.This)))
		})
	}
	for _, m := range []struct{ name, required, defaults string }{{"toLocaleString", "any", "all"}, {"toLocaleDateString", "date", "date"}, {"toLocaleTimeString", "time", "time"}} {
		method("Date", m.name, func(c goja.FunctionCall) goja.Value {
			ms := c.This.ToFloat()
			if math.IsNaN(ms) {
				return r.VM.ToValue("Invalid Date")
			}
			d, err := intl.NewDate(r.localeTag(c.Argument(0)), "Date.prototype."+m.name, m.required, m.defaults, r.intlOptions(c.Argument(1)))
			if err != nil {
				panic(r.intlError(err))
			}
			return r.VM.ToValue(d.Format(time.UnixMilli(int64(ms))))
		})
	}
	for _, class := range []string{"Array", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array"} {
		if r.script.Mentions("toLocaleString") && (class == "Array" || r.script.Mentions(class)) {
			method(class, "toLocaleString", r.listInLocale)
		}
	}
	method("String", "toLocaleLowerCase", func(c goja.FunctionCall) goja.Value { return r.plainCase(c.This, "toLowerCase") })
	method("String", "toLocaleUpperCase", func(c goja.FunctionCall) goja.Value { return r.plainCase(c.This, "toUpperCase") })
	method("String", "localeCompare", r.localeCompare())
}

// listInLocale is toLocaleString of arrays: that of their elements, joined.
func (r *World) listInLocale(c goja.FunctionCall) goja.Value {
	o := c.This.ToObject(r.VM)
	var parts []string
	for i := range int(min(o.Get("length").ToInteger(), math.MaxInt32)) {
		text := ""
		if v := o.Get(strconv.Itoa(i)); v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
			f, ok := goja.AssertFunction(v.ToObject(r.VM).Get("toLocaleString"))
			if !ok {
				panic(r.VM.NewTypeError("toLocaleString is not a function"))
			}
			shown, err := f(v, c.Argument(0), c.Argument(1))
			if err != nil {
				panic(r.Rethrow(err))
			}
			text = shown.String()
		}
		parts = append(parts, text)
	}
	return r.VM.ToValue(strings.Join(parts, ","))
}

// localeCompare makes the method of that name. It keeps its last collator: a sort
// asks for the same comparison again and again.
func (r *World) localeCompare() func(goja.FunctionCall) goja.Value {
	var last [2]goja.Value
	var collator *intl.Collator
	return func(c goja.FunctionCall) goja.Value {
		locales, options := c.Argument(1), c.Argument(2)
		if collator == nil || !locales.SameAs(last[0]) || !options.SameAs(last[1]) {
			made, err := intl.NewCollator(r.localeTag(locales), "String.prototype.localeCompare", r.intlOptions(options))
			if err != nil {
				panic(r.intlError(err))
			}
			collator, last = made, [2]goja.Value{locales, options}
		}
		return r.VM.ToValue(collator.Compare(c.This.String(), c.Argument(0).String()))
	}
}

// plainCase calls a method of strings that knows no locales: in the one that is
// known here, upper and lower case are the same.
func (r *World) plainCase(text goja.Value, name string) goja.Value {
	o := r.StringOf(text).ToObject(r.VM)
	f, ok := goja.AssertFunction(o.Get(name))
	if !ok {
		panic(r.VM.NewTypeError(name + " is not a function"))
	}
	v, err := f(o)
	if err != nil {
		panic(r.Rethrow(err))
	}
	return v
}

// localeTag returns the locale that a script asks for: the first of a list,
// or a text; "" if it leaves that open.
func (r *World) localeTag(v goja.Value) string {
	if o, ok := v.(*goja.Object); ok {
		if values.IsArray(o) {
			if v = o.Get("0"); v == nil {
				return ""
			}
		}
		return v.String()
	}
	if goja.IsUndefined(v) {
		return ""
	}
	if _, ok := v.(goja.String); !ok {
		panic(r.VM.NewTypeError("Incorrect locale information provided"))
	}
	return v.String()
}

func (r *World) intlOptions(v goja.Value) intl.Options {
	o, ok := v.(*goja.Object)
	if !ok {
		return func(string) (string, bool) { return "", false }
	}
	return func(name string) (string, bool) {
		v := o.Get(name)
		if v == nil || goja.IsUndefined(v) {
			return "", false
		}
		return v.String(), true
	}
}

func (r *World) intlError(err error) goja.Value {
	var e *intl.Error
	if errors.As(err, &e) {
		if o, err := r.VM.New(r.VM.Get(e.Name), r.VM.ToValue(e.Message)); err == nil {
			return o
		}
	}
	return r.VM.NewTypeError(err.Error())
}

// decimal reads what a formatter of numbers takes: a string is read as exactly as
// a BigInt.
func (r *World) decimal(v goja.Value) intl.Decimal {
	if o, ok := v.(*goja.Object); ok {
		if p, ok := r.Primitive(o); ok {
			v = p
		} else {
			v = r.VM.ToValue(v.ToFloat())
		}
	}
	switch x := v.Export().(type) {
	case *big.Int:
		d, _ := intl.ParseDecimal(x.String())
		return d
	case string:
		if d, ok := intl.ParseDecimal(x); ok {
			return d
		}
	}
	return intl.Float(v.ToFloat())
}

// intlPieces makes what formatToParts returns. unit, if set, is added to all
// parts but the literals.
func (r *World) intlPieces(parts []intl.Part, unit string) goja.Value {
	list := make([]any, len(parts))
	for i, p := range parts {
		o := r.VM.NewObject()
		o.Set("type", p.Type)
		o.Set("value", p.Value)
		if unit != "" && p.Type != "literal" {
			o.Set("unit", unit)
		}
		list[i] = o
	}
	return r.VM.NewArray(list...)
}

func (r *World) intlFields(fields []intl.Field) goja.Value {
	o := r.VM.NewObject()
	for _, f := range fields {
		if list, ok := f.Value.([]string); ok {
			o.Set(f.Name, r.textArray(list))
			continue
		}
		o.Set(f.Name, f.Value)
	}
	return o
}

func (r *World) textArray(list []string) goja.Value {
	items := make([]any, len(list))
	for i, s := range list {
		items[i] = s
	}
	return r.VM.NewArray(items...)
}

// segments returns the pieces of a text as Intl.Segmenter gives them.
func (r *World) segments(text, granularity string) goja.Value {
	var list []any
	index := 0
	for _, s := range intl.Segments(text, granularity) {
		o := r.VM.NewObject()
		o.Set("segment", s.Text)
		o.Set("index", index)
		o.Set("input", text)
		if granularity == "word" {
			o.Set("isWordLike", s.Word)
		}
		list = append(list, o)
		for _, c := range s.Text {
			index++
			if c > 0xffff {
				index++
			}
		}
	}
	return r.VM.NewArray(list...)
}
