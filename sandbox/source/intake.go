package source

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/unistring"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox/values"
)

// The wrapper makes top-level await and return legal. The script follows it
// on the same line, so that only the columns of line 1 have to be corrected.
const (
	wrapHead     = "(async()=>{"
	wrapTail     = "\n})"
	wrapExprHead = "(async()=>("
	wrapExprTail = "\n))"
)

// An Error says why a text cannot be run as a script, and what to write
// instead. To scripts it is a SyntaxError.
type Error struct {
	Message  string
	Hint     string
	Position analysis.Position
	Frame    string // the lines around Position, with a caret
}

func newError(message, hint string) *Error { return &Error{Message: message, Hint: hint} }

// A Script is a script after Read: its tree, ready to be compiled to a
// program whose value is an async function without parameters, and what is
// needed to report places in the model's own lines and columns.
type Script struct {
	Text    string // as the model wrote it, fences blanked out
	lines   []string
	Program *ast.Program
	typed   bool // went through the TypeScript front end: columns are UTF-16 units
	rebased bool // goja's columns do not count the wrapper

	exported string // the name of what the script exports as its default; "return" if that has none
	Uncalled string // a function that is declared and never named again, in a script that may have meant to call it

	lowersRegexps bool              // the front end turned literals into calls of RegExp
	patterns      map[string]string // regular expressions as the model wrote them, by what Translate made of them
}

// Read turns what the model wrote into a script.
//
// goja's own parser is tried first: it takes 0.04 ms for a kilobyte, the
// TypeScript front end 0.4 ms or more. The front end gets what goja refuses
// (types, for await, async generators, decorators, using), and what parses
// as JavaScript but was most likely not meant so: f<T>(x).
func Read(source string) (*Script, *Error) {
	if !utf8.ValidString(source) {
		return nil, newError("the script is not valid UTF-8 text", "")
	}
	text := clean(source)
	if strings.Contains(text, "import type ") {
		text = typeImport().ReplaceAllStringFunc(text, func(m string) string { return strings.Repeat(" ", len(m)) })
	}
	s := &Script{Text: text}
	if blank(text) {
		return nil, newError("the script is empty: there is nothing to run",
			"write JavaScript, and return what you need: return await codemode.server__tool({...})")
	}
	if fail := refuseModules(s); fail != nil {
		return nil, fail
	}
	ok, first := s.readDirectly(text)
	if ok {
		return s, nil
	}
	if fail := s.readTransformed(text, first); fail != nil {
		return nil, fail
	}
	return s, nil
}

// readDirectly reads the text with goja's parser alone, and reports whether that
// gave a script. If not, err is the parser's; nil if it was not asked.
func (s *Script) readDirectly(text string) (ok bool, err error) {
	if e, ok := expressionText(text); ok {
		if p, err := parse(wrapExprHead + e + wrapExprTail); err == nil && s.adoptExpression(p) {
			s.rebase(p.File)
			return true, nil
		}
	}
	if strings.Contains(text, ">(") && genericCall().MatchString(text) || mayBeNewer(text) && newerSyntax().MatchString(text) {
		return false, nil
	}
	p, err := parse(wrapHead + text + wrapTail)
	switch {
	case err != nil:
		return false, err
	case !s.adopt(p):
		return false, errUnbalanced
	}
	s.rebase(p.File)
	return true, nil
}

