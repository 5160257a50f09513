package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFormat is YAML in block style. Edits go by lines: an entry is its key's
// line and those below it that are indented further; edited has the last word.
type yamlFormat struct{}

var yamlLine = regexp.MustCompile(`line (\d+)`)

func (yamlFormat) decode(text []byte) (map[string]any, error) {
	if _, err := yamlRoot(text); err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, yamlError(err)
	}
	if all == nil { // of a null with a tag
		all = map[string]any{}
	}
	return all, nil
}

// yamlError says where a text is wrong, but not what stands there.
func yamlError(err error) error {
	if m := yamlLine.FindString(err.Error()); m != "" {
		return fmt.Errorf("it is not YAML: %s", m)
	}
	return errors.New("it is not YAML")
}

// yamlRoot is the mapping that a text is; nil if it is empty.
func yamlRoot(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, yamlError(err)
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one YAML document")
	}
	root := doc.Content[0]
	switch {
	case root.Kind == yaml.MappingNode:
		return root, nil
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		return nil, nil
	}
	return nil, errors.New("it is not a YAML mapping")
}

// pair finds a key of a mapping, and its value.
func pair(m *yaml.Node, name string) (key, value *yaml.Node) {
	if m == nil {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			key, value = m.Content[i], m.Content[i+1]
		}
	}
	return key, value
}

// block returns the mapping below keys; nil if it is missing or empty.
func block(text []byte, keys []string) (*yaml.Node, error) {
	at, err := yamlRoot(text)
	for _, key := range keys {
		if err != nil || at == nil {
			return nil, err
		}
		_, value := pair(at, key)
		switch {
		case value == nil, value.Kind == yaml.ScalarNode && value.Tag == "!!null":
			return nil, nil
		case value.Kind != yaml.MappingNode:
			return nil, fmt.Errorf("%s is not a mapping", strings.Join(keys, "."))
		}
		at = value
	}
	return at, err
}

func (yamlFormat) names(text []byte, keys []string) ([]string, error) {
	m, err := block(text, keys)
	if err != nil || m == nil {
		return nil, err
	}
	var names []string
	for i := 0; i+1 < len(m.Content); i += 2 {
		names = append(names, m.Content[i].Value)
	}
	return names, nil
}

// lineStart is the offset of a line, counted from 1.
func lineStart(text []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
	}
	return at
}

// entryEnd returns the end of the entry whose key's line begins at from: it ends
// before the next line that is not indented further. Empty lines before that are not
// part of it.
func entryEnd(text []byte, from int) int {
	indent := len(indentOf(text, from))
	end, at := from, from
	for first := true; at < len(text); first = false {
		next := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			next = at + n + 1
		}
		switch line := bytes.TrimSpace(text[at:next]); {
		case len(line) == 0 && !first:
		case first || len(indentOf(text, at)) > indent:
			end = next
		default:
			return end
		}
		at = next
	}
	return end
}

// errFlow is the error of an entry that shares its line with others.
var errFlow = errors.New("its entries are written on one line, in braces")

func (yamlFormat) insert(text []byte, keys []string, m member) ([]byte, error) {
	eol := newline(text)
	root, err := yamlRoot(text)
	if err != nil {
		return nil, err
	}
	servers, err := block(text, keys)
	if err != nil {
		return nil, err
	}
	if len(keys) != 1 {
		return nil, errors.New("only entries one level deep can be edited")
	}
	lines := func(indent string) string {
		return strings.ReplaceAll(yamlText(indent, m), "\n", eol)
	}
	whole := func(at int) string { // what a new line needs before it
		if at > 0 && text[at-1] != '\n' {
			return eol
		}
		return ""
	}
	key, value := pair(root, keys[0])
	switch {
	case root != nil && root.Style&yaml.FlowStyle != 0:
		return nil, errFlow
	case key == nil:
		return splice(text, cut{len(text), len(text), whole(len(text)) + keys[0] + ":" + eol + lines("  ")}), nil
	case servers == nil || len(servers.Content) == 0:
		from := lineStart(text, key.Line)
		end := from + len(bytes.TrimRight(text[from:entryEnd(text, from)], "\r\n"))
		line := string(text[from:end])
		if servers != nil { // an empty one, in braces
			open := strings.LastIndexByte(line, '{')
			if servers.Line != key.Line || open < 0 || strings.Count(line, "{") != 1 || !strings.Contains(line[open:], "}") {
				return nil, errFlow
			}
			line = strings.TrimRight(line[:open], " ") + line[open+strings.IndexByte(line[open:], '}')+1:]
		} else if value.Value != "" { // null, spelled out
			line = strings.Replace(line, value.Value, "", 1)
		}
		return splice(text, cut{from, end, strings.TrimRight(line, " ") + eol + strings.TrimSuffix(lines(indentOf(text, from)+"  "), eol)}), nil
	case servers.Style&yaml.FlowStyle != 0:
		return nil, errFlow
	}
	last := servers.Content[len(servers.Content)-2]
	from := lineStart(text, last.Line)
	end := entryEnd(text, from)
	return splice(text, cut{end, end, whole(end) + lines(indentOf(text, from))}), nil
}

