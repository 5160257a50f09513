package worker

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
	"codemode-bridge/sandbox/wire"
)

// absent says what to write instead of what other runtimes have.
var absent = map[string]string{
	"fetch":          "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"XMLHttpRequest": "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"WebSocket":      "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Headers":        "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Request":        "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Response":       "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"FormData":       "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Blob":           "use Uint8Array, TextEncoder and TextDecoder",
	"_":              "there are no modules here: write with Object.groupBy, Set, structuredClone and the methods of arrays",
	"lodash":         "there are no modules here: write with Object.groupBy, Set, structuredClone and the methods of arrays",
	"moment":         "there are no modules here: write with Date and Intl.DateTimeFormat",
	"dayjs":          "there are no modules here: write with Date and Intl.DateTimeFormat",
	"cheerio":        "this is no browser: use a server's tool for web pages",
	"uuid":           "write crypto.randomUUID()",
	"axios":          "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"import":         "there are no modules here: codemode, json, emit, console and input are globals, and what a library would do, a server's tool does",
	"require":        "there are no modules here: codemode, json, emit, console and input are globals, and what a library would do, a server's tool does",
	"module":         "there are no modules here: return the result instead of exporting it",
	"exports":        "there are no modules here: return the result instead of exporting it",
	"process":        "there is no process here: pass values in `input`, return the result instead of writing it",
	"Deno":           "this is not Deno: there are no files and no network; use a server's tool",
	"Bun":            "this is not Bun: there are no files and no network; use a server's tool",
	"fs":             "there are no files here: use a server's tool, such as codemode.filesystem__read_file",
	"path":           "there are no modules here: join paths with strings",
	"os":             "there is no operating system here: use a server's tool",
	"child_process":  "no program can be started here: use a server's tool",
	"Buffer":         "use atob, btoa, TextEncoder, TextDecoder and Uint8Array",
	"window":         "this is no browser: globals stand in globalThis",
	"document":       "this is no browser: use a server's tool for web pages",
	"navigator":      "this is no browser",
	"localStorage":   "nothing is kept between scripts: pass data in `input`, return what is needed later",
	"sessionStorage": "nothing is kept between scripts: pass data in `input`, return what is needed later",
	"alert":          "there is nobody to talk to here: return the result, or use console.log",
	"prompt":         "there is nobody to talk to here: pass values in `input`",
	"self":           "write globalThis",
	"print":          "write console.log",
	"printf":         "write console.log",
	"Temporal":       "write with Date",
	"WebAssembly":    "there is no WebAssembly here",
	"Worker":         "there are no workers here: calls run in parallel with Promise.all",
	"mcp":            "tools are called as await codemode.server__tool({...})",
	"tools":          "tools are called as await codemode.server__tool({...})",
}

// A remembered is an answer that a script may later mistake for something
// else: text that is JSON, other text, or a value.
type remembered struct {
	label string // codemode.github__list_issues
	name  string
	text  string // if it is JSON
	what  string // otherwise: text, 11 characters; an object {items, total}
}

const (
	maxReplies   = 16
	maxTextBytes = 8 << 20
)

// remember keeps what explain may have to say of an answer: of text that
// looks like JSON the text, while there is room.
func (r *realm) remember(p *pending, v goja.Value, text string) {
	m := remembered{label: p.label, name: p.title()}
	if o, ok := v.(*goja.Object); ok {
		m.what = keysOf(o)
	} else if t := strings.TrimLeft(text[:min(len(text), 64)], " \t\r\n\ufeff"); t != "" && (t[0] == '{' || t[0] == '[') && r.textBytes+len(text) <= maxTextBytes {
		m.text = text
	} else if text != "" {
		m.what = "text, " + thousands(utf8.RuneCountInString(text)) + " characters"
	} else {
		return
	}
	if len(r.replies) == maxReplies {
		r.textBytes -= len(r.replies[0].text)
		r.replies = slices.Delete(r.replies, 0, 1)
	}
	r.textBytes += len(m.text)
	r.replies = append(r.replies, m)
}

