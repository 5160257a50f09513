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
	// Empty names the profiles that have an empty allowlist: encoding/json would
	// leave it out.
	Empty []string `json:"empty_allowlists,omitempty"`
	Own   []string `json:"own_files,omitempty"`
}

// Source returns a text from which [FromSource] makes the same policy.
func (s *Set) Source() ([]byte, error) {
	src := source{Spec: s.spec, Own: s.options.OwnFiles}
	src.Spec.Profiles = maps.Clone(s.spec.Profiles)
	for _, name := range sortedKeys(src.Spec.Profiles) {
		p := *src.Spec.Profiles[name]
		p.Rules = slices.Clone(p.Rules)
		for i := range p.Rules {
			p.Rules[i].Examples = nil // they ran when the section was parsed, and decide nothing
		}
		if p.Allowlist != nil && len(p.Allowlist) == 0 {
			src.Empty = append(src.Empty, name)
		}
		src.Spec.Profiles[name] = &p
	}
	text, err := json.Marshal(src)
	if err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return text, nil
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
			return nil, fmt.Errorf("reading the policy: there is no profile %q", name)
		}
		p.Allowlist = []string{}
	}
	set, problems := Parse(src.Spec, Options{OwnFiles: src.Own})
	var wrong []error
	for _, p := range problems {
		wrong = append(wrong, errors.New(p.String()))
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("reading the policy: %w", errors.Join(wrong...))
	}
	return set, nil
}