func (yamlFormat) remove(text []byte, keys []string, name string) ([]byte, string, error) {
	servers, err := block(text, keys)
	if err != nil {
		return nil, "", err
	}
	key, _ := pair(servers, name)
	if key == nil {
		return nil, "", fmt.Errorf("it has no entry %q", name)
	}
	if servers.Style&yaml.FlowStyle != 0 {
		return nil, "", errFlow
	}
	from := lineStart(text, key.Line)
	floor := lineStart(text, servers.Line)
	if key == servers.Content[0] {
		floor = from
	}
	to := entryEnd(text, from)
	from = above(text, floor, from)
	taken := string(text[from:to])
	if len(servers.Content) > 2 {
		return splice(text, cut{from, to, ""}), taken, nil
	}
	if len(keys) == 0 {
		return splice(text, cut{from, to, ""}), taken, nil
	}
	// The last one leaves an empty mapping.
	root, err := yamlRoot(text)
	if err != nil {
		return nil, "", err
	}
	parent, _ := pair(root, keys[len(keys)-1])
	if parent == nil {
		return nil, "", errors.New("only entries one level deep can be edited")
	}
	colon := lineStart(text, parent.Line) + parent.Column - 1 + len(keys[len(keys)-1])
	n := bytes.IndexByte(text[colon:from], ':')
	if n < 0 {
		return nil, "", errFlow
	}
	colon += n + 1
	return splice(text, cut{colon, colon, " {}"}, cut{from, to, ""}), taken, nil
}

func (yamlFormat) write(keys []string, m member) string {
	return keys[0] + ":\n" + yamlText("  ", m)
}

// yamlText are the lines of an entry at an indentation.
func yamlText(indent string, m member) string {
	if m.text != "" {
		return indented(m.text, indent)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s%s:\n", indent, yamlScalar(m.name))
	for _, f := range m.fields {
		fmt.Fprintf(&out, "%s  %s:", indent, yamlScalar(f.key))
		switch v := f.value.(type) {
		case []string:
			if len(v) == 0 {
				out.WriteString(" []")
			}
			for _, s := range v {
				fmt.Fprintf(&out, "\n%s  - %s", indent, yamlScalar(s))
			}
		case string:
			out.WriteString(" " + yamlScalar(v))
		case oneText:
			fmt.Fprintf(&out, "\n%s    %s: %s", indent, yamlScalar(v.key), yamlScalar(v.value))
		case struct{}:
			out.WriteString(" {}")
		default:
			fmt.Fprintf(&out, " %v", v)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// indented moves an entry's text to an indentation.
func indented(text, indent string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	lines := strings.SplitAfter(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return !strings.HasPrefix(strings.TrimSpace(l), "#") })
	old := lines[max(at, 0)]
	old = old[:len(old)-len(strings.TrimLeft(old, " "))]
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, old); ok && strings.TrimSpace(line) != "" {
			lines[i] = indent + rest
		}
	}
	return strings.Join(lines, "")
}

var yamlPlain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./@-]*$`)

// yamlScalar writes a text so that YAML reads it as a string: bare where it cannot be
// taken for anything else.
func yamlScalar(s string) string {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if yamlPlain.MatchString(s) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	return quote(s)
}
