package catalog

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample reads testdata/tools.txt: about sixty tools as real servers have them.
func sample(t testing.TB) []Server {
	t.Helper()
	raw, err := os.ReadFile("testdata/tools.txt")
	if err != nil {
		t.Fatal(err)
	}
	var servers []Server
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		part := strings.Split(line, "|")
		if len(part) != 3 {
			t.Fatalf("testdata/tools.txt: %q", line)
		}
		names := strings.Fields(part[0])
		properties, required := map[string]any{}, []string{}
		for _, argument := range strings.Fields(part[2]) {
			name, must := strings.CutSuffix(argument, "!")
			properties[name] = map[string]any{"type": "string"}
			if must {
				required = append(required, name)
			}
		}
		input, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(servers); n == 0 || servers[n-1].Name != names[0] {
			servers = append(servers, Server{Name: names[0]})
		}
		s := &servers[len(servers)-1]
		s.Tools = append(s.Tools, Definition{Name: names[1], Description: strings.TrimSpace(part[1]), Input: input})
	}
	return servers
}

func server(name string, tools ...string) Server {
	s := Server{Name: name}
	for _, t := range tools {
		s.Tools = append(s.Tools, Definition{Name: t})
	}
	return s
}

// scripts are the script names of all upstream tools, by server and raw name.
func scripts(c *Catalog) map[[2]string]string {
	m := map[[2]string]string{}
	for _, t := range c.Tools() {
		if t.Server != "" {
			m[[2]string{t.Server, t.Name}] = t.Script
		}
	}
	return m
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 200)
	c := Build([]Server{
		server("github", "create_issue", "create-issue", "createIssue", "createissue", "then", "constructor", "__proto__", "delete", ""),
		server("my-server", "go"), server("my_server", "go"),
		server("3d", "render"),
		server("café", "menü"), server("cafe\u0301", "menü"),
		server("a", "b__c", "$x"), server("a__b", "c"),
		server("big", long, long+"y"),
		server("__proto", ""), server("", "search_tools"),
		server("evil", "x\x00y", "\u202edrow", "\xff"),
	})
	row := func(server, tool, want string) {
		t.Helper()
		got, ok := scripts(c)[[2]string{server, tool}]
		if !ok {
			t.Errorf("there is no tool (%q, %q)", server, tool)
			return
		}
		if i := strings.LastIndex(want, "#"); i >= 0 && len(got) == i+6 {
			got = got[:i] + "#" // the digits of the hash are held by TestNamesStay
		}
		if got != want {
			t.Errorf("(%q, %q) is called %s, want %s", server, tool, got, want)
		}
	}
	row("github", "create_issue", "github__create_issue")
	row("github", "create-issue", "github__create_issue_#")
	row("github", "createIssue", "github__createIssue")
	row("github", "createissue", "github__createissue")
	row("github", "then", "github__then")
	row("github", "constructor", "github__constructor")
	row("github", "__proto__", "github____proto__")
	row("github", "delete", "github__delete")
	row("github", "", "github__")
	row("my-server", "go", "my_server__go")
	row("my_server", "go", "my_server_c3a268__go")
	row("3d", "render", "_3d__render")
	row("café", "menü", "caf___men_")
	row("cafe\u0301", "menü", "cafe___men_")
	row("a", "$x", "a__$x")
	row("a", "b__c", "a__b__c")
	row("a__b", "c", "a_b_ef4a63__c")
	row("big", long, "big__"+strings.Repeat("x", MaxName-5-7)+"_#")
	row("big", long+"y", "big__"+strings.Repeat("x", MaxName-5-7)+"_#")
	row("__proto", "", "__proto__4fa2de")
	row("evil", "x\x00y", "evil__x_y")
	row("evil", "\u202edrow", "evil___drow")
	row("evil", "\xff", "evil___")

	if tool, ok := c.Lookup("a__b__c"); !ok || tool.Server != "a" {
		t.Error("a script name that is also another tool's path does not find its tool")
	}
	if _, ok := c.Lookup("__proto__"); ok {
		t.Error("a reserved word is the name of a tool")
	}
	if tool, ok := c.Lookup("search_tools"); !ok || tool.Server != "" {
		t.Error("search_tools is not ours")
	}
	if tool, ok := c.Lookup("my-server__go"); !ok || tool.Server != "my-server" {
		t.Error("a path that is no identifier does not find its tool")
	}
	if tool, ok := c.Tool(ToolRef{"a__b", "c"}); !ok || tool.Script != "a_b_ef4a63__c" {
		t.Error("a pair does not find its tool")
	}
	names := c.View(nil).Names()
	for _, name := range names {
		if tool, ok := c.Lookup(name); !ok || tool.Script != name {
			t.Errorf("%q is given to the worker", name)
		}
	}
	if len(names) != len(c.Tools()) || !slices.IsSorted(names) {
		t.Errorf("names for the worker: %q", names)
	}
}

