//go:build tools

// Package tools names what only the programs in .ci import, which `go mod tidy` does
// not see. It is compiled into nothing.
package tools

import (
	_ "github.com/google/rpmpack"
	_ "github.com/yuin/goldmark"
)
