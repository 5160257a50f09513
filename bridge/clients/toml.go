package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlFormat is TOML. Its parser keeps no places, so edits go by the lines of
// statements, which a scanner of our own finds; edited has the last word.
type tomlFormat struct{}

func (tomlFormat) decode(text []byte) (map[string]any, error) {
	if _, err := statements(text); err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := toml.Unmarshal(text, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("it is not TOML: line %d, column %d", line, column)
		}
		return nil, errors.New("it is not TOML")
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
	t := tomlScanner{text: text}
	for t.at < len(text) {
		from := t.at
		t.blank()
		switch {
		case t.at >= len(text) || text[t.at] == '#' || text[t.at] == '\n' || text[t.at] == '\r':
			t.line()
		case text[t.at] == '[':
			for t.at < len(text) && text[t.at] == '[' {
				t.at++
			}
			key, err := t.key()
			if err != nil {
				return nil, err
			}
			t.line()
			table = key
			all = append(all, statement{from, t.at, true, key})
		default:
			key, err := t.key()
			if err != nil {
				return nil, err
			}
			if err := t.value(); err != nil {
				return nil, err
			}
			all = append(all, statement{from, t.at, false, slices.Concat(table, key)})
		}
	}
	return all, nil
}

// A tomlScanner walks over a text. It knows strings, brackets and comments,
// and leaves all else to the parser.
type tomlScanner struct {
	text []byte
	at   int
}

func (t *tomlScanner) wrong() error {
	return fmt.Errorf("it is not TOML: line %d", 1+bytes.Count(t.text[:min(t.at, len(t.text))], []byte("\n")))
}

func (t *tomlScanner) blank() {
	for t.at < len(t.text) && (t.text[t.at] == ' ' || t.text[t.at] == '\t') {
		t.at++
	}
}

// line goes behind the end of the line.
func (t *tomlScanner) line() {
	n := bytes.IndexByte(t.text[t.at:], '\n')
	if n < 0 {
		t.at = len(t.text)
	} else {
		t.at += n + 1
	}
}

// key reads a key with dots in it.
func (t *tomlScanner) key() ([]string, error) {
	var key []string
	for {
		t.blank()
		from := t.at
		switch {
		case t.at < len(t.text) && (t.text[t.at] == '"' || t.text[t.at] == '\''):
			t.quoted()
			var one map[string]string
			if err := toml.Unmarshal(slices.Concat([]byte("k="), t.text[from:t.at]), &one); err != nil {
				return nil, t.wrong()
			}
			key = append(key, one["k"])
		default:
			for t.at < len(t.text) && (t.text[t.at] == '-' || t.text[t.at] == '_' || 'a' <= t.text[t.at]|0x20 && t.text[t.at]|0x20 <= 'z' || '0' <= t.text[t.at] && t.text[t.at] <= '9') {
				t.at++
			}
			if t.at == from {
				return nil, t.wrong()
			}
			key = append(key, string(t.text[from:t.at]))
		}
		if t.blank(); t.at >= len(t.text) || t.text[t.at] != '.' {
			return key, nil
		}
		t.at++
	}
}

// quoted goes behind a string of any of the four kinds.
func (t *tomlScanner) quoted() {
	q := t.text[t.at]
	if long := bytes.Repeat([]byte{q}, 3); bytes.HasPrefix(t.text[t.at:], long) {
		for t.at += 3; t.at < len(t.text); t.at++ {
			if bytes.HasPrefix(t.text[t.at:], long) {
				for t.at += 3; t.at < len(t.text) && t.text[t.at] == q; t.at++ { // up to two may be its own
				}
				return
			}
			if q == '"' && t.text[t.at] == '\\' {
				t.at++
			}
		}
		return
	}
	for t.at++; t.at < len(t.text) && t.text[t.at] != q && t.text[t.at] != '\n'; t.at++ {
		if q == '"' && t.text[t.at] == '\\' {
			t.at++
		}
	}
	t.at++
}

// value goes behind the line on which a value ends.
func (t *tomlScanner) value() error {
	depth := 0
	for t.at < len(t.text) {
		switch t.text[t.at] {
		case '"', '\'':
			t.quoted()
			continue
		case '[', '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
			}
		case ']', '}':
			depth--
		case '#', '\n':
			t.line()
			if depth <= 0 {
				return nil
			}
			continue
		}
		t.at++
	}
	t.at = len(t.text)
	return nil
}

func (tomlFormat) names(text []byte, keys []string) ([]string, error) {
	all, err := statements(text)
	if err != nil {
		return nil, err
	}
	tree, err := tomlFormat{}.decode(text)
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
	if !headers { // lines that mean what they do only in their table
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
		// The tables above it may be there already, and no table may be twice.
		for line := range strings.Lines(string(whole)) {
			if _, err := statements([]byte(line)); err == nil && strings.TrimSpace(line) == "["+strings.Join(keys, ".")+"]" {
				continue
			}
			taken.WriteString(line)
		}
	}
	return splice(text, cuts...), taken.String(), nil
}

// above is where the comments begin that stand right above an offset, not
// before another.
func above(text []byte, floor, at int) int {
	for {
		line := lineBefore(text, floor, at)
		if line == at || !bytes.HasPrefix(bytes.TrimSpace(text[line:at]), []byte("#")) {
			return at
		}
		at = line
	}
}

// lineBefore is where the line begins that ends at an offset; the offset
// itself if that line begins before floor.
func lineBefore(text []byte, floor, at int) int {
	if at <= floor || at == 0 {
		return at
	}
	return max(floor, bytes.LastIndexByte(text[:at-1], '\n')+1)
}
