package bridge

import (
	"encoding/json"

	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/sandbox"
)

// A shelf makes what scripts get of answers, with handles for media.
type shelf struct{ *handles.Shelf }

// value is what codemode.server__tool(args) resolves to: the structured
// content if there is any; else the text; and where there is media, an object
// with the text and a handle for each piece.
func (s shelf) value(a gate.Answer) (sandbox.Reply, error) {
	if a.IsError {
		return sandbox.Reply{}, &toolError{shelf: s, answer: a}
	}
	if a.Structured != nil {
		return sandbox.Reply{Value: a.Structured}, nil
	}
	text := a.Text()
	media := s.media(a)
	if len(media) == 0 {
		return sandbox.Reply{Text: &text}, nil
	}
	value, err := json.Marshal(struct {
		Text  string `json:"text"`
		Media []any  `json:"media"`
	}{text, media})
	return sandbox.Reply{Value: value}, err
}

// media keeps an answer's media and returns a handle for each piece, and what is
// known of each linked resource, which is never fetched.
func (s shelf) media(a gate.Answer) []any {
	var all []any
	for _, c := range a.Content {
		switch {
		case c.Type == "text":
		case c.Type == "resource_link":
			all = append(all, map[string]string{"kind": "resource_link", "uri": c.URI, "name": c.Name, "mimeType": c.MIMEType})
		case c.Type == "resource" && c.Resource != nil && c.Resource.Text != nil:
			all = append(all, s.Put(handles.Item{Kind: c.Type, MIMEType: c.Resource.MIMEType, URI: c.Resource.URI, Text: *c.Resource.Text, Block: c.Raw}))
		case c.Type == "resource" && c.Resource != nil:
			all = append(all, s.Put(handles.Item{Kind: c.Type, MIMEType: c.Resource.MIMEType, URI: c.Resource.URI, Text: c.Resource.Blob, Base64: true, Block: c.Raw}))
		default:
			all = append(all, s.Put(handles.Item{Kind: c.Type, MIMEType: c.MIMEType, Text: c.Data, Base64: true, Block: c.Raw}))
		}
	}
	return all
}

// A toolError is a tool's own complaint.
type toolError struct {
	shelf  shelf
	answer gate.Answer
}

func (e *toolError) Error() string {
	if text := e.answer.ErrorText(); text != "" {
		return text
	}
	return "the tool failed and said nothing about it"
}

// content is the answer's content for the script, media as handles.
func (e *toolError) content() []any {
	all := []any{}
	for _, c := range e.answer.Content {
		if c.Type == "text" {
			all = append(all, map[string]string{"type": "text", "text": c.Text})
		}
	}
	return append(all, e.shelf.media(e.answer)...)
}

// lasts reports whether a later script could read what this one leaves behind.
func (r *run) lasts() bool { return !r.session.brief || r.principal != "" }

// fit is a result as the model gets it: whole, or summarised with a handle to the
// whole, unless no later script could read that.
func (r *run) fit(value json.RawMessage) json.RawMessage {
	if !r.lasts() {
		return handles.Fit(value, r.limits.result, nil)
	}
	return handles.Fit(value, r.limits.result, r.session.handles)
}
