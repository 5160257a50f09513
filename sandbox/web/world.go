package web

import (
	"time"

	"codemode-bridge/sandbox/values"
)

// A Script is what a world must know of the script that it is made for.
type Script interface {
	// Mentions reports whether a text occurs in the script, and Word whether it
	// does as a word of its own.
	Mentions(text string) bool
	Word(text string) bool
	// Translate rewrites the pattern of a regular expression so that the engine reads
	// it as the language says; Written returns what it was before.
	Translate(pattern, flags string) (string, error)
	Written(translated string) (pattern string, ok bool)
}

// A Host is what a world asks of the run around it.
type Host interface {
	Log(level, text string) // writes a line of the console
	Now() time.Time         // the script's clock
	Random(b []byte)        // fills b from the run's seed
	Stack() []string        // the lines of the script's stack, innermost first
}

// A World is the globals of one runtime.
type World struct {
	*values.Codec
	script  Script
	host    Host
	started time.Time // what the script's clock showed at the beginning
}

// New makes the part of a world that is the same for every script.
func New(c *values.Codec) *World {
	r := &World{Codec: c}
	c.OnBigInt = func() { prelude("bigint")(r) }
	r.blockCompilers()
	return r
}

// Begin tells the world its script and host; Install comes next.
func (r *World) Begin(s Script, h Host) {
	r.script, r.host, r.started = s, h, h.Now()
}