// The names that tools get where nothing collides, and the suffixes of those that do:
// scripts that people keep use them.
func TestNamesStay(t *testing.T) {
	for pair, want := range map[[2]string]string{
		{"context7", "resolve-library-id"}:   "context7__resolve_library_id",
		{"chrome-devtools", "click"}:         "chrome_devtools__click",
		{"context7", "resolve_library-id"}:   "context7__resolve_library_id_1bb549",
		{"chrome_devtools", "click"}:         "chrome_devtools_08550b__click",
		{"search-tools", "go"}:               "search_tools_bab298__go", // not codemode.search_tools.go
		{"3d", "render.scene/now"}:           "_3d__render_scene_now",
		{"x", strings.Repeat("a-b", 50)}:     "x__" + strings.Repeat("a_b", 39) + "a_303427",
		{"x", strings.Repeat("a_b", 50)}:     "x__" + strings.Repeat("a_b", 39) + "a_6d9405",
		{strings.Repeat("s", 64) + "1", "x"}: strings.Repeat("s", 56) + "_1e6af3__x",
	} {
		got := scripts(Build([]Server{server("context7", "resolve-library-id", "resolve_library-id"), server("chrome-devtools", "click"), server("chrome_devtools", "click"), server(pair[0], pair[1])}))[pair]
		if got != want {
			t.Errorf("%q is now called %s, was %s", pair, got, want)
		}
	}
}

// Who keeps the plain name: who kept it before, then the first server of the
// configuration, and of one server's tools the one that is spelled so, or the first.
func TestWhoKeepsThePlainName(t *testing.T) {
	both := []Server{server("my-srv", "go", "stop"), server("my_srv", "go")}
	for _, test := range []struct {
		why   string
		from  Sources
		names map[[2]string]string
	}{
		{"by name, without an order", Sources{Servers: both}, map[[2]string]string{
			{"my-srv", "go"}: "my_srv__go", {"my-srv", "stop"}: "my_srv__stop", {"my_srv", "go"}: "my_srv_d395ea__go"}},
		{"the first of the configuration", Sources{Servers: both, Order: []string{"x", "my_srv", "my-srv"}}, map[[2]string]string{
			{"my-srv", "go"}: "my_srv_c32bec__go", {"my-srv", "stop"}: "my_srv_c32bec__stop", {"my_srv", "go"}: "my_srv__go"}},
		{"the first of the configuration, which is not connected", Sources{Servers: both[:1], Order: []string{"my_srv", "my-srv"}}, map[[2]string]string{
			{"my-srv", "go"}: "my_srv_c32bec__go", {"my-srv", "stop"}: "my_srv_c32bec__stop"}},
		{"who kept it", Sources{Servers: both, Order: []string{"my_srv", "my-srv"}, Kept: map[ToolRef]string{{"my-srv", "go"}: "my_srv__go"}}, map[[2]string]string{
			{"my-srv", "go"}: "my_srv__go", {"my-srv", "stop"}: "my_srv__stop", {"my_srv", "go"}: "my_srv_d395ea__go"}},
		{"who kept it, and lists it no more", Sources{Servers: both[1:], Order: []string{"my_srv", "my-srv"}, Kept: map[ToolRef]string{{"my-srv", "gone"}: "my_srv__gone"}}, map[[2]string]string{
			{"my_srv", "go"}: "my_srv_d395ea__go"}},
		{"a name that is kept for another server", Sources{Servers: both[1:], Order: []string{"my_srv", "other"}, Kept: map[ToolRef]string{{"other", "go"}: "my_srv__go"}}, map[[2]string]string{
			{"my_srv", "go"}: "my_srv__go_506b26"}},
		{"what is kept for servers that are not configured, or is no name", Sources{Servers: both[1:], Kept: map[ToolRef]string{{"old", "go"}: "my_srv__go", {"my_srv", "go"}: "my-srv__go"}}, map[[2]string]string{
			{"my_srv", "go"}: "my_srv__go"}},
		{"two that keep one name", Sources{Servers: both, Order: []string{"my_srv", "my-srv"}, Kept: map[ToolRef]string{{"my-srv", "go"}: "x", {"my_srv", "go"}: "x"}}, map[[2]string]string{
			{"my-srv", "go"}: "my_srv_c32bec__go", {"my-srv", "stop"}: "my_srv_c32bec__stop", {"my_srv", "go"}: "x"}},
		{"of one server's tools", Sources{Servers: []Server{server("s", "a b", "a-b", "a.b", "a_b", "c.d", "c-d")}}, map[[2]string]string{
			{"s", "a b"}: "s__a_b_220e2e", {"s", "a-b"}: "s__a_b_055116", {"s", "a.b"}: "s__a_b_363c7b", {"s", "a_b"}: "s__a_b",
			{"s", "c-d"}: "s__c_d", {"s", "c.d"}: "s__c_d_af7155"}},
	} {
		got := scripts(test.from.Build())
		if !maps.Equal(got, test.names) {
			t.Errorf("%s: %q, want %q", test.why, got, test.names)
		}
	}
}

