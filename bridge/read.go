package bridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox"
)

// methods are what codemode.resources and codemode.prompts have, by the name
// in scripts.
var methods = map[string]string{
	"resources.list": catalog.ListResources, "resources.templates": catalog.ListTemplates, "resources.read": catalog.ReadResource,
	"prompts.list": catalog.ListPrompts, "prompts.get": catalog.GetPrompt,
}

// method is what a call of codemode.resources or codemode.prompts is at the
// gate: the server is taken out of the arguments and put before the name.
func (r *run) method(c sandbox.Call) (path string, args json.RawMessage, err error) {
	name := "resources." + c.Name
	if c.Op == sandbox.OpPrompt {
		name = "prompts." + c.Name
	}
	method, ok := methods[name]
	if !ok {
		return "", nil, fmt.Errorf("there is no codemode.%s: there are %s", name, strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	}
	server, args, err := splitServer(c.Args)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("codemode.%s: %w", name, err)
	case server != "":
		return configured(r.runner.o.Upstreams.Status(), server) + "__" + method, args, nil
	case method == catalog.ReadResource || method == catalog.GetPrompt:
		return "", nil, fmt.Errorf("codemode.%s: the first argument must be the name of a server", name)
	}
	return method, args, nil
}

// splitServer takes the server's name out of arguments.
func splitServer(raw json.RawMessage) (server string, rest json.RawMessage, err error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal(raw, &args); err != nil {
		return "", nil, fmt.Errorf("the arguments must be an object: %w", err)
	}
	if given, ok := args["server"]; ok {
		if err := json.Unmarshal(given, &server); err != nil || server == "" {
			return "", nil, fmt.Errorf("the server must be its name, not %s", canon.Cut(string(given), 60))
		}
	}
	delete(args, "server")
	rest, err = json.Marshal(args)
	return server, rest, err
}

// A message is one of a prompt, as a script sees it.
type message struct {
	Role  string  `json:"role"`
	Text  *string `json:"text,omitempty"`
	Media []any   `json:"media,omitempty"`
}

// prompt is what codemode.prompts.get resolves to: the messages, text as text and
// everything else as handles.
func (s shelf) prompt(a gate.Answer) (sandbox.Reply, error) {
	if a.IsError {
		return sandbox.Reply{}, &toolError{shelf: s, answer: a}
	}
	var p struct {
		Description string `json:"description"`
		Messages    []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(a.Structured, &p); err != nil {
		return sandbox.Reply{}, fmt.Errorf("reading the prompt: %w", err)
	}
	shown := struct {
		Description string    `json:"description,omitempty"`
		Messages    []message `json:"messages"`
	}{p.Description, []message{}}
	for _, m := range p.Messages {
		block := gate.Content{Raw: m.Content}
		if err := json.Unmarshal(m.Content, &block); err != nil {
			return sandbox.Reply{}, fmt.Errorf("reading the prompt: %w", err)
		}
		if block.Type == "text" {
			shown.Messages = append(shown.Messages, message{Role: m.Role, Text: &block.Text})
			continue
		}
		shown.Messages = append(shown.Messages, message{Role: m.Role, Media: s.media(gate.Answer{Content: []gate.Content{block}})})
	}
	value, err := json.Marshal(shown)
	return sandbox.Reply{Value: value}, err
}

// configured is a server's name as it is configured: scripts know it with "_"
// in the place of "-".
func configured(servers []upstream.Status, name string) string {
	alike := name
	for _, st := range servers {
		switch {
		case st.Name == name:
			return name
		case alike == name && strings.ReplaceAll(st.Name, "-", "_") == name:
			alike = st.Name
		}
	}
	return alike
}
