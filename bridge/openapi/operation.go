package openapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of a document's operations.
const (
	maxOperations = 10_000
	maxParameters = 200 // of an operation
)

// An operation is one operation of the document, ready to be called.
type operation struct {
	name, title, description string
	method                   string
	path                     string // as the document has it
	template                 []piece
	parameters               []parameter
	body                     *body // nil if it takes none
	accept                   string
	security                 []string // schemes whose credentials are sent
	wanting                  []string // schemes that are wanted, and have no credentials
	input                    json.RawMessage
	output                   json.RawMessage // nil if there is no JSON answer
}

// A piece of a path is literal text, encoded, or the place of a parameter.
type piece struct{ literal, parameter string }

// methods are those whose operations become tools.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// operations returns those that can be called, sorted by name, and why the others
// cannot.
func operations(ctx context.Context, doc *openapi3.T, c *credentials) (all []*operation, left []string, err error) {
	if doc.Paths == nil || doc.Paths.Len() == 0 {
		return nil, nil, errors.New("it has no paths")
	}
	names := map[string][]*operation{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		if item == nil {
			continue
		}
		for _, method := range methods {
			found := item.GetOperation(method)
			if found == nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			if len(all) == maxOperations {
				return nil, nil, fmt.Errorf("it has more than %d operations", maxOperations)
			}
			op, err := newOperation(doc, c, path, method, item, found)
			if err != nil {
				left = append(left, fmt.Sprintf("%s %s: %v", method, cut(path, 200), err))
				continue
			}
			all = append(all, op)
			names[op.name] = append(names[op.name], op)
		}
	}
	for _, same := range names {
		for _, op := range same {
			if len(same) > 1 { // all of them: which comes first may change
				op.name += "_" + op.digest()
			}
		}
	}
	slices.SortFunc(all, func(a, b *operation) int { return strings.Compare(a.name, b.name) })
	return all, left, nil
}

// digest distinguishes the operation from all others, whatever their names are.
func (op *operation) digest() string {
	sum := sha256.Sum256([]byte(op.method + " " + op.path))
	return hex.EncodeToString(sum[:4])
}

func newOperation(doc *openapi3.T, c *credentials, path, method string, item *openapi3.PathItem, o *openapi3.Operation) (*operation, error) {
	op := &operation{method: method, path: path, title: cut(strings.TrimSpace(o.Summary), 100)}
	op.name = op.toolName(o.OperationID)
	if err := elsewhereServed(doc, item, o); err != nil {
		return nil, err
	}
	op.description = op.describe(o)
	if err := op.takeParameters(slices.Concat(item.Parameters, o.Parameters), c); err != nil {
		return nil, err
	}
	var err error
	if op.template, err = op.parseTemplate(path); err != nil {
		return nil, err
	}
	if o.RequestBody != nil && o.RequestBody.Value != nil {
		op.body = newBody(o.RequestBody.Value)
	}
	op.resolveClashes()
	op.input = op.describeInput()
	op.takeResponses(o.Responses)
	op.security, op.wanting = c.choose(doc, o)
	return op, nil
}

// toolName is the operation's id or, without one, its method and path.
func (op *operation) toolName(id string) string {
	name := strings.Trim(notInName.ReplaceAllString(id, "_"), "_")
	if name == "" {
		path := strings.Trim(notInName.ReplaceAllString(op.path, "_"), "_")
		name = strings.TrimSuffix(strings.ToLower(op.method)+"_"+path, "_")
	}
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName-9], "_") + "_" + op.digest()
	}
	return name
}

func (op *operation) describe(o *openapi3.Operation) string {
	var parts []string
	if o.Deprecated {
		parts = append(parts, "Deprecated.")
	}
	summary, text := strings.TrimSpace(o.Summary), strings.TrimSpace(o.Description)
	if summary != "" && !strings.HasPrefix(text, summary) {
		parts = append(parts, cut(summary, maxNote))
	}
	if text != "" {
		parts = append(parts, cut(text, maxText))
	}
	parts = append(parts, op.method+" "+cut(op.path, maxNote))
	return strings.Join(parts, "\n\n")
}

// tool describes an operation.
func (op *operation) tool() *mcp.Tool {
	yes, no := true, false
	notes := &mcp.ToolAnnotations{Title: op.title}
	switch op.method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		notes.ReadOnlyHint, notes.DestructiveHint, notes.IdempotentHint = true, &no, true
	case http.MethodPut:
		notes.IdempotentHint = true
	case http.MethodDelete:
		notes.IdempotentHint, notes.DestructiveHint = true, &yes
	}
	t := &mcp.Tool{Name: op.name, Title: op.title, Description: op.description, InputSchema: op.input, Annotations: notes}
	if op.output != nil {
		t.OutputSchema = op.output
	}
	return t
}

// elsewhereServed refuses an operation that has a server of its own in the document:
// the configuration has one base URL, and its credentials are for that.
func elsewhereServed(doc *openapi3.T, item *openapi3.PathItem, o *openapi3.Operation) error {
	own := item.Servers
	if o.Servers != nil {
		own = *o.Servers
	}
	if len(own) == 0 {
		return nil
	}
	for _, s := range own {
		for _, d := range doc.Servers {
			if s != nil && d != nil && s.URL == d.URL {
				return nil
			}
		}
	}
	return errors.New("the document has another server for it than for the rest")
}

