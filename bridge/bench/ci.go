//go:build ci

package main

// What only the programs in .ci import: `go mod tidy` looks into no folder whose name
// begins with a dot. No build has the tag.
import (
	_ "github.com/google/rpmpack"
	_ "github.com/yuin/goldmark"
)
