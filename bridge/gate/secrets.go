package gate

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// secrets are the values that rules hide in a run, kept to remove them from texts:
// the server and the script may repeat them where they have no name.
type secrets struct {
	mu     sync.Mutex
	values []string
}

const (
	maxSecrets  = 200     // hidden values that a run remembers
	secretBytes = 1 << 10 // of each; a longer one is recognized by its beginning
)

// learn remembers the values in a that o hides, or the last ones if there are too
// many.
func (s *secrets) learn(a canon.Args, o canon.DisplayOptions) {
	if len(o.Hidden) == 0 {
		return
	}
	values := o.HiddenTexts(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values[max(0, len(values)-maxSecrets):] {
		value = value[:min(len(value), secretBytes)]
		if !slices.Contains(s.values, value) {
			s.values = append(s.values, value)
		}
	}
	s.values = slices.Delete(s.values, 0, max(0, len(s.values)-maxSecrets))
}

// remove returns a text without the secrets that it repeats.
func (s *secrets) remove(text string) string {
	s.mu.Lock()
	values := slices.Clone(s.values)
	s.mu.Unlock()
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // longest first: the first match at a place counts
	for _, secret := range values {
		if at := strings.Index(text, secret); at >= 0 && len(secret) == secretBytes {
			text = text[:at] + "[hidden]" // its end is not known
			continue
		}
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return text
}

// hiddenBy returns the names of arguments that any rule of the profiles hides.
func hiddenBy(all []*profiles.Profile) map[string]string {
	hidden := map[string]string{}
	for _, p := range all {
		maps.Copy(hidden, p.Hidden())
	}
	return hidden
}
