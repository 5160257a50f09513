// Package web gives a runtime the globals that scripts know from Node and
// browsers and goja lacks: console, URL, TextEncoder, structuredClone, Intl,
// crypto, and the newer methods of the language.
//
// Most are scripts in the folder prelude, which get the native functions that they
// need as arguments; console.go, locale.go, matches.go and webapi.go have these. A
// World installs only what the text of the script mentions: a script that uses none
// of it pays for none of it. It also removes what turns text into code: eval, and
// the constructors of functions.
//
// Nothing here reaches beyond the process: time, randomness and console lines go
// through the Host.
package web
