package upstream

import "codemode-bridge/sandbox/confine"

// A Box is what a child may do, and how it is kept to that.
type Box struct {
	confine.Box
	Require  bool   // not to start the child where a part of it can't be enforced
	Launcher string // the program that makes boxes: codemode-worker
	Store    string // a folder for what the child's package manager fetches, its own
}

// Boxed says what holds a child.
type Boxed struct {
	Box   confine.Box
	Steps confine.Steps
	Held  confine.Hold
}
