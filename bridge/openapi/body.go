package openapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// A shape is how a request's body is written.
type shape int

const (
	asJSON      shape = iota // the argument's own bytes
	asForm                   // application/x-www-form-urlencoded
	asMultipart              // multipart/form-data
	asText                   // the argument is a string
	asBytes                  // the argument is a file
)

// A body is what a request carries, in the one media type that is offered to
// scripts: JSON, else a form, else text, else bytes.
type body struct {
	shape     shape
	mediaType string
	schema    *openapi3.SchemaRef
	encoding  map[string]*openapi3.Encoding
	required  bool
	note      string
}

// newBody chooses among the media types of a request's body; nil if there are none.
func newBody(r *openapi3.RequestBody) *body {
	var best *body
	for _, name := range slices.Sorted(maps.Keys(r.Content)) {
		media := r.Content[name]
		if media == nil {
			media = &openapi3.MediaType{}
		}
		one := &body{mediaType: name, schema: media.Schema, encoding: media.Encoding, required: r.Required, note: r.Description}
		base, _, _ := mime.ParseMediaType(name) // empty if it is not one: sent as bytes
		switch {
		case isJSON(name):
			one.shape = asJSON
		case base == "application/x-www-form-urlencoded":
			one.shape = asForm
		case base == "multipart/form-data":
			one.shape = asMultipart
		case strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "xml") || base == "application/yaml":
			one.shape = asText
		default:
			one.shape = asBytes
		}
		if one.shape != asText && strings.HasPrefix(base, "text/") || !printable(name) || base == "" {
			one.mediaType = ""
		}
		if strings.Contains(base, "*") || one.mediaType == "" {
			one.mediaType = map[shape]string{asJSON: "application/json", asText: "text/plain", asBytes: "application/octet-stream"}[one.shape]
		}
		if best == nil || one.shape < best.shape {
			best = one
		}
	}
	return best
}

// fileSchema is the schema of an argument that is a file.
func fileSchema() map[string]any {
	text := func(note string) map[string]any { return map[string]any{"type": "string", "description": note} }
	return map[string]any{
		"type": "object", "description": "a file: its bytes in base64, or its text", "additionalProperties": false,
		"properties": map[string]any{
			"base64": text("the bytes"), "text": text("the content, where it is text"),
			"filename": text("a name without folders"), "contentType": text("such as image/png"),
		},
	}
}

// describe returns the schema of the argument.
func (b *body) describe(d *describer) any {
	switch b.shape {
	case asBytes:
		return fileSchema()
	case asText:
		return map[string]any{"type": "string"}
	case asMultipart:
		if b.schema == nil || b.schema.Value == nil {
			break
		}
		out, ok := d.body(b.schema.Value, 1).(map[string]any)
		if !ok {
			break
		}
		properties, _ := out["properties"].(map[string]any)
		for name, ref := range b.schema.Value.Properties {
			if _, shown := properties[name]; !shown || ref == nil || ref.Value == nil {
				continue
			}
			if isBinary(ref.Value) {
				properties[name] = withNote(fileSchema(), ref.Value.Description)
			} else if items := ref.Value.Items; items != nil && items.Value != nil && isBinary(items.Value) {
				properties[name] = withNote(map[string]any{"type": "array", "items": fileSchema()}, ref.Value.Description)
			}
		}
		return out
	}
	return d.schema(b.schema, 1)
}

// isBinary reports whether a part of a form is a file. OpenAPI 3.0 says so by its
// format, 3.1 by its media type or encoding.
func isBinary(s *openapi3.Schema) bool {
	if s.ContentMediaType != "" && s.ContentEncoding == "" {
		return !isJSON(s.ContentMediaType) && !strings.HasPrefix(s.ContentMediaType, "text/")
	}
	return s.Type.Is(openapi3.TypeString) && s.Format == "binary" || s.ContentEncoding == "base64" || s.Format == "base64"
}

// write writes the argument as the request's body.
func (b *body) write(raw json.RawMessage) (content []byte, mediaType string, err error) {
	switch b.shape {
	case asJSON:
		return raw, b.mediaType, nil
	case asText:
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil, "", errors.New("must be a string")
		}
		return []byte(text), b.mediaType, nil
	case asBytes:
		f, err := readFileArg(raw)
		if err != nil {
			return nil, "", err
		}
		if f.ContentType != "" {
			return f.content, f.ContentType, nil
		}
		return f.content, b.mediaType, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, "", errors.New("must be an object, since it is sent as a form")
	}
	if b.shape == asMultipart {
		return b.writeMultipart(fields)
	}
	content, err = b.writeForm(fields)
	return content, b.mediaType, err
}

