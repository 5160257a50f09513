package profiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// A truth is the value of a condition. Undecided is not an error to report and
// forget: it counts as true where that is stricter (deny and ask) and as false
// where true would let the call pass.
type truth int8

const (
	no truth = iota
	yes
	undecided
)

// and is Kleene's conjunction: one false decides; otherwise one undecided makes the
// result undecided.
func (t truth) and(o truth) truth {
	switch {
	case t == no || o == no:
		return no
	case t == undecided || o == undecided:
		return undecided
	}
	return yes
}

// agree merges several readings of one thing: if they differ, it is undecided.
func (t truth) agree(o truth) truth {
	if t == o {
		return t
	}
	return undecided
}

// A condition is a rule's `when`. If it is undecided, the text says why, without
// quoting any argument's value.
type condition interface {
	eval(f *facts) (truth, string)
	// reads lists the names of arguments that it looks at.
	reads() []nameRead
	// needs lists the parameters without which it cannot be decided.
	needs() []string
}

// facts are the call as conditions see it; they are the variables of a CEL
// expression.
type facts struct {
	call        *Call
	path        string
	annotations map[string]bool
	args        map[string]any
	names       map[string][]place // of the arguments, by their folded form
}

// ResolveName implements [cel.Activation].
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		if f.call.gaps != nil && f.call.gaps.Args {
			return nil, false
		}
		if f.args == nil {
			// Expressions of many rules read the same few arguments: those at
			// the top are converted once, the ones below when they are read.
			f.args = make(map[string]any, len(f.call.Args))
			for key, v := range f.call.Args {
				switch v.(type) {
				case json.Number, string:
					v = numbers{types.DefaultTypeAdapter}.NativeToValue(v)
				}
				f.args[key] = v
			}
		}
		return f.args, true
	case "tool":
		return f.call.Tool, true
	case "server":
		return f.call.Server, true
	case "annotations":
		if f.call.gaps != nil && f.call.gaps.Tool {
			return nil, false
		}
		if f.annotations == nil {
			f.annotations = map[string]bool{}
			for key, hint := range f.call.Annotations.byKey() {
				if hint != nil {
					f.annotations[key] = *hint
				}
			}
		}
		return f.annotations, true
	case "run.calls":
		return f.call.Run.Calls, true
	case "run.bytes":
		return f.call.Run.Bytes, true
	case "run.tools":
		return f.call.Run.Tools, true
	case "labels":
		if f.call.Flow == nil || f.call.Flow.Labels.Unknown {
			return nil, false // nobody knows
		}
		return f.call.Flow.Labels.Has, true
	case "flow.content", "flow.context":
		if f.call.Flow == nil || name == "flow.content" && f.call.gaps != nil && f.call.gaps.Content {
			return nil, false
		}
		facts := f.call.Flow.Content
		if name == "flow.context" {
			facts = f.call.Flow.Context
		}
		if all, ok := labelsOf(facts); ok {
			return all, true
		}
	case "flow.written":
		if f.call.Flow != nil && !(f.call.gaps != nil && f.call.gaps.Written) {
			return f.call.Flow.Written, true
		}
	}
	return nil, false
}

// Parent implements [cel.Activation].
func (f *facts) Parent() cel.Activation { return nil }

// byKey are the annotations under their names in the protocol.
func (a Annotations) byKey() map[string]*bool {
	return map[string]*bool{
		"readOnlyHint":    a.ReadOnly,
		"destructiveHint": a.Destructive,
		"idempotentHint":  a.Idempotent,
		"openWorldHint":   a.OpenWorld,
	}
}

// The cost limits of an expression. The estimate at load time assumes an ordinary
// call's sizes, so that a loop over an argument, or one loop within another, is
// accepted and three nested ones are not. The limit at run time holds whatever the
// sizes are.
const (
	maxExpr         = 4096
	estimatedLength = 100       // characters, elements, keys of anything in args
	maxEstimate     = 1_000_000 // cost units at load
	maxCost         = 250_000   // cost units of one evaluation
)

// celEnv is set up once, and not before an expression needs it.
var celEnv = sync.OnceValues(newCELEnv)

