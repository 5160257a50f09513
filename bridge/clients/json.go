package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON with comments and trailing commas, as editors have it.
type jsonFormat struct{}

func parseJSON(text []byte) (hujson.Value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	if err := shallow(text); err != nil {
		return hujson.Value{}, err
	}
	// hujson wants a line break after a line comment, also after the last.
	tree, err := hujson.Parse(append(bytes.Clone(text), '\n'))
	if err != nil {
		// Its message repeats what stands there, which may be a secret.
		var line, column int
		if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
			return tree, errors.New("it is not JSON")
		}
		return tree, fmt.Errorf("it is not JSON: line %d, column %d", line, column)
	}
	if _, ok := tree.Value.(*hujson.Object); !ok {
		return tree, errors.New("it is not a JSON object")
	}
	return tree, nil
}

// shallow refuses a text that is nested deeper than any client's file.
func shallow(text []byte) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			end := ""
			switch rest := text[i:]; {
			case bytes.HasPrefix(rest, []byte("//")):
				end = "\n"
			case bytes.HasPrefix(rest, []byte("/*")):
				end = "*/"
				i += 2
			default:
				continue
			}
			n := bytes.Index(text[i:], []byte(end))
			if n < 0 {
				return nil
			}
			i += n + len(end) - 1
		}
	}
	return nil
}

func (jsonFormat) decode(text []byte) (map[string]any, error) {
	tree, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	tree.Standardize()
	d := json.NewDecoder(bytes.NewReader(tree.Pack()))
	d.UseNumber()
	var all map[string]any
	if err := d.Decode(&all); err != nil {
		return nil, errors.New("it is not JSON")
	}
	return all, nil
}

// object returns the object below keys or, if some are missing, the last one on the
// way to it; depth is how many of the keys are there.
func object(tree *hujson.Value, keys []string) (at *hujson.Value, o *hujson.Object, depth int, err error) {
	at = tree
	for ; depth < len(keys); depth++ {
		next := child(at, keys[depth])
		if next == nil {
			break
		}
		at = next
	}
	o, ok := at.Value.(*hujson.Object)
	if !ok {
		return nil, nil, 0, fmt.Errorf("%s is not an object", strings.Join(keys[:depth], "."))
	}
	return at, o, depth, nil
}

func child(v *hujson.Value, key string) *hujson.Value {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i := range o.Members {
		if nameOf(o.Members[i]) == key {
			return &o.Members[i].Value
		}
	}
	return nil
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

func (jsonFormat) names(text []byte, keys []string) ([]string, error) {
	tree, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	_, o, depth, err := object(&tree, keys)
	if err != nil || depth < len(keys) {
		return nil, err
	}
	var all []string
	for _, m := range o.Members {
		all = append(all, nameOf(m))
	}
	return all, nil
}

// A layout is how the members of an object are laid out.
type layout struct {
	flat              bool // all on one line
	indent, unit, eol string
	space             string // after a colon or a comma on one line
}

// deeper is the layout of what is inside.
func (l layout) deeper() layout {
	l.indent += l.unit
	return l
}

// wrap returns the text of an object with inner, which is laid out by l.deeper().
func (l layout) wrap(inner string) string {
	if l.flat {
		return "{" + inner + "}"
	}
	return "{" + l.eol + l.indent + l.unit + inner + l.eol + l.indent + "}"
}

func (l layout) member(m member) string {
	if m.text != "" {
		return m.text
	}
	colon := ":" + l.space
	var all []string
	for _, f := range m.fields {
		var value string
		switch v := f.value.(type) {
		case []string:
			texts := make([]string, len(v))
			for i, s := range v {
				texts[i] = quote(s)
			}
			value = "[" + strings.Join(texts, ","+l.space) + "]"
		case string:
			value = quote(v)
		case oneText:
			value = "{" + quote(v.key) + ":" + l.space + quote(v.value) + "}"
		case struct{}:
			value = "{}"
		default:
			value = fmt.Sprint(v)
		}
		all = append(all, quote(f.key)+colon+value)
	}
	between := "," + l.space
	if !l.flat {
		between = "," + l.eol + l.deeper().indent
	}
	return quote(m.name) + colon + l.wrap(strings.Join(all, between))
}

// nested returns the text of a member within new objects, one for each key.
func (l layout) nested(keys []string, m member) string {
	if len(keys) == 0 {
		return l.member(m)
	}
	return quote(keys[0]) + ":" + l.space + l.wrap(l.deeper().nested(keys[1:], m))
}

// layoutOf returns how the object at v is laid out, or would be if it had members.
func layoutOf(text []byte, v *hujson.Value, o *hujson.Object) layout {
	l := layout{unit: "  ", eol: newline(text), space: " "}
	for line := range strings.Lines(string(text)) {
		if rest := strings.TrimLeft(line, " \t"); len(rest) < len(line) && strings.TrimSpace(rest) != "" {
			l.unit = line[:len(line)-len(rest)]
			break
		}
	}
	outer := indentOf(text, v.StartOffset)
	if len(o.Members) == 0 {
		l.flat = len(bytes.TrimSpace(text)) > 2 && !bytes.ContainsRune(bytes.TrimSpace(text), '\n')
		l.indent = outer + l.unit
	} else {
		first := o.Members[0].Name.StartOffset
		l.flat = !bytes.ContainsRune(text[v.StartOffset:first], '\n')
		l.indent = indentOf(text, first)
	}
	if l.flat {
		if !bytes.Contains(text, []byte(`": `)) && !bytes.Contains(text, []byte(`, `)) {
			l.space = ""
		}
	}
	return l
}

func (jsonFormat) insert(text []byte, keys []string, m member) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	tree, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	v, o, depth, err := object(&tree, keys)
	if err != nil {
		return nil, err
	}
	l := layoutOf(text, v, o)
	added := l.nested(keys[depth:], m)
	// Comments on lines of their own stay below it, so that they are not taken
	// for its own when it is removed.
	closing := v.EndOffset - 1
	extra := closing - len(o.AfterExtra)
	end, more := onLine(o.AfterExtra)
	kept := extra + end
	if n := len(o.Members); n > 0 {
		last := o.Members[n-1].Value
		before := l.space
		if !l.flat || more {
			before = l.eol + l.indent
		}
		if last.AfterExtra != nil { // a comma at the end, as before
			return splice(text, cut{kept, kept, before + added + ","}), nil
		}
		return splice(text, cut{last.EndOffset, last.EndOffset, ","}, cut{kept, kept, before + added}), nil
	}
	if l.flat && !more {
		return splice(text, cut{kept, closing, added}), nil
	}
	if len(bytes.TrimSpace(text[kept:closing])) > 0 {
		return splice(text, cut{kept, kept, l.eol + l.indent + added}), nil
	}
	outer := indentOf(text, v.StartOffset)
	return splice(text, cut{kept, closing, l.eol + l.indent + added + l.eol + outer}), nil
}

