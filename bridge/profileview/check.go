package profileview

import (
	"cmp"
	"fmt"
	"slices"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"
)

// A Warning says that a list entry or rule has no effect, and where in the configuration
// it is.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	profiles.Warning
}

// String returns the warning on one line, in the form in which `check` prints mistakes.
func (w Warning) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message)
	if w.Hint != "" {
		text += " (hint: " + w.Hint + ")"
	}
	return text
}

// Check finds the list entries and rules that have no effect on the tools there are, in
// the order of the configuration, and counts the tools. Place finds what a JSON pointer
// names in the configuration.
func Check(view *gate.View, place func(pointer string) (file string, line, column int)) (warnings []Warning, tools int) {
	warnings = []Warning{}
	facts := []profiles.ToolFacts{}
	for _, t := range view.Catalog.Tools() {
		f := view.Facts(t)[0]
		facts = append(facts, profiles.ToolFacts{
			Server: f.Server, Tool: f.Tool, Title: f.Title, Description: f.Description,
			Annotations: f.Annotations, TrustAnnotations: f.TrustAnnotations, Input: t.Input, Labels: f.Flow.Labels,
		})
	}
	tools = len(facts)
	for _, s := range view.Catalog.View(nil).Servers() {
		for _, t := range catalog.Methods(s.Server) {
			facts = append(facts, profiles.ToolFacts{Server: t.Server, Tool: t.Name, Annotations: t.Annotations, Input: t.Input, Labels: view.Facts(t)[0].Flow.Labels})
		}
	}
	for _, w := range view.Profiles.Check(facts) {
		one := Warning{Warning: w}
		one.Path = "/evaluation" + w.Path
		one.File, one.Line, one.Column = place(one.Path)
		warnings = append(warnings, one)
	}
	slices.SortStableFunc(warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return warnings, tools
}
