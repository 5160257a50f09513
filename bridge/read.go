package bridge

import (
	"encoding/json"
	"fmt"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/sandbox"
)

// method is what a call of codemode.resources or codemode.prompts is at the gate.
func (r *run) method(c sandbox.Call) (path string, args json.RawMessage, err error) {
	name := "resources." + c.Name
	if c.Op == sandbox.OpPrompt {
		name = "prompts." + c.Name
	}
	var servers []string
	for _, st := range r.runner.o.Upstreams.Status() {
		servers = append(servers, st.Name)
	}
	return catalog.MethodCall(name, c.Args, servers)
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