// A server that lists the very names that another of its tools would get.
func TestNamesUnderAttack(t *testing.T) {
	tools := []string{"x-y", "x_y"}
	for range 15 {
		c := Build([]Server{server("s", tools...)})
		tools = append(tools, strings.TrimPrefix(scripts(c)[[2]string{"s", "x-y"}], "s__"))
	}
	c := Build([]Server{server("s", tools...)})
	seen := map[string]bool{}
	for pair, script := range scripts(c) {
		if seen[script] || !legal(script) {
			t.Errorf("%q is called %q", pair, script)
		}
		seen[script] = true
		if byPath, ok := c.Lookup(pair[0] + "__" + pair[1]); !ok || byPath.Name != pair[1] {
			t.Errorf("the path of %q does not find it", pair)
		}
	}
	if len(seen) != len(tools) {
		t.Errorf("%d names for %d tools", len(seen), len(tools))
	}
	// And servers whose prefixes do.
	var servers []Server
	order := []string{"x_y", "x-y"}
	for range 15 {
		c := Sources{Servers: []Server{server("x-y", "t")}, Order: order}.Build()
		prefix, _, _ := strings.Cut(c.Tools()[c.own].Script, "__")
		order = append([]string{prefix}, order...)
	}
	for _, s := range order {
		servers = append(servers, server(s, "t"))
	}
	seen = map[string]bool{}
	for _, script := range scripts(Sources{Servers: servers, Order: order}.Build()) {
		if seen[script] || !legal(script) {
			t.Errorf("%q is twice there", script)
		}
		seen[script] = true
	}
}

