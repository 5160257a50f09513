package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The library follows references by recursion, and reads what is at the end of one
// each time anew. So a few kilobytes can keep it busy for hours, and a few megabytes
// can overflow the stack, which ends the process. A survey looks at each file before
// the library does, and refuses what no person writes.
const (
	maxNesting = 100     // of values in a file
	maxHops    = 50      // references that only lead to another
	maxWay     = 200_000 // values on the longest path along references
)

// A survey is what is known of the files that were read.
type survey struct {
	files   map[string]any             // by address
	wanted  map[string]map[string]bool // references into files that were not read yet
	reached map[string]bool            // what references lead to
	way     int                        // sum of the depths of all that is reached: no path is longer
}

func newSurvey() *survey {
	return &survey{files: map[string]any{}, wanted: map[string]map[string]bool{}, reached: map[string]bool{}}
}

// add surveys one more file.
func (s *survey) add(at *url.URL, data []byte) error {
	var root any
	if noJSON := json.Unmarshal(data, &root); noJSON != nil { // as the library reads it
		if err := yaml.Unmarshal(data, &root); err != nil {
			return fmt.Errorf("it is neither JSON (%v) nor YAML (%w)", noJSON, err)
		}
		root = named(root)
	}
	file := address(at)
	s.files[file] = root
	refs, deep := references(root, at)
	if deep > maxNesting {
		return errTooDeep
	}
	if s.way += deep; s.way > maxWay {
		return errTooLong
	}
	for ref := range s.wanted[file] {
		if err := s.follow(ref); err != nil {
			return err
		}
	}
	delete(s.wanted, file)
	for _, ref := range refs {
		if s.reached[ref] {
			continue
		}
		s.reached[ref] = true
		if err := s.follow(ref); err != nil {
			return err
		}
	}
	return nil
}

// named turns the keys in a value of YAML into strings, as JSON has them.
func named(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = named(value)
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[fmt.Sprint(key)] = named(value)
		}
		return out
	case []any:
		for i, value := range v {
			v[i] = named(value)
		}
	}
	return v
}

var (
	errTooDeep = fmt.Errorf("it is nested more than %d deep", maxNesting)
	errTooLong = errors.New("its references lead too far")
)

// address is the name of a file.
func address(at *url.URL) string {
	u := *at
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// references returns the addresses that a value refers to, and how deeply it is
// nested.
func references(v any, at *url.URL) (refs []string, deep int) {
	var below []any
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if to, err := at.Parse(ref); err == nil { // else it leads nowhere
				refs = append(refs, address(to)+"#"+to.Fragment)
			}
		}
		below = slices.Collect(maps.Values(v))
	case []any:
		below = v
	default:
		return nil, 0
	}
	for _, one := range below {
		more, n := references(one, at)
		refs, deep = append(refs, more...), max(deep, n)
	}
	return refs, deep + 1
}

// follow counts what a reference leads to.
func (s *survey) follow(ref string) error {
	for hops := 0; ; hops++ {
		file, pointer, _ := strings.Cut(ref, "#")
		root, read := s.files[file]
		if !read {
			if s.wanted[file] == nil {
				s.wanted[file] = map[string]bool{}
			}
			s.wanted[file][ref] = true
			return nil
		}
		v, on := find(root, pointer)
		if on == "" {
			_, deep := references(v, &url.URL{})
			if s.way += deep + hops; s.way > maxWay {
				return errTooLong
			}
			return nil
		}
		base, err := url.Parse(file)
		if err != nil {
			return nil // it has been read from there
		}
		to, err := base.Parse(on)
		if err != nil {
			return nil
		}
		if hops == maxHops {
			return fmt.Errorf("it has a reference that leads to another, and so on, more than %d times", maxHops)
		}
		ref = address(to) + "#" + to.Fragment
	}
}

// find returns what a pointer leads to or, if that or something on the way is a
// reference itself, where that leads.
func find(v any, pointer string) (found any, on string) {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if pointer == "" || pointer == "/" {
		steps = nil
	}
	for i := 0; ; i++ {
		object, isObject := v.(map[string]any)
		if ref, ok := object["$ref"].(string); ok && isObject {
			to, fragment, _ := strings.Cut(ref, "#")
			return nil, to + "#" + strings.Join(append([]string{fragment}, steps[i:]...), "/")
		}
		if i == len(steps) {
			return v, ""
		}
		step := strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
		if list, ok := v.([]any); ok {
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(list) {
				return nil, ""
			}
			v = list[n]
			continue
		}
		v = object[step]
	}
}
