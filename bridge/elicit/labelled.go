package elicit

//lint:file-ignore SA1019 sampling is deprecated by the newest protocol; servers use it

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on what an upstream server shows to a person.
const (
	maxLines   = 12  // of its message
	maxLine    = 200 // characters of a line of it
	maxFields  = 20  // of its form
	maxText    = 120 // characters of a title, a description or a choice
	maxChoices = 50  // choices of a field
)

// LabelForm makes a server's form, or its request to open a page, fit for a person.
// The first line says which server asks; the server's own lines follow as JSON
// strings in code spans, each behind a "•", which no client can render as anything
// else; and the title of every field begins with the server's name. Nothing in it
// can be mistaken for a question of the bridge: fields named like those of the
// bridge's forms are renamed (fields maps the new names to the old), and choices
// worded like the bridge's are refused. So is a form that asks for a secret.
func LabelForm(server string, p *mcp.ElicitParams) (shown *mcp.ElicitParams, fields map[string]string, err error) {
	head := "The server " + inCode(server) + " asks, not codemode-bridge"
	tail := "\nThis approves no call. Give no passwords, tokens or keys."
	if p.URL != "" || p.Mode == "url" {
		u, err := page(p.URL)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.ElicitParams{Mode: "url", URL: p.URL, ElicitationID: canon.Cut(p.ElicitationID, 200),
			Message: head + ", to open a page at " + inCode(u.Host) + ":\n" + quotedLines(p.Message) + "\nThis approves no call."}, nil, nil
	}
	properties, required, err := labelFields(server, p.Message, p.RequestedSchema)
	if err != nil {
		return nil, nil, err
	}
	fields = map[string]string{}
	schema := map[string]any{}
	names := map[string]string{} // old to new
	for name, property := range properties {
		as := name
		for slices.Contains(ownFields, strings.ToLower(as)) || as != name && properties[as] != nil {
			as = "their_" + as
		}
		names[name], fields[as] = as, name
		schema[as] = property
	}
	needed := []any{}
	for _, name := range required {
		if as, ok := names[name]; ok {
			needed = append(needed, as)
		}
	}
	form := map[string]any{"type": "object", "properties": schema, "required": needed}
	return &mcp.ElicitParams{Mode: "form", Message: head + ":\n" + quotedLines(p.Message) + tail, RequestedSchema: form}, fields, nil
}

// ownFields are the fields of the bridge's own questions.
var ownFields = []string{"decision", "reason", "answer"}

// inCode returns a text of others in a form that every client shows alike.
func inCode(text string) string { return canon.Span(canon.Literal(canon.Escape(text))) }

// quotedLines returns a server's text with each line labelled as such.
func quotedLines(text string) string {
	lines := strings.Split(strings.TrimSpace(canon.EscapeLines(text)), "\n")
	var out []string
	for i, line := range lines {
		if i == maxLines {
			out = append(out, fmt.Sprintf("• And %s, not shown.", canon.Counted(len(lines)-i, "more line")))
			break
		}
		shown := quotedLine(line)
		if n := utf8.RuneCountInString(line); n > maxLine {
			shown = quotedLine(string([]rune(line)[:maxLine])) + fmt.Sprintf(" (%s left out)", canon.Counted(n-maxLine, "character"))
		}
		out = append(out, shown)
	}
	return strings.Join(out, "\n")
}

// quotedLine returns a line of others in the form of canon.EscapeLines.
func quotedLine(line string) string { return "• " + canon.Span(canon.Literal(line)) }