// hard draws names that are likely to collide.
func hard() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ab_]{0,5}`),
		rapid.StringMatching(`[aA_.é -]{0,4}`),
		rapid.SampledFrom([]string{"then", "__proto__", "constructor", "search_tools", "toJSON", "raw", "é", "e\u0301", "x-y", "x_y", "x.y", "3d", "-3d"}),
		rapid.String(),
		rapid.StringN(100, 300, -1),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

// crowd draws servers whose names and tools are likely to collide, in an order.
func crowd(t *rapid.T) []Server {
	names := rapid.SliceOfNDistinct(rapid.Map(hard(), func(s string) string { return s + "-" }), 1, 8, rapid.ID).Draw(t, "servers")
	var all []Server
	for _, name := range names {
		if rapid.Bool().Draw(t, "without the dash") && !slices.Contains(names, strings.TrimSuffix(name, "-")) && len(name) > 1 {
			name = strings.TrimSuffix(name, "-")
		}
		all = append(all, server(name, rapid.SliceOfN(hard(), 0, 8).Draw(t, "tools")...))
	}
	return all
}

func order(servers []Server) []string {
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

func TestNamesAreInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers := crowd(t)
		kept := map[ToolRef]string{}
		for _, tool := range Build(servers).Tools() {
			if name := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[ab_]{1,3}__[ab_]{0,5}`), hard(), rapid.Just(spell(tool.Path()))).Draw(t, "kept"); name != "" {
				kept[tool.Ref()] = name
			}
		}
		c := Sources{Servers: servers, Order: order(servers), Kept: kept}.Build()
		given := map[string]bool{}
		for _, tool := range c.Tools() {
			if given[tool.Script] {
				t.Fatalf("two tools are called %q", tool.Script)
			}
			given[tool.Script] = true
			if tool.Server != "" && (!legal(tool.Script) || len(tool.Script) > MaxName) {
				t.Fatalf("(%q, %q) is called %q, which is not legal", tool.Server, tool.Name, tool.Script)
			}
			if found, ok := c.Lookup(tool.Script); !ok || found != tool {
				t.Fatalf("%q does not find (%q, %q)", tool.Script, tool.Server, tool.Name)
			}
			if found, ok := c.Tool(tool.Ref()); !ok || found != tool {
				t.Fatalf("(%q, %q) is not found", tool.Server, tool.Name)
			}
			if found, ok := c.Lookup(tool.Path()); ok && found != tool && found.Script != tool.Path() && found.Path() != tool.Path() {
				t.Fatalf("path %q finds (%q, %q)", tool.Path(), found.Server, found.Name)
			}
		}
		shuffled := slices.Clone(servers)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if other := (Sources{Servers: shuffled, Order: order(servers), Kept: kept}).Build(); c.Revision() != other.Revision() {
			t.Fatalf("the order in which servers connect changes the revision")
		}
	})
}

// What is connected, what is configured later, and in the case of names that are kept
// anything at all, changes no name.
func TestNamesAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers := crowd(t)
		names := scripts(Sources{Servers: servers, Order: order(servers)}.Build())
		same := func(why string, from Sources) {
			for pair, script := range scripts(from.Build()) {
				if was, ok := names[pair]; ok && was != script {
					t.Fatalf("%s: %q was called %q and is called %q", why, pair, was, script)
				}
			}
		}
		part := slices.DeleteFunc(slices.Clone(servers), func(Server) bool { return rapid.Bool().Draw(t, "is away") })
		same("others have not connected", Sources{Servers: part, Order: order(servers)})

		more := crowd(t)
		more = slices.DeleteFunc(more, func(s Server) bool { return slices.Contains(order(servers), s.Name) })
		same("servers were added", Sources{Servers: append(slices.Clone(servers), more...), Order: append(order(servers), order(more)...)})

		kept := map[ToolRef]string{}
		for pair, script := range names {
			kept[ToolRef{pair[0], pair[1]}] = script
		}
		turned := append(slices.Clone(more), servers...)
		for i := range turned {
			turned[i].Tools = append(slices.Clone(turned[i].Tools), server("", rapid.SliceOfN(hard(), 0, 4).Draw(t, "new tools")...).Tools...)
		}
		from := Sources{Servers: turned, Order: order(turned), Kept: kept}
		same("the names are kept", from)
		given := map[string]bool{}
		for _, script := range scripts(from.Build()) {
			if given[script] || !legal(script) {
				t.Fatalf("with names that are kept, %q is twice there or not legal", script)
			}
			given[script] = true
		}
	})
}

