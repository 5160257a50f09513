// Package realm is the engine: one goja runtime for one script, with all that
// the script sees of the house.
//
// An Engine goes through the life of a script, as its caller has it do:
//
//	Load ──▶ Begin ──▶ (Answer)* ──▶ Finish
//	           │          │
//	           └──────────┴──▶ Host: Call, Drop, Log, Now
//
// Load has package source make a program of what a model wrote, and package
// preview read its calls. Begin runs it until it can do nothing but wait. Each
// call of codemode.server__tool(args) has by then become a Host.Call and a
// promise; Answer resolves or rejects one of those and lets the script run on.
// Finish turns the result into JSON, or says in the script's own lines why it
// failed.
//
// The same script with the same answers in the same order, seed and clock does
// the same. So nothing here asks the time, the system, or chance: all of that
// is the Host's. One goroutine uses an Engine; only Interrupt may come from
// another.
//
// realm.go has the runtime and the life of the script, calls.go its calls and
// codemode.go the object that makes them. saved.go runs saved scripts, each in
// a realm of its own. timers.go has setTimeout and its like, install.go what
// is put into the global object beside package web. errors.go describes what
// was thrown, hints.go adds what was most likely meant, and engine.go survives
// a goja that panics.
package realm
