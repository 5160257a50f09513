// Package lockfile reads and writes codemode.lock: which definitions of tools a team has
// accepted, in a file beside the configuration that is kept in version control. It says
// what the file says; package pins says what follows.
//
//	codemode.lock 1: written by "codemode-bridge tools lock"; keep it in version control
//	server github sha256:2f1c...
//	tool github create_issue sha256:99ab... github__create_issue
//	tool github "odd name" sha256:03de... github__odd_name
//
// A server has its identity, a digest that is the same on every machine (see
// config.Server.Portable); a tool its raw name, the digest of its definition and the name
// that scripts call it by. Each line says by itself what it is about, and lines are
// sorted, so that edits of different tools merge. A name that is not made of visible
// ASCII is quoted as Go quotes strings.
//
// The reader is strict: whatever [Lock.Text] would not write is an [Error], with its line
// and column. Only the ends of lines may be those of Windows, as some clones have them.
package lockfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/atomicfile"
)

// A Lock is the content of a file.
type Lock struct {
	Servers map[string]*Server // by configured name
}

// A Server is one server, and its tools by their raw names.
type Server struct {
	Identity string // "sha256:" and 64 hex digits
	Tools    map[string]Tool
}

// A Tool is one accepted definition.
type Tool struct {
	Digest string // of the definition: "sha256:" and 64 hex digits
	Script string // the name that scripts call it by
}

// Server returns what the file has of a server; nil if it does not have it, or if there
// is no file.
func (l *Lock) Server(name string) *Server {
	if l == nil {
		return nil
	}
	return l.Servers[name]
}

// Tool returns a line of the file.
func (l *Lock) Tool(server, tool string) (Tool, bool) {
	if s := l.Server(server); s != nil {
		t, ok := s.Tools[tool]
		return t, ok
	}
	return Tool{}, false
}

// Without returns the lock without some servers.
func (l *Lock) Without(names ...string) *Lock {
	rest := &Lock{Servers: maps.Clone(l.Servers)}
	for _, name := range names {
		delete(rest.Servers, name)
	}
	return rest
}

// Count returns the number of tools.
func (l *Lock) Count() (n int) {
	for _, s := range l.Servers {
		n += len(s.Tools)
	}
	return n
}

const (
	header   = `codemode.lock 1: written by "codemode-bridge tools lock"; keep it in version control`
	maxFile  = 64 << 20 // bytes
	usual    = "codemode.lock"
	standard = "config.json"
	scheme   = "sha256:"
)

// Path returns where the lock of a configuration file is: in the same folder, links
// resolved. It is codemode.lock for config.json, and NAME.codemode.lock for NAME.json,
// whatever else is in the folder: a second configuration renames nothing.
func Path(config string) string {
	if real, err := filepath.EvalSymlinks(config); err == nil {
		config = real
	}
	if absolute, err := filepath.Abs(config); err == nil {
		config = absolute
	}
	folder, base := filepath.Split(config)
	if base == standard {
		return folder + usual
	}
	return folder + strings.TrimSuffix(base, ".json") + "." + usual
}

// Text returns the file.
func (l *Lock) Text() []byte {
	var b strings.Builder
	b.WriteString(header + "\n")
	for _, name := range sorted(l.Servers) {
		s := l.Servers[name]
		fmt.Fprintf(&b, "server %s %s\n", word(name), s.Identity)
		for _, tool := range sorted(s.Tools) {
			t := s.Tools[tool]
			fmt.Fprintf(&b, "tool %s %s %s %s\n", word(name), word(tool), t.Digest, word(t.Script))
		}
	}
	return []byte(b.String())
}

// Digest is "sha256:" and 64 hex digits over the file as Text writes it.
func (l *Lock) Digest() string {
	sum := sha256.Sum256(l.Text())
	return scheme + hex.EncodeToString(sum[:])
}

func sorted[V any](all map[string]V) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// word returns a name as the file has it.
func word(name string) string {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\\' }
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	// Blanks are escaped too: a line is split at them.
	return strings.ReplaceAll(strconv.QuoteToASCII(name), " ", `\x20`)
}

