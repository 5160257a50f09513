// Package values carries values between a goja runtime and the outside, in
// three forms: JSON (encode.go, decode.go), the text that console.log shows,
// which is Node's (inspect.go, layout.go), and the short words of messages
// (text.go, Describe).
//
// A Codec belongs to one runtime. It asks the engine's objects and never the
// script's built-ins: a script that replaces JSON.stringify or
// Array.prototype.map changes nothing here. docs/reference/script-values.md has
// the table of what becomes of each kind of value. In short, on the way out:
// undefined is left out, NaN is null with a note, a Map is an object, a Set a
// list, an Error its fields; on the way in: an integer that a number can't hold
// exactly is a BigInt, and everything else is what JSON.parse makes of it. Both
// ways nest at most 1,000 levels.
//
// Reading a value may run code of the script (getters, toJSON, proxies), so the
// deadline of the run must be armed. What that code throws comes back as an
// error; what interrupts it goes on as a panic, which Guard turns into an error.
package values
