package profiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A source is what a Set was made from, in the form that is stored with a run: the
// section without its examples, and the options.
type source struct {
	Spec Spec `json:"evaluation"`
	// Builtins are the profiles of the program that others extend, by their names with
	// a version, as they were when the run began.
	Builtins map[string]*ProfileSpec `json:"builtins,omitempty"`
	// Empty names the profiles that have an empty allowlist: encoding/json would
	// leave it out.
	Empty []string `json:"empty_allowlists,omitempty"`
	Own   []string `json:"own_files,omitempty"`
}

// Source returns a text from which [FromSource] makes the same policy.
func (s *Set) Source() ([]byte, error) {
	src := source{Spec: s.spec, Own: s.options.OwnFiles}
	var emptyBuiltins []string
	src.Spec.Profiles, src.Empty = bare(s.spec.Profiles)
	src.Builtins, emptyBuiltins = bare(s.builtins)
	src.Empty = append(src.Empty, emptyBuiltins...)
	text, err := json.Marshal(src)
	if err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return text, nil
}

// bare returns profiles without their examples, which ran when they were parsed and
// decide nothing, and the names of those that have an empty allowlist.
func bare(profiles map[string]*ProfileSpec) (all map[string]*ProfileSpec, empty []string) {
	all = maps.Clone(profiles)
	for _, name := range sortedKeys(profiles) {
		if profiles[name] == nil {
			delete(all, name)
			continue
		}
		p := *profiles[name]
		p.Rules = slices.Clone(p.Rules)
		for i := range p.Rules {
			p.Rules[i].Examples = nil
		}
		if p.Allowlist != nil && len(p.Allowlist) == 0 {
			empty = append(empty, name)
		}
		all[name] = &p
	}
	return all, empty
}

// FromSource makes the policy that [Set.Source] wrote.
func FromSource(text []byte) (*Set, error) {
	var src source
	if err := json.Unmarshal(text, &src); err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	for _, name := range src.Empty {
		p := src.Spec.Profiles[name]
		if p == nil {
			p = src.Builtins[name] // they have an "@" in their names, the others have none
		}
		if p == nil {
			return nil, fmt.Errorf("reading the policy: there is no profile %q", name)
		}
		p.Allowlist = []string{}
	}
	set, problems := Parse(src.Spec, Options{OwnFiles: src.Own, Builtins: src.Builtins})
	var wrong []error
	for _, p := range problems {
		wrong = append(wrong, errors.New(p.String()))
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("reading the policy: %w", errors.Join(wrong...))
	}
	return set, nil
}
