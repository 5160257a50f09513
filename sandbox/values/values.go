package values

import (
	"math/big"
	"reflect"
	"strings"

	"github.com/dop251/goja"
)

var (
	bufferType  = reflect.TypeFor[goja.ArrayBuffer]()
	promiseType = reflect.TypeFor[*goja.Promise]()
	proxyType   = reflect.TypeFor[goja.Proxy]()
	mapType     = reflect.TypeFor[[][2]any]()
	setType     = reflect.TypeFor[[]any]()
)

// IsMap reports whether an object is a Map. The engine calls a Map's and a Set's
// class Object; what they would export to tells them apart from anything else.
func IsMap(o *goja.Object) bool { return o.ExportType() == mapType }

// IsSet reports whether an object is a Set.
func IsSet(o *goja.Object) bool { return o.ClassName() == "Object" && o.ExportType() == setType }

// AsPromise returns the promise that a value is, if it is one.
func AsPromise(v goja.Value) (*goja.Promise, bool) {
	o, ok := v.(*goja.Object)
	if !ok || o.ExportType() != promiseType {
		return nil, false
	}
	p, ok := o.Export().(*goja.Promise)
	return p, ok
}

// IsProxy reports whether an object is a Proxy.
func IsProxy(o *goja.Object) bool { return o.ExportType() == proxyType }

// IsArray is Array.isArray: a proxy of an array is one too.
func IsArray(o *goja.Object) bool {
	for range maxDepth {
		if o == nil {
			return false
		}
		if !IsProxy(o) {
			return o.ClassName() == "Array"
		}
		p, _ := o.Export().(goja.Proxy)
		o = p.Target()
	}
	return false
}

// Callable reports whether an object is a function.
func Callable(o *goja.Object) bool {
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

// Describe says in a few words what a value is.
func Describe(v goja.Value) string {
	if v == nil || goja.IsUndefined(v) {
		return "undefined"
	}
	if goja.IsNull(v) {
		return "null"
	}
	if o, ok := v.(*goja.Object); ok {
		if _, ok := AsPromise(o); ok {
			return "a promise"
		}
		switch {
		case Callable(o):
			return "a function"
		case IsArray(o):
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
		return "string " + string(AppendJSON(nil, Cut(v.String(), 40)))
	case bool:
		return "boolean " + v.String()
	case *big.Int:
		return "BigInt " + Cut(v.String(), 40)
	}
	return "number " + v.String()
}

// DescribeKind says of what kind a value is.
func DescribeKind(v goja.Value) string {
	d := Describe(v)
	if word, _, ok := strings.Cut(d, " "); ok && !strings.HasPrefix(d, "a") {
		return "a " + word
	}
	return d
}
