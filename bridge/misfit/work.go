package misfit

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schema of a few hundred bytes can take practically forever to check, for instance
// if each part refers twice to the next. So the parts are counted before a schema is
// compiled, and again while it is used: schemas that refer to themselves go as deep
// as the arguments do.
const (
	MaxWork     = 50_000 // parts of a schema that are examined for one call
	maxDeep     = 100    // nesting of a schema
	maxPatterns = 8 << 10
)

// ErrWork is what Validate panics with.
var ErrWork = errors.New("the schema takes too long to check")

// Validate counts one part of a schema that is examined; it is added to each of them.
func (b *Budget) Validate(*jsonschema.ValidatorContext, any) {
	if b.Spent++; b.Spent > b.Most {
		panic(ErrWork)
	}
}

// Bounded reports whether a schema can be compiled and used in acceptable time.
func Bounded(doc any) bool {
	s := sizer{root: doc, known: map[string]int{}}
	return s.size(doc, 0) <= MaxWork
}

// A sizer counts the parts of a schema with what they refer to.
type sizer struct {
	root     any
	known    map[string]int // by reference; 1 while it is being counted
	patterns int            // bytes
}

const tooLarge = MaxWork + 1

// size counts the parts of v; tooLarge also stands for what cannot be counted.
func (s *sizer) size(v any, depth int) int {
	if depth > maxDeep {
		return tooLarge
	}
	n := 1
	add := func(more int) { n = min(n+more, tooLarge) }
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			add(s.size(one, depth+1))
		}
	case map[string]any:
		for key, one := range v {
			add(s.size(one, depth+1))
			text, isText := one.(string)
			_, isObject := one.(map[string]any)
			switch {
			case key == "$ref" && isText:
				add(s.refers(text))
			case isText && (key == "$dynamicRef" || key == "$recursiveRef" || (key == "$id" || key == "id") && depth > 0):
				add(tooLarge) // its target is not known
			case key == "pattern" && isText:
				s.patterns += len(text)
			case key == "patternProperties" && isObject:
				for pattern := range one.(map[string]any) {
					s.patterns += len(pattern)
				}
			}
		}
		if s.patterns > maxPatterns {
			add(tooLarge)
		}
	}
	return n
}

// refers counts the target of a reference, once.
func (s *sizer) refers(ref string) int {
	if n, ok := s.known[ref]; ok {
		return n
	}
	s.known[ref] = 1
	path, ok := strings.CutPrefix(ref, "#")
	if ok && path != "" {
		path, ok = strings.CutPrefix(path, "/")
	}
	if !ok {
		return tooLarge // a name, or another document
	}
	v := s.root
	for step := range strings.SplitSeq(path, "/") {
		if path == "" {
			break
		}
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return tooLarge
			}
			v = at[i]
		default:
			return tooLarge
		}
	}
	s.known[ref] = s.size(v, 0)
	return s.known[ref]
}
