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
	"codemode-bridge/bridge/misfit"
	"codemode-bridge/profiles"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSchema bounds the schemas that are compiled. Checking against larger ones is
// left to the upstream, which does it anyway.
const maxSchema = 256 << 10

// An argumentSchema is a tool's compiled input schema; nil inside if it has none
// or it could not be compiled.
type argumentSchema struct {
	mu     sync.Mutex // held while the schema is used, which counts in work
	work   *misfit.Budget
	schema *jsonschema.Schema
}

// check reports what is wrong with a tool's arguments: that they do not fit the
// tool's own schema, or that two names in them could be taken for each other (see
// checkNames, which also makes the notes). A schema that is missing, odd, too large
// or refers to other documents checks nothing: the check only spares the model a
// round trip and protects nobody. The error contains no argument's value. By are
// the profiles that judge the call; the error does not name what they hide, either.
func (v *View) check(tool *catalog.Tool, args canon.Args, by []*profiles.Profile) (notes []string, wrong *ArgumentError) {
	tree, schema := args.Value(), v.argumentSchema(tool)
	if notes, wrong = checkNames(tool, schema.schema, tree, by); wrong != nil {
		return nil, wrong
	}
	err := schema.validate(tree)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return notes, nil
	}
	problems := misfit.Leaves(invalid)
	e := newArgumentError(tool, strings.Join(misfit.Texts(problems, canon.DisplayOptions{Hidden: hiddenBy(by)}, tool.Arguments()), "; "))
	e.Path = misfit.Pointer(problems[0].InstanceLocation)
	return notes, e
}

// argumentSchema returns a tool's schema, compiled once.
func (v *View) argumentSchema(tool *catalog.Tool) *argumentSchema {
	known, ok := v.schemas.Load(tool.Digest)
	if !ok {
		work := &misfit.Budget{Most: misfit.MaxWork}
		known, _ = v.schemas.LoadOrStore(tool.Digest, &argumentSchema{work: work, schema: compile(tool.Input, work)})
	}
	return known.(*argumentSchema)
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
		if x := recover(); x == misfit.ErrWork {
			err = nil
		} else if x != nil {
			panic(x)
		}
	}()
	a.work.Spent = 0
	return a.schema.Validate(args)
}

// compile reads a schema. References to other documents are not followed.
func compile(input json.RawMessage, work *misfit.Budget) *jsonschema.Schema {
	if len(input) == 0 || len(input) > maxSchema {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil || !misfit.Bounded(doc) {
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
