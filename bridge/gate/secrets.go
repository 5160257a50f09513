package gate

import (
	"maps"
	"slices"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// hiddenBy returns the names of arguments that any rule of the profiles hides.
func hiddenBy(all []*profiles.Profile) map[string]string {
	hidden := map[string]string{}
	for _, p := range all {
		maps.Copy(hidden, p.Hidden())
	}
	return hidden
}

const (
	maxSecrets  = 200     // hidden values that a run remembers
	secretBytes = 1 << 10 // of each; a longer one is recognized by its beginning
)

// hide remembers the values in a that rules hide, or the last ones if there are too
// many: the server and the script may repeat them where they have no name.
func (r *Run) hide(a canon.Args, o canon.DisplayOptions) {
	if len(o.Hidden) == 0 {
		return
	}
	values := o.HiddenTexts(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range values[max(0, len(values)-maxSecrets):] {
		value = value[:min(len(value), secretBytes)]
		if !slices.Contains(r.secrets, value) {
			r.secrets = append(r.secrets, value)
		}
	}
	r.secrets = slices.Delete(r.secrets, 0, max(0, len(r.secrets)-maxSecrets))
}
