// Package misfit says in words where the arguments of a call do not fit its tool's
// schema. The words quote the schema and never a value: they are recorded and shown to
// people.
package misfit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/meant"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Leaves returns the errors at the ends of the tree, at most five.
func Leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if _, ok := e.ErrorKind.(*kind.PropertyNames); ok || len(e.Causes) == 0 { // the causes of a PropertyNames have no place
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, Leaves(cause)...)
		if len(all) > 5 {
			return all[:5]
		}
	}
	return all
}

var english = message.NewPrinter(language.English)

// Texts say what is wrong and where, in the script's terms. Arguments are the names that
// the tool takes: one of them may be what a name that it does not take was meant to be.
func Texts(problems []*jsonschema.ValidationError, hidden canon.DisplayOptions, arguments []string) []string {
	var all []string
	for _, p := range problems {
		at := func(names ...string) string { return Place(slices.Concat(p.InstanceLocation, names), hidden) }
		add := func(format string, args ...any) {
			all = append(all, canon.Clip(fmt.Sprintf(format, args...), maxProblem))
		}
		switch k := p.ErrorKind.(type) {
		case *kind.Required:
			for _, missing := range k.Missing {
				add("%s is missing", at(missing))
			}
		case *kind.AdditionalProperties:
			for _, extra := range k.Properties[:min(len(k.Properties), MaxNoted)] {
				like := ""
				if len(p.InstanceLocation) == 0 {
					like = meant.By(extra, arguments)
				}
				if like != "" {
					add("%s is not an argument of this tool: did you mean %s?", at(extra), like)
				} else {
					add("%s is not an argument of this tool", at(extra))
				}
			}
		case *kind.PropertyNames:
			add("%s is not a name that the tool takes there", at(k.Property))
		case *kind.Type:
			add("%s must be %s, got %s", at(), strings.Join(k.Want, " or "), k.Got)
		case *kind.Pattern:
			add("%s does not match the pattern %q", at(), k.Want)
		case *kind.Format:
			add("%s is not a valid %v", at(), k.Want)
		case *kind.Minimum:
			add("%s must be at least %s", at(), k.Want.RatString())
		case *kind.ExclusiveMinimum:
			add("%s must be more than %s", at(), k.Want.RatString())
		case *kind.Maximum:
			add("%s must be at most %s", at(), k.Want.RatString())
		case *kind.ExclusiveMaximum:
			add("%s must be less than %s", at(), k.Want.RatString())
		case *kind.MultipleOf:
			add("%s must be a multiple of %s", at(), k.Want.RatString())
		case *kind.MinLength:
			add("%s must have at least %d characters", at(), k.Want)
		case *kind.MaxLength:
			add("%s must have at most %d characters", at(), k.Want)
		case *kind.Enum, *kind.Const, *kind.Not, *kind.AnyOf, *kind.OneOf, *kind.FalseSchema, *kind.Contains, *kind.UniqueItems,
			*kind.MinItems, *kind.MaxItems, *kind.AdditionalItems, *kind.MinProperties, *kind.MaxProperties, *kind.DependentRequired, *kind.Dependency:
			add("%s: %s", at(), p.ErrorKind.LocalizedString(english)) // says what is expected, with numbers
		default:
			add("%s does not fit %s", at(), cmp.Or(strings.Join(p.ErrorKind.KeywordPath(), "."), "the schema"))
		}
	}
	for i := range all {
		all[i] = canon.Escape(all[i])
	}
	return all
}

const (
	maxProblem = 500 // bytes of one problem with the arguments
	maxStep    = 100 // bytes of one name within a place

	// MaxNoted is how many names one problem, or the notes of a record, list.
	MaxNoted = 5
)

// Place writes the path of an argument, such as args.to.0.name. It ends with
// the first name whose value is hidden, since everything below is part of that value.
func Place(way []string, hidden canon.DisplayOptions) string {
	place := "args"
	for _, name := range way {
		place += "." + canon.Clip(name, maxStep)
		if hidden.Hides(name) {
			break
		}
	}
	return place
}

// maxPointer bounds the pointer of an ArgumentError, in bytes.
const maxPointer = 200

// Pointer writes a location as a JSON pointer. If that is too long, it points to the
// last value on the way that fits.
func Pointer(location []string) string {
	var b strings.Builder
	for _, step := range location {
		if b.Len()+len(step) > maxPointer {
			break
		}
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// Steps returns the names in a JSON pointer, in order.
func Steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	all := strings.Split(pointer, "/")[1:]
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}
	return all
}
