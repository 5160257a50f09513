package setup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/profiles"
)

// Promote has a profile in the text of a configuration enforce what it only observes: a
// rule, by its name or place, a flow, by its place, or a list or the default, by name; all
// of them without a name. It returns what that is, by those names.
func Promote(text []byte, profile, what string) (next []byte, promoted []string, err error) {
	at := "/evaluation/profiles/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(profile)
	section, err := jsonc.Section(text, at)
	if err != nil {
		return nil, nil, err
	}
	if section == nil {
		return nil, nil, fmt.Errorf("the profile %s is not written in this file", profile)
	}
	var spec profiles.ProfileSpec
	plain, err := jsonc.Text(section).MarshalJSON()
	if err == nil {
		err = json.Unmarshal(plain, &spec)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the profile %s: %w", profile, err)
	}
	next = text
	for _, o := range observedIn(&spec, what == "") {
		if what != "" && !slices.Contains(o.names, what) {
			continue
		}
		if next, err = jsonc.Remove(next, at+o.at); err != nil {
			return nil, nil, err
		}
		promoted = append(promoted, o.called...)
	}
	switch whole := spec.Observe != nil && spec.Observe.All; {
	case len(promoted) > 0:
		return next, promoted, nil
	case what == "":
		return nil, nil, fmt.Errorf("nothing of the profile %s is only observed", profile)
	case whole:
		return nil, nil, fmt.Errorf("the profile %s is observed as a whole, so %s cannot be promoted by itself: without a name, the whole profile is", profile, what)
	}
	return nil, nil, fmt.Errorf("%s of the profile %s is not only observed%s", what, profile, there(&spec))
}

// An observed is a place in a profile where something is observed, and what that is called.
type observed struct {
	at     string   // of the key or element that says so, below the profile
	called []string // in what is said of it
	names  []string // by which it is meant
}

// observedIn lists what a profile observes, so that removing one after the other leaves the
// places of the next as they are.
// Of the lists, there is one place for each, or with together one for all of them.
func observedIn(spec *profiles.ProfileSpec, together bool) (all []observed) {
	for i, r := range spec.Rules {
		if r.Observe != nil && *r.Observe {
			place := "rules/" + strconv.Itoa(i)
			names := []string{place}
			if r.Name != nil {
				names = []string{*r.Name, place}
			}
			all = append(all, observed{"/" + place + "/observe", names[:1], names})
		}
	}
	for i, f := range spec.Flows {
		if f.Observe != nil && *f.Observe {
			place := "flows/" + strconv.Itoa(i)
			all = append(all, observed{"/" + place + "/observe", []string{place}, []string{place}})
		}
	}
	switch o := spec.Observe; {
	case o == nil:
	case o.All:
		all = append(all, observed{"/observe", []string{"the whole profile"}, nil})
	case len(o.Lists) == 1 || len(o.Lists) > 0 && together:
		all = append(all, observed{"/observe", o.Lists, o.Lists})
	default:
		for i, name := range slices.Backward(o.Lists) {
			all = append(all, observed{"/observe/" + strconv.Itoa(i), []string{name}, []string{name}})
		}
	}
	return all
}

// there says what is observed of a profile.
func there(spec *profiles.ProfileSpec) string {
	var names []string
	for _, o := range observedIn(spec, true) {
		names = append(names, o.called...)
	}
	if len(names) == 0 {
		return "; nothing is"
	}
	return "; what is: " + strings.Join(names, ", ")
}