// onLine returns how much of extra, which follows a value, is on the value's own
// line, comments included, and whether there is more below it.
func onLine(extra []byte) (end int, more bool) {
	at := 0
	for at < len(extra) {
		switch rest := extra[at:]; {
		case rest[0] == '\n':
			return end, true
		case bytes.HasPrefix(rest, []byte("//")):
			at += len(bytes.TrimRight(rest[:max(0, bytes.IndexByte(rest, '\n'))], "\r"))
			return at, true
		case bytes.HasPrefix(rest, []byte("/*")):
			at += 2 + bytes.Index(rest[2:], []byte("*/")) + 2
			end = at
		default:
			at++
		}
	}
	return end, false
}

func (jsonFormat) remove(text []byte, keys []string, name string) ([]byte, string, error) {
	tree, err := parseJSON(text)
	if err != nil {
		return nil, "", err
	}
	v, o, depth, err := object(&tree, keys)
	if err != nil {
		return nil, "", err
	}
	i := -1
	for n, m := range o.Members {
		if depth == len(keys) && nameOf(m) == name {
			i = n
		}
	}
	if i < 0 {
		return nil, "", fmt.Errorf("it has no entry %q", name)
	}
	m, last := o.Members[i], i == len(o.Members)-1
	// Comments above a member are its own; those behind the member before, on
	// the same line, are not.
	from := m.Name.StartOffset - len(m.Name.BeforeExtra)
	behind, broken := onLine(m.Name.BeforeExtra)
	from += behind
	end := m.Value.EndOffset
	taken := string(bytes.TrimSpace(text[from:end]))
	var cuts []cut
	if !last || m.Value.AfterExtra != nil {
		end += len(m.Value.AfterExtra) + 1 // with its comma
	} else if i > 0 {
		before := o.Members[i-1].Value
		comma := before.EndOffset + len(before.AfterExtra)
		cuts = append(cuts, cut{comma, comma + 1, ""})
	}
	// What stands behind it on its line goes with it.
	rest := o.AfterExtra
	if !last {
		rest = o.Members[i+1].Name.BeforeExtra
	}
	if n, more := onLine(rest); more {
		end += n
	} else if i == 0 && !last && len(bytes.TrimSpace(rest)) == 0 {
		end += len(rest)
	}
	if broken && bytes.Contains(m.Name.BeforeExtra[:behind], []byte("//")) && text[end] != '\n' && text[end] != '\r' { // a comment may need the end of its line
		from += bytes.IndexByte(text[from:], '\n') + 1
	}
	closing := v.EndOffset - 1
	if len(o.Members) == 1 && len(bytes.TrimSpace(text[v.StartOffset+1:from])) == 0 && len(bytes.TrimSpace(text[end:closing])) == 0 {
		from, end = v.StartOffset+1, closing
	}
	return splice(text, append(cuts, cut{from, end, ""})...), taken, nil
}

func (jsonFormat) write(keys []string, m member) string {
	l := layout{unit: "  ", eol: "\n", space: " "}
	return l.wrap(l.deeper().nested(keys, m)) + "\n"
}