// readTransformed reads the text through the front end. first is what goja's
// parser said of it before.
func (s *Script) readTransformed(text string, first error) *Error {
	plain := s.unexport(text)
	code, sourceMap, front := transform(wrapHead+plain+wrapTail, lowered)
	if front != nil {
		// An anonymous function is not a statement, but it is an expression.
		if e, ok := functionText(plain); ok {
			if c, m, err := transform(wrapExprHead+e+wrapExprTail, lowered); err == nil {
				code, sourceMap, front = c, m, nil
			}
		}
	}
	if front != nil {
		return s.syntaxFailure(first, front)
	}
	p, err := parse(code)
	if err != nil && oddField().MatchString(text) {
		if c, m, front := transform(wrapHead+plain+wrapTail, loweredFields); front == nil {
			if again, e := parse(c); e == nil {
				p, sourceMap, code, err = again, m, c, nil
			}
		}
	}
	if err != nil {
		if _, extra := unmatched(text); extra >= 0 {
			return s.syntaxFailure(errUnbalanced, nil) // what follows is outside of the wrapper
		}
		return s.unsupported(first, err)
	}
	if err := s.mapBack(p.File, sourceMap); err != nil {
		return newError(err.Error(), "")
	}
	s.typed = true
	s.lowersRegexps = strings.Contains(code, "new RegExp(")
	if !s.adopt(p) {
		return s.syntaxFailure(errUnbalanced, nil)
	}
	return nil
}

var errUnbalanced = errors.New("unexpected } or ): more brackets are closed than were opened")

// genericCall matches f<T>(x): a call with type arguments, which JavaScript
// reads as two comparisons.
var genericCall = Pattern(`[\w$]<[^<>;&|=]*(<[^<>;]*>[^<>;]*)*>\(`)

// newerSyntax matches what goja parses, and then refuses to compile: async
// generators, and regular expressions with the flags d and v.
var newerSyntax = Pattern(`\basync(\s+function)?\s*\*|/[gimsuy]*[dv][dgimsuvy]{0,6}\b`)

// mayBeNewer reports whether a text has what all matches of newerSyntax have.
func mayBeNewer(text string) bool {
	return strings.Contains(text, "async") && strings.Contains(text, "*") || strings.Contains(text, "/")
}

// Mentions reports whether a name occurs in the script, or in what became of
// it. A repaired regular expression is not as it was written, but only a script
// that shows one can see that.
func (s *Script) Mentions(name string) bool {
	if name == "RegExp" && (s.lowersRegexps || len(s.patterns) > 0 && showsRegexps().MatchString(s.Text)) {
		return true
	}
	return strings.Contains(s.Text, name)
}

var showsRegexps = Pattern(`\b(source|flags|console|toString|String|JSON)\b|\$\{`)

// parse parses without ever looking for a source map: by default goja reads
// the file that a script names in a sourceMappingURL comment.
func parse(text string) (*ast.Program, error) {
	return parser.ParseFile(nil, values.ScriptName, text, 0, parser.WithDisableSourceMaps)
}

// clean removes what models put around a script. Lines stay where they are: a
// fence becomes an empty line.
func clean(source string) string {
	text := strings.TrimPrefix(source, "\ufeff")
	if strings.HasPrefix(text, "#!") {
		end := strings.IndexByte(text, '\n')
		if end < 0 {
			end = len(text)
		}
		if !shellInterpreter().MatchString(text[:end]) {
			text = text[end:]
		}
	}
	return unfence(text)
}

var (
	shellInterpreter = Pattern(`\b(ba|z|da|k)?sh\b|python|perl|ruby`)
	fence            = Pattern("(?m)^[ \t]*(`{3,}|~{3,})[ \t]*([A-Za-z]*)[^`\r\n]*\r?$")
)

// unfence blanks the fence and the prose around it when the text holds
// exactly one fenced block and does not read as a script with its fence left
// in place (a template literal may hold a fence too).
func unfence(text string) string {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text
	}
	marks := fence().FindAllStringIndex(text, -1)
	if len(marks) != 2 && !(len(marks) == 1 && blank(text[:marks[0][0]])) {
		return text
	}
	if !blank(text[:marks[0][0]]) {
		// Prose before the block; a script that merely contains a fence parses.
		if _, err := parse(wrapHead + text + wrapTail); err == nil {
			return text
		}
	}
	inner, rest := text[marks[0][1]:], ""
	if len(marks) == 2 {
		inner, rest = text[marks[0][1]:marks[1][0]], text[marks[1][0]:]
	}
	return blankLines(text[:marks[0][1]]) + inner + blankLines(rest)
}

