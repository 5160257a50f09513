// Package realm is the engine: one goja runtime for one script, with everything
// that the bridge offers to the script.
//
// The caller takes an Engine through the life of a script:
//
//	Load ──▶ Begin ──▶ (Answer)* ──▶ Finish
//	           │          │
//	           └──────────┴──▶ Host: Call, Drop, Log, Now
//
// Load uses package source to turn what a model wrote into a program, and package
// preview to read its calls. Begin runs it until it can only wait. By then each
// call of codemode.server__tool(args) has become a Host.Call and a promise; Answer
// resolves or rejects one of those and lets the script continue. Finish turns the
// result into JSON, or describes the failure with the script's own line numbers.
//
// The same script with the same answers in the same order, seed and clock does
// the same. So nothing here uses the system, its clock or its randomness: all of
// that comes from the Host. An Engine is used by one goroutine; only Interrupt may
// be called from another.
//
// realm.go has the runtime and the life of the script, calls.go makes its calls and
// codemode.go has the object that scripts call. saved.go runs saved scripts, each in
// a realm of its own. timers.go has setTimeout and the like, install.go the global
// objects that package web does not have. errors.go describes what was thrown,
// hints.go adds what was most likely meant, and engine.go recovers from panics of
// goja.
package realm