// A Field is a field of a server's form, as far as it is passed on.
type Field struct {
	Type        string          `json:"type,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	EnumNames   []string        `json:"enumNames,omitempty"`
	OneOf       []Choice        `json:"oneOf,omitempty"`
	AnyOf       []Choice        `json:"anyOf,omitempty"`
	Items       *Field          `json:"items,omitempty"`
	MinItems    *int            `json:"minItems,omitempty"`
	MaxItems    *int            `json:"maxItems,omitempty"`
	MinLength   *int            `json:"minLength,omitempty"`
	MaxLength   *int            `json:"maxLength,omitempty"`
	Minimum     *json.Number    `json:"minimum,omitempty"`
	Maximum     *json.Number    `json:"maximum,omitempty"`
	Format      string          `json:"format,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// A Choice is one that a Field offers.
type Choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// labelFields reads the schema of a server's form and labels its fields.
func labelFields(server, message string, schema any) (properties map[string]*Field, required []string, err error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the form: %w", err)
	}
	var form struct {
		Properties map[string]*Field `json:"properties"`
		Required   []string          `json:"required"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, nil, fmt.Errorf("a form has plain fields: %w", err)
	}
	if len(form.Properties) > maxFields {
		return nil, nil, fmt.Errorf("a form has at most %d fields", maxFields)
	}
	if err := asksNoSecret(message, form.Properties); err != nil {
		return nil, nil, err
	}
	for name, f := range form.Properties {
		if f == nil || !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, f.Type) || len(name) > 64 || name != canon.Escape(name) {
			return nil, nil, errors.New("a form has plain fields with plain names")
		}
		title := f.Title
		if title == "" {
			title = name
		}
		f.Title = label(server) + ": " + label(title)
		if f.Description != "" {
			f.Description = label(f.Description)
		}
		if f.Items != nil { // only its choices are shown
			f.Items = &Field{Type: f.Items.Type, Enum: f.Items.Enum, EnumNames: f.Items.EnumNames, OneOf: f.Items.OneOf, AnyOf: f.Items.AnyOf}
		}
		if !slices.Contains(formats, f.Format) {
			f.Format = ""
		}
		if err := f.checkDefault(); err != nil {
			return nil, nil, fmt.Errorf("the field %s: %w", name, err)
		}
		for _, part := range []*Field{f, f.Items} {
			if part == nil {
				continue
			}
			if err := part.checkChoices(); err != nil {
				return nil, nil, fmt.Errorf("the field %s: %w", name, err)
			}
			for _, choices := range [][]Choice{part.OneOf, part.AnyOf} {
				for i := range choices {
					choices[i].Title = label(choices[i].Title)
				}
			}
			part.nameChoices()
		}
	}
	return form.Properties, form.Required, nil
}

// asksNoSecret refuses a server's form that asks for a secret: a field of any
// type can take one (a PIN is an integer), and any text can ask for it. A form
// with nothing but yes-or-no fields takes none, whatever it speaks of, such as
// "Replace the API key?".
func asksNoSecret(message string, fields map[string]*Field) error {
	takes := false
	for _, f := range fields {
		takes = takes || f != nil && f.Type != "boolean"
	}
	if !takes {
		return nil
	}
	if speaksOfSecret(message) {
		return errors.New("secrets are not asked for by a form, and its message speaks of one")
	}
	for name, f := range fields {
		if f != nil && (speaksOfSecret(name) || slices.ContainsFunc(f.texts(), speaksOfSecret)) {
			return fmt.Errorf("secrets are not asked for by a form, and the field %s looks like one", name)
		}
	}
	return nil
}

// label returns a title, a description or a choice of a server as it is shown.
func label(text string) string { return canon.Label(canon.Cut(canon.Escape(text), maxText)) }

// nameChoices gives the choices of an enum names that every client shows alike, if
// the server named them or the choices themselves are not shown alike.
func (f *Field) nameChoices() {
	if len(f.EnumNames) == 0 && slices.ContainsFunc(f.Enum, func(s string) bool { return label(s) != s }) {
		f.EnumNames = slices.Clone(f.Enum)
	}
	for i, name := range f.EnumNames {
		f.EnumNames[i] = label(name)
	}
}

// formats are those that the protocol has for a text.
var formats = []string{"email", "uri", "date", "date-time"}

// plain reports whether a text of a server may be passed on as it is: what the
// server gets back must be what it sent, so nothing in it can be escaped.
func plain(text string) bool {
	return text == canon.Escape(text) && utf8.RuneCountInString(text) <= maxText
}

// checkDefault refuses a default that no person could read.
func (f *Field) checkDefault() error {
	var v any
	if len(f.Default) == 0 || json.Unmarshal(f.Default, &v) != nil {
		return nil // there is none
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, one := range list {
		text, isText := one.(string)
		if _, isNumber := one.(float64); !isText && !isNumber && one != true && one != false && one != nil || !plain(text) || len(list) > maxChoices {
			return fmt.Errorf("its default must be plain and at most %d characters long", maxText)
		}
	}
	if len(f.Default) > 8*maxText*max(len(list), 1) {
		return errors.New("its default is too long")
	}
	return nil
}

// ownTitles are in the titles of the bridge's choices, as letters has them;
// ownValues are the choices themselves.
var (
	ownTitles = []string{"yesthiscall", "yesthese", "yesandcallslikethis", "yesforthissession", "noandstop", "notoeveryfurthercall", "yesonce", "yesandagain", "andforgetwhatwasread"}
	ownValues = []string{"no", "no_more", "stop", "forget", string(approval.Once), string(approval.RunScope), string(approval.SessionScope), string(approval.AnyArgs)}
)

// checkChoices refuses choices that a person could not read, could take for
// others, or could take for the bridge's. One of the bridge's values alone is an
// ordinary word; two are its question.
func (f *Field) checkChoices() error {
	values, titles := slices.Clone(f.Enum), slices.Clone(f.EnumNames)
	for _, c := range slices.Concat(f.OneOf, f.AnyOf) {
		values, titles = append(values, c.Const), append(titles, c.Title)
	}
	if len(values) > maxChoices || len(titles) > maxChoices {
		return fmt.Errorf("a field has at most %d choices", maxChoices)
	}
	if slices.ContainsFunc(values, func(s string) bool { return !plain(s) }) {
		return fmt.Errorf("a choice must be plain and at most %d characters long", maxText)
	}
	for _, words := range [][]string{values, titles} {
		ours := map[string]bool{}
		for _, s := range words {
			if slices.ContainsFunc(canon.Words(s), canon.Mixed) {
				return errors.New("a choice may not mix letters of several scripts in a word")
			}
			l := letters(s)
			if slices.ContainsFunc(ownTitles, func(w string) bool { return strings.Contains(l, w) }) {
				ours["all"], ours["of it"] = true, true
			}
			if slices.ContainsFunc(ownValues, func(w string) bool { return letters(w) == l }) {
				ours[l] = true
			}
		}
		if len(ours) > 1 {
			return errors.New("a choice may not be worded like those of codemode-bridge")
		}
	}
	return nil
}

// texts returns what a person reads of a field, beside its name.
func (f *Field) texts() []string {
	all := slices.Concat([]string{f.Title, f.Description, string(f.Default)}, f.Enum, f.EnumNames)
	for _, c := range slices.Concat(f.OneOf, f.AnyOf) {
		all = append(all, c.Const, c.Title)
	}
	if f.Items != nil {
		all = append(all, f.Items.texts()...)
	}
	return all
}
