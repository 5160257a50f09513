package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// clientBox is the box of a client's server in the form of the configuration. Where that
// client confines a server, it does not start it unconfined, and neither does the bridge.
func clientBox(b *clients.Box) string {
	var keys []string
	for _, list := range []struct {
		key   string
		paths []string
	}{{"write", b.Write}, {"read", b.Read}} {
		if len(list.paths) > 0 {
			keys = append(keys, fmt.Sprintf("%q: %s", list.key, flatJSON(list.paths)))
		}
	}
	net := flatJSON("none")
	switch {
	case b.AnyNet:
		net = flatJSON("any")
	case len(b.Net) > 0:
		net = flatJSON(b.Net)
	}
	return "{ " + strings.Join(append(keys, `"net": `+net, `"require": true`), ", ") + " }"
}

// boxProblem says why a client's box of a server would be a mistake in the
// configuration; empty if it would not.
func boxProblem(system clients.System, s clients.Server) string {
	if s.Box == nil || s.Problem != "" {
		return ""
	}
	text := fmt.Sprintf(`{"servers": {"server": {"command": "x", "confine": %s}}}`, clientBox(s.Box))
	_, err := config.Parse("config.json", []byte(text), system.Env)
	var first *config.FieldError
	if !errors.As(err, &first) {
		return ""
	}
	return "its client confines it, and that can't be kept: " + strings.TrimSuffix(first.Message+" ("+first.Hint+")", " ()")
}

// An Allowance is what a server's box lets it do more.
type Allowance struct {
	Write, Read []string // absolute, or the word "workspace"
	Net         []string // hosts, as the configuration has them
	Run         []string // programs
}

// Resolve makes the paths absolute, as somebody has typed them in the folder they are in.
// What a box is to write or read must be there.
func (a *Allowance) Resolve() error {
	if a.String() == "" {
		return errors.New("say what to allow: --write, --read, --net or --run")
	}
	named := func(path string) bool { return path == config.WorkspaceWord }
	program := func(path string) bool { return !strings.ContainsAny(path, `/\`) } // looked up in PATH
	for _, list := range []struct {
		texts []string
		leave func(string) bool
	}{{a.Write, named}, {a.Read, named}, {a.Run, program}} {
		for i, path := range list.texts {
			if list.leave(path) {
				continue
			}
			absolute, err := filepath.Abs(path)
			if err != nil {
				return fmt.Errorf("finding %s: %w", path, err)
			}
			if _, err := os.Stat(absolute); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is no %s: make it first, for a box is made of what is there", absolute)
			}
			list.texts[i] = absolute
		}
	}
	return nil
}

// ErrNotConfined means that a server has no box.
var ErrNotConfined = errors.New("it is not confined: there is nothing to allow")

// Allow returns the text of a configuration in which the box of the server at a JSON
// pointer lets it do more, comments and order kept. It is an error if the box lets it do
// any of that already.
func Allow(text []byte, at string, box *config.Confine, more Allowance) ([]byte, error) {
	if box == nil {
		return nil, ErrNotConfined
	}
	for _, path := range more.Write {
		if box.Writes(path) {
			return nil, fmt.Errorf("it may write %s already", path)
		}
	}
	for _, path := range more.Read {
		if box.Reads(path) {
			return nil, fmt.Errorf("it may read %s already", path)
		}
	}
	for _, host := range more.Net {
		h, err := config.ParseNetHost(host)
		if err != nil {
			return nil, err
		}
		if box.Net.Covers(h) {
			return nil, fmt.Errorf("it may reach %s already", h)
		}
	}
	for _, program := range more.Run {
		if box.Starts(program) {
			return nil, fmt.Errorf("it may start %s already", program)
		}
	}
	for _, list := range []struct {
		key   string
		texts []string
	}{{"write", more.Write}, {"read", more.Read}, {"net", more.Net}, {"run", more.Run}} {
		if len(list.texts) == 0 {
			continue
		}
		var err error
		if text, err = extend(text, at+"/confine/"+list.key, list.texts); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// extend adds texts to a list of the configuration that may be missing, or be one text
// without a list around it.
func extend(text []byte, at string, more []string) ([]byte, error) {
	section, err := jsonc.Section(text, at)
	if err != nil {
		return nil, err
	}
	if section == nil {
		return jsonc.Insert(text, at, jsonc.Text(flatJSON(more)))
	}
	var one string
	var all []string
	switch {
	case json.Unmarshal(section, &one) == nil:
		if one != "none" { // of hosts
			all = append(all, one)
		}
	case bytes.ContainsRune(section, '\n') || json.Unmarshal(section, &all) != nil: // with comments, perhaps
		for _, each := range more {
			if text, err = jsonc.Insert(text, at+"/-", each); err != nil {
				return nil, err
			}
		}
		return text, nil
	}
	return jsonc.Replace(text, at, jsonc.Text(flatJSON(append(all, more...))))
}

// String says what is allowed, for people.
func (a Allowance) String() string {
	var all []string
	for _, list := range []struct {
		verb  string
		texts []string
	}{{"write ", a.Write}, {"read ", a.Read}, {"reach ", a.Net}, {"start ", a.Run}} {
		if len(list.texts) > 0 {
			all = append(all, list.verb+strings.Join(list.texts, ", "))
		}
	}
	return strings.Join(all, "; ")
}