// An Error says what is wrong with a file, and where.
type Error struct {
	File         string
	Line, Column int // from 1; the column counts bytes
	Text         string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// Read reads a file. The error wraps fs.ErrNotExist if there is none, and is an [Error]
// if there is something wrong with its text.
func Read(path string) (*Lock, error) {
	text, err := atomicfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the text of a file, whose name is for errors.
func Parse(file string, text []byte) (*Lock, error) {
	p := parser{lock: &Lock{Servers: map[string]*Server{}}, scripts: map[string]int{}}
	rest, at := string(text), 0
	for rest != "" {
		at++
		line, after, ended := strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		wrong := p.line(line, at)
		if wrong == nil && !ended {
			wrong = &slip{len(line), "the last line has no end: part of the file may be missing"}
		}
		if wrong != nil {
			return nil, &Error{file, at, wrong.offset + 1, wrong.text}
		}
		rest = after
	}
	if at == 0 {
		return nil, &Error{file, 1, 1, "the file is empty"}
	}
	return p.lock, nil
}

// A slip is what is wrong with a line, and where in it.
type slip struct {
	offset int
	text   string
}

type parser struct {
	lock    *Lock
	scripts map[string]int // the line of each script name
	server  string         // of the last line
	tool    string         // of the last line, if that was of a tool
	tools   int            // of the server so far
}

func (p *parser) line(line string, at int) *slip {
	if at == 1 {
		if line != header {
			return &slip{0, "this is not a codemode.lock that this program can read: want the first line " + strconv.Quote(header)}
		}
		return nil
	}
	for _, mark := range []string{"<<<<<<<", "=======", ">>>>>>>", "|||||||"} {
		if strings.HasPrefix(line, mark) {
			return &slip{0, "a merge left a conflict here: keep either side, or both in order"}
		}
	}
	fields := strings.Split(line, " ")
	offset := func(i int) int { return len(strings.Join(fields[:i], " ")) + min(i, 1) }
	want := map[string]int{"server": 3, "tool": 5}[fields[0]]
	switch {
	case want == 0:
		return &slip{0, `a line begins with "server" or "tool"`}
	case len(fields) != want:
		return &slip{offset(min(len(fields), want)) - 1, fmt.Sprintf("a line of a %s has %d words, separated by one blank each; this has %d", fields[0], want, len(fields))}
	}
	values := make([]string, want)
	for i := 1; i < want; i++ {
		var err error
		if values[i], err = unquote(fields[i]); err != nil {
			return &slip{offset(i), err.Error()}
		}
	}
	digest := want - 1
	if fields[0] == "tool" {
		digest = 3
	}
	if !IsDigest(values[digest]) {
		return &slip{offset(digest), fmt.Sprintf("%s is no digest: want %q and 64 hex digits", fields[digest], scheme)}
	}
	if fields[0] == "server" {
		if p.server != "" && values[1] <= p.server {
			return &slip{offset(1), fmt.Sprintf("the server %s is out of order after %s: lines are sorted, each once", fields[1], word(p.server))}
		}
		p.server, p.tool, p.tools = values[1], "", 0
		p.lock.Servers[p.server] = &Server{Identity: values[2], Tools: map[string]Tool{}}
		return nil
	}
	switch {
	case p.server == "" || values[1] != p.server:
		return &slip{offset(1), fmt.Sprintf("this tool is not below the line of its server %s", fields[1])}
	case p.tools > 0 && values[2] <= p.tool:
		return &slip{offset(2), fmt.Sprintf("the tool %s is out of order after %s: lines are sorted, each once", fields[2], word(p.tool))}
	case p.scripts[values[4]] > 0:
		return &slip{offset(4), fmt.Sprintf("scripts call another tool %s already, in line %d", fields[4], p.scripts[values[4]])}
	}
	p.tool, p.tools, p.scripts[values[4]] = values[2], p.tools+1, at
	p.lock.Servers[p.server].Tools[p.tool] = Tool{Digest: values[3], Script: values[4]}
	return nil
}

// unquote reads a name that word wrote.
func unquote(text string) (string, error) {
	name := text
	if strings.HasPrefix(text, `"`) {
		var err error
		if name, err = strconv.Unquote(text); err != nil {
			return "", fmt.Errorf("%s is not a quoted name", strconv.QuoteToASCII(text))
		}
	}
	if text == "" {
		return "", errors.New("a word is missing: words are separated by one blank")
	}
	if want := word(name); want != text {
		return "", fmt.Errorf("this name is written %s", want)
	}
	return name, nil
}

// IsDigest reports whether a text is "sha256:" and 64 hex digits.
func IsDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, scheme)
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}
