package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/values"
)

// lowered is what the TypeScript front end rewrites because goja cannot
// parse it. Everything else stays as the model wrote it.
var lowered = map[string]bool{
	"async-generator": false,
	"for-await":       false,
	"using":           false,
	"decorators":      false,
	"hashbang":        false,

	"nested-rest-binding":  false,
	"regexp-match-indices": false,
	"regexp-set-notation":  false,
}

// loweredFields is for classes with fields that goja takes for something else:
// those called get, set, async and static. All fields are then set by calls.
var loweredFields = func() map[string]bool {
	m := maps.Clone(lowered)
	m["class-field"], m["class-static-field"] = false, false
	return m
}()

var oddField = Pattern(`\b(get|set|async|static)\s*=`)

// A frontError is the front end's first message.
type frontError struct {
	text         string
	line, column int // in the wrapped text; the column counts bytes from 0
	suggestion   string
}

func (e *frontError) Error() string { return e.text }

// transform strips types and rewrites what goja cannot parse. The output is
// plain ASCII, so that its columns are bytes and UTF-16 units alike.
func transform(text string, lowered map[string]bool) (code string, sourceMap []byte, err *frontError) {
	r := api.Transform(text, api.TransformOptions{
		Loader:         api.LoaderTS,
		Target:         api.ESNext,
		Supported:      lowered,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		Sourcefile:     values.ScriptName,
		LogLevel:       api.LogLevelSilent,
		TsconfigRaw:    `{"compilerOptions":{"experimentalDecorators":false}}`,
	})
	if len(r.Errors) > 0 {
		m := r.Errors[0]
		e := &frontError{text: m.Text}
		if m.Location != nil {
			e.line, e.column, e.suggestion = m.Location.Line, m.Location.Column, m.Location.Suggestion
		}
		return "", nil, e
	}
	return string(r.Code), r.Map, nil
}

// mapBack gives goja the front end's source map, so that every stack trace
// shows the model's own lines. goja counts columns from 1, on both sides of the
// map, and the map counts them from 0: so every column is moved by one. Columns of
// line 1 do not count the wrapper, if the script reads stacks.
func (s *Script) mapBack(f *file.File, sourceMap []byte) error {
	var m map[string]any
	if err := json.Unmarshal(sourceMap, &m); err != nil {
		return fmt.Errorf("reading the front end's source map: %w", err)
	}
	text, _ := m["mappings"].(string)
	head := 0
	if s.readsStacks() {
		head, s.rebased = len(wrapHead), true
	}
	moved, err := moveColumns(text, head)
	if err != nil {
		return err
	}
	m["mappings"] = moved
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c, err := sourcemap.Parse(values.ScriptName, data)
	if err != nil {
		return fmt.Errorf("reading the front end's source map: %w", err)
	}
	f.SetSourceMap(c)
	return nil
}

// rebase makes the stack traces of a script that goja parsed by itself show
// its own columns on line 1, if the script reads them. goja has no other way
// than a map with an entry for each column.
func (s *Script) rebase(f *file.File) {
	if !s.readsStacks() {
		return
	}
	var m strings.Builder
	m.WriteString("CAAC,WAAA") // the wrapper's first column, and the script's
	m.WriteString(strings.Repeat(",CAAC", len(s.split()[0])))
	data, err := json.Marshal(map[string]any{"version": 3, "sources": []string{values.ScriptName}, "names": []string{}, "mappings": m.String()})
	if err != nil {
		return
	}
	if c, err := sourcemap.Parse(values.ScriptName, data); err == nil {
		f.SetSourceMap(c)
		s.rebased = true
	}
}

// readsStacks reports whether the script may read an error's stack. Only then are
// columns without the wrapper needed: the worker corrects what it reads itself.
func (s *Script) readsStacks() bool { return strings.Contains(s.Text, "stack") }

const base64VLQ = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// moveColumns adds one to every generated and every original column of
// mappings, and subtracts head from the original columns of line 1. Fields are
// differences: the generated column starts anew on each line, the others
// never.
func moveColumns(mappings string, head int) (string, error) {
	var out strings.Builder
	source, column, written := 0, 0, 0 // original line and column, and what was written for it
	for i, line := range strings.Split(mappings, ";") {
		if i > 0 {
			out.WriteByte(';')
		}
		for j, segment := range strings.Split(line, ",") {
			if segment == "" {
				continue
			}
			fields, err := decodeVLQ(segment)
			if err != nil {
				return "", err
			}
			if j == 0 {
				fields[0]++
			} else {
				out.WriteByte(',')
			}
			if len(fields) >= 4 {
				source += fields[2]
				column += fields[3]
				moved := column + 1
				if source == 0 {
					moved = max(1, moved-head)
				}
				fields[3], written = moved-written, moved
			}
			for _, n := range fields {
				encodeVLQ(&out, n)
			}
		}
	}
	return out.String(), nil
}

