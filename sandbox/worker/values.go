package worker

import (
	"errors"
	"math/big"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

var (
	bufferType  = reflect.TypeFor[goja.ArrayBuffer]()
	promiseType = reflect.TypeFor[*goja.Promise]()
	proxyType   = reflect.TypeFor[goja.Proxy]()
	mapType     = reflect.TypeFor[[][2]any]()
	setType     = reflect.TypeFor[[]any]()
)

// The engine calls a Map's and a Set's class Object; what they would export
// to tells them apart from anything else.
func isMap(o *goja.Object) bool { return o.ExportType() == mapType }
func isSet(o *goja.Object) bool { return o.ClassName() == "Object" && o.ExportType() == setType }

// guard runs f, which may run script code, from outside of the engine or
// inside of it, and returns what it threw.
func (r *realm) guard(f func()) (err error) {
	defer func() {
		x := recover()
		if x == nil {
			return
		}
		var interrupted *goja.InterruptedError
		var overflow *goja.StackOverflowError
		switch x := x.(type) {
		case abort:
			err = x.err
		case error:
			if !errors.As(x, &interrupted) && !errors.As(x, &overflow) {
				panic(x)
			}
			err = x
		default:
			panic(x)
		}
	}()
	if ex := r.vm.Try(f); ex != nil {
		return ex
	}
	return nil
}

func asPromise(v goja.Value) (*goja.Promise, bool) {
	o, ok := v.(*goja.Object)
	if !ok || o.ExportType() != promiseType {
		return nil, false
	}
	p, ok := o.Export().(*goja.Promise)
	return p, ok
}

func isProxy(o *goja.Object) bool { return o.ExportType() == proxyType }

// isArray is Array.isArray: a proxy of an array is one too.
func isArray(o *goja.Object) bool {
	for range maxDepth {
		if o == nil {
			return false
		}
		if !isProxy(o) {
			return o.ClassName() == "Array"
		}
		p, _ := o.Export().(goja.Proxy)
		o = p.Target()
	}
	return false
}

func callable(o *goja.Object) bool {
	_, ok := goja.AssertFunction(o)
	return ok
}

// isInvalid reports whether a Date holds no time.
func isInvalid(o *goja.Object) bool {
	v := o.Get("getTime")
	f, ok := goja.AssertFunction(v)
	if !ok {
		return false
	}
	n, err := f(o)
	return err == nil && goja.IsNaN(n)
}

// primitive unwraps new Number(1) and its like.
func (r *realm) primitive(o *goja.Object) (goja.Value, bool) {
	switch x := o.Export().(type) {
	case int64, float64, bool:
		return r.vm.ToValue(x), true
	}
	return nil, false
}

// stringOf converts as String(v) does.
func (r *realm) stringOf(v goja.Value) goja.String {
	if s, ok := v.(goja.String); ok {
		return s
	}
	return r.vm.ToValue(v.String()).(goja.String)
}

// describe says in a few words what a value is.
func describe(v goja.Value) string {
	if v == nil || goja.IsUndefined(v) {
		return "undefined"
	}
	if goja.IsNull(v) {
		return "null"
	}
	if o, ok := v.(*goja.Object); ok {
		if _, ok := asPromise(o); ok {
			return "a promise"
		}
		switch {
		case callable(o):
			return "a function"
		case isArray(o):
			return "an array"
		case o.ClassName() == "Object":
			return "an object"
		}
		return article(o.ClassName())
	}
	if _, ok := v.(*goja.Symbol); ok {
		return "a symbol"
	}
	switch v.Export().(type) {
	case string:
		return "string " + string(appendJSONString(nil, cutText(v.String(), 40)))
	case bool:
		return "boolean " + v.String()
	case *big.Int:
		return "BigInt " + cutText(v.String(), 40)
	}
	return "number " + v.String()
}

func article(noun string) string {
	if strings.ContainsAny(noun[:min(1, len(noun))], "AEIOU") {
		return "an " + noun
	}
	return "a " + noun
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s as a JSON string. What is not UTF-8 (half of a
// surrogate pair) becomes U+FFFD.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += n
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// cutText cuts s to n bytes, between characters, and marks the cut.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	if n < len(mark) {
		return ""
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