// takeParameters takes the parameters that an argument may set. Of two with the same
// name and place the last counts: those of the operation come after the path's.
func (op *operation) takeParameters(refs openapi3.Parameters, c *credentials) error {
	if len(refs) > maxParameters { // they are compared with each other
		return fmt.Errorf("it has more than %d parameters", maxParameters)
	}
	for _, ref := range refs {
		if ref == nil || ref.Value == nil {
			return errors.New("a parameter refers to nothing")
		}
		p := ref.Value
		if c.fixed(p.In, p.Name) || p.In == openapi3.ParameterInHeader && (slices.Contains(noHeader, strings.ToLower(p.Name)) || !headerName.MatchString(p.Name)) {
			continue
		}
		how, err := p.SerializationMethod()
		if err != nil {
			return fmt.Errorf("the parameter %q is in no known place", cut(p.Name, maxName))
		}
		one := parameter{
			arg: p.Name, name: p.Name, in: p.In, style: how.Style, explode: how.Explode, reserved: p.AllowReserved,
			required: p.Required || p.In == openapi3.ParameterInPath, schema: p.Schema, note: p.Description,
		}
		if p.Schema == nil {
			for _, media := range p.Content {
				one.json = true
				if media != nil {
					one.schema = media.Schema
				}
			}
		}
		op.parameters = slices.DeleteFunc(op.parameters, func(old parameter) bool { return old.name == one.name && old.in == one.in })
		op.parameters = append(op.parameters, one)
	}
	return nil
}

// hole is the place of a parameter in a path.
var hole = regexp.MustCompile(`\{([^{}]*)\}`)

// parseTemplate splits the path, and drops path parameters that it has no place for.
func (op *operation) parseTemplate(path string) ([]piece, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, errors.New("its path does not begin with a slash")
	}
	var pieces []piece
	used := map[string]bool{}
	last := 0
	for _, at := range hole.FindAllStringSubmatchIndex(path, -1) {
		name := path[at[2]:at[3]]
		if !slices.ContainsFunc(op.parameters, func(p parameter) bool { return p.in == openapi3.ParameterInPath && p.name == name }) {
			return nil, fmt.Errorf("its path has {%s}, and it has no such parameter", cut(name, maxName))
		}
		used[name] = true
		pieces = append(pieces, piece{literal: path[last:at[0]]}, piece{parameter: name})
		last = at[1]
	}
	pieces = append(pieces, piece{literal: path[last:]})
	whole := ""
	for i, p := range pieces {
		if strings.ContainsAny(p.literal, `?#\{}`) {
			return nil, errors.New("its path holds more than a path")
		}
		pieces[i].literal = literal(p.literal)
		whole += cmp.Or(pieces[i].literal, "x") // a value is judged when it is known
	}
	if err := checkSegments(whole); err != nil {
		return nil, err
	}
	op.parameters = slices.DeleteFunc(op.parameters, func(p parameter) bool { return p.in == openapi3.ParameterInPath && !used[p.name] })
	return pieces, nil
}

// bodyArg is the argument that holds the request's body.
const bodyArg = "body"

// resolveClashes renames parameters that would be arguments of the same name: their
// names then say where they are sent.
func (op *operation) resolveClashes() {
	count := map[string]int{}
	if op.body != nil {
		count[bodyArg]++
	}
	for _, p := range op.parameters {
		count[p.arg]++
	}
	taken := maps.Clone(count)
	for i := range op.parameters {
		p := &op.parameters[i]
		if count[p.arg] < 2 {
			continue
		}
		p.arg = p.name + "_in_" + p.in
		for taken[p.arg] > 0 {
			p.arg += "_"
		}
		taken[p.arg]++
		p.note = strings.TrimSpace(fmt.Sprintf("%q in the %s. %s", p.name, p.in, p.note))
	}
}

// describeInput returns the JSON Schema of the arguments.
func (op *operation) describeInput() json.RawMessage {
	return describe(false, func(d *describer) map[string]any {
		properties := map[string]any{}
		required := []string{}
		for _, p := range op.parameters {
			properties[p.arg] = withNote(d.schema(p.schema, 1), p.note)
			if p.required {
				required = append(required, p.arg)
			}
		}
		if op.body != nil {
			properties[bodyArg] = withNote(op.body.describe(d), op.body.note)
			if op.body.required {
				required = append(required, bodyArg)
			}
		}
		out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	})
}

// takeResponses learns what a successful answer holds.
func (op *operation) takeResponses(responses *openapi3.Responses) {
	var types []string
	var schema *openapi3.SchemaRef
	for _, status := range slices.Sorted(maps.Keys(responses.Map())) {
		ref := responses.Value(status)
		if !strings.HasPrefix(status, "2") || ref == nil || ref.Value == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(ref.Value.Content)) {
			media := ref.Value.Content[name]
			types = append(types, name)
			if schema == nil && media != nil && isJSON(name) {
				schema = media.Schema
			}
		}
	}
	slices.SortStableFunc(types, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	types = slices.DeleteFunc(slices.Compact(types), func(t string) bool { return !printable(t) })
	op.accept = strings.Join(append(types[:min(len(types), 5)], "*/*;q=0.1"), ", ")
	if schema == nil || schema.Value == nil {
		return
	}
	op.output = describe(true, func(d *describer) map[string]any {
		out, ok := d.body(schema.Value, 0).(map[string]any)
		if !ok {
			out = map[string]any{}
		}
		return out
	})
}

// rank puts JSON before the rest.
func rank(mediaType string) int {
	if isJSON(mediaType) {
		return 0
	}
	return 1
}
