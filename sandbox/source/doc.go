// Package source makes a program of what a model wrote, and leads back from
// places in the program to the model's own lines.
//
// Models write JavaScript and TypeScript, with and without a function around
// it, in Markdown fences, with export and import type, and sometimes another
// language or prose. Read takes all that can be meant:
//
//	text ──▶ fences and shebangs blanked ──▶ goja's parser ──────────▶ Script
//	                                              │ refused               ▲
//	                                              └──▶ esbuild ──▶ parser ┘
//
// The text is wrapped into an async function, which makes top-level await and
// return legal. What was blanked leaves its lines and columns behind, and what
// esbuild rewrites has a source map, so every position that is told is one in
// the text as it was written. What can't be read is an Error, with the words
// that help to write it better.
//
// intake.go reads, frontend.go runs esbuild, brackets.go finds the bracket
// that is not closed. mend.go and regexps.go (with properties.go) put right in
// the tree what goja gets wrong. places.go and stack.go are the way back.
// absent.go lists what other runtimes have and this one does not, with what to write
// instead.
//
// The package runs nothing.
package source
