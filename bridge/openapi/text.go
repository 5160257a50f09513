package openapi

import (
	"encoding/json"
	"mime"
	"regexp"
	"strings"
)

// Bounds of texts of the document, in bytes.
const (
	maxName = 64    // of a tool's name, before what makes it unique
	maxNote = 500   // of the description of one parameter
	maxText = 2_000 // of a description
)

// cut returns the start of a text that has at most so many bytes, with an
// ellipsis where something is missing.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// encode is JSON as it is, without the escapes that HTML needs.
func encode(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // v is made of what a reader of JSON or YAML gave
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// notInName is what no name of a tool or a definition has in it.
var notInName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// printable reports whether a text can stand in a header.
func printable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f })
}

// isJSON reports whether a media type, or a range of them, is or may be JSON.
func isJSON(mediaType string) bool {
	base, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		base = strings.ToLower(strings.TrimSpace(strings.Split(mediaType, ";")[0]))
	}
	switch base {
	case "application/json", "text/json", "application/*", "*/*":
		return true
	}
	return strings.HasSuffix(base, "+json")
}
