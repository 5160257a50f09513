package gate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxSchema bounds the schemas that are compiled. Checking against larger ones is
// left to the upstream, which does it anyway.
const maxSchema = 256 << 10

// An argumentSchema is a tool's compiled input schema; nil inside if it has none
// or it could not be compiled.
type argumentSchema struct {
	mu     sync.Mutex // held while the schema is used, which counts in work
	work   *budget
	schema *jsonschema.Schema
}

// check reports what is wrong with a tool's arguments: that they do not fit the
// tool's own schema, or that two names in them could be taken for each other (see
// checkNames, which also makes the notes). A schema that is missing, odd, too large
// or refers to other documents checks nothing: the check only spares the model a
// round trip and protects nobody. The error contains no argument's value. By are
// the profiles that judge the call; the error does not name what they hide, either.
func (v *View) check(tool *catalog.Tool, args canon.Args, by []*profiles.Profile) (notes []string, wrong *ArgumentError) {
	tree := args.Value()
	if notes, wrong = v.checkNames(tool, tree, by); wrong != nil {
		return nil, wrong
	}
	err := v.argumentSchema(tool).validate(tree)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return notes, nil
	}
	problems := leaves(invalid)
	e := newArgumentError(tool, strings.Join(texts(problems, canon.DisplayOptions{Hidden: hiddenBy(by)}), "; "))
	e.Path = pointer(problems[0].InstanceLocation)
	return notes, e
}

// argumentSchema returns a tool's schema, compiled once.
func (v *View) argumentSchema(tool *catalog.Tool) *argumentSchema {
	known, ok := v.schemas.Load(tool.Digest)
	if !ok {
		work := new(budget)
		known, _ = v.schemas.LoadOrStore(tool.Digest, &argumentSchema{work: work, schema: compile(tool.Input, work)})
	}
	return known.(*argumentSchema)
}

// schemaOf returns a tool's compiled schema; nil if there is none.
func (v *View) schemaOf(tool *catalog.Tool) *jsonschema.Schema { return v.argumentSchema(tool).schema }

// hiddenBy returns the names of arguments that any rule of the profiles hides.
func hiddenBy(all []*profiles.Profile) map[string]string {
	hidden := map[string]string{}
	for _, p := range all {
		maps.Copy(hidden, p.Hidden())
	}
	return hidden
}

// validate returns what is wrong with the arguments; nil if they are right or if
// checking would take too long.
func (a *argumentSchema) validate(args any) (err error) {
	if a.schema == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() {
		if x := recover(); x == errWork {
			err = nil
		} else if x != nil {
			panic(x)
		}
	}()
	a.work.spent = 0
	return a.schema.Validate(args)
}

// compile reads a schema. References to other documents are not followed.
func compile(input json.RawMessage, work *budget) *jsonschema.Schema {
	if len(input) == 0 || len(input) > maxSchema {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil || !bounded(doc) {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "codemode:work", Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
		return work, nil
	}})
	c.AssertVocabs()
	if c.AddResource("tool:input", doc) != nil {
		return nil
	}
	schema, err := c.Compile("tool:input")
	if err != nil {
		return nil
	}
	return schema
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not fetched", url)
}

// leaves returns the errors at the ends of the tree, at most five.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if _, ok := e.ErrorKind.(*kind.PropertyNames); ok || len(e.Causes) == 0 { // the causes of a PropertyNames have no place
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
		if len(all) > 5 {
			return all[:5]
		}
	}
	return all
}

var english = message.NewPrinter(language.English)

// texts say what is wrong and where, in the script's terms. They quote the schema
// and never a value, since these errors are recorded and shown to people.
func texts(problems []*jsonschema.ValidationError, hidden canon.DisplayOptions) []string {
	var all []string
	for _, p := range problems {
		at := func(names ...string) string { return placeText(slices.Concat(p.InstanceLocation, names), hidden) }
		add := func(format string, args ...any) {
			all = append(all, canon.Clip(fmt.Sprintf(format, args...), maxProblem))
		}
		switch k := p.ErrorKind.(type) {
		case *kind.Required:
			for _, missing := range k.Missing {
				add("%s is missing", at(missing))
			}
		case *kind.AdditionalProperties:
			for _, extra := range k.Properties[:min(len(k.Properties), maxNoted)] {
				add("%s is not an argument of this tool", at(extra))
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
)

// placeText writes the path of an argument, such as args.to.0.name. It ends with
// the first name whose value is hidden, since everything below is part of that value.
func placeText(way []string, hidden canon.DisplayOptions) string {
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

// pointer writes a location as a JSON pointer. If that is too long, it points to the
// last value on the way that fits.
func pointer(location []string) string {
	var b strings.Builder
	for _, step := range location {
		if b.Len()+len(step) > maxPointer {
			break
		}
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// steps returns the names in a JSON pointer, in order.
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	all := strings.Split(pointer, "/")[1:]
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}
	return all
}