func (b *body) writeForm(fields map[string]json.RawMessage) ([]byte, error) {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, err := decode(fields[name])
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		how := b.encoding[name].SerializationMethod()
		p := parameter{name: name, style: how.Style, explode: how.Explode}
		if e := b.encoding[name]; e != nil {
			p.json, p.reserved = e.ContentType != "" && isJSON(e.ContentType), e.AllowReserved
		}
		if object, ok := v.(map[string]any); ok && (b.encoding[name] == nil || b.encoding[name].Style == "") {
			v = string(encode(object)) // JSON, unless the document says otherwise
		}
		for _, pair := range p.pairs(v) {
			out = append(out, pair.encoded(p.reserved))
		}
	}
	return []byte(strings.Join(out, "&")), nil
}

func (b *body) writeMultipart(fields map[string]json.RawMessage) (content []byte, mediaType string, err error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, "", errors.New("has a field whose name holds a control character")
		}
		var schema *openapi3.Schema
		if b.schema != nil && b.schema.Value != nil {
			if ref := b.schema.Value.Properties[name]; ref != nil {
				schema = ref.Value
			}
		}
		values := []json.RawMessage{fields[name]}
		if bytes.HasPrefix(fields[name], []byte("[")) {
			if json.Unmarshal(fields[name], &values) != nil {
				return nil, "", fmt.Errorf("has a field %q that cannot be read", cut(name, maxName))
			}
			if schema != nil && schema.Items != nil {
				schema = schema.Items.Value
			}
		}
		for _, value := range values {
			if err := b.writePart(w, name, schema, value); err != nil {
				return nil, "", fmt.Errorf("has a field %q that %w", cut(name, maxName), err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), w.FormDataContentType(), nil
}

func (b *body) writePart(w *multipart.Writer, name string, schema *openapi3.Schema, value json.RawMessage) error {
	if string(value) == "null" {
		return nil
	}
	header := textproto.MIMEHeader{}
	var content []byte
	if schema != nil && isBinary(schema) {
		f, err := readFileArg(value)
		if err != nil {
			return err
		}
		header.Set("Content-Disposition", multipart.FileContentDisposition(name, f.Filename))
		header.Set("Content-Type", f.ContentType)
		if f.ContentType == "" {
			header.Set("Content-Type", "application/octet-stream")
		}
		content = f.content
	} else {
		v, err := decode(value)
		if err != nil {
			return err
		}
		content = []byte(scalar(v))
		// FileContentDisposition escapes the name; without a file's name this
		// is the part of a plain field.
		disposition := multipart.FileContentDisposition(name, "")
		header.Set("Content-Disposition", strings.TrimSuffix(disposition, `; filename=""`))
		if _, isObject := v.(map[string]any); isObject {
			header.Set("Content-Type", "application/json")
		}
	}
	if e := b.encoding[name]; e != nil && e.ContentType != "" && printable(e.ContentType) && !strings.ContainsAny(e.ContentType, ",*") {
		header.Set("Content-Type", e.ContentType)
	}
	part, err := w.CreatePart(header)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	return err
}

// A fileArg is a file as scripts pass it; see fileSchema.
type fileArg struct {
	Base64, Text          *string
	Filename, ContentType string
	content               []byte
}

func readFileArg(raw json.RawMessage) (f fileArg, err error) {
	const form = `must be a file: {"base64": "..."} or {"text": "..."}`
	if err := json.Unmarshal(raw, &f); err != nil || (f.Base64 == nil) == (f.Text == nil) {
		return f, errors.New(form)
	}
	if f.Text != nil {
		f.content = []byte(*f.Text)
	} else if f.content, err = base64.StdEncoding.DecodeString(strings.TrimSpace(*f.Base64)); err != nil {
		return f, errors.New("is not valid base64")
	}
	if f.ContentType != "" {
		if _, _, err := mime.ParseMediaType(f.ContentType); err != nil || !printable(f.ContentType) {
			return f, errors.New(`has a "contentType" that is none`)
		}
	}
	if strings.ContainsFunc(f.Filename, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }) {
		return f, errors.New(`has a "filename" with a folder or a control character in it`)
	}
	if f.Filename == "" {
		f.Filename = "file"
	}
	return f, nil
}

// decode reads a JSON value and keeps its numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("cannot be read as JSON")
	}
	return v, nil
}
