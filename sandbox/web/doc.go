// Package web gives a runtime the globals that scripts know from Node and
// browsers and goja lacks: console, URL, TextEncoder, structuredClone, Intl,
// crypto, and the newer methods of the language.
//
// Most are scripts of the folder prelude, which get the native functions that
// they need as arguments; console.go, locale.go, matches.go and webapi.go have
// these. A World installs only what the text of the script mentions: one that
// uses none of it pays for none. It also takes away what makes code from text:
// eval, and the constructors of functions.
//
// Nothing here reaches beyond the process: time, randomness and the lines of
// the console go through the Host.
package web
