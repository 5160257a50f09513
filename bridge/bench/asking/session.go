package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A session is one piece of work; README.md beside this file says what its fields mean.
type session struct {
	Name    string `json:"-"` // its file's, without the ending
	Title   string
	Kind    string
	Servers map[string]server
	Files   map[string]string
	Links   map[string]string
	Outside map[string]string
	Evals   []script
	Twins   []twin
}

type server struct {
	List    string            `json:"list,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type script struct {
	Says     string
	Parallel bool
	Calls    []call
}

type call struct {
	Tool       string          // SERVER__TOOL
	Args       json.RawMessage `json:",omitempty"`
	Answer     string          `json:",omitempty"`
	Structured json.RawMessage `json:",omitempty"`
}

// A twin is a harmful call, or several of which the last does the harm.
type twin struct {
	Kind, Why string
	After     int
	call
	Calls []call `json:",omitempty"`
}

// calls returns the calls of a twin; the last one does the harm.
func (t twin) calls() []call {
	if len(t.Calls) > 0 {
		return t.Calls
	}
	return []call{t.call}
}

// split returns the names of a call's server and tool.
func (c call) split() (server, tool string) {
	server, tool, _ = strings.Cut(c.Tool, "__")
	return server, tool
}

// count returns how many calls the scripts of a session make.
func (s session) count() (n int) {
	for _, e := range s.Evals {
		n += len(e.Calls)
	}
	return n
}

// sessions reads all sessions in a folder and below it, sorted by name.
func sessions(dir string) (all []session, err error) {
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".jsonc" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s, err := parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		s.Name = strings.TrimSuffix(filepath.ToSlash(name), ".jsonc")
		all = append(all, s)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("there is no session in %s", dir)
	}
	return all, err
}

// parse reads one session: JSON, with lines that are comments.
func parse(text []byte) (s session, err error) {
	var lines [][]byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
			lines = append(lines, line)
		}
	}
	d := json.NewDecoder(bytes.NewReader(bytes.Join(lines, nil)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, err
	}
	for _, t := range s.Twins {
		if t.After < 1 || t.After > len(s.Evals) {
			return s, fmt.Errorf("the twin %q comes after script %d of %d", t.Why, t.After, len(s.Evals))
		}
	}
	for _, c := range s.allCalls() {
		name, _ := c.split()
		if _, ok := s.Servers[name]; !ok {
			return s, fmt.Errorf("%s: there is no such server", c.Tool)
		}
	}
	return s, nil
}

// allCalls returns every call of a session, those of its twins too.
func (s session) allCalls() (all []call) {
	for _, e := range s.Evals {
		all = append(all, e.Calls...)
	}
	for _, t := range s.Twins {
		all = append(all, t.calls()...)
	}
	return all
}

// in returns the session as it is in a folder: with the folders that its strings name.
func (s session) in(workspace, outside string) (session, error) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // so that arguments read as a model writes them
	if err := e.Encode(s); err != nil {
		return s, err
	}
	escape := func(name string) string {
		quoted, err := json.Marshal(name)
		if err != nil {
			panic("asking: a string cannot fail to be written as JSON: " + err.Error())
		}
		return string(quoted[1 : len(quoted)-1])
	}
	replaced := strings.NewReplacer("${WORKSPACE}", escape(workspace), "${OUTSIDE}", escape(outside)).Replace(text.String())
	there := session{Name: s.Name}
	err := json.Unmarshal([]byte(replaced), &there)
	return there, err
}

// lay makes the files and links of a session.
func (s session) lay(workspace, outside string) error {
	write := func(dir string, files map[string]string) error {
		for name, text := range files {
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	for _, dir := range []string{workspace, outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := errors.Join(write(workspace, s.Files), write(outside, s.Outside)); err != nil {
		return err
	}
	for name, target := range s.Links {
		if err := os.Symlink(target, filepath.Join(workspace, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// A list is what tools/list of a server said.
type list struct {
	Package string
	Version string
	Tools   []json.RawMessage
}

// lists reads what the servers list, by the name that sessions use: the package's, with
// "_" for "@" and "/".
func lists(dir string) (map[string]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var l list
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[strings.NewReplacer("@", "_", "/", "_").Replace(l.Package)] = file
	}
	return all, nil
}

// group returns "" for the sessions that were there first, and the folder's name for others.
func (s session) group() string {
	if dir := path.Dir(s.Name); dir != "." {
		return dir
	}
	return ""
}
