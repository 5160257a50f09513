// Package templates holds the profiles that are part of the program: rule sets for
// kinds of work that many people have. A configuration refers to one,
//
//	"profiles": { "coding": { "extends": "builtin:coding@1" } }
//
// and adds rules of its own beside it; it never has a copy. A version that was
// released is never changed: what should be otherwise is another version.
//
// Each is a file NAME@VERSION.jsonc beside this one: a profile as it stands in
// evaluation.profiles, with comments. Its first line is a comment that says in
// a sentence what it is for. Its rules are about what calls mean, so that they hold
// for any server of which that is known, whatever its tools are called.
package templates

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.jsonc
var files embed.FS

// A Template is one profile of the program.
type Template struct {
	Name    string // letters and "-"
	Version int
	Summary string // what it is for, one sentence
	Text    string // the profile, JSON with comments, without the summary
}

// Key is the template's name with its version, as "coding@1".
func (t Template) Key() string { return fmt.Sprintf("%s@%d", t.Name, t.Version) }

// Reference is what a profile that is made of the template `extends`.
func (t Template) Reference() string { return "builtin:" + t.Key() }

// Profile is the text of a profile that is the template, as it stands in
// evaluation.profiles.
func (t Template) Profile() string { return fmt.Sprintf("{ \"extends\": %q }", t.Reference()) }

// Versions returns every version of each template, sorted by name and version. The
// caller must not change them.
var Versions = sync.OnceValue(func() []Template {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("templates: " + err.Error()) // they are part of the program
	}
	var list []Template
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic("templates: " + err.Error())
		}
		name, version, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".jsonc"), "@")
		number, err := strconv.Atoi(version)
		if err != nil {
			panic(fmt.Sprintf("templates: the name %s has no version: %v", e.Name(), err))
		}
		summary, rest, _ := strings.Cut(string(text), "\n")
		list = append(list, Template{name, number, strings.TrimPrefix(summary, "// "), strings.TrimSpace(rest)})
	}
	slices.SortFunc(list, func(a, b Template) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return list
})

// All returns the newest version of each template, sorted by name.
func All() []Template {
	newest := map[string]Template{}
	for _, t := range Versions() {
		newest[t.Name] = t
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b Template) int { return cmp.Compare(a.Name, b.Name) })
}

// Find returns the template of that name, the newest unless the name has a version
// as "coding@1".
func Find(name string) (Template, bool) {
	for _, t := range Versions() {
		if t.Key() == name {
			return t, true
		}
	}
	newest := All()
	i := slices.IndexFunc(newest, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return Template{}, false
	}
	return newest[i], true
}

// Names returns the names of all templates, sorted.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}