// newCELEnv declares what expressions may use. run.calls and its siblings are
// variables of their own rather than keys of a map, so that a slip in their
// names or types is found when the configuration is loaded.
func newCELEnv() (*cel.Env, error) {
	text := func(name string, f func(string) (string, error)) cel.EnvOption {
		return cel.Function(name, cel.Overload(name+"_string", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				out, err := f(string(v.(types.String)))
				if err != nil {
					return types.WrapErr(err)
				}
				return types.String(out)
			})))
	}
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(
		cel.CustomTypeAdapter(numbers{registry}),
		cel.CustomTypeProvider(registry),
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tool", cel.StringType),
		cel.Variable("server", cel.StringType),
		cel.Variable("annotations", cel.MapType(cel.StringType, cel.BoolType)),
		cel.Variable("run.calls", cel.IntType),
		cel.Variable("run.bytes", cel.IntType),
		cel.Variable("run.tools", cel.ListType(cel.StringType)),
		cel.Variable("labels", cel.ListType(cel.StringType)),
		cel.Variable("flow.content", cel.ListType(cel.StringType)),
		cel.Variable("flow.context", cel.ListType(cel.StringType)),
		cel.Variable("flow.written", cel.BoolType),
		text("clean", cleanPath),
		text("host", hostOf),
		cel.ParserExpressionSizeLimit(maxExpr),
		cel.ParserRecursionLimit(64),
	)
}

// numbers passes JSON numbers to CEL without loss if possible: an integer is an
// int, a larger one a uint, and anything else a double.
type numbers struct{ types.Adapter }

func (n numbers) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Int64(); err != nil {
			if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
				return types.Uint(u)
			}
		}
	case []any:
		return types.NewDynamicList(n, v)
	case map[string]any:
		return types.NewStringInterfaceMap(n, v)
	case Masked:
		return errMasked()
	}
	return n.Adapter.NativeToValue(v)
}

// An expression is a compiled CEL condition.
type expression struct {
	program cel.Program
	text    string
	// unguarded are the keys of args that it reads without asking has() first.
	unguarded []string
	// names are all names of arguments that it reads.
	names []nameRead
	// flows are the variables about flows that it reads.
	flows []string
	// constant reports that it does not depend on the call.
	constant bool
}

// compileExpr checks one expression: syntax, types, cost.
func compileExpr(text string) (*expression, *syntaxError) {
	env, err := celEnv()
	if err != nil {
		return nil, &syntaxError{-1, fmt.Sprintf("setting up expressions: %v", err), ""}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &syntaxError{-1, "empty expression", ""}
	}
	if len(text) > maxExpr {
		return nil, &syntaxError{-1, fmt.Sprintf("expression of %d bytes, the limit is %d", len(text), maxExpr), ""}
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		message := strings.TrimPrefix(first.Message, "Syntax error: ")
		// The parser lists every token that it would have accepted.
		message, _, _ = strings.Cut(message, " expecting {")
		message = strings.Replace(message, "mismatched input '<EOF>'", "the expression ends too early", 1)
		message = strings.Replace(message, "no viable alternative at input", "not expected here:", 1)
		if n := len(issues.Errors()) - 1; n > 0 {
			message = fmt.Sprintf("%s (and %d more)", message, n)
		}
		return nil, &syntaxError{offsetOf(text, first.Location.Line(), first.Location.Column()), message, celHint(text)}
	}
	tree := checked.NativeRep()
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &syntaxError{0, fmt.Sprintf("the expression gives %s, want true or false", t), "compare it with something"}
	}
	e := &expression{text: text, constant: true, names: namesRead(tree)}
	var mistake *syntaxError
	guarded, read, loops := map[string]bool{}, map[string]bool{}, false
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.ComprehensionKind:
			loops = true
		case ast.IdentKind:
			if _, known := (&facts{call: &Call{Flow: &FlowFacts{}}}).ResolveName(x.AsIdent()); known {
				e.constant = false
			}
			if strings.HasPrefix(x.AsIdent(), "flow.") {
				e.flows = append(e.flows, x.AsIdent())
			}
		case ast.SelectKind:
			sel := x.AsSelect()
			if ref := tree.ReferenceMap()[x.ID()]; ref != nil && strings.HasPrefix(ref.Name, "run.") {
				e.constant = false
			}
			if sel.Operand().Kind() != ast.IdentKind {
				return
			}
			switch sel.Operand().AsIdent() {
			case "args":
				if sel.IsTestOnly() {
					guarded[sel.FieldName()] = true
				} else {
					read[sel.FieldName()] = true
				}
			case "annotations":
				if _, known := (Annotations{}).byKey()[sel.FieldName()]; !known && mistake == nil {
					at := tree.SourceInfo().GetStartLocation(x.ID())
					mistake = &syntaxError{offsetOf(text, at.Line(), at.Column()),
						fmt.Sprintf("there is no annotation %q", sel.FieldName()),
						near(sel.FieldName(), sortedKeys((Annotations{}).byKey()))}
				}
			}
		}
	}))
	if mistake != nil {
		return nil, mistake
	}
	for _, key := range sortedKeys(read) {
		if !guarded[key] {
			e.unguarded = append(e.unguarded, key)
		}
	}
	estimate, err := env.EstimateCost(checked, ordinarySizes{})
	if err != nil {
		return nil, &syntaxError{-1, fmt.Sprintf("estimating the cost: %v", err), ""}
	}
	if estimate.Max > maxEstimate {
		return nil, &syntaxError{-1, fmt.Sprintf("the expression costs too much: about %d units, the limit is %d", estimate.Max, maxEstimate),
			"loops within loops multiply; split the rule, or look at fewer elements"}
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops {
		// Only a loop can cost more than the length of the arguments, and
		// counting doubles the time of everything else.
		options = append(options, cel.CostLimit(maxCost))
	}
	if e.program, err = env.Program(checked, options...); err != nil {
		return nil, &syntaxError{-1, err.Error(), ""}
	}
	return e, nil
}

