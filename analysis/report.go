// Package analysis describes what is known of a script before it runs: the
// calls that can be read from its syntax tree, and where it cannot be told
// what will be called. Package preview makes a Report, in the worker, and the
// report travels to the parent in a frame. [Enumerates] looks at the text alone.
//
// A report informs a person. It never decides anything: a call that the
// report misses is judged like any other when it is made.
package analysis

// A Position is a place in the script as the model wrote it, before types
// were stripped or a wrapper was added. Line and Column count from 1; Column
// counts characters (Unicode code points). The zero Position means unknown.
type Position struct {
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// A CallSite is one place in the script that calls a tool.
type CallSite struct {
	// Name is the tool as the script names it, such as "github__list_issues".
	// It is empty when the name is computed and cannot be read.
	Name string `json:"name,omitempty"`
	// Position is where the call is.
	Position Position `json:"position"`
	// Args are the call's arguments as JSON, when all of them are literals
	// and not too long.
	Args string `json:"args,omitempty"`
	// Loop reports whether the call is inside a loop, or in a function
	// passed to something that usually is one (map, forEach, ...).
	Loop bool `json:"loop,omitempty"`
	// Branch reports whether the call may be skipped (if, ?:, &&, catch, ...).
	Branch bool `json:"branch,omitempty"`
}

// A Report is everything that could be read from one script.
type Report struct {
	// Calls are in the order of their positions.
	Calls []CallSite `json:"calls,omitempty"`
	// Unknown counts the call sites whose name could not be read. They are
	// in Calls too, with an empty Name.
	Unknown int `json:"unknown,omitempty"`
	// Truncated reports that there were more call sites than a report holds.
	Truncated bool `json:"truncated,omitempty"`
}
