package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// parseFaults reads the form that the package comment describes. Lines
// before the first entry are a comment; empty lines between entries are ignored.
func parseFaults(text string) ([]fault, error) {
	var (
		faults []fault
		f      *fault
		block  string // "", "old" or "new": where lines go
		names  = make(map[string]bool)
	)
	for i, line := range strings.Split(text, "\n") {
		n := i + 1
		switch {
		case strings.HasPrefix(line, "## "): // also in a block, whose end a merge may have lost
			if f != nil {
				return nil, fmt.Errorf("line %d: entry %q of line %d has no end", n, f.name, f.line)
			}
			name, _, ok := strings.Cut(line[len("## "):], ": ")
			if !ok || names[name] {
				return nil, fmt.Errorf("line %d: an entry starts with \"## name: words\", and no name stands twice", n)
			}
			names[name] = true
			f = &fault{name: name, line: n}
		case f == nil:
			if len(faults) > 0 && line != "" && !strings.HasPrefix(line, "#") {
				return nil, fmt.Errorf("line %d: text between entries: %q", n, line)
			}
		case block == "" && strings.HasPrefix(line, "file: "):
			f.file = line[len("file: "):]
		case block == "" && strings.HasPrefix(line, "test: "):
			args, err := words(line[len("test: "):])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			f.test = args
		case block == "" && line == "--- old":
			block = "old"
		case block == "old" && line == "--- new":
			block = "new"
		case block == "new" && line == "--- end":
			f.old, f.new = strings.TrimSuffix(f.old, "\n"), strings.TrimSuffix(f.new, "\n")
			if err := f.check(); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", f.line, f.name, err)
			}
			faults = append(faults, *f)
			f, block = nil, ""
		case block == "old":
			f.old += line + "\n"
		case block == "new":
			f.new += line + "\n"
		default:
			return nil, fmt.Errorf("line %d: not understood: %q", n, line)
		}
	}
	if f != nil {
		return nil, fmt.Errorf("entry %q of line %d has no end", f.name, f.line)
	}
	return faults, nil
}

// check reports what an entry lacks.
func (f *fault) check() error {
	switch {
	case !filepath.IsLocal(f.file):
		return fmt.Errorf("file %q is not a path inside the tree", f.file)
	case len(f.test) == 0:
		return fmt.Errorf("no test")
	case f.old == "":
		return fmt.Errorf("the old text is empty")
	case f.old == f.new:
		return fmt.Errorf("old and new are the same")
	}
	return nil
}

// words splits at spaces; single quotes keep a word together.
func words(s string) ([]string, error) {
	var out []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '\'' {
			end := strings.IndexByte(s[1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("a quote is not closed: %s", s)
			}
			out, s = append(out, s[1:1+end]), s[end+2:]
			continue
		}
		word, rest, _ := strings.Cut(s, " ")
		out, s = append(out, word), rest
	}
	return out, nil
}