var errSourceMap = errors.New("the front end's source map can't be read")

func decodeVLQ(s string) ([]int, error) {
	var fields []int
	n, shift := 0, 0
	for i := 0; i < len(s); i++ {
		d := strings.IndexByte(base64VLQ, s[i])
		if d < 0 || shift > 30 {
			return nil, errSourceMap
		}
		n |= (d & 31) << shift
		if d&32 != 0 {
			shift += 5
			continue
		}
		v := n >> 1
		if n&1 != 0 {
			v = -v
		}
		fields = append(fields, v)
		n, shift = 0, 0
	}
	if len(fields) == 0 || shift != 0 {
		return nil, errSourceMap
	}
	return fields, nil
}

func encodeVLQ(out *strings.Builder, v int) {
	n := v << 1
	if v < 0 {
		n = -v<<1 | 1
	}
	for {
		d := n & 31
		n >>= 5
		if n > 0 {
			d |= 32
		}
		out.WriteByte(base64VLQ[d])
		if n == 0 {
			return
		}
	}
}

// syntaxFailure says in the front end's words what is wrong (they are better
// than goja's), or in our own when the text is not JavaScript at all.
func (s *Script) syntaxFailure(first error, front *frontError) *Error {
	if other := OtherLanguage(s.Text); other != "" {
		return newError(other, "write JavaScript or TypeScript; tools are called as await codemode.server__tool({...})")
	}
	fail := newError("", "")
	switch {
	case front != nil:
		fail.Message = strings.TrimSuffix(values.LowerFirst(front.text), ":")
		fail.Position = s.place(front.line, 0)
		fail.Position.Column = s.column(front.line, front.column, false)
		switch {
		case strings.Contains(front.text, "can only be used inside an \"async\" function"):
			fail.Hint = "write async before the function; of a map: await Promise.all(list.map(async (x) => ...))"
		case namespace().MatchString(s.LineOf(front.line)):
			fail.Message, fail.Hint = Beyond["namespace"].Message, Beyond["namespace"].Hint
		case strings.ContainsAny(front.text, "“”„‘’"):
			fail.Hint = "write straight quotes: \" or '"
		case markup().MatchString(s.Text) && closing().MatchString(s.Text):
			fail.Message, fail.Hint = Beyond["JSX"].Message, Beyond["JSX"].Hint
			fail.Position = s.placeOf(markup().FindStringSubmatchIndex(s.Text)[2])
		case front.suggestion != "":
			fail.Hint = "write " + front.suggestion
		}
		if front.line > len(s.split()) {
			fail.Message, fail.Position = s.endFailure()
			fail.Hint = ""
		}
	case first != nil:
		fail.Message = values.LowerFirst(first.Error())
		if list, ok := first.(parser.ErrorList); ok && len(list) > 0 {
			fail.Message = values.LowerFirst(list[0].Message)
			fail.Position = s.place(list[0].Position.Line, list[0].Position.Column)
		}
		if first == errUnbalanced {
			fail.Message, fail.Position = s.endFailure()
		}
	}
	fail.Frame = s.Frame(fail.Position)
	return fail
}

// unsupported is for what the front end accepts and goja does not. first is
// goja's error for the text as it was written.
func (s *Script) unsupported(first, err error) *Error {
	fail := newError("the engine can't run this: "+values.LowerFirst(err.Error()), "write it in plainer JavaScript")
	if list, ok := err.(parser.ErrorList); ok && len(list) > 0 {
		fail.Message = "the engine can't run this: " + values.LowerFirst(list[0].Message)
	}
	if list, ok := first.(parser.ErrorList); ok && len(list) > 0 {
		fail.Position = s.place(list[0].Position.Line, list[0].Position.Column)
	}
	if strings.HasSuffix(fail.Message, "invalid destructuring binding target") {
		fail.Message, fail.Hint = Beyond["{a: [b = 1] = []}"].Message, Beyond["{a: [b = 1] = []}"].Hint
	}
	for i, line := range s.split() {
		if loc := dynamicImport().FindStringIndex(line); loc != nil {
			fail.Message, fail.Hint = Beyond["import()"].Message, Beyond["import()"].Hint
			fail.Position = analysis.Position{Line: i + 1, Column: 1 + utf8.RuneCountInString(line[:loc[0]])}
			break
		}
	}
	fail.Frame = s.Frame(fail.Position)
	return fail
}

