// Package source turns what a model wrote into a program, and maps places in the
// program back to the model's own lines.
//
// Models write JavaScript and TypeScript, with and without a function around
// it, in Markdown fences, with export and import type, and sometimes another
// language or prose. Read accepts whatever can be understood:
//
//	text ──▶ fences and shebangs blanked ──▶ goja's parser ──────────▶ Script
//	                                              │ refused               ▲
//	                                              └──▶ esbuild ──▶ parser ┘
//
// The text is wrapped in an async function, which makes top-level await and return
// legal. Blanking keeps lines and columns, and what esbuild rewrites has a source
// map, so every reported position is one in the text as it was written. Text that
// can't be read is an Error, with advice on how to write it better.
//
// intake.go reads, frontend.go runs esbuild, brackets.go finds unclosed brackets.
// repair.go and regexps.go (with properties.go) correct in the syntax tree what goja
// gets wrong. places.go and stack.go map positions back. absent.go lists what other
// runtimes have and this one lacks, with what to write instead.
//
// The package runs nothing.
package source
