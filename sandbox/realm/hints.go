package realm

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/source"
	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// A remembered is an answer that a script may later mistake for something
// else: text that is JSON, other text, or a value.
type remembered struct {
	label string // codemode.github__list_issues
	name  string
	text  string // if it is JSON
	what  string // otherwise: text, 11 characters; an object {items, total}
}

// An explainer puts errors into the words that a model knows from Node. It
// remembers the newest answers, since many scripts fail because they take an
// answer for something else.
type explainer struct {
	*values.Codec
	script    *source.Script
	names     *Names
	replies   []remembered
	textBytes int // of the texts in replies
}

const (
	maxReplies   = 16
	maxTextBytes = 8 << 20
)

// remember keeps what explain may have to say of an answer: the text itself if it
// looks like JSON, while there is room.
func (x *explainer) remember(label, name string, v goja.Value, text string) {
	m := remembered{label: label, name: name}
	if o, ok := v.(*goja.Object); ok {
		m.what = keysOf(o)
	} else if t := strings.TrimLeft(text[:min(len(text), 64)], " \t\r\n\ufeff"); t != "" && (t[0] == '{' || t[0] == '[') && x.textBytes+len(text) <= maxTextBytes {
		m.text = text
	} else if text != "" {
		m.what = "text, " + values.Thousands(utf8.RuneCountInString(text)) + " characters"
	} else {
		return
	}
	if len(x.replies) == maxReplies {
		x.textBytes -= len(x.replies[0].text)
		x.replies = slices.Delete(x.replies, 0, 1)
	}
	x.textBytes += len(m.text)
	x.replies = append(x.replies, m)
}

// keysOf says what an answer is, by its first keys.
func keysOf(o *goja.Object) string {
	if values.IsArray(o) {
		n := o.Get("length").ToInteger()
		if first, ok := o.Get("0").(*goja.Object); ok && !values.IsArray(first) {
			return "an array of " + strconv.FormatInt(n, 10) + " {" + firstKeys(first) + "}"
		}
		return "an array of " + strconv.FormatInt(n, 10)
	}
	return "an object {" + firstKeys(o) + "}"
}

func firstKeys(o *goja.Object) string {
	keys := o.Keys()
	list := make([]string, 0, 9)
	for i, k := range keys {
		if i == 8 {
			list = append(list, "…")
			break
		}
		list = append(list, values.Cut(k, 40))
	}
	return strings.Join(list, ", ")
}

var (
	notDefined   = source.Pattern(`^(.+) is not defined$`)
	noMember     = source.Pattern(`^Object has no member '(.*)'`)
	notAFunction = source.Pattern(`^Not a function: `)
	notAnObject  = source.Pattern(`^Value is not an object: `)
	noProperty   = source.Pattern(`^Cannot read property '(.*)' of (undefined|null|undefined or null)`)
	caughtBefore = source.Pattern(`^Cannot read properties of (?:undefined or null|undefined|null) \(reading '(.*)'\)$`)
	assigned     = source.Pattern(`(?:\b(?:const|let|var)\s+)?([\w$]+|\{[^{}]*\})\s*(?::[^=;\n]*)?=\s*(?:\(\s*)?(await\s+)?(codemode[\w.$\["'\]]*)\(`)
	iterated     = source.Pattern(`\bof\s+([\w$.\[\]"']+)\s*\)|\]\s*(?::[^=]*)?=\s*(?:await\s+)?([\w$.]+)|\.\.\.([\w$.]+)`)
	chain        = source.Pattern(`[\w$]+(?:\??\.[\w$]+|\[[^\[\]]*\]|\([^()]*\))*$`)
)

// explain puts an error into the words that a model knows from Node, and adds
// a hint where it can tell what was meant.
func (x *explainer) explain(f *wire.Failure) {
	line := x.script.LineOf(f.Position.Line)
	switch f.Name {
	case "ReferenceError":
		if m := notDefined().FindStringSubmatch(f.Message); m != nil {
			f.Hint = x.hintName(m[1])
		}
	case "TypeError":
		x.explainType(f, line)
	case "SyntaxError":
		if strings.Contains(f.Message, `"[object Object]" is not valid JSON`) {
			f.Hint = "the value is an object already: use it as it is, or write json(x), which parses text and leaves objects alone"
			return
		}
		if strings.HasPrefix(f.Message, "Unexpected token at the end") || strings.Contains(f.Message, "JSON") || strings.Contains(f.Message, "invalid character") || strings.HasPrefix(f.Message, "Unexpected token") {
			if f.Hint == "" && strings.Contains(line, "JSON.parse") {
				f.Hint = "the text is no JSON: look at it first, or write json(x), which shows it in its error"
			}
		}
	}
}

