package knownview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles/known"
)

// A Finding is something that a person should know of a server and of what is known of
// it, with what they can do.
type Finding struct {
	Text string `json:"text"`
	Do   string `json:"do,omitempty"`
	// Notice is set if nothing is wrong.
	Notice bool `json:"notice,omitempty"`
}

// String returns the finding on one line, as check prints mistakes.
func (f Finding) String() string {
	if f.Do == "" {
		return f.Text
	}
	return f.Text + " (hint: " + f.Do + ")"
}

// A Listed is a tool as its server lists it.
type Listed struct {
	Name        string
	Input       json.RawMessage // its schema
	Destructive *bool           // what it says of itself
	Description string
}

// Findings are what there is to say of the server of that name in the configuration: at
// most five, each a sentence of bounded length. Listed are its tools; nil if they are not known. Part is set if the
// configuration hides some of its tools.
func Findings(server string, r known.Recognition, listed []Listed, part bool) []Finding {
	name := r.Server.Name
	switch {
	case r.Said != "" && !r.Accepted:
		said, _, _ := strings.Cut(r.Said, "@")
		if name != "" { // it may be another one
			said = name
		}
		return []Finding{{Text: fmt.Sprintf("it is not accepted as %s: %s", r.Said, canon.Escape(r.Why)), Do: toAccept(server, r, said)}}
	case r.Accepted:
		return differences(r, listed, part)
	case r.Verified:
		return []Finding{{Notice: true, Text: fmt.Sprintf("it is started like %s, which is known, and what is known is not accepted: its calls are guessed", name), Do: toAccept(server, r, name)}}
	case name == "" && r.Why != "":
		return []Finding{{Notice: true, Text: canon.Escape(r.Why) + ": its calls are guessed"}}
	}
	return nil
}

// toAccept says how the known server of that name can be accepted for a server.
func toAccept(server string, r known.Recognition, name string) string {
	s, ok := known.Find(name)
	see := "servers known " + name
	switch {
	case !ok || s.Verified == "":
		return `leave "known" out; ` + see + " shows what is known"
	case r.Said == "" && (r.Version == "" || r.Version == s.Verified):
		return fmt.Sprintf("look at: %s; then: servers accept %s", see, server)
	case r.Server.Name == name && r.Verified && r.Version == s.Verified:
		return fmt.Sprintf(`write "known": %q after a look at: %s`, name+"@"+s.Verified, see)
	case r.Server.Name == name && r.Verified:
		return fmt.Sprintf(`start version %s of it and write "known": %q, after a look at: %s`, s.Verified, name+"@"+s.Verified, see)
	}
	return `start it as it is known, or leave "known" out; ` + see + " shows how it is known"
}

// differences are where the tools that a server lists are not what is known of them.
func differences(r known.Recognition, listed []Listed, part bool) (found []Finding) {
	s := r.Server
	if listed == nil {
		return nil
	}
	var gone, strange, changed, destroys []string
	has := make(map[string]bool)
	for _, l := range listed {
		has[l.Name] = true
		t, ok := s.Tools[l.Name]
		if !ok {
			strange = append(strange, l.Name)
			continue
		}
		if more := unknown(t, l.Input); len(more) > 0 {
			changed = append(changed, l.Name+" ("+few(more)+")")
		}
		if l.Destructive != nil && *l.Destructive && !harmful(t) {
			destroys = append(destroys, l.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if !has[name] && !part && !s.Tools[name].Optional {
			gone = append(gone, name)
		}
	}
	see := "servers known " + s.Name
	if s.Verified != "" && r.Version != s.Verified { // which may be why
		see = fmt.Sprintf("start version %s, with which it was compared, or see what is known: %s", s.Verified, see)
	}
	for _, one := range []struct {
		names []string
		text  string
		Finding
	}{
		{gone, "it does not list tools that it is known to have: %s", Finding{Do: see}},
		{strange, "it lists tools that are not known: %s; their calls are guessed", Finding{Do: see}},
		{changed, "tools have arguments that are not known, or lack some that are: %s; calls with them are guessed", Finding{Do: see}},
		{destroys, "it says that calls of tools which are known to write may destroy something (destructiveHint): %s; their risk stays high",
			Finding{Do: `nothing, unless what is known is wrong: then leave "known" out`, Notice: true}},
	} {
		if len(one.names) > 0 {
			one.Text = canon.Escape(fmt.Sprintf(one.text, few(one.names)))
			found = append(found, one.Finding)
		}
	}
	return found
}

// unknown are the arguments by which a tool is another than the known one.
func unknown(t known.Tool, schema json.RawMessage) (names []string) {
	var input struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &input) != nil {
		return []string{"a schema that cannot be read"}
	}
	outer := make(map[string]bool)
	for arg := range t.Args {
		first, _, _ := strings.Cut(arg, ".")
		outer[first] = true
	}
	listed := slices.Sorted(maps.Keys(input.Properties))
	for _, name := range listed {
		if !outer[name] {
			names = append(names, name)
		}
	}
	if len(names) > 0 || t.Describes(listed, input.Required) {
		return names
	}
	for _, name := range slices.Sorted(maps.Keys(outer)) {
		if !slices.Contains(listed, name) {
			names = append(names, "no "+name)
		}
	}
	return names
}

// harmful reports whether a tool is known to do what cannot be undone, or more than
// that.
func harmful(t known.Tool) bool {
	return slices.ContainsFunc(t.Effects, func(e known.Effect) bool { return e != known.Read && e != known.Write })
}

// few are the first names of a list, each of bounded length, and how many more there
// are.
func few(names []string) string {
	const shown, widest = 4, 60
	var all []string
	for _, name := range names[:min(len(names), shown)] {
		all = append(all, canon.Fit(name, widest))
	}
	text := strings.Join(all, ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
