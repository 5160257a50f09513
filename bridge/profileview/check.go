package profileview

import (
	"cmp"
	"fmt"
	"slices"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"
)

// A Warning says of an entry or rule that it does nothing, and where in the configuration it is about.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	profiles.Warning
}

// String is the warning in one line, as the mistakes of `check` are.
func (w Warning) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message)
	if w.Hint != "" {
		text += " (hint: " + w.Hint + ")"
	}
	return text
}

// Check finds the entries and rules that do nothing with the tools there are, in the
// order of the configuration, and counts the tools. Place is where in the
// configuration something stands.
func Check(view *gate.View, place func(pointer string) (file string, line, column int)) (warnings []Warning, tools int) {
	warnings = []Warning{}
	facts := []profiles.ToolFacts{}
	for _, t := range view.Catalog.Tools() {
		f := view.Facts(t)[0]
		facts = append(facts, profiles.ToolFacts{
			Server: f.Server, Tool: f.Tool, Title: f.Title, Description: f.Description,
			Annotations: f.Annotations, TrustAnnotations: f.TrustAnnotations, Input: t.Input,
		})
	}
	tools = len(facts)
	for _, s := range view.Catalog.View(nil).Servers() {
		for _, t := range catalog.Methods(s.Server) {
			facts = append(facts, profiles.ToolFacts{Server: t.Server, Tool: t.Name, Annotations: t.Annotations, Input: t.Input})
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
