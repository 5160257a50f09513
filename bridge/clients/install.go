package clients

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Record is what must be remembered of an Install to undo it. It may hold
// secrets: the text of entries that were taken out.
type Record struct {
	Client string `json:"client"`
	Scope  Scope  `json:"scope"`
	File   string `json:"file"`
	Folder string `json:"folder,omitempty"` // of the project
	Name   string `json:"name"`             // of the entry that was put in
	// Existed is false if the file was made for it.
	Existed bool `json:"existed"`
	// Folders were made for the file, the deepest first.
	Folders []string `json:"folders,omitempty"`
	// Before and After are the SHA-256 of the file's text; Before is empty if
	// that text cannot be restored as a whole.
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
	// Backup is the file that holds the text before.
	Backup string `json:"backup,omitempty"`
	// Made are the keys of objects that were made for the entry.
	Made []string `json:"made,omitempty"`
	// Moved are the entries that were taken out.
	Moved []Moved `json:"moved,omitempty"`
}

// A Moved is an entry that was taken out of a file, as it stood there.
type Moved struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// SHA is the SHA-256 of a text, as a Record has it.
func SHA(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// entry returns the bridge's own entry in the form of the client.
func (p Place) entry(name string, command []string, second bool) member {
	var fs []field
	program, args := command[0], command[1:]
	usualPart := []field{{"command", program}, {"args", args}}
	switch p.Client.dialect {
	case vscode:
		fs = append([]field{{"type", "stdio"}}, usualPart...)
	case zed:
		fs = append([]field{{"source", "custom"}}, append(usualPart, field{"env", struct{}{}})...)
	case opencode:
		fs = []field{{"type", "local"}, {"command", command}}
		if !second {
			fs = append(fs, field{"enabled", true})
		}
	case goose:
		fs = []field{{"name", name}, {"description", "calls tools of many MCP servers by script"}, {"type", "stdio"}, {"enabled", true}, {"cmd", program}, {"args", args}, {"envs", struct{}{}}, {"timeout", 300}}
	case copilot:
		fs = append(append([]field{{"type", "local"}}, usualPart...), field{"tools", []string{"*"}})
	default:
		if fs = usualPart; p.Client.Name == "claude-code" {
			fs = append([]field{{"type", "stdio"}}, usualPart...)
		}
	}
	if p.Path != "" {
		key := map[dialect]string{opencode: "environment", goose: "envs"}[p.Client.dialect]
		env := field{cmp.Or(key, "env"), oneText{"PATH", p.Path}}
		if i := slices.IndexFunc(fs, func(f field) bool { return f.key == env.key }); i >= 0 {
			fs[i] = env
		} else {
			fs = append(fs, env)
		}
	}
	return member{name: name, fields: fs}
}

// Snippet is the text that a person adds to the file to have an entry that
// runs a command.
func (p Place) Snippet(name string, command []string) string {
	return p.Client.format.write(p.Client.keys, p.entry(name, command, false))
}

// Installed reports whether the file has an entry of the name, and whether it
// runs the command.
func (p Place) Installed(text []byte, name string, command []string) (there, same bool, err error) {
	servers, err := p.Servers(text)
	if err != nil {
		return false, false, err
	}
	for _, s := range servers {
		if s.Name == name {
			t := &translator{place: p}
			want := make([]string, len(command))
			for i, c := range command {
				want[i] = t.literal(c, "")
			}
			path := p.Path == "" || s.Env["PATH"] == t.literal(p.Path, "")
			return true, path && !s.Disabled && slices.Equal(append([]string{s.Command}, s.Args...), want), nil
		}
	}
	return false, false, nil
}

// Install returns the text with an entry that runs a command, in place of one
// of the same name, and without the entries of out. The record has what it takes to
// undo that, except for the backup, which the caller makes. A record of an earlier
// Install into the same file that was not undone is taken into account.
func (p Place) Install(text []byte, existed bool, name string, command, out []string, earlier *Record) ([]byte, *Record, error) {
	bom, body := cutBOM(text)
	keys := p.keys(body)
	f := p.Client.format
	r := &Record{Client: p.Client.Name, Scope: p.Scope, File: p.File, Folder: p.project(), Name: name, Existed: existed, Before: SHA(text)}
	tree, err := f.decode(body)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", p.File, err)
	}
	for i := range keys {
		if _, ok := lookUp(tree, keys[:i+1]); !ok {
			r.Made = keys[:i+1]
			break
		}
	}
	names, err := f.names(body, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", p.File, err)
	}
	next, touched := body, []string{name}
	for _, one := range append([]string{name}, out...) {
		if !slices.Contains(names, one) || one == name && slices.Contains(out, one) {
			continue
		}
		after, taken, err := f.remove(next, keys, one)
		if err == nil && slices.Contains(names[slices.Index(names, one)+1:], one) {
			err = errors.New("it is there twice")
		}
		if err != nil {
			return nil, nil, p.byHand(fmt.Errorf("taking %q out of %s: %w", one, p.File, err), name, command)
		}
		next = after
		if one != name {
			touched = append(touched, one)
		}
		if one != name || earlier == nil {
			r.Moved = append(r.Moved, Moved{one, taken})
		}
	}
	if next, err = f.insert(next, keys, p.entry(name, command, len(keys) > 1)); err == nil {
		err = edited(f, body, next, keys, touched, []string{name})
	}
	if err != nil {
		return nil, nil, p.byHand(fmt.Errorf("adding %q to %s: %w", name, p.File, err), name, command)
	}
	after := slices.Concat(bom, next)
	r.After = SHA(after)
	if earlier != nil {
		r.Existed, r.Made = earlier.Existed, earlier.Made
		r.Moved = append(slices.Clone(earlier.Moved), r.Moved...)
		if r.Before = ""; earlier.After == SHA(text) {
			r.Before, r.Backup = earlier.Before, earlier.Backup
		}
	}
	return after, r, nil
}

