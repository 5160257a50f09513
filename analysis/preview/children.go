package preview

import "github.com/dop251/goja/ast"

// children calls visit with each node directly below n, in the order of the
// source. It is the one place that knows the shape of goja's tree: goja has no
// walker of its own. A test compares it with the types and fields that goja
// declares, so that it fails when goja gains one.
//
// DeclarationList, which functions and programs have besides their body, is
// left out: it points at var declarations that are in the body as well.
func children(n ast.Node, visit func(ast.Node)) {
	expr := func(e ast.Expression) {
		if e != nil {
			visit(e)
		}
	}
	exprs := func(list []ast.Expression) {
		for _, e := range list {
			expr(e)
		}
	}
	stmt := func(s ast.Statement) {
		if s != nil {
			visit(s)
		}
	}
	stmts := func(list []ast.Statement) {
		for _, s := range list {
			stmt(s)
		}
	}
	block := func(b *ast.BlockStatement) {
		if b != nil {
			visit(b)
		}
	}
	ident := func(id *ast.Identifier) {
		if id != nil {
			visit(id)
		}
	}
	target := func(t ast.BindingTarget) {
		if t != nil {
			visit(t)
		}
	}
	bindings := func(list []*ast.Binding) {
		for _, b := range list {
			visit(b)
		}
	}
	properties := func(list []ast.Property) {
		for _, p := range list {
			visit(p)
		}
	}
	params := func(p *ast.ParameterList) {
		if p != nil {
			visit(p)
		}
	}

	switch n := n.(type) {
	// Nodes without children.
	case *ast.BadExpression, *ast.BooleanLiteral, *ast.Identifier, *ast.NullLiteral, *ast.NumberLiteral,
		*ast.RegExpLiteral, *ast.StringLiteral, *ast.TemplateElement, *ast.ThisExpression, *ast.SuperExpression,
		*ast.BadStatement, *ast.DebuggerStatement, *ast.EmptyStatement:

	case *ast.Program:
		stmts(n.Body)

	// Expressions.
	case *ast.ArrayLiteral:
		exprs(n.Value)
	case *ast.ArrayPattern:
		exprs(n.Elements)
		expr(n.Rest)
	case *ast.ArrowFunctionLiteral:
		params(n.ParameterList)
		if n.Body != nil {
			visit(n.Body)
		}
	case *ast.AssignExpression:
		expr(n.Left)
		expr(n.Right)
	case *ast.AwaitExpression:
		expr(n.Argument)
	case *ast.BinaryExpression:
		expr(n.Left)
		expr(n.Right)
	case *ast.Binding:
		target(n.Target)
		expr(n.Initializer)
	case *ast.BracketExpression:
		expr(n.Left)
		expr(n.Member)
	case *ast.CallExpression:
		expr(n.Callee)
		exprs(n.ArgumentList)
	case *ast.ClassLiteral:
		ident(n.Name)
		expr(n.SuperClass)
		for _, e := range n.Body {
			visit(e)
		}
	case *ast.ConditionalExpression:
		expr(n.Test)
		expr(n.Consequent)
		expr(n.Alternate)
	case *ast.DotExpression:
		expr(n.Left)
		visit(&n.Identifier)
	case *ast.ExpressionBody:
		expr(n.Expression)
	case *ast.FunctionLiteral:
		ident(n.Name)
		params(n.ParameterList)
		block(n.Body)
	case *ast.MetaProperty:
		ident(n.Meta)
		ident(n.Property)
	case *ast.NewExpression:
		expr(n.Callee)
		exprs(n.ArgumentList)
	case *ast.ObjectLiteral:
		properties(n.Value)
	case *ast.ObjectPattern:
		properties(n.Properties)
		expr(n.Rest)
	case *ast.Optional:
		expr(n.Expression)
	case *ast.OptionalChain:
		expr(n.Expression)
	case *ast.ParameterList:
		bindings(n.List)
		expr(n.Rest)
	case *ast.PrivateDotExpression:
		expr(n.Left)
		visit(&n.Identifier)
	case *ast.PrivateIdentifier:
		visit(&n.Identifier)
	case *ast.PropertyKeyed:
		expr(n.Key)
		expr(n.Value)
	case *ast.PropertyShort:
		visit(&n.Name)
		expr(n.Initializer)
	case *ast.SequenceExpression:
		exprs(n.Sequence)
	case *ast.SpreadElement:
		expr(n.Expression)
	case *ast.TemplateLiteral:
		expr(n.Tag)
		for i, e := range n.Elements {
			visit(e)
			if i < len(n.Expressions) {
				expr(n.Expressions[i])
			}
		}
	case *ast.UnaryExpression:
		expr(n.Operand)
	case *ast.YieldExpression:
		expr(n.Argument)

	// Statements.
	case *ast.BlockStatement:
		stmts(n.List)
	case *ast.BranchStatement:
		ident(n.Label)
	case *ast.CaseStatement:
		expr(n.Test)
		stmts(n.Consequent)
	case *ast.CatchStatement:
		target(n.Parameter)
		block(n.Body)
	case *ast.ClassDeclaration:
		if n.Class != nil {
			visit(n.Class)
		}
	case *ast.DoWhileStatement:
		stmt(n.Body)
		expr(n.Test)
	case *ast.ExpressionStatement:
		expr(n.Expression)
	case *ast.ForInStatement:
		if n.Into != nil {
			visit(n.Into)
		}
		expr(n.Source)
		stmt(n.Body)
	case *ast.ForOfStatement:
		if n.Into != nil {
			visit(n.Into)
		}
		expr(n.Source)
		stmt(n.Body)
	case *ast.ForStatement:
		if n.Initializer != nil {
			visit(n.Initializer)
		}
		expr(n.Test)
		expr(n.Update)
		stmt(n.Body)
	case *ast.FunctionDeclaration:
		if n.Function != nil {
			visit(n.Function)
		}
	case *ast.IfStatement:
		expr(n.Test)
		stmt(n.Consequent)
		stmt(n.Alternate)
	case *ast.LabelledStatement:
		ident(n.Label)
		stmt(n.Statement)
	case *ast.LexicalDeclaration:
		bindings(n.List)
	case *ast.ReturnStatement:
		expr(n.Argument)
	case *ast.SwitchStatement:
		expr(n.Discriminant)
		for _, c := range n.Body {
			visit(c)
		}
	case *ast.ThrowStatement:
		expr(n.Argument)
	case *ast.TryStatement:
		block(n.Body)
		if n.Catch != nil {
			visit(n.Catch)
		}
		block(n.Finally)
	case *ast.VariableStatement:
		bindings(n.List)
	case *ast.WhileStatement:
		expr(n.Test)
		stmt(n.Body)
	case *ast.WithStatement:
		expr(n.Object)
		stmt(n.Body)

	// Declarations and their parts.
	case *ast.ClassStaticBlock:
		block(n.Block)
	case *ast.FieldDefinition:
		expr(n.Key)
		expr(n.Initializer)
	case *ast.ForDeclaration:
		target(n.Target)
	case *ast.ForIntoExpression:
		expr(n.Expression)
	case *ast.ForIntoVar:
		if n.Binding != nil {
			visit(n.Binding)
		}
	case *ast.ForLoopInitializerExpression:
		expr(n.Expression)
	case *ast.ForLoopInitializerLexicalDecl:
		visit(&n.LexicalDeclaration)
	case *ast.ForLoopInitializerVarDeclList:
		bindings(n.List)
	case *ast.MethodDefinition:
		expr(n.Key)
		if n.Body != nil {
			visit(n.Body)
		}
	case *ast.VariableDeclaration:
		bindings(n.List)
	}
}
