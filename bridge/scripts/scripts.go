// Package scripts reads and watches the folder of saved scripts: files that a
// person keeps for scripts to run as codemode.run(name, input). Nothing here
// runs or parses a script; of its text only the header is read.
//
// # A file
//
// It is called name.ts or name.js, the name made of letters, digits, "_" and "-",
// at most 64. It begins with a header of "//" lines:
//
//	// description: Issues of a repository that nobody has answered, oldest first.
//	// input: {"type": "object", "required": ["repo"], "properties": {
//	//   "repo": {"type": "string"}, "days": {"type": "number"}}}
//	// output: {"type": "array", "items": {"type": "object"}}
//	const issues = json(await codemode.github__list_issues({repo: input.repo}));
//	return issues.filter(i => i.comments === 0);
//
// Each line is "// key: text", or goes on with the text of the line before if two
// or more blanks follow the slashes. The header ends with the first other line.
//
//   - description says what the script does; it must be there.
//   - input is the JSON Schema of its input, an object: calls are checked against
//     it. Without it the script takes no input.
//   - output is the JSON Schema of what it returns, for its declaration only.
//
// Any other key is a mistake: it may be mistyped, and would be ignored.
//
// A file with a mistake, or one that can't be read, is a Script with a Problem:
// it is listed and can't be run. Names that begin with a dot, and files with
// another ending (.d.ts too), are ignored.
//
// # The folder
//
// A file is read through the folder: a symbolic link that leads out of it is
// refused. What is in subfolders is not looked at.
package scripts

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/atomicfile"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on the folder.
const (
	MaxScripts = 200
	maxName    = 64
	maxHeader  = 64 << 10
)

// A Script is one file of the folder.
type Script struct {
	Name        string // "" if the file's name is not a legal one
	File        string // its name in the folder
	Description string
	Input       json.RawMessage // nil if it takes none
	Output      json.RawMessage // nil if it is not declared
	Source      string          // all of the file
	Digest      string          // of the file: "sha256:" and 64 hex digits
	Problem     *Problem        // why it can't be run; nil if it can
}

// A Problem is what is wrong with a script, and where.
type Problem struct {
	Line    int // from 1; 0 for the whole file
	Column  int // from 1; 0 for the whole line
	Message string
}

// Error says where, if that is known, and what.
func (p *Problem) Error() string {
	switch {
	case p.Line > 0 && p.Column > 0:
		return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
	case p.Line > 0:
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return p.Message
}

var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Read reads the scripts of a folder, sorted by name. A file of more than max
// bytes is a problem; max 0 means 256 KB. A folder that is not there holds no
// scripts; an error means that it can't be read.
func Read(dir string, max int64) ([]Script, error) {
	if max <= 0 {
		max = 256 << 10
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the saved scripts: %w", err)
	}
	defer root.Close()
	files, err := list(root)
	if err != nil {
		return nil, fmt.Errorf("reading the saved scripts: %w", err)
	}
	all := make([]Script, 0, len(files))
	for i, file := range files {
		var s Script
		switch source, err := readFile(root, file.name, max); {
		case i >= MaxScripts:
			s.Problem = &Problem{Message: fmt.Sprintf("the folder has more than %d scripts", MaxScripts)}
		case err != nil:
			s.Problem = &Problem{Message: err.Error()}
		default:
			s = Parse(source)
		}
		s.File, s.Name = file.name, stem(file.name)
		if !legalName.MatchString(s.Name) {
			s.Name = ""
			s.Problem = &Problem{Message: fmt.Sprintf(`a name is made of letters, digits, "_" and "-", at most %d; this one can't be called`, maxName)}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Script) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File)) })
	for i := 1; i < len(all); i++ {
		if all[i].Name != "" && all[i].Name == all[i-1].Name {
			both := fmt.Sprintf("%s and %s have the same name", all[i-1].File, all[i].File)
			all[i-1].Problem, all[i].Problem = &Problem{Message: both}, &Problem{Message: both}
		}
	}
	return all, nil
}

// A stamp tells whether a file changed, without reading it.
type stamp struct {
	name     string
	size     int64
	modified int64
}