// blankLines keeps only the line ends of a text.
func blankLines(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

// blank reports whether a text holds nothing but white space and comments.
func blank(text string) bool {
	for {
		text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ';' || r == '\ufeff' })
		switch {
		case text == "":
			return true
		case strings.HasPrefix(text, "//"):
			end := strings.IndexAny(text, "\n\r\u2028\u2029")
			if end < 0 {
				return true
			}
			text = text[end:]
		case strings.HasPrefix(text, "/*"):
			end := strings.Index(text[2:], "*/")
			if end < 0 {
				return false
			}
			text = text[2+end+2:]
		default:
			return false
		}
	}
}

// expressionText returns the text of a script that may be an object literal,
// which as a statement would be a block with labels, or an anonymous
// function, which is not a statement at all.
func expressionText(text string) (string, bool) {
	t := strings.TrimLeftFunc(text, unicode.IsSpace)
	if strings.HasPrefix(t, "{") {
		return strings.TrimRight(text, "; \t\r\n"), true
	}
	return functionText(text)
}

var anonymous = Pattern(`^\s*(async\s+)?function\s*\*?\s*[(<]|^\s*class\s*[{]`)

func functionText(text string) (string, bool) {
	switch t := strings.TrimLeft(text, "\t\n\f\r "); {
	case !strings.HasPrefix(t, "async") && !strings.HasPrefix(t, "function") && !strings.HasPrefix(t, "class"):
		return "", false
	case !anonymous().MatchString(text):
		return "", false
	}
	return strings.TrimRight(text, "; \t\r\n"), true
}

var (
	exports       = Pattern(`(?m)^[ \t]*export[ \t]+(?:async|function|const|let|var|class|enum|type|interface|abstract)\b`)
	exportList    = Pattern(`(?m)^[ \t]*export[ \t]*\{([^{}"']*)\}[ \t]*;?[ \t]*$`)
	exportDefault = Pattern(`(?m)(?:^|;)[ \t]*export[ \t]+default\b`)
	asDefault     = Pattern(`([\w$]+)\s+as\s+default\b`)
	declared      = Pattern(`^\s*(?:abstract\s+)?(?:async\s+function|function|class|interface)\b\s*\*?\s*([\w$]+)`)
)

// unexport blanks `export` at the start of lines: a script has nobody to
// export to, but models write it. The default export is the script's result: it is
// returned or, if it is a function, called; see adopt.
func (s *Script) unexport(text string) string {
	if !strings.Contains(text, "export") {
		return text
	}
	spaces := func(m string) string { return strings.Repeat(" ", len(m)) }
	blank := func(m string) string { return strings.Replace(m, "export", spaces("export"), 1) }
	text = exports().ReplaceAllStringFunc(text, blank)
	text = exportList().ReplaceAllStringFunc(text, func(m string) string {
		if name := asDefault().FindStringSubmatch(m); name != nil {
			s.exported = name[1]
		}
		return notLineEnds().ReplaceAllString(m, " ")
	})
	at := exportDefault().FindStringIndex(text)
	if at == nil {
		return text
	}
	head, rest := blank(text[:at[1]]), text[at[1]:]
	word := spaces("default")
	if name := declared().FindStringSubmatch(rest); name != nil && name[1] != "extends" {
		s.exported = name[1]
	} else {
		s.exported, word = "return", "return "
	}
	return strings.TrimSuffix(head, "default") + word + rest
}

var notLineEnds = Pattern(`[^\r\n]`)