// keysOf says what an answer is, by its first keys.
func keysOf(o *goja.Object) string {
	if isArray(o) {
		n := o.Get("length").ToInteger()
		if first, ok := o.Get("0").(*goja.Object); ok && !isArray(first) {
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
		list = append(list, cutText(k, 40))
	}
	return strings.Join(list, ", ")
}

var (
	notDefined   = regexp.MustCompile(`^(.+) is not defined$`)
	noMember     = regexp.MustCompile(`^Object has no member '(.*)'`)
	notAFunction = regexp.MustCompile(`^Not a function: `)
	notAnObject  = regexp.MustCompile(`^Value is not an object: `)
	noProperty   = regexp.MustCompile(`^Cannot read property '(.*)' of (undefined|null|undefined or null)`)
	caughtBefore = regexp.MustCompile(`^Cannot read properties of (?:undefined or null|undefined|null) \(reading '(.*)'\)$`)
	assigned     = regexp.MustCompile(`(?:\b(?:const|let|var)\s+)?([\w$]+|\{[^{}]*\})\s*(?::[^=;\n]*)?=\s*(?:\(\s*)?(await\s+)?(codemode[\w.$\["'\]]*)\(`)
	iterated     = regexp.MustCompile(`\bof\s+([\w$.\[\]"']+)\s*\)|\]\s*(?::[^=]*)?=\s*(?:await\s+)?([\w$.]+)|\.\.\.([\w$.]+)`)
	chain        = regexp.MustCompile(`[\w$]+(?:\??\.[\w$]+|\[[^\[\]]*\]|\([^()]*\))*$`)
)

// explain puts an error into the words that a model knows from Node, and adds
// a hint where it can tell what was meant.
func (r *realm) explain(f *wire.Failure) {
	line := r.lineAt(f.Position)
	switch f.Name {
	case "ReferenceError":
		if m := notDefined.FindStringSubmatch(f.Message); m != nil {
			f.Hint = r.hintName(m[1])
		}
	case "TypeError":
		r.explainType(f, line)
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

func (r *realm) explainType(f *wire.Failure, line string) {
	member, missing := "", ""
	receiver := r.receiver(line, f.Position, &member)
	switch {
	case noMember.MatchString(f.Message):
		member = noMember.FindStringSubmatch(f.Message)[1]
		if receiver == "" {
			receiver = "object"
		}
		f.Message = receiver + "." + member + " is not a function"
	case notAFunction.MatchString(f.Message):
		if receiver != "" && member != "" {
			f.Message = receiver + "." + member + " is not a function"
		} else if receiver != "" {
			f.Message = receiver + " is not a function"
		} else {
			f.Message = "this is not a function"
		}
	case notAnObject.MatchString(f.Message):
		name := member
		if receiver != "" && member != "" {
			name = receiver + "." + member
		} else if member == "" {
			name = receiver
		}
		if name == "" || !strings.HasPrefix(strings.TrimLeft(r.script.from(f.Position)[len(lastName(name)):], " ?."), "(") {
			return
		}
		f.Message = name + " is not a function"
	case noProperty.MatchString(f.Message), caughtBefore.MatchString(f.Message):
		m := noProperty.FindStringSubmatch(f.Message)
		if m == nil {
			m = caughtBefore.FindStringSubmatch(f.Message)
		}
		f.Message = "cannot read properties of " + r.nothing(line, f.Position, m[1]) + " (reading '" + m[1] + "')"
		member = m[1]
		missing = r.missing(line, f.Position, member)
	case strings.Contains(f.Message, "Cannot mix BigInt"):
		f.Hint = "integers beyond 2^53 arrive as BigInt: convert with Number(x), or write literals as 1n"
		return
	case strings.Contains(f.Message, "is not iterable"):
		if m := iterated.FindStringSubmatch(line); m != nil {
			if receiver = m[1] + m[2] + m[3]; strings.HasPrefix(receiver, "codemode.") {
				receiver = ""
			}
			f.Message = cmp.Or(receiver, "the value") + " is not iterable"
		}
	case strings.Contains(f.Message, "Value is not object coercible"):
		f.Message = "cannot destructure undefined or null"
	default:
		return
	}
	if f.Hint != "" || f.Call > 0 {
		return
	}
	if f.Hint = hintAwait(line, member); f.Hint != "" {
		return
	}
	f.Hint = r.hintText(receiver, line)
	switch {
	case missing == "":
	case f.Hint == "":
		f.Hint = missing + " is undefined or null"
	default:
		f.Hint = missing + " is undefined or null; " + f.Hint
	}
}

// missing is what has no members, as it is written before the member that is
// read at, or after, a position; empty where everybody sees it.
func (r *realm) missing(line string, at analysis.Position, member string) string {
	text := r.owner(line, at, member)
	if text == "null" || text == "undefined" {
		return ""
	}
	return cutText(text, 80)
}

// nothing is which of the two it is that has no members, where that can be read
// from the line: the engine does not tell them apart.
func (r *realm) nothing(line string, at analysis.Position, member string) string {
	if text := r.owner(line, at, member); text == "null" || text == "undefined" {
		return text
	}
	return "undefined or null"
}

// owner is what stands before a member that is read at, or after, a position.
func (r *realm) owner(line string, at analysis.Position, member string) string {
	runes := []rune(line)
	if at.Column < 1 || at.Column > len(runes) {
		return ""
	}
	from := len(string(runes[:max(0, at.Column-2)]))
	end := strings.Index(line[from:], "."+member)
	if end < 0 {
		return ""
	}
	return chain.FindString(strings.TrimRight(line[:from+end], "?!"))
}

// hintAwait says that a call's promise was taken for its answer, if the
// member that is missing is looked for in what a call on this line gives, or
// in a member of that.
func hintAwait(line, member string) string {
	for _, m := range onPromise.FindAllStringSubmatch(line, -1) {
		if first := m[2]; !ofPromise[first] && (member == first || member == m[3]) {
			return "a call gives a promise: write (await " + m[1] + "(...))." + first
		}
	}
	return ""
}

var (
	onPromise = regexp.MustCompile(`(codemode(?:\.[\w$]+)+)\([^()]*\)\.([\w$]+)(?:\??\.([\w$]+))?`)
	ofPromise = map[string]bool{"then": true, "catch": true, "finally": true}
)

// receiver reads from the source what stands before the member at a
// position: issues in issues.filter(.
func (r *realm) receiver(line string, at analysis.Position, member *string) string {
	runes := []rune(line)
	if at.Column < 1 || at.Column > len(runes) {
		return ""
	}
	i := at.Column - 1
	end := i
	for end < len(runes) && nameRune(runes[end]) {
		end++
	}
	name := string(runes[i:end])
	before := string(runes[:i])
	if strings.HasSuffix(before, ".") {
		*member = name
		return cutText(chain.FindString(strings.TrimRight(before, "?.")), 80)
	}
	return name
}

// hintText says what the answer was that the script takes for something
// else, and what to write.
func (r *realm) hintText(receiver, line string) string {
	root := receiver
	if i := strings.IndexAny(root, ".[(?"); i >= 0 {
		root = root[:i]
	}
	var t *remembered
	variable := ""
	for _, m := range assigned.FindAllStringSubmatch(r.script.text, 100) {
		names := nameList(m[1])
		if !slices.ContainsFunc(names, func(n string) bool {
			return root != "" && n == root || root == "" && regexp.MustCompile(`\b`+regexp.QuoteMeta(n)+`\b`).MatchString(line)
		}) {
			continue
		}
		if m[2] == "" {
			return "a call gives a promise: write " + m[1] + " = await " + m[3] + "(...)"
		}
		for i, x := range r.replies {
			if x.label == m[3] {
				t, variable = &r.replies[i], m[1]
			}
		}
	}
	if t == nil && len(r.replies) == 1 {
		t = &r.replies[0]
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
	v, err := r.decode(strings.TrimPrefix(t.text, "\ufeff"))
	o, ok := v.(*goja.Object)
	if err != nil || !ok {
		return ""
	}
	write := "json(await " + t.label + "(...))"
	if variable != "" {
		write = "const " + variable + " = " + write
	}
	return fmt.Sprintf("%s returned text, %s characters, which is JSON: %s. Write: %s", t.name, thousands(utf8.RuneCountInString(t.text)), strings.TrimPrefix(keysOf(o), "an "), write)
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

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// hintName says what a name that is not defined may have been.
func (r *realm) hintName(name string) string {
	if hint, ok := absent[name]; ok {
		return hint
	}
	switch {
	case r.names.has(name):
		return "tools are members of codemode: did you mean codemode" + accessor(name) + "?"
	case r.names.server(name):
		return "servers are members of codemode: did you mean codemode" + accessor(name) + "?"
	}
	if near := nearest(name, members); near != "" && len(name) > 3 {
		return "did you mean codemode." + near + "?"
	}
	if near := nearest(name, r.names.list); near != "" {
		return "did you mean codemode" + accessor(near) + "?"
	}
	if regexp.MustCompile(`\bfunction\s*\*?\s*` + regexp.QuoteMeta(name) + `\b`).MatchString(r.script.text) {
		return beyond["block"].hint
	}
	if other := otherLanguage(r.script.text); other != "" {
		return other + ": tools are called as await codemode.server__tool({...})"
	}
	switch name {
	case "True", "False", "None":
		return "this is JavaScript: write true, false, null"
	}
	if near := nearest(name, standard); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

var standard = []string{"json", "Array", "Boolean", "Date", "Error", "JSON", "Map", "Math", "Number", "Object", "Promise", "RegExp", "Set", "String", "codemode", "console", "emit", "input", "parseFloat", "parseInt", "setTimeout", "structuredClone", "undefined"}

// nearest returns the name that differs least, if it differs little.
func nearest(name string, list []string) string {
	best, distance := "", min(3, len(name)/5+1)
	if len(name) > 100 {
		return ""
	}
	for _, s := range list {
		if abs(len(s)-len(name)) > distance {
			continue
		}
		d := editDistance(strings.ToLower(name), strings.ToLower(s), distance)
		if d < distance || d == distance && best == "" {
			best, distance = s, d
		}
	}
	return best
}

// editDistance counts the edits between two names, up to limit+1.
func editDistance(a, b string, limit int) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last, least := row[0], i
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := last
			if a[i-1] != b[j-1] {
				cost = 1 + min(last, row[j], row[j-1])
			}
			last, row[j] = row[j], cost
			least = min(least, cost)
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

func abs(n int) int { return max(n, -n) }

// lastName is what stands behind the last point.
func lastName(chain string) string { return chain[strings.LastIndexByte(chain, '.')+1:] }

func (r *realm) lineAt(p analysis.Position) string {
	if lines := r.script.split(); p.Line >= 1 && p.Line <= len(lines) {
		return lines[p.Line-1]
	}
	return ""
}

var awaits = regexp.MustCompile(`\bawait\b`)

// lastAwait guesses where a script waits that nothing can move: the only
// await, or the only one on something that is no call of codemode.
func (r *realm) lastAwait() (at analysis.Position) {
	count := 0
	for i, line := range r.script.split() {
		for _, m := range awaits.FindAllStringIndex(line, -1) {
			rest := strings.TrimLeft(line[m[1]:], " (")
			if strings.HasPrefix(rest, "codemode") {
				continue
			}
			count++
			at = analysis.Position{Line: i + 1, Column: utf8.RuneCountInString(line[:m[0]]) + 1}
		}
	}
	if count != 1 {
		return analysis.Position{}
	}
	return at
}
