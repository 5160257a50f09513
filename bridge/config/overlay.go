package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/strict"
	"codemode-bridge/profiles"

	"github.com/tailscale/hujson"
)

// An Overlay is a second file for one environment, such as config.prod.json
// beside config.json. For each profile that it names, its keys take the place of
// the first file's; all else stays. It can change nothing else:
//
//	{ "evaluation": { "profiles": { "supervised": { "asklist": ["*__*"] } } } }
//
// The first file must be free of mistakes without it.
type Overlay struct {
	Name string // of the file, as it stands in error messages
	Data []byte
}

// OverlayName is the name of the overlay of a configuration file for an
// environment. The environment's name is letters, digits, "-" and "_".
func OverlayName(file, environment string) (string, error) {
	if !environmentName.MatchString(environment) {
		return "", fmt.Errorf("the environment %q is not made of letters, digits, - and _", environment)
	}
	extension := filepath.Ext(file)
	return strings.TrimSuffix(file, extension) + "." + environment + extension, nil
}

var environmentName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// LoadOverlaid is Load with the overlay at a second path.
func LoadOverlaid(path, overlay string, env Env, policy ...profiles.Options) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("reading config: %w", err)
	}
	more, err := read(overlay)
	if err != nil {
		return nil, fmt.Errorf("reading the overlay: %w", err)
	}
	return ParseOverlaid(path, data, Overlay{overlay, more}, env, policy...)
}

// ParseOverlaid is Parse with an overlay. Every problem names the file that it
// is in.
func ParseOverlaid(name string, data []byte, o Overlay, env Env, policy ...profiles.Options) (*Config, error) {
	return parseOverlaid(name, data, o, env, policy, reading{})
}

func parseOverlaid(name string, data []byte, o Overlay, env Env, policy []profiles.Options, how reading) (c *Config, err error) {
	if _, err := parse(name, data, env, policy, how); err != nil {
		return nil, err
	}
	src, over := strict.NewSource(name, data), strict.NewSource(o.Name, o.Data)
	lower, problem := src.Parse()
	if problem != nil {
		return nil, Problems{problem}
	}
	upper, problem := over.Parse()
	if problem != nil {
		return nil, Problems{problem}
	}
	if problems := checkOverlay(over, upper); len(problems) > 0 {
		return nil, problems.Sorted()
	}
	src.Over = over
	for v := range upper.All() { // see source.over
		v.StartOffset += len(src.Text) + 1
		v.EndOffset += len(src.Text) + 1
	}
	lay(lower.Value.(*hujson.Object), upper.Value.(*hujson.Object), overlaid)
	if how.overlay, err = filepath.Abs(o.Name); err != nil {
		return nil, fmt.Errorf("finding the folder of the overlay %s: %w", o.Name, err)
	}
	c, err = build(src, lower, env, policy, how)
	if err != nil {
		return nil, err
	}
	c.from.overlayDigest = sha256.Sum256(o.Data)
	text := string(o.Data)
	c.from.overlay = &text
	c.from.again = func(found map[secrets.Reference]secrets.Secret) (*Config, error) {
		how.found = found
		return parseOverlaid(name, data, o, env, policy, how)
	}
	return c, nil
}

// checkOverlay finds what an overlay may not have. Its values are checked once
// they are part of the configuration.
func checkOverlay(src *strict.Source, tree hujson.Value) Problems {
	var form struct {
		Schema     string `json:"$schema"`
		Evaluation struct {
			Profiles map[string]json.RawMessage `json:"profiles"`
		} `json:"evaluation"`
	}
	d := &decoder{findings: newFindings(src)}
	d.decode(tree, reflect.ValueOf(&form).Elem(), spot{name: "an overlay"})
	for name, text := range form.Evaluation.Profiles {
		if len(text) > 0 && text[0] != '{' {
			path := spot{}.below("evaluation").below("profiles").below(name).path
			d.at(path, fmt.Sprintf("%q must be an object", name), "")
		}
	}
	for _, p := range d.problems {
		if strings.HasPrefix(p.Message, "unknown key") {
			p.Hint = "an overlay replaces keys of evaluation.profiles and nothing else"
		}
	}
	return d.problems
}

// overlaid is how many levels of a file an overlay goes down before it
// replaces: evaluation, profiles, and the profile's name.
const overlaid = 3

// lay puts the members of upper into lower.
func lay(lower, upper *hujson.Object, levels int) {
	for _, m := range upper.Members {
		name := m.Name.Value.(hujson.Literal).String()
		if levels == overlaid && name == "$schema" {
			continue
		}
		i := slices.IndexFunc(lower.Members, func(l hujson.ObjectMember) bool { return l.Name.Value.(hujson.Literal).String() == name })
		if i < 0 {
			lower.Members = append(lower.Members, m)
			continue
		}
		below, both := lower.Members[i].Value.Value.(*hujson.Object)
		above, ok := m.Value.Value.(*hujson.Object)
		if levels > 0 && both && ok {
			lay(below, above, levels-1)
		} else {
			lower.Members[i] = m
		}
	}
}
