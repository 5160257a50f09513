package provenance

import (
	"maps"
	"slices"
	"strconv"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Secrets returns the strings in v, which stands at a dotted path in the arguments,
// that have a secret in them.
func Secrets(at string, v any) (all []profiles.CarriedFact) {
	below := func(name string, v any) {
		if at != "" {
			name = at + "." + name
		}
		all = append(all, Secrets(name, v)...)
	}
	switch v := v.(type) {
	case string:
		if len(canon.Secrets(v)) > 0 {
			all = append(all, profiles.CarriedFact{Param: at, What: "a secret", Secret: true})
		}
	case []any:
		for i, element := range v {
			below(strconv.Itoa(i), element)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below(name, v[name])
		}
	}
	return all
}
