package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// A contract is docs/reference/openapi.yaml, to which every answer of the API in
// the tests of this package is held.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mux      *http.ServeMux // finds the path of the document that a request is to

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by place in the document
}

// theContract is read once: it is the same for all tests.
var theContract = sync.OnceValues(func() (*contract, error) {
	text, err := os.ReadFile("../../docs/reference/openapi.yaml")
	if err != nil {
		return nil, err
	}
	var raw any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	// As JSON has it: the numbers of YAML are others.
	asJSON, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(), mux: http.NewServeMux(), compiled: map[string]*jsonschema.Schema{}}
	c.compiler.AssertFormat()
	for path := range c.at("paths") {
		c.mux.Handle(path, http.NotFoundHandler())
	}
	return c, c.compiler.AddResource("openapi.json", doc)
})

// at is the object at a place in the document, nil if there is none.
func (c *contract) at(names ...string) map[string]any {
	here := c.doc
	for _, name := range names {
		here, _ = here[name].(map[string]any)
		if ref, ok := here["$ref"].(string); ok && name != "schema" {
			here = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return here
}

// answer says what the document does not allow of an answer of the API.
func (c *contract) answer(method, path string, status int, header http.Header, body []byte) error {
	_, route := c.mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: path}, Host: host})
	if method == http.MethodHead { // the handlers answer as to GET
		method = http.MethodGet
	}
	method = strings.ToLower(method)
	operation := c.at("paths", route, method)
	if operation == nil {
		// Of a path or method that is not there the document says that an
		// error comes.
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed && status != http.StatusForbidden {
			return fmt.Errorf("it is not documented, and answered with %d", status)
		}
		return c.meets("#/components/schemas/Error", body)
	}
	names := []string{"paths", route, method, "responses", fmt.Sprint(status)}
	documented := c.at(names...)
	if documented == nil {
		return fmt.Errorf("status %d is not documented: %s", status, body)
	}
	content, _ := documented["content"].(map[string]any)
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if content == nil {
		if len(body) > 0 {
			return fmt.Errorf("a body is not documented: %s %s", kind, body)
		}
		return nil
	}
	if content[kind] == nil {
		return fmt.Errorf("content type %q is not documented", kind)
	}
	if kind != "application/json" {
		return nil // events are checked as they come
	}
	if response, ok := c.at(names[:4]...)[names[4]].(map[string]any); ok && response["$ref"] != nil {
		return c.meets(response["$ref"].(string)+"/content/application~1json/schema", body)
	}
	return c.meets(fmt.Sprintf("#/paths/%s/%s/responses/%d/content/application~1json/schema", strings.ReplaceAll(route, "/", "~1"), method, status), body)
}

// readEvent reads an event of a stream; one that the document does not allow gets
// a type that no test waits for.
func readEvent(data []byte) (e Event) {
	c, err := theContract()
	if err == nil {
		err = c.meets("#/components/schemas/Event", data)
	}
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil {
		e.Type = "malformed: " + err.Error()
	}
	return e
}

// meets says what the schema at a place in the document does not allow of a
// body. A member that is not documented is not allowed.
func (c *contract) meets(place string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	schema := c.compiled[place]
	if schema == nil {
		var err error
		if schema, err = c.compiler.Compile("openapi.json" + place); err != nil {
			return err
		}
		c.compiled[place] = schema
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w in %s", err, body)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%w in %s", err, body)
	}
	if more := undocumented(schema, value); len(more) > 0 {
		return fmt.Errorf("%q are not documented: %s", more, body)
	}
	return nil
}

func TestTheContractRefuses(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	const me = `{"name":"ann","role":"admin","may":["look"]}`
	answers := func(method, path string, status int, kind, body string) error {
		return c.answer(method, path, status, http.Header{"Content-Type": {kind}}, []byte(body))
	}
	if err := answers("GET", "/api/me", 200, "application/json", me); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"a path":              answers("GET", "/api/you", 200, "application/json", me),
		"a method":            answers("PUT", "/api/me", 200, "application/json", me),
		"a status":            answers("GET", "/api/me", 204, "application/json", me),
		"a content type":      answers("GET", "/api/me", 200, "text/plain", me),
		"no body":             answers("GET", "/api/me", 200, "application/json", ""),
		"a value":             answers("GET", "/api/me", 200, "application/json", `{"role":"king"}`),
		"a member":            answers("GET", "/api/me", 200, "application/json", `{"token":"x"}`),
		"a member within":     answers("GET", "/api/runs", 200, "application/json", `{"runs":[{"run":"r1","token":"x"}]}`),
		"a member beside":     answers("GET", "/api/result/r1", 200, "application/json", `{"run":"r1","token":"x"}`),
		"an error":            answers("GET", "/api/me", 401, "application/json", `{"error":"no"}`),
		"an error's code":     answers("GET", "/api/me", 401, "application/json", `{"error":{"code":"no","message":"no"}}`),
		"an error of nowhere": answers("GET", "/api/you", 404, "text/plain", `nothing here`),
	} {
		if err == nil {
			t.Errorf("%s that is not documented passes", name)
		}
	}
	if e := readEvent([]byte(`{"type":"token","now":"2026-11-21T14:37:00Z"}`)); !strings.HasPrefix(e.Type, "malformed") {
		t.Errorf("an event that is not documented passes: %+v", e)
	}
}

// undocumented are the members of a value for which a schema has no word. A
// schema that names no members describes a free object.
func undocumented(s *jsonschema.Schema, value any) (all []string) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			if item := itemsOf(s); item != nil {
				all = append(all, undocumented(item, v)...)
			}
		}
	case map[string]any:
		named := map[string]*jsonschema.Schema{}
		if free := members(s, named); free || len(named) == 0 {
			return nil
		}
		for name, v := range value {
			if named[name] == nil {
				all = append(all, name)
			} else {
				all = append(all, undocumented(named[name], v)...)
			}
		}
	}
	slices.Sort(all)
	return all
}

func itemsOf(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Items2020 == nil && s.Ref != nil {
		return itemsOf(s.Ref)
	}
	return s.Items2020
}

// members collects the members that a schema names, and reports whether it has
// a word for all others.
func members(s *jsonschema.Schema, named map[string]*jsonschema.Schema) (free bool) {
	for name, schema := range s.Properties {
		named[name] = schema
	}
	free = s.AdditionalProperties != nil
	for _, part := range append(slices.Clone(s.AllOf), s.Ref) {
		if part != nil {
			free = members(part, named) || free
		}
	}
	return free
}
