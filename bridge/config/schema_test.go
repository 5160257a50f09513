package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"codemode-bridge/bridge/builtin"
	"codemode-bridge/bridge/strict"
	"codemode-bridge/profiles"
)

const (
	schemaFile    = "../../docs/reference/config.schema.json"
	referenceFile = "../../docs/reference/config.md"
)

// A node is a part of the schema, as far as these tests look at it.
type node struct {
	Description string           `json:"description"`
	Default     json.RawMessage  `json:"default"`
	XDefault    string           `json:"x-default"`
	XRange      string           `json:"x-range"`
	Type        string           `json:"type"`
	Enum        []any            `json:"enum"`
	Ref         string           `json:"$ref"`
	AllOf       []node           `json:"allOf"`
	AnyOf       []node           `json:"anyOf"`
	Items       *node            `json:"items"`
	Properties  map[string]*node `json:"properties"`
	Additional  json.RawMessage  `json:"additionalProperties"`
	Minimum     *int64           `json:"minimum"`
	Maximum     *int64           `json:"maximum"`
	Definitions map[string]*node `json:"definitions"`
}

func readSchema(t *testing.T) (*node, *jsonschema.Schema) {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	root := &node{}
	if err := json.Unmarshal(text, root); err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("config.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return root, schema
}

// resolve follows references until it meets a node that says something.
func (root *node) resolve(n *node) *node {
	for {
		switch {
		case n.Ref != "":
			n = root.Definitions[strings.TrimPrefix(n.Ref, "#/definitions/")]
		case n.Properties == nil && len(n.AllOf) == 1:
			n = &n.AllOf[0]
		default:
			return n
		}
	}
}

// inner returns the schema of the elements of a list or map.
func (root *node) inner(n *node) *node {
	n = root.resolve(n)
	if n.Items != nil {
		return root.resolve(n.Items)
	}
	if len(n.Additional) > 0 && n.Additional[0] == '{' {
		inner := &node{}
		if err := json.Unmarshal(n.Additional, inner); err == nil {
			return root.resolve(inner)
		}
	}
	return nil
}

// visit calls each for every key of the schema with the Go field of that key,
// and complains of keys and fields without the other.
func visit(t *testing.T, root *node, n *node, typ reflect.Type, path string, each func(path string, n *node, f field)) {
	t.Helper()
	n = root.resolve(n)
	if string(n.Additional) != "false" {
		t.Errorf("%s: the schema lets unknown keys through", path)
	}
	keys := map[string]bool{}
	for _, f := range fieldsOf(typ) {
		for _, key := range []string{f.key, f.alias} {
			if key == "" {
				continue
			}
			keys[key] = true
			below := strings.TrimPrefix(path+"."+key, ".")
			p, ok := n.Properties[key]
			if !ok {
				t.Errorf("%s is not in the schema", below)
				continue
			}
			each(below, p, f)
			inner, deeper := p, f.typ
			for ; ; deeper = deeper.Elem() {
				if deeper.Kind() == reflect.Slice && deeper != rawType {
					inner, below = root.inner(inner), below+"[]"
				} else if deeper.Kind() == reflect.Map {
					inner, below = root.inner(inner), below+".NAME"
				} else if deeper.Kind() != reflect.Pointer {
					break
				}
				if inner == nil {
					break
				}
			}
			if deeper.Kind() == reflect.Struct && !opaque(deeper) {
				if inner == nil {
					t.Errorf("%s: the schema has nothing below it", below)
					continue
				}
				visit(t, root, inner, deeper, below, each)
			}
		}
	}
	for key := range n.Properties {
		if !keys[key] {
			t.Errorf("%s.%s is in the schema, but in no Go type", path, key)
		}
	}
}

// opaque reports whether a type reads itself, so that its fields are no keys.
func opaque(t reflect.Type) bool {
	return t == valueType || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func TestSchemaIsTheGoTypes(t *testing.T) {
	root, _ := readSchema(t)
	count := 0
	visit(t, root, root, reflect.TypeFor[Config](), "", func(path string, n *node, f field) {
		count++
		if n.Description == "" || !strings.HasSuffix(n.Description, ".") {
			t.Errorf("%s has no description that ends in a full stop", path)
		}
		if (n.Default == nil) == (n.XDefault == "") {
			t.Errorf("%s needs either a default or, in x-default, words for it", path)
		}
		low, high, bounded := strings.Cut(f.tag.Get("range"), "..")
		switch {
		case !bounded:
		case f.typ.Kind() == reflect.Int:
			got := "no bounds"
			if n.Minimum != nil && n.Maximum != nil {
				got = fmt.Sprintf("%v..%v", *n.Minimum, *n.Maximum)
			}
			if got != f.tag.Get("range") {
				t.Errorf("%s goes from %s to %s in Go, and has %s in the schema", path, low, high, got)
			}
		case n.XRange != f.tag.Get("range"):
			t.Errorf("%s goes from %s to %s in Go, and %q in the schema", path, low, high, n.XRange)
		}
	})
	// ParamSpec decodes itself within When, and is in the schema all the same.
	visit(t, root, root.Definitions["param"], reflect.TypeFor[profiles.ParamSpec](), "param", func(string, *node, field) {})
	if count < 80 {
		t.Errorf("only %d keys were seen", count)
	}
}

// around are the smallest configurations in which a key can stand. The last
// word of each is the object that gets the key.
var around = []struct{ section, before, after string }{
	{"servers.NAME.confine.", `{"servers": {"a": {"command": "x", "confine": {`, `}}}}`},
	{"servers.NAME.tools.", `{"servers": {"a": {"command": "x", "tools": {`, `}}}}`},
	{"servers.NAME.url", `{"servers": {"a": {`, `}}}`},
	{"servers.NAME.headers", `{"servers": {"a": {"url": "https://example.com", `, `}}}`},
	{"servers.NAME.credentials", `{"servers": {"a": {"openapi": "a.yaml", "url": "https://example.com", `, `}}}`},
	{"servers.NAME.", `{"servers": {"a": {"command": "x", `, `}}}`},
	{"mcpServers.NAME.tools.", `{"mcpServers": {"a": {"command": "x", "tools": {`, `}}}}`},
	{"mcpServers.NAME.headers", `{"mcpServers": {"a": {"url": "https://example.com", `, `}}}`},
	{"mcpServers.NAME.credentials", `{"mcpServers": {"a": {"openapi": "a.yaml", "url": "https://example.com", `, `}}}`},
	{"mcpServers.NAME.", `{"mcpServers": {"a": {"command": "x", `, `}}}`},
	{"sandbox.", `{"sandbox": {`, `}}`},
	{"http.auth.", `{"http": {"auth": {"issuer": "https://login.example.com", "resource": "https://bridge.example.com/mcp", `, `}}}`},
	{"http.", `{"http": {`, `}}`},
	{"windows.", `{"windows": {`, `}}`},
	{"secrets.", `{"secrets": {`, `}}`},
	{"scripts.", `{"scripts": {`, `}}`},
	{"runs.", `{"runs": {`, `}}`},
	{"audit.", `{"audit": {`, `}}`},
	{"approvals.approvers[].", `{"approvals": {"approvers": [{"name": "a", "token": "${BRIDGE_TOKEN}", `, `}]}}`},
	{"approvals.", `{"approvals": {`, `}}`},
	{"log.", `{"log": {`, `}}`},
	{"evaluation.risk.low.quorum.", `{"evaluation": {"risk": {"low": {"quorum": {"need": 1, `, `}}}}}`},
	{"evaluation.risk.low.", `{"evaluation": {"risk": {"low": {`, `}}}}`},
	{"evaluation.risk.", `{"evaluation": {"risk": {`, `}}}`},
	{"evaluation.profiles.NAME.rules[].", `{"evaluation": {"profiles": {"p": {"rules": [{"tools": ["a__b"], "action": "ask", `, `}]}}}}`},
	{"evaluation.profiles.NAME.flows[].observe", `{"evaluation": {"profiles": {"p": {"flows": [{"from": "private", "to": "external", "action": "ask", "by": "content", `, `}]}}}}`},
	{"evaluation.profiles.NAME.flows[].", `{"evaluation": {"profiles": {"p": {"flows": [{`, `}]}}}}`},
	{"evaluation.profiles.NAME.", `{"evaluation": {"profiles": {"p": {`, `}}}}`},
	{"evaluation.", `{"evaluation": {`, `}}`},
	{"", `{`, `}`},
}

// A default that the schema names is what the program takes: written down, it
// changes nothing.
func TestSchemaDefaults(t *testing.T) {
	root, schema := readSchema(t)
	tried := 0
	visit(t, root, root, reflect.TypeFor[Config](), "", func(path string, n *node, f field) {
		if n.Default == nil {
			return
		}
		for _, a := range around {
			rest, ok := strings.CutPrefix(path, a.section)
			if !ok || strings.ContainsAny(rest, ".[") {
				continue
			}
			key := path[strings.LastIndexByte(path, '.')+1:]
			before := strings.TrimSuffix(a.before, ", ") + a.after
			after := fmt.Sprintf("%s%q: %s%s", a.before, key, n.Default, a.after)
			without, with := mustParse(t, "c.json", before), mustParse(t, "c.json", after)
			without.Evaluation, with.Evaluation = Evaluation{}, Evaluation{} // holds what was written
			if without.String() != with.String() {
				t.Errorf("%s is not %s by default:\n%s\nis\n%s", path, n.Default, before, without)
			}
			validates(t, schema, path, []byte(after), true)
			tried++
			return
		}
	})
	if tried < 50 {
		t.Errorf("only %d defaults were tried", tried)
	}
}

func validates(t *testing.T, schema *jsonschema.Schema, name string, data []byte, want bool) {
	t.Helper()
	plain, err := hujson.Standardize(bytes.Clone(append(data, '\n')))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	switch err := schema.Validate(instance); {
	case err != nil && want:
		t.Errorf("%s is refused by the schema: %v", name, err)
	case err == nil && !want:
		t.Errorf("%s is accepted by the schema", name)
	}
}

// What the program refuses, the schema refuses too, where it can see it: a
// file of the corpus says why where it can't.
func TestSchemaOnTheCorpus(t *testing.T) {
	_, schema := readSchema(t)
	for _, name := range goodFiles(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		mustLoad(t, name)
		validates(t, schema, name, data, true)
	}
	judged := 0
	for _, f := range badFiles(t) {
		if _, problem := strict.NewSource(f.name, f.data).Parse(); problem != nil && f.name != "text-array" && f.name != "text-null" && f.name != "text-string" {
			continue // not even JSON with comments
		}
		judged++
		validates(t, schema, f.name, f.data, f.schemaAccepts)
	}
	if judged < 50 {
		t.Errorf("the schema judged only %d files", judged)
	}
}

func TestReference(t *testing.T) {
	const begin, end = "<!-- keys: made from config.schema.json by go test ./bridge/config -update -->\n", "<!-- end of keys -->"
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks around its keys", referenceFile)
	}
	root, _ := readSchema(t)
	want := before + begin + root.reference() + end + after
	switch {
	case want == string(text):
	case *update:
		if err := os.WriteFile(referenceFile, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the schema says; run go test ./bridge/config -update", referenceFile)
	}
}

// sections are the tables of the reference: a heading and the definition.
var sections = []struct{ heading, definition string }{
	{"The file", ""},
	{"`servers.NAME`", "server"},
	{"`servers.NAME.auth`", "auth"},
	{"`servers.NAME.confine`", "confine"},
	{"`servers.NAME.tools`", "tools"},
	{"`sandbox`", "sandbox"},
	{"`http`", "http"},
	{"`http.tokens[]`", "token"},
	{"`http.tls`", "tls"},
	{"`http.auth`", "oauth"},
	{"`http.auth.introspection`", "introspection"},
	{"`access[]`", "access"},
	{"`access[].limits`", "accessLimits"},
	{"`windows`", "windows"},
	{"`secrets`", "secrets"},
	{"`scripts`", "scripts"},
	{"`runs`", "runs"},
	{"`audit`", "audit"},
	{"`audit.push`", "push"},
	{"`audit.push.otlp`", "pushOTLP"},
	{"`centre`", "centre"},
	{"`approvals`", "approvals"},
	{"`approvals.tls`", "tls"},
	{"`approvals.approvers[]`", "approver"},
	{"`approvals.delegations[]`", "delegation"},
	{"`approvals.webhooks[]`", "webhook"},
	{"`approvals.oidc`", "oidc"},
	{"`log`", "log"},
	{"`metrics`", "metrics"},
	{"`evaluation`", "evaluation"},
	{"`evaluation.risk`", "risks"},
	{"`evaluation.risk.low` and its like", "riskPolicy"},
	{"`quorum`", "quorum"},
	{"`evaluation.profiles.NAME`", "profile"},
	{"`evaluation.profiles.NAME.risk`", "riskTable"},
	{"`evaluation.profiles.NAME.limits`", "limits"},
	{"`evaluation.profiles.NAME.rules[]`", "rule"},
	{"`evaluation.profiles.NAME.flows[]`", "flow"},
	{"`when[]`", "param"},
	{"`display`", "display"},
	{"`examples`", "examples"},
	{"`examples.match[]`", "example"},
}

func TestReferenceHasAllSections(t *testing.T) {
	root, _ := readSchema(t)
	for name, n := range root.Definitions {
		if n.Properties != nil && !slices.ContainsFunc(sections, func(s struct{ heading, definition string }) bool { return s.definition == name }) {
			t.Errorf("the definition %s is in no section of the reference", name)
		}
	}
}

// The names that no server can have are said in three places.
func TestReservedNames(t *testing.T) {
	reference, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if list := "`" + strings.Join(reserved, "`, `") + "`"; !strings.Contains(string(reference), list) {
		t.Errorf("the reference does not say that these names are reserved: %s", list)
	}
	_, schema := readSchema(t)
	for _, name := range reserved {
		validates(t, schema, name, fmt.Appendf(nil, `{"servers": {%q: {"command": "x"}}}`, name), false)
		validates(t, schema, name+"s", fmt.Appendf(nil, `{"servers": {%q: {"command": "x"}}}`, strings.Trim(name, "_")+"-1"), true)
	}
}

func TestBuiltins(t *testing.T) {
	if got := builtin.Names(); !slices.Equal(got, builtins) {
		t.Errorf("package builtin has %v, the configuration knows %v", got, builtins)
	}
	root, _ := readSchema(t)
	var words []string
	for _, w := range root.Definitions["server"].Properties["builtin"].Enum {
		words = append(words, fmt.Sprint(w))
	}
	if !slices.Equal(words, builtins) {
		t.Errorf("the schema has %v, the configuration knows %v", words, builtins)
	}
}

func (root *node) reference() string {
	var b strings.Builder
	for _, s := range sections {
		n := root
		if s.definition != "" {
			n = root.Definitions[s.definition]
			fmt.Fprintf(&b, "\n### %s\n\n%s\n", s.heading, n.Description)
		} else {
			fmt.Fprintf(&b, "\n### %s\n", s.heading)
		}
		b.WriteString("\n| key | value | default | |\n| --- | --- | --- | --- |\n")
		for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
			p := n.Properties[key]
			def := p.XDefault
			if def == "" {
				def = "`" + string(p.Default) + "`"
			}
			bounds := p.XRange
			if p.Minimum != nil && p.Maximum != nil {
				bounds = strconv.FormatInt(*p.Minimum, 10) + ".." + strconv.FormatInt(*p.Maximum, 10)
			}
			if low, high, ok := strings.Cut(bounds, ".."); ok {
				bounds = fmt.Sprintf(" From %s to %s.", low, high)
			}
			// A bar ends a cell, even in code.
			row := strings.ReplaceAll(p.Description+bounds, "|", `\|`)
			row = fmt.Sprintf("| `%s` | %s | %s | %s |", key, root.kind(p), def, row)
			b.WriteString(row + "\n")
		}
	}
	b.WriteString("\n")
	return b.String()
}

// kind says in words what a key takes.
func (root *node) kind(n *node) string {
	switch {
	case len(n.Enum) > 0:
		words := make([]string, len(n.Enum))
		for i, w := range n.Enum {
			words[i] = fmt.Sprintf("`%q`", w)
		}
		return strings.Join(words, " or ")
	case n.Ref != "" || n.Properties == nil && len(n.AllOf) == 1:
		ref := n.Ref
		if ref == "" {
			ref = n.AllOf[0].Ref
		}
		switch name := strings.TrimSuffix(strings.TrimPrefix(ref, "#/definitions/"), "OrVariable"); name {
		case "duration", "period", "size":
			return name
		}
		return root.kind(root.resolve(n))
	case len(n.AnyOf) > 0:
		kinds := []string{}
		for i := range n.AnyOf {
			if kind := root.kind(&n.AnyOf[i]); n.AnyOf[i].Ref != "#/definitions/variable" && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
		return strings.Join(kinds, " or ")
	case n.Type == "array":
		return "list"
	case n.Type == "integer":
		return "number"
	case n.Type == "boolean":
		return "true or false"
	}
	return n.Type
}
