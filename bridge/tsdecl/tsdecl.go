// Package tsdecl writes JSON Schemas as TypeScript types.
package tsdecl

import "encoding/json"

// Options say how much Func writes. The zero value is the short form.
type Options struct {
	// Doc asks for the long form: properties on lines of their own, and JSDoc
	// with descriptions, formats, defaults and bounds.
	Doc bool
	// Description stands above the declaration in the long form.
	Description string
	// MaxBytes bounds the answer. Detail is dropped, innermost types first,
	// until it fits. 0 means 2,048, or 16,384 with Doc.
	MaxBytes int
}

// Type writes schema as one TypeScript type expression on one line.
func Type(schema json.RawMessage) string {
	return "unknown"
}

// Func writes the declaration of codemode.<name>.
func Func(name string, input, output json.RawMessage, o Options) string {
	return "codemode." + name + "(args?: unknown): Promise<string>"
}
