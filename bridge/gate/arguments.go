package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxSchema bounds the schemas that are compiled. Larger ones are left to the
// upstream, which checks its arguments anyway.
const maxSchema = 256 << 10

// An argumentSchema is a tool's compiled input schema; nil inside if there is
// none that could be compiled.
type argumentSchema struct {
	mu     sync.Mutex // held while the schema is used, which counts in work
	work   *budget
	schema *jsonschema.Schema
}

// check reports what is wrong with a tool's arguments by the tool's own
// schema. A schema that is missing, odd, large or refers to elsewhere checks
// nothing: the check spares the model a round trip and protects nobody.
func (v *View) check(tool *catalog.Tool, args canon.Args) *ArgumentError {
	known, ok := v.schemas.Load(tool.Digest)
	if !ok {
		work := new(budget)
		known, _ = v.schemas.LoadOrStore(tool.Digest, &argumentSchema{work: work, schema: compile(tool.Input, work)})
	}
	err := known.(*argumentSchema).validate(anyMap(args))
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil
	}
	problems := leaves(invalid)
	e := newArgumentError(tool, strings.Join(texts(problems), "; "))
	e.Path = pointer(problems[0].InstanceLocation)
	return e
}

func anyMap(args canon.Args) any { return args.Value() }

// validate returns the error of the arguments, nil if there is none or if it would
// take too long to find out.
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

// leaves are the errors at the ends of the tree, at most five of them.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
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

// texts say what is wrong where, in the script's terms.
func texts(problems []*jsonschema.ValidationError) []string {
	var all []string
	for _, p := range problems {
		place := "args"
		for _, step := range p.InstanceLocation {
			place += "." + step
		}
		switch k := p.ErrorKind.(type) {
		case *kind.Required:
			for _, missing := range k.Missing {
				all = append(all, place+"."+missing+" is missing")
			}
		case *kind.AdditionalProperties:
			for _, extra := range k.Properties {
				all = append(all, place+"."+extra+" is not an argument of this tool")
			}
		case *kind.Type:
			all = append(all, fmt.Sprintf("%s must be %s, got %s", place, strings.Join(k.Want, " or "), k.Got))
		default:
			all = append(all, place+": "+p.ErrorKind.LocalizedString(english))
		}
	}
	for i := range all {
		all[i] = canon.Visible(all[i])
	}
	return all
}

// pointer writes a location as a JSON pointer.
func pointer(location []string) string {
	var b strings.Builder
	for _, step := range location {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}