// celHint helps authors who write JavaScript instead of CEL.
func celHint(text string) string {
	switch {
	case strings.Contains(text, "==="), strings.Contains(text, "!=="):
		return "CEL compares with == and !="
	case strings.Contains(text, ".test("), strings.Contains(text, ".match("):
		return "CEL matches with args.x.matches('^...')"
	case strings.Contains(text, ".includes("):
		return "CEL says 'x' in list, or text.contains('x')"
	}
	return ""
}

// offsetOf turns CEL's line and column (in characters) into a byte offset.
func offsetOf(text string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(text[offset:], '\n')
		if i < 0 {
			return -1
		}
		offset += i + 1
	}
	if column < 0 {
		return -1
	}
	for ; column > 0 && offset < len(text); column-- {
		_, n := utf8.DecodeRuneInString(text[offset:])
		offset += n
	}
	return offset
}

// ordinarySizes tells the estimator the sizes of an ordinary call's values.
type ordinarySizes struct{}

func (ordinarySizes) EstimateSize(cost.AstNode) *cost.SizeEstimate {
	return &cost.SizeEstimate{Min: 0, Max: estimatedLength}
}

func (ordinarySizes) EstimateCallCost(function, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	if function == "clean" || function == "host" {
		return cost.NewCallEstimate(cost.Estimate{Min: 1, Max: estimatedLength / 10}, &cost.SizeEstimate{Min: 0, Max: estimatedLength})
	}
	return nil
}

func (e *expression) reads() []nameRead { return e.names }

func (e *expression) needs() []string { return e.unguarded }

func (e *expression) eval(f *facts) (truth, string) {
	if why := f.respelled(e.names); why != "" {
		return undecided, why
	}
	out, _, err := e.program.Eval(f)
	if err != nil {
		return undecided, e.publicError(err.Error())
	}
	switch out {
	case types.True:
		return yes, ""
	case types.False:
		return no, ""
	}
	return undecided, fmt.Sprintf("the expression gives %s, not true or false", out.Type().TypeName())
}

// publicError returns the part of an evaluation error that quotes no argument's
// value.
func (e *expression) publicError(message string) string {
	if key, ok := strings.CutPrefix(message, "no such key: "); ok {
		if strings.Contains(e.text, key) {
			return message
		}
		return "no such key" // the key was computed from an argument
	}
	if message == maskedText {
		return message
	}
	for _, prefix := range []string{"clean: ", "host: ", "operation cancelled"} {
		if strings.HasPrefix(message, prefix) {
			return message
		}
	}
	if strings.HasPrefix(message, "no such overload") {
		return "an argument is not of the type that the expression needs"
	}
	return "the expression cannot be evaluated on these arguments"
}

// A paramTest is the plain form of a condition: every string found at a
// dotted path is matched with a regular expression.
type paramTest struct {
	param string
	keys  []string
	names []nameRead // the same
	match *regexp.Regexp
}

