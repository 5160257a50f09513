package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/config"
)

// An Allowance is what a server's box lets it do more.
type Allowance struct {
	Write, Read []string // absolute, or the word "workspace"
	Net         []string // hosts, as the configuration has them
	Run         []string // programs
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
	section, err := config.Section(text, at)
	if err != nil {
		return nil, err
	}
	if section == nil {
		return config.Insert(text, at, config.JSONC(flatJSON(more)))
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
			if text, err = config.Insert(text, at+"/-", each); err != nil {
				return nil, err
			}
		}
		return text, nil
	}
	return config.Replace(text, at, config.JSONC(flatJSON(append(all, more...))))
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