var (
	typeImport    = Pattern(`(?m)^[ \t]*import type [\w$*{,} \t]+ from ("[^"\n]*"|'[^'\n]*');?[ \t]*$`)
	staticImport  = Pattern(`^\s*import(\s+type)?\s*([\w$*{][^;]*?\sfrom\s*)?["'][^"']+["']`)
	markup        = Pattern(`(?:\breturn|[=(,?:&|>])\s*(<[A-Za-z][\w.]*(?:\s+[\w-]+(?:=(?:"[^"]*"|'[^']*'|\{[^{}]*\}))?)*\s*/?>|<>)`)
	closing       = Pattern(`</[\w.]*\s*>|/>`)
	namespace     = Pattern(`^\s*(export\s+)?(namespace|module)\s+[\w$.]+\s*\{`)
	dynamicImport = Pattern(`\bimport\s*\(`)
)

// refuseModules answers import statements in words of our own: inside the
// wrapper a parser can only call them unexpected.
func refuseModules(s *Script) *Error {
	if !strings.Contains(s.Text, "import") {
		return nil
	}
	for i, line := range s.split() {
		m := staticImport().FindStringIndex(line)
		if m == nil {
			continue
		}
		if _, err := parse(wrapHead + s.Text + wrapTail); err == nil {
			return nil // a line of a template literal or comment
		}
		at := analysis.Position{Line: i + 1, Column: 1 + utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeft(line, " \t"))}
		fail := newError("import does not exist here", Absent["import"])
		fail.Position, fail.Frame = at, s.Frame(at)
		return fail
	}
	return nil
}

var languages = []struct {
	name string
	sign func() *regexp.Regexp
}{
	{"a shell script", Pattern(`^\s*(#!.*sh\b|(\$ )?(sudo|curl|wget|ls|cd|cat|grep|echo|npm|npx|pip3?|git|mkdir|rm|cp|mv|docker|kubectl|chmod|python3?|node|bash|sh|apt(-get)?|brew|find|sed|awk) +["'$/~.\w-]|export +\w+=)`)},
	{"a shell script", Pattern(`(?m)^\s*(for [A-Za-z_]\w*( in [^\n;]*)?|(while|until) [^(\n;][^\n;]*)(;[ \t]*|[ \t]*\r?\n\s*)do(\s|$)|^\s*(el)?if \[[^\n]*\](;[ \t]*|[ \t]*\r?\n\s*)then(\s|$)`)},
	{"Python", Pattern(`(?m)^#!.*python|^\s*(async\s+)?def \w+\(.*\).*:\s*(#.*)?$|^\s*(if|elif|for|while|with|try|else|except)\b[^{]*:\s*(#.*)?$|^from [\w.]+ import |^import \w+(\.\w+)*( as \w+)?\s*$|^\s*print\(.*\)\s*$`)},
	{"SQL", Pattern(`(?i)^\s*(select\s.+\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|create\s+table\s|delete\s+from\s)`)},
	{"HTML or XML", Pattern(`^\s*<(!DOCTYPE|\?xml|html|script|div|[a-zA-Z][\w-]*>)`)},
	{"Go", Pattern(`(?m)^package \w+\s*$|^func \w+\(.*\).*\{\s*$`)},
	{"Ruby", Pattern(`(?m)^#!.*ruby|^\s*(puts |require ['"]|end\s*$)`)},
}

// OtherLanguage says what a text looks like that is not JavaScript, or returns "".
// It is asked only about text that could not be parsed.
func OtherLanguage(text string) string {
	for _, l := range languages {
		if l.sign().MatchString(text) {
			return "this looks like " + l.name + ", not JavaScript"
		}
	}
	if prose(text) {
		return "this looks like plain text, not JavaScript"
	}
	return ""
}

// prose reports whether the text reads as sentences: several words on its
// first line, and nothing that only code has.
func prose(text string) bool {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return len(strings.Fields(line)) >= 4 && !strings.HasPrefix(line, "//") && !strings.ContainsAny(line, "(){}[];=<>`$")
}
