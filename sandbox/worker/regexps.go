package worker

import (
	"reflect"
	"regexp"

	"github.com/dop251/goja/ast"
)

var unicodeClass = regexp.MustCompile(`\\[pP]\{`)

// repairRegexps mends literals that goja reads silently wrong: /\p{L}/u
// matches the letters "p{L}" unless something sends the pattern to the engine
// that knows \p. An empty look-ahead does.
func repairRegexps(s *scriptText) {
	if !unicodeClass.MatchString(s.text) {
		return
	}
	eachNode(reflect.ValueOf(s.program.Body), 0, func(n any) {
		if lit, ok := n.(*ast.RegExpLiteral); ok && unicodeClass.MatchString(lit.Pattern) {
			lit.Pattern += "(?=)"
		}
	})
}

// eachNode calls f for every pointer below v. It is only used for scripts
// that need a repair, so it can afford reflection.
func eachNode(v reflect.Value, depth int, f func(any)) {
	if depth > maxDepth {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			eachNode(v.Elem(), depth+1, f)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || v.Type().Elem().PkgPath() != astPath {
			return
		}
		f(v.Interface())
		eachNode(v.Elem(), depth+1, f)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "DeclarationList" {
				eachNode(v.Field(i), depth+1, f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachNode(v.Index(i), depth+1, f)
		}
	}
}

var astPath = reflect.TypeFor[ast.Program]().PkgPath()
