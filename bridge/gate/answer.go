package gate

import (
	"codemode-bridge/bridge/catalog"
	"encoding/json"
	"fmt"
	"strings"
)

// An Answer is what a tool returned. Its parts are the upstream's own bytes.
type Answer struct {
	Tool   string // the script name
	Server string
	// Raw is the whole CallToolResult.
	Raw        json.RawMessage
	Content    []Content
	Structured json.RawMessage // nil if there is none
	IsError    bool
	Beyond     string `json:"-"` // of an error: what of it the box of the server may be the reason for
	Reply      Reply  `json:"-"` // what the script gets, even if the call has no answer
}

// Content is one block of an answer.
type Content struct {
	Type     string          `json:"type"` // text, image, audio, resource or resource_link
	Text     string          `json:"text"`
	Data     string          `json:"data"` // base64, of an image or audio
	MIMEType string          `json:"mimeType"`
	URI      string          `json:"uri"`  // of a resource_link
	Name     string          `json:"name"` // of a resource_link
	Resource *Resource       `json:"resource"`
	Raw      json.RawMessage `json:"-"` // the block as it came
}

// Resource is an embedded resource: text or base64.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
}

// parseAnswer reads a CallToolResult. One that it cannot read is an error: the
// call was sent, but nobody can tell the script its result.
func parseAnswer(tool *catalog.Tool, reply json.RawMessage) (Answer, error) {
	a := Answer{Tool: tool.Script, Server: tool.Server, Raw: reply}
	var r struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return a, fmt.Errorf("reading the answer of %s: %w", tool.Script, err)
	}
	for i, raw := range r.Content {
		block := Content{Raw: raw}
		if err := json.Unmarshal(raw, &block); err != nil {
			return a, fmt.Errorf("reading block %d of the answer of %s: %w", i, tool.Script, err)
		}
		a.Content = append(a.Content, block)
	}
	if string(r.Structured) != "null" {
		a.Structured = r.Structured
	}
	a.IsError = r.IsError
	return a, nil
}

// Text returns the answer's text blocks, one to a line.
func (a Answer) Text() string {
	if len(a.Content) == 1 && a.Content[0].Type == "text" {
		return a.Content[0].Text
	}
	var texts []string
	for _, c := range a.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ErrorText returns the start of the tool's error message, and what the box of its
// server has to do with it.
func (a Answer) ErrorText() string {
	const most = 2000
	text := a.Text()
	if text == "" {
		text = string(a.Structured)
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… %d bytes in all", len(text))
	}
	return text + a.Beyond
}

// A Reply is what a script gets for a call. Whoever runs the script makes it and
// knows its type; the gate only passes it on, to the call's journal and in its Answer.
type Reply any
