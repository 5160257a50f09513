// Package preview reads from a script's syntax tree which tools it calls.
package preview

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"codemode-bridge/analysis"
)

// Script returns what can be read of program; at maps an index of its file to
// a place in the model's own text.
func Script(program *ast.Program, at func(file.Idx) analysis.Position) analysis.Report {
	return analysis.Report{}
}
