// Package values converts values between a goja runtime and the outside, in three
// forms: JSON (encode.go, decode.go), the text that console.log prints, as Node does
// (inspect.go, layout.go), and short descriptions for messages (text.go, Describe).
//
// A Codec belongs to one runtime. It uses the engine's objects and never the
// script's built-ins: a script that replaces JSON.stringify or
// Array.prototype.map changes nothing here. docs/reference/script-values.md has
// a table of how each kind of value is converted. In short, on the way out:
// undefined is left out, NaN is null with a note, a Map is an object, a Set a
// list, an Error its fields; on the way in: an integer that a number can't hold
// exactly is a BigInt, and everything else is what JSON.parse makes of it. Both
// ways values nest at most 1,000 levels deep.
//
// Reading a value may run the script's code (getters, toJSON, proxies), so the
// deadline of the run must be armed. What that code throws is returned as an
// error; an interrupt continues as a panic, which Guard turns into an error.
package values