// A suffix is only where two names collide, or one is no name.
func TestNamesArePlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z0-9]{0,4}([-_.][a-z0-9]{1,3}){0,2}`).Filter(func(s string) bool { return !Reserved(spell(s)) })
		servers := rapid.SliceOfNDistinct(name, 1, 6, spell).Draw(t, "servers")
		var all []Server
		for _, s := range servers {
			all = append(all, server(s, rapid.SliceOfNDistinct(name, 0, 6, spell).Draw(t, "tools")...))
		}
		for pair, script := range scripts(Build(all)) {
			if want := spell(pair[0]) + "__" + spell(pair[1]); script != want {
				t.Fatalf("%q is called %q, want %q", pair, script, want)
			}
		}
	})
}

func TestDuplicateDefinitions(t *testing.T) {
	a, b := Definition{Name: "x", Description: "one"}, Definition{Name: "x", Description: "two"}
	first := Build([]Server{{Name: "s", Tools: []Definition{a, b}}})
	second := Build([]Server{{Name: "s", Tools: []Definition{b}}, {Name: "s", Tools: []Definition{a}}})
	if n := len(scripts(first)); n != 1 || first.Revision() != second.Revision() {
		t.Errorf("%d tools, revisions %s and %s", n, first.Revision(), second.Revision())
	}
}

func TestDigest(t *testing.T) {
	yes, no := true, false
	base := Definition{
		Name: "n", Title: "t", Description: "d",
		Input:  json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number","minimum":1}},"required":["a","b"]}`),
		Output: json.RawMessage(`{"type":"object"}`),
	}
	same := func(name string, change func(*Definition)) {
		t.Helper()
		d := base
		if change(&d); d.Digest() != base.Digest() {
			t.Errorf("%s is a change", name)
		}
	}
	differs := func(name string, change func(*Definition)) {
		t.Helper()
		d := base
		if change(&d); d.Digest() == base.Digest() {
			t.Errorf("%s is no change", name)
		}
	}
	input := func(s string) func(*Definition) {
		return func(d *Definition) { d.Input = json.RawMessage(s) }
	}
	same("the order of keys and white space", input("{ \"required\" : [\"a\",\n\"b\"], \"properties\":{\"b\":{\"minimum\":1,\"type\":\"number\"},\"a\":{\"type\":\"string\"}},\"type\":\"object\"}\n"))
	same("an escape", input(strings.Replace(string(base.Input), `"string"`, `"\u0073tring"`, 1)))
	differs("the order of required", input(strings.Replace(string(base.Input), `["a","b"]`, `["b","a"]`, 1)))
	differs("a bound", input(strings.Replace(string(base.Input), `1`, `2`, 1)))
	differs("a type", input(strings.Replace(string(base.Input), `"string"`, `"null"`, 1)))
	differs("null for a string", input(strings.Replace(string(base.Input), `"string"`, `null`, 1)))
	differs("a property more", input(strings.Replace(string(base.Input), `"b":`, `"c":{},"b":`, 1)))
	differs("no schema", input(""))
	differs("what is no JSON", input("{"))
	differs("the name", func(d *Definition) { d.Name = "m" })
	differs("the title", func(d *Definition) { d.Title = "T" })
	differs("the description", func(d *Definition) { d.Description = "d " })
	differs("text moved from title to description", func(d *Definition) { d.Title, d.Description = "", "td" })
	differs("the output schema", func(d *Definition) { d.Output = nil })
	differs("schemas swapped", func(d *Definition) { d.Input, d.Output = d.Output, d.Input })
	differs("a hint", func(d *Definition) { d.Annotations.ReadOnly = &yes })
	seen := map[string]bool{}
	for _, hint := range []*bool{nil, &yes, &no} {
		for i := range 4 {
			d := base
			*[]**bool{&d.Annotations.ReadOnly, &d.Annotations.Destructive, &d.Annotations.Idempotent, &d.Annotations.OpenWorld}[i] = hint
			seen[d.Digest()] = true
		}
	}
	if len(seen) != 9 { // none, and true or false of each
		t.Errorf("%d digests of 9 sets of annotations", len(seen))
	}
}

