package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/profiles"
)

// What scripts may ask of a server besides its tools, by the name that MCP has
// for it. Policy judges each like a tool of that name: github__resources/read.
// The lists may be asked of all servers together, and are then tools of the
// reserved server "".
const (
	ListResources = "resources/list"
	ListTemplates = "resources/templates/list"
	ReadResource  = "resources/read"
	ListPrompts   = "prompts/list"
	GetPrompt     = "prompts/get"
)

// A method is one of them.
type method struct {
	script      string // the member of codemode
	declaration string
	list        bool
	definition  Definition
}

var methods = map[string]method{}

func init() {
	yes := true
	add := func(name, script, declaration, description, input string, list bool) {
		methods[name] = method{script, "codemode." + script + declaration, list, Definition{
			Name: name, Description: description, Annotations: profiles.Annotations{ReadOnly: &yes},
			Input: json.RawMessage(`{"type":"object","additionalProperties":false,` + input + `}`),
		}}
	}
	const entry = "name: string; title?: string; description?: string"
	add(ListResources, "resources.list", "(server?: string): Promise<{resources: {server: string; uri: string; mimeType?: string; size?: number; "+entry+"}[]; skipped?: {server: string; why: string}[]}>",
		"The resources that a server lists", `"properties":{}`, true)
	add(ListTemplates, "resources.templates", "(server?: string): Promise<{resourceTemplates: {server: string; uriTemplate: string; mimeType?: string; "+entry+"}[]; skipped?: {server: string; why: string}[]}>",
		"The templates of resource addresses that a server lists", `"properties":{}`, true)
	add(ReadResource, "resources.read", "(server: string, uri: string): Promise<string | {text: string; media: {handle: string; kind: string; mimeType: string; size: number}[]}>",
		"One resource of a server", `"required":["uri"],"properties":{"uri":{"type":"string","minLength":1,"maxLength":8192}}`, false)
	add(ListPrompts, "prompts.list", "(server?: string): Promise<{prompts: {server: string; arguments?: {name: string; description?: string; required?: boolean}[]; "+entry+"}[]; skipped?: {server: string; why: string}[]}>",
		"The prompts that a server lists", `"properties":{}`, true)
	add(GetPrompt, "prompts.get", "(server: string, name: string, args?: Record<string, string>): Promise<{description?: string; messages: {role: string; text?: string; media?: {handle: string}}[]}>",
		"One prompt of a server", `"required":["name"],"properties":{"name":{"type":"string","minLength":1,"maxLength":256},"arguments":{"type":"object","additionalProperties":{"type":"string"}}}`, false)
}

// Methods are what scripts may ask of a server besides its tools, by name.
func Methods(server string) []*Tool {
	var all []*Tool
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		t, _ := Method(server + "__" + name)
		all = append(all, t)
	}
	return all
}

// Method finds what path asks of a server besides its tools: "github__prompts/get",
// or "prompts/list" for that list of all servers. A server's tool of such a name,
// should there be one, has its script name alone.
func Method(path string) (*Tool, bool) {
	server, name, ok := "", path, false
	m, known := methods[name]
	if !known || !m.list {
		at := strings.LastIndex(path, "__")
		if at <= 0 {
			return nil, false
		}
		server, name = path[:at], path[at+2:]
		if m, ok = methods[name]; !ok {
			return nil, false
		}
	}
	return &Tool{Definition: m.definition, Server: server, Script: m.script, Digest: m.definition.Digest(), Method: true, path: path, declaration: m.declaration}, true
}
