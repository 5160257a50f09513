// Package explaincmd is `config explain`, which says what a key of the configuration
// means, and what names the documents in errors and in the help of commands.
package explaincmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/meant"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/docs/reference"

	"github.com/spf13/cobra"
)

// Documents says where the documents are. A zero one names them as the repository has
// them.
type Documents struct {
	Base string // the address of the pages, if there are some
}

// Of finds the documents for a program: at the address that the linker has put into it,
// or as pages that its package has brought.
func Of(stamped, program string) Documents {
	if stamped != "" {
		return Documents{strings.TrimSuffix(stamped, "/")}
	}
	pages := filepath.Join(filepath.Dir(filepath.Dir(program)), "share", "doc", "codemode-bridge", "html")
	if _, err := os.Stat(filepath.Join(pages, "index.html")); program != "" && err == nil {
		return Documents{"file://" + filepath.ToSlash(pages)}
	}
	return Documents{}
}

// Key is the address of a section, or of one of its keys.
func (d Documents) Key(s *reference.Section, key *reference.Key) string {
	switch {
	case d.Base == "":
		return "docs/reference/config.md#" + s.Slug()
	case key == nil:
		return d.Base + "/docs/reference/config.html#" + s.Slug()
	}
	return d.Base + "/docs/reference/config.html#" + reference.KeyAnchor(s.Path, key.Name)
}

// Command is the address of a command; of all, if it only groups others.
func (d Documents) Command(c *cobra.Command) string {
	switch {
	case d.Base == "":
		return "docs/reference/cli.md"
	case c.HasAvailableSubCommands() || !c.HasParent():
		return d.Base + "/docs/reference/cli.html"
	}
	return d.Base + "/docs/reference/cli.html#" + reference.CommandAnchor(cli.Command(c))
}

// Help has each command's help name its address.
func (d Documents) Help(root *cobra.Command) {
	cobra.AddTemplateFunc("documented", d.Command)
	root.SetUsageTemplate(strings.TrimRight(root.UsageTemplate(), "\n") + "\n\nMore: {{documented .}}\n")
}

// document is one of the repository's in a text of ours, such as docs/install.md.
var document = regexp.MustCompile(`(^|[ (])(docs/[a-z/-]+)\.md\b`)

// In is a hint in which documents have their addresses: texts name them as the repository
// has them.
func (d Documents) In(hint string) string {
	if d.Base == "" {
		return hint
	}
	return document.ReplaceAllString(hint, "${1}"+strings.ReplaceAll(d.Base, "$", "$$")+"/${2}.html")
}

// Hint says how to learn what can stand where the first of some mistakes is. It is
// empty for mistakes that are in no key.
func (d Documents) Hint(problems config.Problems) string {
	for _, p := range problems {
		if p.Path == "" {
			continue
		}
		s, key, found := reference.Find(p.Path)
		path := s.Path
		if found && key != nil {
			path = strings.TrimPrefix(path+"."+key.Name, ".")
		}
		if path == "" {
			return "codemode-bridge config explain lists the keys"
		}
		hint := "codemode-bridge config explain " + path + " says what can stand there"
		if d.Base != "" {
			hint += ", and so does " + d.Key(s, key)
		}
		return hint
	}
	return ""
}

// A Bridge is what the command needs.
type Bridge struct {
	*cli.Console
	Documents Documents
}

// An explanation is what --json prints.
type explanation struct {
	Key     string `json:"key"`
	Takes   string `json:"takes,omitempty"`
	Default string `json:"default,omitempty"`
	Text    string `json:"text,omitempty"`
	Keys    []row  `json:"keys,omitempty"`
	See     string `json:"see"`
}

type row struct {
	Key   string `json:"key"`
	Takes string `json:"takes"`
	Text  string `json:"text"`
}

// Command returns the command.
func (b *Bridge) Command() *cobra.Command {
	c := &cobra.Command{
		Use: "explain [key]", Short: "Say what a key of the configuration means, and what it takes", Args: cli.RangeArgs(0, 1),
		Long: "Says what a key of the configuration means, what it takes, and what holds without it; of an object, also its keys.\n" +
			"A key is named as in http.listen, servers.github.confine or /servers/github/confine. It needs no configuration and no network.",
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			is, err := b.explain(strings.Join(args, ""))
			if err != nil {
				return err
			}
			if b.JSON {
				return b.PrintJSON(is)
			}
			return b.print(is)
		},
	}
	b.JSONFlag(c)
	return c
}

// explain finds out what a key means.
func (b *Bridge) explain(path string) (*explanation, error) {
	s, key, found := reference.Find(path)
	if !found {
		return nil, unknown(s, path)
	}
	is := &explanation{Key: s.Path, Text: s.Text, See: b.Documents.Key(s, key)}
	if key != nil {
		is.Key, is.Takes, is.Default, is.Text = strings.TrimPrefix(s.Path+"."+key.Name, "."), key.Kind, key.Default, key.Text
		return is, nil
	}
	for _, k := range s.Keys {
		is.Keys = append(is.Keys, row{k.Name, k.Kind, k.Text})
	}
	return is, nil
}

// unknown is the error for a path that leads to no key.
func unknown(s *reference.Section, path string) error {
	words := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '/' })
	var names []string
	for _, k := range s.Keys {
		names = append(names, k.Name)
	}
	in, command := "the configuration", "codemode-bridge config explain"
	if s.Path != "" {
		in, command = s.Path, command+" "+s.Path
	}
	hint := command + " lists the keys"
	for _, word := range words {
		if near := meant.By(word, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", strings.TrimPrefix(s.Path+"."+near, "."))
		}
	}
	return &cli.UsageError{Err: fmt.Errorf("%s: there is no such key in %s (%s)", path, in, hint)}
}

// print prints an explanation for a person.
func (b *Bridge) print(is *explanation) error {
	name := is.Key
	if name == "" {
		name = "the configuration"
	}
	if is.Takes != "" {
		name += ": " + plain(is.Takes)
	}
	fmt.Fprintln(b.Out, name)
	if is.Text != "" {
		width := 100 // of lines that one can read
		if there := b.Width(); there > 20 {
			width = min(width, there)
		}
		for _, line := range lines.Hang("  "+plain(is.Text), width, "  ") {
			fmt.Fprintln(b.Out, line)
		}
	}
	if is.Default != "" {
		fmt.Fprintln(b.Out, "  without it: "+plain(is.Default))
	}
	if len(is.Keys) > 0 {
		fmt.Fprintln(b.Out)
		rows := [][]string{{"key", "takes", ""}}
		for _, k := range is.Keys {
			rows = append(rows, []string{k.Key, lines.Cut(plain(k.Takes), 40), plain(short(k.Text))})
		}
		if err := b.Table(rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(b.Out, "\nmore: "+is.See)
	return err
}

// plain is a text without the marks of code.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// short is the first sentence of a text.
func short(text string) string {
	if sentence, _, found := strings.Cut(text, ". "); found {
		return sentence + "."
	}
	return text
}

// complete completes the path of a key, word by word.
func complete(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := ""
	if i := strings.LastIndexByte(typed, '.'); i >= 0 {
		before = typed[:i+1]
	}
	s, key, found := reference.Find(strings.TrimSuffix(before, "."))
	if !found || key != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for _, k := range s.Keys {
		all = append(all, before+k.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
