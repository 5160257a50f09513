package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/meant"
)

// unknownKey says what is wrong with a key that none of the fields has.
func unknownKey(key string, fields []field, s spot) (message, hint string) {
	keys := make([]string, 0, len(fields))
	for _, f := range fields {
		keys = append(keys, f.key)
		if f.alias != "" {
			keys = append(keys, f.alias)
		}
	}
	where := ""
	if s.path != "" {
		where = fmt.Sprintf(" in %q", s.name)
	}
	message = fmt.Sprintf("unknown key %+q%s", key, where) // %+q shows letters that look like others
	// The same letters in another case come first, then what is known of
	// other programs, then the sections that have the key and what it resembles.
	if i := slices.IndexFunc(keys, func(k string) bool { return meant.Fold(k) == meant.Fold(key) }); i >= 0 {
		return message, fmt.Sprintf("keys are exact: write %q", keys[i])
	}
	if hint, ok := meant.Elsewhere[key]; ok {
		return message, hint
	}
	hint = didYouMean(key, keys)
	if homes := homesOf()[key]; len(homes) > 0 {
		home := fmt.Sprintf("%q belongs in %s", key, strings.Join(homes, " or "))
		return message, strings.TrimSuffix(home+"; "+hint, "; ")
	}
	if hint != "" {
		return message, hint
	}
	if strings.HasPrefix(key, "//") || strings.Contains(key, "comment") {
		return message, `comments start with "//" and are not strings`
	}
	if len(keys) > 0 && len(keys) <= 24 {
		return message, "the keys here are " + strings.Join(keys, ", ")
	}
	return message, ""
}

// homesOf maps every key of the configuration to the sections that have it.
var homesOf = sync.OnceValue(func() map[string][]string {
	homes := map[string][]string{}
	var visit func(t reflect.Type, where string, depth int)
	visit = func(t reflect.Type, where string, depth int) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			if t.Kind() == reflect.Map {
				where += ".NAME"
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == valueType || depth > 6 {
			return
		}
		for _, f := range fieldsOf(t) {
			if where != "" && len(homes[f.key]) < 3 && !slices.Contains(homes[f.key], where) {
				homes[f.key] = append(homes[f.key], where)
			}
			visit(f.typ, strings.TrimPrefix(where+"."+f.key, "."), depth+1)
		}
	}
	visit(reflect.TypeFor[Config](), "", 0)
	return homes
})
