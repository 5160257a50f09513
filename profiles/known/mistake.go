package known

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// A mistake is what is wrong at one place of a file.
type mistake struct {
	at   []string // the keys that lead there
	what string
}

func wrong(what string, args ...any) *mistake { return &mistake{what: fmt.Sprintf(what, args...)} }

// in adds the keys that lead to what m is about.
func (m *mistake) in(keys ...string) *mistake {
	if m != nil {
		m.at = slices.Concat(keys, m.at)
	}
	return m
}

func (m *mistake) String() string { return strings.Join(append(slices.Clone(m.at), m.what), ": ") }

// find returns where in the file m is; if there is no such key, where it should be.
func (m *mistake) find(tree *hujson.Value) int {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for n := len(m.at); n > 0; n-- {
		pointer := ""
		for _, key := range m.at[:n] {
			pointer += "/" + escape.Replace(key)
		}
		if v := tree.Find(pointer); v != nil {
			return v.StartOffset
		}
	}
	return 0
}

// sorted calls f for each entry of a map, sorted by keys, until it finds a mistake.
func sorted[V any](all map[string]V, f func(key string, v V) *mistake) *mistake {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if m := f(key, all[key]); m != nil {
			return m.in(key)
		}
	}
	return nil
}

// each is sorted for a list.
func each[V any](all []V, f func(i int, v V) *mistake) *mistake {
	for i, v := range all {
		if m := f(i, v); m != nil {
			return m.in(strconv.Itoa(i))
		}
	}
	return nil
}

// first returns the first mistake among several.
func first(all ...*mistake) *mistake {
	for _, m := range all {
		if m != nil {
			return m
		}
	}
	return nil
}
