// Package reference is the reference of the configuration, for the program to quote
// where nobody has these documents at hand, and the anchors that pages made of them
// give to keys and commands.
package reference

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed config.md
var configuration string

// A Section is what can stand in one object of the configuration.
type Section struct {
	// Path is the way to the object: "servers.NAME.auth". It is empty for the file
	// itself, and begins with a word that is no key of the file where the object can
	// stand in several places, as "display" does.
	Path    string
	Heading string // with the marks of Markdown
	Text    string
	Keys    []Key
}

// A Key is one key of an object.
type Key struct{ Name, Kind, Default, Text string }

// Sections are the tables of config.md, in its order.
var Sections = read(configuration)

var (
	cell    = regexp.MustCompile(` +\| +`)
	mdLink  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// read reads the sections out of the document.
func read(document string) (all []Section) {
	_, keys, _ := strings.Cut(document, "<!-- keys:")
	keys, _, _ = strings.Cut(keys, "<!-- end of keys -->")
	for _, part := range strings.Split(keys, "\n### ")[1:] {
		heading, rest, _ := strings.Cut(part, "\n")
		s := Section{Heading: heading, Path: strings.ReplaceAll(quoted(heading), "[]", "")}
		text, table, _ := strings.Cut(rest, "| --- | --- | --- | --- |\n")
		text, _, _ = strings.Cut(text, "| key |")
		s.Text = plain(strings.TrimSpace(text))
		for line := range strings.Lines(table) {
			// An escaped bar is no border of a cell.
			line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
			if cells := cell.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), 4); len(cells) == 4 {
				s.Keys = append(s.Keys, Key{quoted(cells[0]), plain(cells[1]), plain(cells[2]), plain(cells[3])})
			}
		}
		all = append(all, s)
	}
	return all
}

// quoted is what a text has between its first two backquotes.
func quoted(text string) string {
	_, text, _ = strings.Cut(text, "`")
	text, _, _ = strings.Cut(text, "`")
	return text
}

// plain is a cell without Markdown's links and escapes.
func plain(text string) string {
	return strings.ReplaceAll(mdLink.ReplaceAllString(text, "$1"), "\x00", "|")
}

// Slug is the anchor of the section's heading, in the document as in the page.
func (s *Section) Slug() string {
	return strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(s.Heading), ""), " ", "-")
}

// KeyAnchor is the anchor of a key in the page of the configuration.
func KeyAnchor(section, key string) string {
	if section = strings.ReplaceAll(section, "[]", ""); section != "" {
		return "key-" + section + "." + key
	}
	return "key-" + key
}

var commandWord = regexp.MustCompile(`^[a-z][a-z-]*$`)

// CommandAnchor is the anchor of a command in the page of the command line. The usage
// may have the command's arguments, which begin with the first word that isn't plain.
func CommandAnchor(usage string) string {
	anchor := "command"
	for _, word := range strings.Fields(usage) {
		if !commandWord.MatchString(word) {
			break
		}
		anchor += "-" + word
	}
	return anchor
}

// Find looks for what a path leads to: a section, and one of its keys, or, with a nil
// key, the section as a whole. A path's words may be separated by dots or slashes; names
// and numbers stand where the sections have NAME and lists. If there is no such thing,
// the section is the one in which it was looked for.
func Find(path string) (section *Section, key *Key, found bool) {
	words := slices.DeleteFunc(strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '/' || r == '[' || r == ']' }), func(word string) bool {
		return strings.Trim(word, "0123456789") == ""
	})
	if len(words) > 0 && words[0] == "mcpServers" {
		words[0] = "servers"
	}
	if s := at(words); s != nil {
		return s, nil, true
	}
	for end := len(words) - 1; end >= 0; end-- {
		s := at(words[:end])
		if s == nil {
			continue
		}
		i := slices.IndexFunc(s.Keys, func(k Key) bool { return k.Name == words[end] })
		if i < 0 {
			return s, nil, false
		}
		// What stands within a key that is no object of its own belongs to the key.
		return s, &s.Keys[i], true
	}
	return &Sections[0], nil, false
}

// at is the section of an object; nil if there is none.
func at(words []string) *Section {
	for i := range Sections {
		if s := &Sections[i]; s.Path == "" && len(words) == 0 || s.Path != "" && fits(words, strings.Split(s.Path, ".")) {
			return s
		}
	}
	for i := range Sections {
		// What can stand in several places is named by its last words.
		path := strings.Split(Sections[i].Path, ".")
		if path[0] != "" && !slices.ContainsFunc(Sections[0].Keys, func(k Key) bool { return k.Name == path[0] }) &&
			len(words) > len(path) && slices.Equal(words[len(words)-len(path):], path) {
			return &Sections[i]
		}
	}
	return nil
}

// likeLow are the risks beside low, whose section is that of all.
var likeLow = []string{"medium", "high", "critical"}

func fits(words, path []string) bool {
	return slices.EqualFunc(words, path, func(word, want string) bool {
		return word == want || want == "NAME" || want == "low" && slices.Contains(likeLow, word)
	})
}