// list returns the files that are scripts by their names, sorted by name.
func list(root *os.Root) ([]stamp, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []stamp
	for _, name := range names {
		if strings.HasPrefix(name, ".") || stem(name) == "" {
			continue
		}
		s := stamp{name: name}
		if info, err := root.Stat(name); err == nil { // follows links within the folder
			if info.IsDir() {
				continue
			}
			s.size, s.modified = info.Size(), info.ModTime().UnixNano()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b stamp) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// stem is a file's name without its ending, "" if it is no script.
func stem(file string) string {
	for _, ending := range []string{".ts", ".js"} {
		if name, ok := strings.CutSuffix(file, ending); ok && !strings.HasSuffix(name, ".d") {
			return name
		}
	}
	return ""
}

// readFile reads one file of the folder.
func readFile(root *os.Root, name string, max int64) ([]byte, error) {
	source, err := atomicfile.ReadIn(root, name, max)
	switch {
	case errors.Is(err, atomicfile.ErrIrregular):
		return nil, errors.New("it is not a regular file")
	case errors.Is(err, atomicfile.ErrTooLong):
		return nil, fmt.Errorf("it has more than %d bytes, the limit for scripts", max)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading it: %w (a link may not lead out of the folder)", err)
	case err != nil:
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return source, nil
}

// Parse reads a script's header. Name and File are the caller's to fill in.
func Parse(source []byte) Script {
	sum := sha256.Sum256(source)
	s := Script{Source: string(source), Digest: "sha256:" + hex.EncodeToString(sum[:])}
	if !utf8.Valid(source) {
		s.Problem = &Problem{Message: "it is not UTF-8 text"}
		return s
	}
	s.Problem = s.readHeader()
	return s
}

// An entry is a key of the header with its text, line breaks included.
type entry struct {
	key  string
	line int // of the key
	text string
}

var (
	keyLine  = regexp.MustCompile(`^// ?([A-Za-z]+):[ \t]*(.*)$`)
	moreLine = regexp.MustCompile(`^//[ \t]{2,}(.*)$`)
)

// header returns the entries of the header.
func header(source string) ([]entry, *Problem) {
	var entries []entry
	size := 0
	text := strings.TrimPrefix(source, "\ufeff")
	for number := 1; text != ""; number++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimRight(line, " \t\r")
		if size += len(line); size > maxHeader {
			return nil, &Problem{Line: number, Message: fmt.Sprintf("the header has more than %d bytes", maxHeader)}
		}
		if number == 1 && strings.HasPrefix(line, "#!") || line == "" && entries == nil {
			continue
		}
		if m := moreLine.FindStringSubmatch(line); m != nil && entries != nil {
			entries[len(entries)-1].text += "\n" + m[1]
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			entries = append(entries, entry{key: m[1], line: number, text: m[2]})
		} else {
			break
		}
	}
	return entries, nil
}

// readHeader fills in what the header says, and returns what is wrong with it.
func (s *Script) readHeader() *Problem {
	entries, problem := header(s.Source)
	if problem != nil {
		return problem
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if seen[e.key] {
			return &Problem{Line: e.line, Message: fmt.Sprintf("%s is there twice", e.key)}
		}
		seen[e.key] = true
		switch e.key {
		case "description":
			s.Description = strings.Join(strings.Fields(e.text), " ")
		case "input":
			s.Input, problem = e.schema(true)
		case "output":
			s.Output, problem = e.schema(false)
		default:
			problem = &Problem{Line: e.line, Message: fmt.Sprintf("unknown key %q in the header; it has description, input and output (a line that goes on is indented by two)", e.key)}
		}
		if problem != nil {
			return problem
		}
	}
	if s.Description == "" {
		return &Problem{Line: 1, Message: "the description is missing: begin the file with // description: what the script does"}
	}
	return nil
}

// schema reads the entry's text as a JSON Schema, which must be that of an object if
// object is set.
func (e entry) schema(object bool) (json.RawMessage, *Problem) {
	at := func(offset int, format string, args ...any) *Problem {
		return &Problem{Line: e.line + strings.Count(e.text[:min(offset, len(e.text))], "\n"), Message: e.key + ": " + fmt.Sprintf(format, args...)}
	}
	var read map[string]any
	if err := json.Unmarshal([]byte(e.text), &read); err != nil {
		offset := 0
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = int(syntax.Offset)
		}
		return nil, at(offset, "it must be a JSON Schema on lines of their own or behind the key: %v", err)
	}
	if object && read["type"] != "object" {
		return nil, at(0, `the input of a script is an object: the schema must have "type": "object"`)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(e.text))
	if err != nil {
		return nil, at(0, "%v", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("script:"+e.key, doc); err != nil {
		return nil, at(0, "%v", err)
	}
	if _, err := c.Compile("script:" + e.key); err != nil {
		return nil, at(0, "it is not a valid JSON Schema: %s", firstLine(err.Error()))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(e.text)); err != nil {
		return nil, at(0, "%v", err)
	}
	return compact.Bytes(), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// noLoader follows no reference to another document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not fetched", url)
}