// adoptExpression takes a program whose arrow function is one expression.
func (s *Script) adoptExpression(p *ast.Program) bool {
	arrow := wrapper(p)
	if arrow == nil {
		return false
	}
	body, ok := arrow.Body.(*ast.ExpressionBody)
	if !ok {
		return false
	}
	if isFunction(body.Expression) {
		body.Expression = callWith(body.Expression)
	}
	s.Program = p
	return true
}

// adopt takes a program whose last statement is the wrapper, and gives the
// script its result: what it returns; or the value of the one function that it
// consists of or ends with; or, when it never returns, the value of its last
// statement if that is an expression.
func (s *Script) adopt(p *ast.Program) bool {
	arrow := wrapper(p)
	if arrow == nil {
		return false
	}
	if _, ok := arrow.Body.(*ast.ExpressionBody); ok {
		return s.adoptExpression(p)
	}
	body, ok := arrow.Body.(*ast.BlockStatement)
	if !ok {
		return false
	}
	for n := len(body.List); n > 0; n-- {
		if _, empty := body.List[n-1].(*ast.EmptyStatement); !empty {
			break
		}
		body.List = body.List[:n-1]
	}
	s.Program = p
	if len(body.List) == 0 || s.callsDefault(body) || returns(body.List) {
		return true
	}
	s.Uncalled = uncalled(body.List, s.Text)
	last := &body.List[len(body.List)-1]
	switch st := (*last).(type) {
	case *ast.ExpressionStatement:
		value := st.Expression
		if len(body.List) == 1 && isFunction(value) {
			value = callWith(value)
		}
		*last = &ast.ReturnStatement{Return: st.Idx0(), Argument: value}
	default:
		if name := entry(body.List); name != nil {
			s.Uncalled = ""
			body.List = append(body.List, &ast.ReturnStatement{Return: st.Idx1(), Argument: callWith(name)})
		}
	}
	return true
}

// callsDefault makes the script call its default export, if that is a function,
// and reports whether it is one.
func (s *Script) callsDefault(body *ast.BlockStatement) bool {
	named := func(name string) *ast.Identifier {
		for _, st := range body.List {
			if id := functionIn(st); id != nil && id.Name.String() == name {
				return id
			}
		}
		return nil
	}
	switch s.exported {
	case "":
		return false
	case "return":
		for _, st := range body.List {
			r, ok := st.(*ast.ReturnStatement)
			if !ok {
				continue
			}
			id, _ := r.Argument.(*ast.Identifier)
			if isFunction(r.Argument) || id != nil && named(id.Name.String()) != nil {
				r.Argument = callWith(r.Argument)
			}
			return true
		}
		return false
	}
	id := named(s.exported)
	if id != nil {
		body.List = append(body.List, &ast.ReturnStatement{Return: body.RightBrace, Argument: callWith(id)})
	}
	return id != nil
}

// functionIn returns the name of the function that a statement declares, if that
// is all it does.
func functionIn(st ast.Statement) *ast.Identifier {
	var list []*ast.Binding
	switch st := st.(type) {
	case *ast.FunctionDeclaration:
		return st.Function.Name
	case *ast.LexicalDeclaration:
		list = st.List
	case *ast.VariableStatement:
		list = st.List
	}
	if len(list) != 1 || !isFunction(list[0].Initializer) {
		return nil
	}
	id, _ := list[0].Target.(*ast.Identifier)
	return id
}

// entry returns the function to call in a script that only declares functions:
// the only one, or the one called main.
func entry(list []ast.Statement) *ast.Identifier {
	var only *ast.Identifier
	for _, st := range list {
		name := functionIn(st)
		if name == nil {
			return nil
		}
		if name.Name == "main" || len(list) == 1 {
			only = name
		}
	}
	return only
}