// Two schemas have the same digest if, and only if, they decode to the same.
func TestDigestSeesAllAndOnlyChanges(t *testing.T) {
	value := func(depth int) *rapid.Generator[any] { return nil }
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.IntRange(0, 3), func(i int) any { return i }),
			rapid.SampledFrom([]any{nil, true, false, "", "s", "o", ".", strings.Repeat("long", 2000)}))
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-c]?`), value(depth-1), 0, 3), func(m map[string]any) any { return m }))
	}
	// shuffled writes v with the keys of objects in another order.
	var shuffled func(v any, r *rand.Rand) string
	shuffled = func(v any, r *rand.Rand) string {
		switch v := v.(type) {
		case []any:
			var parts []string
			for _, e := range v {
				parts = append(parts, shuffled(e, r))
			}
			return "[ " + strings.Join(parts, " ,") + "]"
		case map[string]any:
			var parts []string
			for k, e := range v {
				name, _ := json.Marshal(k)
				parts = append(parts, string(name)+" : "+shuffled(e, r))
			}
			slices.Sort(parts)
			r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			return "{" + strings.Join(parts, ",\n") + "}"
		}
		raw, _ := json.Marshal(v)
		return string(raw)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := value(3).Draw(t, "a"), value(3).Draw(t, "b")
		rawA, _ := json.Marshal(a)
		rawB, _ := json.Marshal(b)
		of := func(raw string) string { return Definition{Input: json.RawMessage(raw)}.Digest() }
		if (string(rawA) == string(rawB)) != (of(string(rawA)) == of(string(rawB))) {
			t.Fatalf("digests of %s and %s", rawA, rawB)
		}
		other := shuffled(a, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		if of(other) != of(string(rawA)) {
			t.Fatalf("the order of keys is a change: %s and %s", rawA, other)
		}
	})
}

func FuzzDigest(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"\u0041"}],"a":null}`))
	f.Add([]byte(`["\"\\",1e400,-0, {} ]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := Definition{Input: raw}.Digest()
		if !json.Valid(raw) {
			return
		}
		var indented strings.Builder
		e := json.NewEncoder(&indented)
		e.SetIndent("", " ")
		if e.Encode(json.RawMessage(raw)) == nil && (Definition{Input: json.RawMessage(indented.String())}).Digest() != a {
			t.Errorf("white space is a change: %q", raw)
		}
	})
}

func TestRevision(t *testing.T) {
	servers := sample(t)
	base := Build(servers).Revision()
	servers[0].Stale = true
	if Build(servers).Revision() != base {
		t.Error("a stale list has another revision")
	}
	servers[1].Tools[0].Description += "."
	if Build(servers).Revision() == base {
		t.Error("a changed description has the same revision")
	}
}

func TestViewHides(t *testing.T) {
	c := Build(sample(t))
	v := c.View(func(server, tool string) bool {
		return server == "github" && tool != "delete_file" || tool == SearchTools
	})
	for _, name := range v.Names() {
		if name != SearchTools && !strings.HasPrefix(name, "github__") || name == "github__delete_file" {
			t.Errorf("the view shows %s", name)
		}
	}
	if got := fmt.Sprint(v.Servers()); got != "[{github 24}]" {
		t.Errorf("servers: %s", got)
	}
	for _, query := range []string{"delete file", "mail", "github", "screenshot"} {
		for _, e := range v.Search(SearchQuery{Query: query, Limit: MaxLimit}).Tools {
			if !slices.Contains(v.Names(), e.Name) {
				t.Errorf("search %q gives %s", query, e.Name)
			}
		}
	}
	if r := v.Search(SearchQuery{Query: "screenshot issue"}); !slices.Equal(r.Unmatched, []string{"screenshot"}) {
		t.Errorf("what a hidden tool matches counts: unmatched %q", r.Unmatched)
	}
	for _, name := range []string{"github__delete_file", "mail__send", GetTools} {
		_, err := v.Declare(name)
		if unknown, ok := err.(*UnknownError); !ok || slices.Contains(unknown.Near, name) {
			t.Errorf("declaring the hidden %s: %v", name, err)
		}
	}
	page, err := v.Page(PageQuery{Limit: maxPage})
	if err != nil || page.Total != 24 || len(page.Tools) != 24 {
		t.Errorf("page: %d of %d tools, %v", len(page.Tools), page.Total, err)
	}
	if text, fits := v.Declarations(1 << 20); !fits || strings.Contains(text, "delete_file") || strings.Count(text, "\n") != 23 {
		t.Errorf("declarations: %s", text)
	}
	if text, fits := v.Declarations(500); fits || text != "" {
		t.Errorf("declarations in 500 bytes: %q", text)
	}
	if names := Build(nil).View(func(string, string) bool { return false }).Names(); len(names) != 0 {
		t.Errorf("a view of nothing has %q", names)
	}
}

func TestPages(t *testing.T) {
	c := Build(sample(t))
	v := c.View(nil)
	for _, server := range []string{"", "github", "time", "none"} {
		var got []string
		q := PageQuery{Server: server, Limit: 7}
		for {
			page, err := v.Page(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Tools {
				got = append(got, e.Name)
				if (e.Declaration != "") != (page.Total <= 5) {
					t.Errorf("of %d tools %s has the declaration %q", page.Total, e.Name, e.Declaration)
				}
			}
			if (page.Servers != nil) != (server == "" && q.Cursor == "") {
				t.Errorf("servers of page %q of %q: %v", q.Cursor, server, page.Servers)
			}
			if page.Next == "" {
				if len(got) != page.Total {
					t.Errorf("%q: %d tools on all pages, total %d", server, len(got), page.Total)
				}
				break
			}
			q.Cursor = page.Next
		}
		var want []string
		for _, tool := range c.Tools() {
			if tool.Server != "" && (server == "" || tool.Server == server) {
				want = append(want, tool.Script)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %q: %q, want %q", server, got, want)
		}
	}
}

func TestCursors(t *testing.T) {
	servers := sample(t)
	v := Build(servers).View(nil)
	first, err := v.Page(PageQuery{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	servers[0].Tools[0].Description = "changed"
	newer := Build(servers).View(nil)
	row := func(name string, v *View, q PageQuery, want string) {
		t.Helper()
		_, err := v.Page(q)
		if err == nil || err.Error() != "cursor "+want+": start again without a cursor" {
			t.Errorf("%s: %v", name, err)
		}
	}
	row("of the list before", newer, PageQuery{Cursor: first.Next}, "belongs to an older list of tools")
	row("for another server", v, PageQuery{Cursor: first.Next, Server: "github"}, "was given for another server")
	for _, forged := range []string{"x", "!!!", strings.Repeat("A", 16), strings.Repeat("A", 5000), first.Next + "AA", first.Next[:len(first.Next)-2]} {
		if _, err := v.Page(PageQuery{Cursor: forged}); err == nil {
			t.Errorf("cursor %q is taken", forged)
		}
	}
	// A page of 3 and the rest are all, in a view that hides some as well.
	some := Build(sample(t)).View(func(server, tool string) bool { return len(tool)%2 == 0 })
	a, err := some.Page(PageQuery{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	b, err := some.Page(PageQuery{Limit: maxPage, Cursor: a.Next})
	if err != nil || len(a.Tools)+len(b.Tools) != a.Total {
		t.Errorf("%d and %d tools of %d, %v", len(a.Tools), len(b.Tools), a.Total, err)
	}
}

func TestDescribe(t *testing.T) {
	v := Build(sample(t)).View(nil)
	row := func(limit int, want string) {
		t.Helper()
		if got := v.Describe(limit); got != want {
			t.Errorf("in %d bytes: %s, want %s", limit, got, want)
		}
	}
	all := "SERVERS (tools): context7 (2), filesystem (11), github (25), linear (4), mail (4), playwright (5), postgres (3), slack (4), time (2), weather (1)"
	row(1000, all)
	row(len(all), all)
	row(len(all)-1, "SERVERS (tools): context7 (2), filesystem (11), github (25), linear (4), mail (4), playwright (5), postgres (3), slack (4), time (2) and 1 more")
	row(70, "SERVERS (tools): filesystem (11), github (25) and 8 more")
	row(10, "SERVERS (tools): 10")
	if got := Build(nil).View(nil).Describe(100); got != "SERVERS (tools): none" {
		t.Errorf("without servers: %s", got)
	}
	var many []Server
	for i := range 3000 {
		many = append(many, server(fmt.Sprintf("server%d", i), "x"))
	}
	if got := Build(many).View(nil).Describe(300); len(got) > 300 || !strings.HasSuffix(got, " more") {
		t.Errorf("of 3,000 servers: %s", got)
	}
}

func TestNear(t *testing.T) {
	v := Build(sample(t)).View(nil)
	row := func(name string, want ...string) {
		t.Helper()
		got := v.Near(name, 3)
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(want) == 0 && len(got) > 0 {
			t.Errorf("near %s: %q, want %q", name, got, want)
		}
	}
	row("github.create_issue", "github__create_issue")
	row("github_create_issue", "github__create_issue")
	row("githubCreateIssue", "github__create_issue")
	row("github__createIssue", "github__create_issue")
	row("GitHub__create_issue", "github__create_issue")
	row("mcp__github__create_issue", "github__create_issue")
	row("codemode.github__create_issue", "github__create_issue")
	row("create_issue", "github__create_issue", "linear__create_issue")
	row("github__creat_isue", "github__create_issue")
	row("github__issue_create", "github__create_issue")
	row("github__create_issues", "github__create_issue")
	row("filesystem__read_file", "filesystem__read_text_file")
	row("list_tables", "postgres__listTables")
	row("serach_tools", "search_tools")
	row("searchTools", "search_tools")
	row("context7__resolve_library_id", v.Near("context7__resolve-library-id", 1)...)
	row("totally_different")
	row("")
	row(strings.Repeat("x", 10000))
	if got := v.Near("create_issue", 0); len(got) != 0 {
		t.Errorf("none asked for, %q given", got)
	}
}

// A catalogue is used by all runs at once.
func TestConcurrentUse(t *testing.T) {
	c := Build(sample(t))
	v := c.View(func(server, _ string) bool { return server != "mail" })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if n := len(v.Search(SearchQuery{Query: "issue"}).Tools); n == 0 {
				t.Error("nothing found")
			}
			v.Names()
			c.Near("x", 3)
			c.View(nil).Servers()
		})
	}
	wg.Wait()
}

// thousands makes a catalogue of n tools with different words.
func thousands(n int) []Server {
	verbs := []string{"create", "list", "get", "update", "delete", "search", "send", "merge"}
	nouns := []string{"issue", "file", "branch", "message", "table", "page", "user", "commit", "ticket", "report", "invoice"}
	var servers []Server
	for i := range n {
		if i%50 == 0 {
			servers = append(servers, Server{Name: fmt.Sprintf("server%d", i/50)})
		}
		s := &servers[len(servers)-1]
		verb, noun := verbs[i%len(verbs)], nouns[i%len(nouns)]
		s.Tools = append(s.Tools, Definition{
			Name:        fmt.Sprintf("%s_%s_%d", verb, noun, i),
			Description: fmt.Sprintf("This tool can %s one %s in workspace number %d of the company, with all of its fields and attachments.", verb, noun, i),
			Input: json.RawMessage(`{"type":"object","properties":{"workspace":{"type":"string","description":"Which workspace"},` +
				`"id":{"type":"integer","minimum":1},"fields":{"type":"array","items":{"type":"string"}},"dry_run":{"type":"boolean","default":false}},"required":["workspace","id"]}`),
		})
	}
	return servers
}

func BenchmarkBuild(b *testing.B) {
	servers := thousands(10_000)
	for b.Loop() {
		Build(servers)
	}
}

func BenchmarkIndex(b *testing.B) {
	c := Build(thousands(10_000))
	for b.Loop() {
		newIndex(c.listed)
	}
}

func BenchmarkSearch(b *testing.B) {
	v := Build(thousands(10_000)).View(nil)
	v.Search(SearchQuery{Query: "warm"})
	for _, query := range []string{"invoice", "create issue in workspace", "mispeled invoise 4321", "delete all the files and messages of user 77"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				v.Search(SearchQuery{Query: query})
			}
		})
	}
}

func BenchmarkNear(b *testing.B) {
	v := Build(thousands(10_000)).View(nil)
	v.Near("warm", 1)
	for b.Loop() {
		v.Near("server17_create_isue_77", 3)
	}
}

func BenchmarkView(b *testing.B) {
	c := Build(thousands(10_000))
	for b.Loop() {
		c.View(func(server, tool string) bool { return len(tool) > 3 }).Names()
	}
}
