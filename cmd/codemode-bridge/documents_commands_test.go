//go:build !race

package main_test

// Every command line in a document is valid: its commands and flags exist.

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/docs/reference"
)

// A commandHelp is what --help says of a command.
type commandHelp struct {
	commands []string // below it
	flags    []string // its own and the global ones, with their dashes
}

var (
	offered      = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)\s`)
	offeredFlag  = regexp.MustCompile(`(?m)^ +(?:(-[a-zA-Z]), )?(--[a-z][a-z-]*)`)
	commandLines = regexp.MustCompile("(?m)(?:^|[`$ ])codemode-bridge( [^`#|\n]*)")
)

// otherWords follow the program's name in documents and are no commands that
// --help lists.
var otherWords = map[string]string{
	"row":     "the first words of what a row's hash is made of",
	"seal":    "the first words of what a row's seal is made of",
	"host":    "a command that is hidden: run starts it",
	"openapi": "a command that is hidden: the bridge starts it",
}

// readHelp reads the text of --help.
func readHelp(text string) (h commandHelp) {
	if _, list, ok := strings.Cut(text, "Available Commands:\n"); ok {
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range offered.FindAllStringSubmatch(list, -1) {
			h.commands = append(h.commands, m[1])
		}
	}
	for _, m := range offeredFlag.FindAllStringSubmatch(text, -1) {
		h.flags = append(h.flags, m[1], m[2])
	}
	return h
}

// helps are what --help has said, by command.
var helps sync.Map

// helpOf asks the program for the help of a command, once.
func helpOf(t *testing.T, command ...string) commandHelp {
	t.Helper()
	name := strings.Join(command, " ")
	h, ok := helps.Load(name)
	if !ok {
		out, err := exec.Command(filepath.Join(programs(t), "codemode-bridge"), append(command, "--help")...).Output()
		if err != nil {
			t.Fatalf("%s --help: %v", name, err)
		}
		h, _ = helps.LoadOrStore(name, readHelp(string(out)))
	}
	return h.(commandHelp)
}

// wrongCommand says what is wrong with a command line, by what helps says of
// the commands on the way.
func wrongCommand(line string, help func(...string) commandHelp) string {
	var at []string
	here := help()
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], "()[].,;:\"")
		switch {
		case word == "--": // a server's own command line
			return ""
		case strings.HasPrefix(word, "-") && word != "-":
			flag, _, _ := strings.Cut(word, "=")
			for _, one := range strings.Split(flag, "|") {
				if !slices.Contains(here.flags, one) {
					return fmt.Sprintf("%q has no flag %s", strings.Join(at, " "), one)
				}
			}
			if len(at) == 0 { // a global flag, whose value follows
				i++
			}
		case len(here.commands) > 0 && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word):
			if !slices.Contains(here.commands, word) {
				return fmt.Sprintf("%q has no command %s", strings.Join(at, " "), word)
			}
			at = append(at, word)
			here = help(at...)
		case len(at) == 0:
			return "" // the program itself is meant
		}
	}
	return ""
}

func TestDocumentsNameCommands(t *testing.T) {
	t.Parallel()
	help := func(command ...string) commandHelp { return helpOf(t, command...) }
	seen, used := 0, map[string]bool{}
	for _, f := range readFiles(t, filepath.Join("..", "..")) {
		if path.Ext(f.Path) != ".md" || strings.Contains(f.Path, "testdata/") {
			continue
		}
		code := strings.Join(append(fences.FindAllString(f.Text, -1), codeSpan.FindAllString(fences.ReplaceAllString(f.Text, ""), -1)...), "\n")
		for _, m := range commandLines.FindAllStringSubmatch(code, -1) {
			seen++
			if word := strings.Fields(m[1] + " -"); otherWords[word[0]] != "" {
				used[word[0]] = true
				continue
			}
			if wrong := wrongCommand(m[1], help); wrong != "" {
				t.Errorf("%s: codemode-bridge%s: %s", f.Path, m[1], wrong)
			}
		}
	}
	for word := range otherWords {
		if !used[word] {
			t.Errorf("%s is an exception without need", word)
		}
	}
	if seen < 80 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// Every command that --help lists has a row in the reference, and so an address.
func TestCommandsHaveAddresses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{"command-help": true}
	for line := range strings.Lines(string(text)) {
		if first, _, found := strings.Cut(strings.TrimPrefix(line, "| "), " | "); found {
			for _, usage := range codeSpan.FindAllString(first, -1) {
				has[reference.CommandAnchor(strings.Trim(usage, "`"))] = true
			}
		}
	}
	var look func(command ...string)
	look = func(command ...string) {
		below := helpOf(t, command...).commands
		if anchor := reference.CommandAnchor(strings.Join(command, " ")); len(below) == 0 && !has[anchor] {
			t.Errorf("docs/reference/cli.md has no row for %s", strings.Join(command, " "))
		}
		for _, name := range below {
			if name != "completion" {
				look(append(slices.Clone(command), name)...)
			}
		}
	}
	look()
}

// subcommand matches a command in a code span without the program's name before it.
var subcommand = regexp.MustCompile("^`([a-z]+) ([a-z][a-z-]*)")

// Documents name no older spelling of a command but where they say that it is one. The
// changelog tells what was.
func TestDocumentsNameNoOlderSpelling(t *testing.T) {
	t.Parallel()
	below := func(command ...string) []string { return helpOf(t, command...).commands }
	seen, tables := 0, 0
	for _, f := range readFiles(t, filepath.Join("..", "..")) {
		if path.Ext(f.Path) != ".md" || strings.Contains(f.Path, "testdata/") || f.Path == "CHANGELOG.md" {
			continue
		}
		text := f.Text
		if before, table, ok := strings.Cut(text, "\n| older | now |\n"); ok {
			_, after, _ := strings.Cut(table, "\n\n")
			text = before + "\n" + after
			tables++
		}
		for _, span := range codeSpan.FindAllString(fences.ReplaceAllString(text, ""), -1) {
			m := subcommand.FindStringSubmatch(span)
			if m == nil || !slices.Contains(below(), m[1]) || len(below(m[1])) == 0 {
				continue
			}
			seen++
			if !slices.Contains(below(m[1]), m[2]) {
				t.Errorf("%s: %s: there is no command %s %s", f.Path, span, m[1], m[2])
			}
		}
	}
	if seen < 100 || tables != 1 {
		t.Errorf("only %d commands were found, and %d tables of older spellings", seen, tables)
	}
}

func TestCommandRuleCanFail(t *testing.T) {
	t.Parallel()
	help := func(command ...string) commandHelp {
		switch strings.Join(command, " ") {
		case "":
			return readHelp("Available Commands:\n  audit       The log\n  eval        Run\n\nFlags:\n  -c, --config file   x\n")
		case "audit":
			return readHelp("Available Commands:\n  query  Print\n\nFlags:\n  -h, --help   x\n")
		}
		return readHelp("Flags:\n      --since time   x\n  -f, --file file   x\n\nGlobal Flags:\n  -c, --config file   x\n")
	}
	for line, good := range map[string]bool{
		" eval 'return 1'": true, " -c a.json audit query --since 2h": true, " eval -f a.js": true, " eval -- --whatever": true, " is a program": false,
		" audit qery": false, " evil": false, " audit query --sinse 2h": false, " eval -x": false, "": true,
	} {
		if wrong := wrongCommand(line, help); (wrong == "") != good {
			t.Errorf("%q: %q", line, wrong)
		}
	}
}