// compileParam checks one test; where names the field at fault.
func compileParam(spec ParamSpec) (t *paramTest, where string, err *syntaxError) {
	t = &paramTest{param: spec.Param}
	key, escaped := "", false
	for i := 0; i < len(spec.Param); i++ {
		switch c := spec.Param[i]; {
		case escaped, c != '.' && c != '\\':
			key, escaped = key+string(c), false
		case c == '\\':
			escaped = true
		case key == "":
			return nil, "param", &syntaxError{i, "empty name in a dotted path", ""}
		default:
			t.keys, key = append(t.keys, key), ""
		}
	}
	if key == "" || escaped {
		return nil, "param", &syntaxError{len(spec.Param), "the dotted path ends without a name", ""}
	}
	t.keys = append(t.keys, key)
	for i, key := range t.keys {
		t.names = append(t.names, readsName(key, i+1))
	}
	if spec.Matches == "" {
		return nil, "matches", &syntaxError{-1, "empty regular expression", `".*" matches every string`}
	}
	re, e := regexp.Compile(spec.Matches)
	if e != nil {
		message, offset, hint := e.Error(), -1, "the syntax is RE2: no look-around, no back-references"
		var bad *syntax.Error
		if errors.As(e, &bad) {
			message = fmt.Sprintf("%s: %q", bad.Code, bad.Expr)
			offset = strings.Index(spec.Matches, bad.Expr)
		}
		return nil, "matches", &syntaxError{offset, "illegal regular expression: " + message, hint}
	}
	t.match = re
	return t, "", nil
}

func (t *paramTest) reads() []nameRead { return t.names }

func (t *paramTest) needs() []string { return t.keys[:1] }

func (t *paramTest) eval(f *facts) (truth, string) {
	result, found, why := no, false, ""
	note := func(v truth, reason string) {
		if found {
			v = result.agree(v)
		}
		if v == undecided && why == "" {
			if why = reason; why == "" {
				why = fmt.Sprintf("%s matches in part", t.param)
			}
		}
		result, found = v, true
	}
	// Elements of an array, and the readings of one path, must agree. If they do
	// not, "any" is enough for deny and ask, while allow needs "all".
	var visit func(v any, keys []string)
	visit = func(v any, keys []string) {
		switch v := v.(type) {
		case []any:
			if len(v) == 0 {
				note(no, "")
			}
			for _, element := range v {
				visit(element, keys)
			}
			return
		case map[string]any:
			if len(keys) > 0 {
				if next, ok := v[keys[0]]; ok {
					visit(next, keys[1:])
				} else {
					note(undecided, fmt.Sprintf("there is no %s", t.param))
				}
				return
			}
		case string:
			if len(keys) == 0 {
				for _, reading := range readings(v) {
					r := no
					if t.match.MatchString(reading) {
						r = yes
					}
					note(r, "")
				}
				return
			}
		}
		note(undecided, fmt.Sprintf("%s is not a string", t.param))
	}
	if f.call.Args == nil {
		return undecided, fmt.Sprintf("there is no %s", t.param)
	}
	if why := f.respelled(t.names); why != "" {
		return undecided, why
	}
	visit(f.call.Args, t.keys)
	return result, why
}

// readings returns what a string may mean as a path: itself, and itself after
// lexical cleaning, with and without backslashes as separators.
func readings(s string) []string {
	all := []string{s}
	if strings.ContainsAny(s, `/\`) || s == ".." || s == "." {
		all = appendNew(all, cleanText(s))
	}
	if strings.Contains(s, `\`) {
		all = appendNew(all, cleanText(strings.ReplaceAll(s, `\`, "/")))
	}
	return all
}

func appendNew(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// A conjunction holds when all of its tests do.
type conjunction []condition

func (c conjunction) reads() (names []nameRead) {
	for _, t := range c {
		names = append(names, t.reads()...)
	}
	return names
}

func (c conjunction) needs() (params []string) {
	for _, t := range c {
		params = append(params, t.needs()...)
	}
	return params
}

func (c conjunction) eval(f *facts) (truth, string) {
	result, why := yes, ""
	for _, t := range c {
		r, reason := t.eval(f)
		if r == undecided && why == "" {
			why = reason
		}
		result = result.and(r)
	}
	if result != undecided {
		why = ""
	}
	return result, why
}
