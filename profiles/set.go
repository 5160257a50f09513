package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// Defaults for what the configuration does not set.
const (
	defaultTimeout   = 300 * time.Second
	defaultPausedFor = 168 * time.Hour
	defaultPatience  = 50 * time.Second
	defaultUnknown   = High
)

// engine is part of every revision: raise it when decisions under an unchanged
// configuration change.
const engine = "profiles/1"

// A Set is all profiles of one configuration. It is immutable and safe for
// concurrent use.
type Set struct {
	profiles       map[string]*Profile
	unrestricted   *Profile
	defaultProfile *Profile
	revision       string
	enabled        bool
	pausedFor      time.Duration
	patience       time.Duration
	patienceOf     map[string]Duration
	spec           Spec // the section and options that it was made from
	options        Options
	// Whether some profile looks at flows by content, and by context.
	flowContent, flowContext bool
	builtins                 map[string]*ProfileSpec // those of the program that profiles extend
}

// Profile returns the profile with that name.
func (s *Set) Profile(name string) (*Profile, bool) {
	p, ok := s.profiles[name]
	return p, ok
}

// Names returns the names of all profiles, sorted.
func (s *Set) Names() []string { return sortedKeys(s.profiles) }

// Default returns the profile of the base eval tool: defaultProfile or, if that is
// not set, the unrestricted one, whose name is empty. That one denies only calls
// that name the bridge's own files, and asks only about changed tools.
func (s *Set) Default() *Profile { return s.defaultProfile }

// Alone reports whether the default profile is the only one, so that `eval` stands for
// it and it needs no tool of its own.
func (s *Set) Alone() bool {
	_, ok := s.profiles[s.defaultProfile.Name()]
	return ok && len(s.profiles) == 1
}

// Unrestricted returns the profile with no restriction of its own.
func (s *Set) Unrestricted() *Profile { return s.unrestricted }

// Revision returns a digest of everything that decisions depend on. Reordering
// keys or editing comments of the file does not change it.
func (s *Set) Revision() string { return s.revision }

// Enabled is evaluation.enabled.
func (s *Set) Enabled() bool { return s.enabled }

// PausedFor returns how long a paused run's requests stay open.
func (s *Set) PausedFor() time.Duration { return s.pausedFor }

// ClientPatience returns how long a call of this client may wait before it is
// answered with the paused run's id.
func (s *Set) ClientPatience(client string) time.Duration {
	if d, ok := s.patienceOf[client]; ok {
		return time.Duration(d)
	}
	return s.patience
}

// Options are what policy must know besides the configuration section.
type Options struct {
	// OwnFiles are the paths of the bridge's own files and folders (config,
	// store, keys, tokens), absolute. Calls whose arguments name one are
	// denied in every profile.
	OwnFiles []string
	// Builtins are the profiles that are part of the program, by their names with a
	// version, as "coding@1": a profile extends one as "builtin:coding@1".
	Builtins map[string]*ProfileSpec
}

// Builtins returns the profiles of the program that profiles of the set extend, by the
// names that they are extended by, as "builtin:coding@1".
func (s *Set) Builtins() map[string]*ProfileSpec {
	all := make(map[string]*ProfileSpec, len(s.builtins))
	for name, spec := range s.builtins {
		all[BuiltinPrefix+name] = spec
	}
	return all
}

// A Problem is one mistake in a [Spec].
type Problem struct {
	// Path is the JSON pointer (RFC 6901) of the value at fault, below the
	// section: "/profiles/safe/allowlist/0". A key that is itself at fault is
	// named by the pointer of its value.
	Path string
	// Message says what is wrong, Hint (often empty) what may be meant.
	Message string
	Hint    string
	// Offset is the byte in the string value, after JSON escapes are undone,
	// where the mistake was found; -1 means the value as a whole. Inside
	// `when` it counts from the start of the expression.
	Offset int
}

func (p Problem) String() string {
	s := p.Path + ": " + p.Message
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// withoutAllows returns the section without the rules that allow and say nothing else, and
// without what is only observed.
func withoutAllows(spec Spec) Spec {
	all := map[string]*ProfileSpec{}
	for name, p := range spec.Profiles {
		if p == nil {
			continue
		}
		c := p.withoutObserved()
		c.Rules = slices.DeleteFunc(c.Rules, func(r RuleSpec) bool {
			return r.Action != nil && *r.Action == "allow" && r.Risk == nil && r.Repeatable == nil && len(r.Check) == 0 && len(r.Hidden) == 0 && r.Display == nil
		})
		if len(c.Rules) == 0 {
			c.Rules = nil
		}
		all[name] = &c
	}
	spec.Profiles = all
	return spec
}

// revisionOf returns the digest of the section, without the examples, which decide
// nothing, and of the options.
func revisionOf(spec Spec, builtins map[string]*ProfileSpec, own ownFiles) (string, error) {
	var emptyAllowlists []string // encoding/json would leave them out
	spec.Profiles, emptyAllowlists = bare(spec.Profiles)
	if spec.Profiles == nil {
		spec.Profiles = map[string]*ProfileSpec{}
	}
	files := slices.Clone(own)
	slices.Sort(files)
	parts := []any{engine, spec, emptyAllowlists, files}
	if len(builtins) > 0 {
		all, empty := bare(builtins)
		parts = append(parts, all, empty)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// RestrictsNothing reports whether a profile lets every call pass unasked: it denies
// and asks about nothing, checks nothing, and its default is to allow.
func (s *Set) RestrictsNothing(name string) bool {
	p := s.profiles[name]
	if p == nil || len(p.deny)+len(p.ask) > 0 {
		return false
	}
	if len(p.flows) > 0 {
		return false
	}
	if p.hasAllowlist && !covered(anyTool, patterns(p.allow)) || !p.hasAllowlist && p.defaultAction != defaultAllow {
		return false
	}
	return !slices.ContainsFunc(p.rules, func(r *rule) bool {
		return r.action.disposition() > Allow || len(r.checks) > 0
	})
}

// Flows says which facts about flows some profile needs: see [Profile.Flows].
func (s *Set) Flows() (content, context bool) {
	if s == nil {
		return false, false
	}
	return s.flowContent, s.flowContext
}