func (x *explainer) explainType(f *wire.Failure, line string) {
	if strings.Contains(f.Message, "Cannot mix BigInt") {
		f.Hint = "integers beyond 2^53 arrive as BigInt: convert with Number(x), or write literals as 1n"
		return
	}
	receiver, member, missing, ok := x.reword(f, line)
	if !ok || f.Hint != "" || f.Call > 0 {
		return
	}
	if f.Hint = hintAwait(line, member); f.Hint != "" {
		return
	}
	f.Hint = x.hintText(receiver, line)
	switch {
	case missing == "":
	case f.Hint == "":
		f.Hint = missing + " is undefined or null"
	default:
		f.Hint = missing + " is undefined or null; " + f.Hint
	}
}

// reword puts the engine's message of a TypeError into Node's words, and returns
// the object and the member in question, and what turned out to be undefined or
// null, as the script writes them. ok is false for a message that it does not know.
func (x *explainer) reword(f *wire.Failure, line string) (receiver, member, missing string, ok bool) {
	receiver = receiverAt(line, f.Position, &member)
	switch {
	case noMember().MatchString(f.Message):
		member = noMember().FindStringSubmatch(f.Message)[1]
		if receiver == "" {
			receiver = "object"
		}
		f.Message = receiver + "." + member + " is not a function"
	case notAFunction().MatchString(f.Message):
		if receiver != "" && member != "" {
			f.Message = receiver + "." + member + " is not a function"
		} else if receiver != "" {
			f.Message = receiver + " is not a function"
		} else {
			f.Message = "this is not a function"
		}
	case notAnObject().MatchString(f.Message):
		name := member
		if receiver != "" && member != "" {
			name = receiver + "." + member
		} else if member == "" {
			name = receiver
		}
		if name == "" || !strings.HasPrefix(strings.TrimLeft(x.script.From(f.Position)[len(lastName(name)):], " ?."), "(") {
			return "", "", "", false
		}
		f.Message = name + " is not a function"
	case noProperty().MatchString(f.Message), caughtBefore().MatchString(f.Message):
		m := noProperty().FindStringSubmatch(f.Message)
		if m == nil {
			m = caughtBefore().FindStringSubmatch(f.Message)
		}
		f.Message = "cannot read properties of " + nothing(line, f.Position, m[1]) + " (reading '" + m[1] + "')"
		member = m[1]
		missing = missingAt(line, f.Position, member)
	case strings.Contains(f.Message, "is not iterable"):
		if m := iterated().FindStringSubmatch(line); m != nil {
			if receiver = m[1] + m[2] + m[3]; strings.HasPrefix(receiver, "codemode.") {
				receiver = ""
			}
			f.Message = cmp.Or(receiver, "the value") + " is not iterable"
		}
	case strings.Contains(f.Message, "Value is not object coercible"):
		f.Message = "cannot destructure undefined or null"
	default:
		return "", "", "", false
	}
	return receiver, member, missing, true
}

// missingAt returns the expression that turned out to be undefined or null: what
// comes before the member that is read at, or after, a position. It is empty if
// the line itself says undefined or null there.
func missingAt(line string, at analysis.Position, member string) string {
	text := owner(line, at, member)
	if text == "null" || text == "undefined" {
		return ""
	}
	return values.Cut(text, 80)
}

// nothing returns "undefined" or "null" if the line says which of the two has no
// members; the engine does not tell them apart.
func nothing(line string, at analysis.Position, member string) string {
	if text := owner(line, at, member); text == "null" || text == "undefined" {
		return text
	}
	return "undefined or null"
}

// owner returns what comes before a member that is read at, or after, a position.
func owner(line string, at analysis.Position, member string) string {
	runes := []rune(line)
	if at.Column < 1 || at.Column > len(runes) {
		return ""
	}
	from := len(string(runes[:max(0, at.Column-2)]))
	end := strings.Index(line[from:], "."+member)
	if end < 0 {
		return ""
	}
	return chain().FindString(strings.TrimRight(line[:from+end], "?!"))
}

// hintAwait says that a call's promise was taken for its answer, if the missing
// member is read from a call on this line, or from a member of one.
func hintAwait(line, member string) string {
	for _, m := range onPromise().FindAllStringSubmatch(line, -1) {
		if first := m[2]; !ofPromise[first] && (member == first || member == m[3]) {
			return "a call gives a promise: write (await " + m[1] + "(...))." + first
		}
	}
	return ""
}

var (
	onPromise = source.Pattern(`(codemode(?:\.[\w$]+)+)\([^()]*\)\.([\w$]+)(?:\??\.([\w$]+))?`)
	ofPromise = map[string]bool{"then": true, "catch": true, "finally": true}
)