// uncalled returns the function that a script most likely forgot to call: main,
// or the only one, if its name occurs nowhere else.
func uncalled(list []ast.Statement, text string) string {
	var names []string
	for _, st := range list {
		if id := functionIn(st); id != nil {
			names = append(names, id.Name.String())
		}
	}
	for _, name := range names {
		if name != "main" && len(names) > 1 {
			continue
		}
		if word := regexp.MustCompile(`(^|[^\w$])` + regexp.QuoteMeta(name) + `($|[^\w$])`); len(word.FindAllStringIndex(text, 2)) == 1 {
			return name
		}
	}
	return ""
}

// wrapper returns the arrow function that the wrapper made, or nil if the
// script closed it early. The front end may put helpers before it.
func wrapper(p *ast.Program) *ast.ArrowFunctionLiteral {
	if len(p.Body) == 0 {
		return nil
	}
	for _, st := range p.Body[:len(p.Body)-1] {
		if _, ok := st.(*ast.VariableStatement); !ok {
			return nil
		}
	}
	st, ok := p.Body[len(p.Body)-1].(*ast.ExpressionStatement)
	if !ok {
		return nil
	}
	arrow, ok := st.Expression.(*ast.ArrowFunctionLiteral)
	if !ok || !arrow.Async || len(arrow.ParameterList.List) > 0 {
		return nil
	}
	return arrow
}

func isFunction(e ast.Expression) bool {
	switch e.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		return true
	}
	return false
}

// callWith makes f(codemode, input).
func callWith(f ast.Expression) ast.Expression {
	at := f.Idx0()
	name := func(n string) ast.Expression { return &ast.Identifier{Name: unistring.NewFromString(n), Idx: at} }
	return &ast.CallExpression{
		Callee:           f,
		LeftParenthesis:  at,
		ArgumentList:     []ast.Expression{name("codemode"), name("input")},
		RightParenthesis: at,
	}
}

// returns reports whether the list has a return statement outside any function.
func returns(list []ast.Statement) bool {
	for _, st := range list {
		if returnsIn(st) {
			return true
		}
	}
	return false
}

func returnsIn(st ast.Statement) bool {
	switch st := st.(type) {
	case *ast.ReturnStatement:
		return true
	case *ast.BlockStatement:
		return returns(st.List)
	case *ast.IfStatement:
		return returnsIn(st.Consequent) || st.Alternate != nil && returnsIn(st.Alternate)
	case *ast.ForStatement:
		return returnsIn(st.Body)
	case *ast.ForInStatement:
		return returnsIn(st.Body)
	case *ast.ForOfStatement:
		return returnsIn(st.Body)
	case *ast.WhileStatement:
		return returnsIn(st.Body)
	case *ast.DoWhileStatement:
		return returnsIn(st.Body)
	case *ast.WithStatement:
		return returnsIn(st.Body)
	case *ast.LabelledStatement:
		return returnsIn(st.Statement)
	case *ast.SwitchStatement:
		for _, c := range st.Body {
			if returns(c.Consequent) {
				return true
			}
		}
	case *ast.TryStatement:
		return returns(st.Body.List) ||
			st.Catch != nil && returns(st.Catch.Body.List) ||
			st.Finally != nil && returns(st.Finally.List)
	}
	return false
}

// Compile compiles the tree.
func (s *Script) Compile() (*goja.Program, *Error) {
	p, err := goja.CompileAST(s.Program, false)
	if err == nil {
		return p, nil
	}
	fail := newError(err.Error(), "")
	if c, ok := err.(*goja.CompilerSyntaxError); ok {
		fail.Message = values.LowerFirst(c.Message)
		if c.File != nil {
			p := c.File.Position(c.Offset)
			fail.Position = s.place(p.Line, p.Column)
			fail.Frame = s.Frame(fail.Position)
		}
	}
	return nil, fail
}

// At maps an index of the tree to the model's text.
func (s *Script) At(idx file.Idx) analysis.Position {
	if idx <= 0 || s.Program == nil || s.Program.File == nil {
		return analysis.Position{}
	}
	p := s.Program.File.Position(int(idx) - 1)
	return s.place(p.Line, p.Column)
}
