package preview

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// literals returns the arguments of a tool call as JSON, as the tool would
// get them, or "" if they are not all literals or too long. Constants
// that are strings count as literals.
func (w *walker) literals(args []ast.Expression, s *scope) string {
	if len(args) == 0 {
		return "{}"
	}
	l := literal{walker: w, scope: s}
	if len(args) > 1 || !l.value(args[0], 0) || l.out.Len() > MaxArgs {
		return ""
	}
	return l.out.String()
}

// A literal writes an expression as JSON. Its methods return false as soon as
// a part cannot be written.
type literal struct {
	walker *walker
	scope  *scope
	out    bytes.Buffer
}

func (l *literal) value(e ast.Expression, depth int) bool {
	if depth > maxNesting || l.out.Len() > MaxArgs {
		return false
	}
	switch e := e.(type) {
	case *ast.ObjectLiteral:
		return l.object(e, depth+1)
	case *ast.ArrayLiteral:
		l.out.WriteByte('[')
		for i, element := range e.Value {
			if i > 0 {
				l.out.WriteByte(',')
			}
			if element == nil || l.undefined(element) {
				l.out.WriteString("null")
			} else if !l.value(element, depth+1) {
				return false
			}
		}
		l.out.WriteByte(']')
		return true
	case *ast.NullLiteral:
		l.out.WriteString("null")
		return true
	case *ast.BooleanLiteral:
		return l.write(e.Value)
	case *ast.NumberLiteral:
		return l.number(e, false)
	case *ast.UnaryExpression:
		n, ok := e.Operand.(*ast.NumberLiteral)
		return ok && e.Operator == token.MINUS && l.number(n, true)
	case *ast.Identifier:
		switch c := l.constant(e).(type) {
		case *ast.NumberLiteral, *ast.BooleanLiteral, *ast.NullLiteral, *ast.UnaryExpression:
			return l.value(c, depth+1)
		}
		return l.text(e)
	case *ast.StringLiteral, *ast.TemplateLiteral, *ast.BinaryExpression:
		return l.text(e)
	}
	return false
}

// text writes an expression that can only be one string.
func (l *literal) text(e ast.Expression) bool {
	values := l.walker.eval(e, l.scope, 0)
	if len(values) != 1 {
		return false
	}
	v := values[0]
	return v.kind == kindString && !v.number && !v.loose && l.write(v.name)
}

// constant returns what a name is given by its only declaration; nil if there
// may be more to it.
func (l *literal) constant(id *ast.Identifier) ast.Expression {
	v := l.scope.lookup(id.Name.String())
	if v == nil || len(v.origins) != 1 || v.origins[0].loose || len(v.origins[0].path) > 0 {
		return nil
	}
	return v.origins[0].expr
}

func (l *literal) object(e *ast.ObjectLiteral, depth int) bool {
	seen := map[string]bool{}
	l.out.WriteByte('{')
	for _, p := range e.Value {
		var name string
		var value ast.Expression
		switch p := p.(type) {
		case *ast.PropertyShort:
			name, value = p.Name.Name.String(), &p.Name
		case *ast.PropertyKeyed:
			part := keyPart(p.Key, p.Computed)
			if part.key != nil || p.Kind != ast.PropertyKindValue {
				return false
			}
			name, value = part.name, p.Value
		default:
			return false
		}
		if seen[name] || name == "__proto__" {
			return false
		}
		if l.undefined(value) { // JSON has no such member
			continue
		}
		if len(seen) > 0 {
			l.out.WriteByte(',')
		}
		seen[name] = true
		if !l.write(name) {
			return false
		}
		l.out.WriteByte(':')
		if !l.value(value, depth) {
			return false
		}
	}
	l.out.WriteByte('}')
	return true
}

func (l *literal) undefined(e ast.Expression) bool {
	id, ok := e.(*ast.Identifier)
	return ok && id.Name == "undefined"
}

func (l *literal) number(n *ast.NumberLiteral, negative bool) bool {
	switch v := n.Value.(type) {
	case int64:
		f := float64(v) // a script's numbers are doubles
		if negative {
			f = -f
		}
		return l.write(f)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return false
		}
		if negative {
			v = -v
		}
		return l.write(v)
	case *big.Int:
		if negative {
			v = new(big.Int).Neg(v)
		}
		return l.write(v)
	}
	return false
}

// write writes a scalar.
func (l *literal) write(v any) bool {
	if s, ok := v.(string); ok && len(s) > MaxArgs {
		return false
	}
	if v == 0.0 {
		v = 0 // -0 too
	}
	enc := json.NewEncoder(&l.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return false
	}
	l.out.Truncate(l.out.Len() - 1) // Encode ends with a line feed
	return true
}
