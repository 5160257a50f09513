package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML. Edits go by the lines of statements; edited has the last
// word.
type tomlFormat struct{}

func (tomlFormat) decode(text []byte) (map[string]any, error) {
	all := map[string]any{}
	if err := toml.Unmarshal(text, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("it is not TOML: line %d, column %d", line, column)
		}
		return nil, errors.New("it is not TOML")
	}
	if _, err := statements(text); err != nil { // for its depth
		return nil, err
	}
	return all, nil
}

// A statement is a table's header or a key with its value, in whole lines.
type statement struct {
	from, to int
	header   bool
	key      []string // the table's, or the value's with that of its table
}

// below reports whether the statement is of the value at key.
func (s statement) below(key []string) bool {
	return len(s.key) >= len(key) && slices.Equal(s.key[:len(key)], key)
}

// statements finds the statements of a text. Comments and empty lines lie
// between them.
func statements(text []byte) ([]statement, error) {
	var all []statement
	var table []string
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		node := p.Expression()
		var key []string
		from, to := len(text), 0
		for part := node.Key(); part.Next(); {
			raw := part.Node().Raw
			key = append(key, string(part.Node().Data))
			from, to = min(from, int(raw.Offset)), int(raw.Offset+raw.Length)
		}
		if node.Kind == unstable.KeyValue {
			if deeper(node.Value(), maxDepth) {
				return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
			}
			to = int(node.Raw.Offset + node.Raw.Length)
			key = slices.Concat(table, key)
		} else {
			table = key
		}
		from, to = bytes.LastIndexByte(text[:from], '\n')+1, lineEnd(text, to)
		all = append(all, statement{from, to, node.Kind != unstable.KeyValue, key})
	}
	if p.Error() != nil {
		return nil, errors.New("it is not TOML")
	}
	return all, nil
}

// lineEnd returns the end of the line that an offset is in, after its line break.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// deeper reports whether a value is nested deeper than levels.
func deeper(value *unstable.Node, levels int) bool {
	if value.Kind == unstable.KeyValue {
		value = value.Value() // of a table on one line
	}
	if value.Kind != unstable.Array && value.Kind != unstable.InlineTable {
		return false
	}
	if levels == 0 {
		return true
	}
	for one := value.Children(); one.Next(); {
		if deeper(one.Node(), levels-1) {
			return true
		}
	}
	return false
}

func (tomlFormat) names(text []byte, keys []string) ([]string, error) {
	tree, err := tomlFormat{}.decode(text)
	if err != nil {
		return nil, err
	}
	all, err := statements(text)
	if err != nil {
		return nil, err
	}
	v, ok := lookUp(tree, keys)
	if !ok {
		return nil, nil
	}
	servers, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a table", strings.Join(keys, "."))
	}
	var names []string
	for _, s := range all {
		if s.below(keys) && len(s.key) > len(keys) && !slices.Contains(names, s.key[len(keys)]) {
			names = append(names, s.key[len(keys)])
		}
	}
	rest := make([]string, 0, len(servers))
	for name := range servers { // of a table that is written on one line
		if !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...), nil
}

func (tomlFormat) insert(text []byte, keys []string, m member) ([]byte, error) {
	eol := newline(text)
	out := bytes.Clone(text)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, eol...)
	}
	if len(bytes.TrimSpace(out)) > 0 {
		out = append(out, eol...)
	}
	return append(out, strings.ReplaceAll(tomlText(keys, m), "\n", eol)...), nil
}

func (tomlFormat) write(keys []string, m member) string { return tomlText(keys, m) }

func tomlText(keys []string, m member) string {
	if m.text != "" {
		return strings.ReplaceAll(m.text, "\r\n", "\n")
	}
	path := make([]string, 0, len(keys)+1)
	for _, key := range append(slices.Clone(keys), m.name) {
		path = append(path, tomlKey(key))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "[%s]\n", strings.Join(path, "."))
	for _, f := range m.fields {
		var value string
		switch v := f.value.(type) {
		case []string:
			texts := make([]string, len(v))
			for i, s := range v {
				texts[i] = quote(s)
			}
			value = "[" + strings.Join(texts, ", ") + "]"
		case string:
			value = quote(v)
		case oneText:
			value = "{ " + tomlKey(v.key) + " = " + quote(v.value) + " }"
		case struct{}:
			value = "{}"
		default:
			value = fmt.Sprint(v)
		}
		fmt.Fprintf(&out, "%s = %s\n", tomlKey(f.key), value)
	}
	return out.String()
}

func tomlKey(key string) string {
	bare := key != "" && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	if bare {
		return key
	}
	return quote(key)
}

func (tomlFormat) remove(text []byte, keys []string, name string) ([]byte, string, error) {
	all, err := statements(text)
	if err != nil {
		return nil, "", err
	}
	path := append(slices.Clone(keys), name)
	var cuts []cut
	var taken strings.Builder
	headers := true
	for i := 0; i < len(all); i++ {
		if !all[i].below(path) {
			continue
		}
		from, previous := all[i].from, 0
		if i > 0 {
			previous = all[i-1].to
		}
		headers = headers && all[i].header
		for i+1 < len(all) && all[i+1].below(path) {
			i++
		}
		// The comments right above go with it, and one empty line.
		from = above(text, previous, from)
		to := all[i].to
		taken.Write(text[from:to])
		if line := lineBefore(text, previous, from); line < from && len(bytes.TrimSpace(text[line:from])) == 0 {
			from = line
		}
		cuts = append(cuts, cut{from, to, ""})
	}
	if cuts == nil {
		return nil, "", fmt.Errorf("it has no entry %q with lines of its own", name)
	}
	if !headers { // lines that would mean something else outside their table
		tree, err := tomlFormat{}.decode(text)
		if err != nil {
			return nil, "", err
		}
		v, _ := lookUp(tree, path)
		for i := len(path) - 1; i >= 0; i-- {
			v = map[string]any{path[i]: v}
		}
		whole, err := toml.Marshal(v)
		if err != nil {
			return nil, "", fmt.Errorf("keeping the entry %q: %w", name, err)
		}
		taken.Reset()
		// The tables above it may be there already, and none may be there twice.
		for line := range strings.Lines(string(whole)) {
			if _, err := statements([]byte(line)); err == nil && strings.TrimSpace(line) == "["+strings.Join(keys, ".")+"]" {
				continue
			}
			taken.WriteString(line)
		}
	}
	return splice(text, cuts...), taken.String(), nil
}

// above returns where the comments right above an offset begin, but not before floor.
func above(text []byte, floor, at int) int {
	for {
		line := lineBefore(text, floor, at)
		if line == at || !bytes.HasPrefix(bytes.TrimSpace(text[line:at]), []byte("#")) {
			return at
		}
		at = line
	}
}

// lineBefore returns the beginning of the line that ends at an offset, but not before
// floor.
func lineBefore(text []byte, floor, at int) int {
	if at <= floor || at == 0 {
		return at
	}
	return max(floor, bytes.LastIndexByte(text[:at-1], '\n')+1)
}
