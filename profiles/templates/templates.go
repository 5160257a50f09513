// Package templates holds ready-made profiles: rule sets for kinds of work that
// many people have, to be copied into a configuration and changed there.
//
// Each is a file NAME.jsonc beside this one: a profile as it stands in
// evaluation.profiles, with comments. Its first line is a comment that says in
// a sentence what it is for. Its rules carry examples, so that a file that does
// not do what it says cannot be loaded.
package templates

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.jsonc
var files embed.FS

// A Template is one ready-made profile.
type Template struct {
	Name    string // letters, digits and "-"
	Summary string // what it is for, one sentence
	Text    string // the profile, JSON with comments, without the summary
}

// All returns the templates, sorted by name.
func All() []Template {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("templates: " + err.Error()) // they are part of the program
	}
	var all []Template
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic("templates: " + err.Error())
		}
		summary, rest, _ := strings.Cut(string(text), "\n")
		all = append(all, Template{strings.TrimSuffix(e.Name(), ".jsonc"), strings.TrimPrefix(summary, "// "), strings.TrimSpace(rest)})
	}
	return all
}

// Find returns the template of that name.
func Find(name string) (Template, bool) {
	all := All()
	i := slices.IndexFunc(all, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return Template{}, false
	}
	return all[i], true
}

// Names returns the names of all templates, sorted.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}