// byHand adds to an error what the person can do instead.
func (p Place) byHand(err error, name string, command []string) error {
	return fmt.Errorf("%w; add it yourself:\n%s", err, strings.TrimSuffix(p.Snippet(name, command), "\n"))
}

// Uninstall returns the text without the record's entry, and with the entries that
// were moved put back. If nothing else was edited since and backup is the text from
// before, that is the result; a nil result means that the file is to be removed.
// Moved entries that are there again already stay as they are.
func (p Place) Uninstall(text, backup []byte, r *Record) ([]byte, error) {
	if r.After == SHA(text) && r.Before != "" {
		if !r.Existed {
			return nil, nil
		}
		if r.Before == SHA(backup) {
			return backup, nil
		}
	}
	bom, body := cutBOM(text)
	keys := p.keys(body)
	f := p.Client.format
	names, err := f.names(body, keys)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.File, err)
	}
	next, touched, want := body, []string{r.Name}, []string{}
	// The others are put back first, so that their object stays where it is.
	for _, m := range r.Moved {
		if m.Name == r.Name || slices.Contains(names, m.Name) {
			continue
		}
		if next, err = f.insert(next, keys, member{name: m.Name, text: m.Text}); err != nil {
			return nil, fmt.Errorf("putting %q back into %s: %w", m.Name, p.File, err)
		}
		touched, want = append(touched, m.Name), append(want, m.Name)
	}
	if slices.Contains(names, r.Name) {
		if next, _, err = f.remove(next, keys, r.Name); err != nil {
			return nil, fmt.Errorf("taking %q out of %s: %w", r.Name, p.File, err)
		}
	}
	for _, m := range r.Moved {
		if m.Name == r.Name {
			if next, err = f.insert(next, keys, member{name: m.Name, text: m.Text}); err != nil {
				return nil, fmt.Errorf("putting %q back into %s: %w", m.Name, p.File, err)
			}
			want = append(want, m.Name)
		}
	}
	if err := edited(f, body, next, keys, touched, want); err != nil {
		return nil, fmt.Errorf("taking %q out of %s: %w", r.Name, p.File, err)
	}
	return slices.Concat(bom, p.tidy(next, keys, r.Made)), nil
}

// tidy removes objects that were made for the entry and are empty now.
func (p Place) tidy(text []byte, keys, made []string) []byte {
	for depth := len(keys); len(made) > 0 && depth >= len(made); depth-- {
		tree, err := p.Client.format.decode(text)
		if err != nil {
			return text
		}
		v, _ := lookUp(tree, keys[:depth])
		if m, ok := v.(map[string]any); !ok || len(m) > 0 {
			return text
		}
		next, _, err := p.Client.format.remove(text, keys[:depth-1], keys[depth-1])
		if err != nil || edited(p.Client.format, text, next, keys[:depth-1], keys[depth-1:depth], nil) != nil {
			return text
		}
		text = next
	}
	return text
}

// Records are the records of installs, one file each in a folder of their own.
type Records struct{ Folder string }

// file names the file of a place's record.
func (r Records) file(p Place) string {
	key := SHA([]byte(p.File + "\x00" + p.project()))[:12]
	return filepath.Join(r.Folder, fmt.Sprintf("%s-%s-%s.json", p.Client.Name, p.Scope, key))
}

// Load returns the record of a place; nil if there is none.
func (r Records) Load(p Place) (*Record, error) {
	f, err := ReadFile(r.file(p))
	if err != nil || !f.Existed {
		return nil, err
	}
	var record Record
	if err := json.Unmarshal(f.Text, &record); err != nil {
		return nil, fmt.Errorf("reading %s: it is not a record of an install", r.file(p))
	}
	return &record, nil
}

// Making notes the folders that writing the file of an Install will make. What an
// earlier Install into the same file made stays noted.
func (r *Record) Making(f *File, earlier *Record) {
	if r.Folders = f.missing(); earlier != nil {
		r.Folders = append(r.Folders, earlier.Folders...)
	}
}

// Tidy removes the folders that were made for a file which is gone, as far as nothing
// else is in them.
func (r *Record) Tidy() {
	for _, folder := range r.Folders {
		if os.Remove(folder) != nil {
			return
		}
	}
}

// Save keeps the record of a place, for this user's eyes only.
func (r Records) Save(p Place, record *Record) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping what undoes the install: %w", err)
	}
	f, err := ReadFile(r.file(p))
	if err != nil {
		return err
	}
	return f.Write(append(text, '\n'))
}

// Drop forgets the record of a place.
func (r Records) Drop(p Place) error {
	if err := os.Remove(r.file(p)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting an install: %w", err)
	}
	return nil
}