// receiverAt reads from the source what comes before the member at a
// position: issues in issues.filter(.
func receiverAt(line string, at analysis.Position, member *string) string {
	runes := []rune(line)
	if at.Column < 1 || at.Column > len(runes) {
		return ""
	}
	i := at.Column - 1
	end := i
	for end < len(runes) && source.NameRune(runes[end]) {
		end++
	}
	name := string(runes[i:end])
	before := string(runes[:i])
	if strings.HasSuffix(before, ".") {
		*member = name
		return values.Cut(chain().FindString(strings.TrimRight(before, "?.")), 80)
	}
	return name
}

// hintText says what the answer was that the script takes for something
// else, and what to write.
func (x *explainer) hintText(receiver, line string) string {
	root := receiver
	if i := strings.IndexAny(root, ".[(?"); i >= 0 {
		root = root[:i]
	}
	var t *remembered
	variable := ""
	for _, m := range assigned().FindAllStringSubmatch(x.script.Text, 100) {
		names := nameList(m[1])
		if !slices.ContainsFunc(names, func(n string) bool {
			return root != "" && n == root || root == "" && regexp.MustCompile(`\b`+regexp.QuoteMeta(n)+`\b`).MatchString(line)
		}) {
			continue
		}
		if m[2] == "" {
			return "a call gives a promise: write " + m[1] + " = await " + m[3] + "(...)"
		}
		for i := range x.replies {
			if x.replies[i].label == m[3] {
				t, variable = &x.replies[i], m[1]
			}
		}
	}
	if t == nil && len(x.replies) == 1 {
		t = &x.replies[0]
	}
	switch {
	case t == nil:
		return ""
	case t.text == "":
		hint := t.name + " returned " + t.what
		if strings.HasPrefix(receiver, root+".content") || strings.Contains(line, root+".content") {
			hint += ": a call gives the answer itself; codemode.raw gives {content: [...]}"
		}
		return hint
	}
	v, err := x.Decode(strings.TrimPrefix(t.text, "\ufeff"))
	o, ok := v.(*goja.Object)
	if err != nil || !ok {
		return ""
	}
	write := "json(await " + t.label + "(...))"
	if variable != "" {
		write = "const " + variable + " = " + write
	}
	return fmt.Sprintf("%s returned text, %s characters, which is JSON: %s. Write: %s", t.name, values.Thousands(utf8.RuneCountInString(t.text)), strings.TrimPrefix(keysOf(o), "an "), write)
}

// nameList returns the names that a declaration declares.
func nameList(target string) (names []string) {
	for _, part := range strings.Split(strings.Trim(target, "{}"), ",") {
		part, _, _ = strings.Cut(part, "=")
		if _, renamed, ok := strings.Cut(part, ":"); ok {
			part = renamed
		}
		if part = strings.TrimSpace(part); part != "" {
			names = append(names, part)
		}
	}
	return names
}

// hintName says what a name that is not defined may have been.
func (x *explainer) hintName(name string) string {
	if hint, ok := source.Absent[name]; ok {
		return hint
	}
	switch {
	case x.names.has(name):
		return "tools are members of codemode: did you mean codemode" + values.Accessor(name) + "?"
	case x.names.server(name):
		return "servers are members of codemode: did you mean codemode" + values.Accessor(name) + "?"
	}
	if near := values.Nearest(name, members); near != "" && len(name) > 3 {
		return "did you mean codemode." + near + "?"
	}
	if near := values.Nearest(name, x.names.list); near != "" {
		return "did you mean codemode" + values.Accessor(near) + "?"
	}
	if regexp.MustCompile(`\bfunction\s*\*?\s*` + regexp.QuoteMeta(name) + `\b`).MatchString(x.script.Text) {
		return source.Beyond["block"].Hint
	}
	if other := source.OtherLanguage(x.script.Text); other != "" {
		return other + ": tools are called as await codemode.server__tool({...})"
	}
	switch name {
	case "True", "False", "None":
		return "this is JavaScript: write true, false, null"
	}
	if near := values.Nearest(name, standard); near != "" {
		return "did you mean " + near + "?"
	}
	if name == "arguments" { // which no earlier script defined
		return ""
	}
	return source.Kept
}

var standard = []string{"json", "Array", "Boolean", "Date", "Error", "JSON", "Map", "Math", "Number", "Object", "Promise", "RegExp", "Set", "String", "codemode", "console", "emit", "input", "parseFloat", "parseInt", "setTimeout", "structuredClone", "undefined"}

// lastName returns what follows the last dot.
func lastName(chain string) string { return chain[strings.LastIndexByte(chain, '.')+1:] }
