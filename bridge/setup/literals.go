package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/secrets"
)

// A Literal is a value that looks like a secret and stands in a configuration as it is.
type Literal struct {
	Server string // whose it is
	Where  string // as a person would call it: "env GITHUB_TOKEN", "args[2]"
	// Name is what the secret could be called, and Value what it is.
	Name  string
	Value string
	swap  func(reference string) // puts a reference in its place
}

// Length says how long the value is: nothing else is told of it.
func (l Literal) Length() int { return len([]rune(l.Value)) }

// Take puts a reference in the place of the value.
func (l Literal) Take(r secrets.Reference) { l.swap(r.String()) }

// texts are the texts of a server that may hold secrets.
type texts struct {
	Env         map[string]string `json:"env"`
	Headers     map[string]string `json:"headers"`
	Credentials map[string]string `json:"credentials"`
	Args        []string          `json:"args"`
	URL         string            `json:"url"`
}

// Literals returns the values of servers on their way into a configuration that look like
// secrets. What arguments have is found by argSecrets.
func Literals(servers []*Server, argSecrets func([]string) []string) []Literal {
	var all []Literal
	for _, s := range servers {
		all = append(all, literals(s.As, texts{Env: s.Env, Headers: s.Headers, Args: s.Args, URL: s.URL}, argSecrets, func(url string) { s.URL = url })...)
	}
	return all
}

// LiteralsIn is Literals for the servers of the text of a configuration. It changes
// nothing: their Take has no effect on the text.
func LiteralsIn(text []byte, argSecrets func([]string) []string) []Literal {
	var all []Literal
	for _, key := range []string{"/servers", "/mcpServers"} {
		section, err := jsonc.Section(text, key)
		if err != nil || section == nil {
			continue
		}
		plain, err := jsonc.Text(section).MarshalJSON()
		var servers map[string]json.RawMessage
		if err != nil || json.Unmarshal(plain, &servers) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			var of texts
			if json.Unmarshal(servers[name], &of) == nil { // else the configuration has mistakes, and check says so
				all = append(all, literals(name, of, argSecrets, func(string) {})...)
			}
		}
	}
	return all
}

func literals(server string, of texts, argSecrets func([]string) []string, setURL func(string)) (all []Literal) {
	add := func(where, name, text, value string, set func(string)) {
		all = append(all, Literal{server, where, secretName(name), value, func(reference string) {
			set(strings.Replace(text, value, reference, 1))
		}})
	}
	for _, table := range []struct {
		kind   string
		values map[string]string
	}{{"env", of.Env}, {"headers", of.Headers}, {"credentials", of.Credentials}} {
		for _, name := range slices.Sorted(maps.Keys(table.values)) {
			text := table.values[name]
			value := secretPart(name, text)
			if value == "" && table.kind == "credentials" && !names(text) {
				value = text
			}
			if value == "" {
				continue
			}
			wish := name
			if table.kind != "env" {
				wish = server + "_" + name
			}
			add(table.kind+" "+name, wish, text, value, func(next string) { table.values[name] = next })
		}
	}
	for i, text := range of.Args {
		for _, value := range argSecrets(of.Args[max(0, i-1) : i+1]) {
			if strings.Contains(text, value) && !names(text) {
				add(fmt.Sprintf("args[%d]", i), server+"_"+flagName(of.Args, i), text, value, func(next string) { of.Args[i] = next })
				break
			}
		}
	}
	for _, value := range canon.Secrets(of.URL) {
		if len(value) >= leastSecret && !names(of.URL) && strings.Contains(of.URL, value) {
			add("url", server+"_URL", of.URL, value, setURL)
			break
		}
	}
	return all
}

// names reports whether a text names variables or secrets already.
func names(text string) bool { return strings.Contains(text, "${") || strings.Contains(text, "$$") }

// leastSecret is the length from which a value is taken for a secret.
const leastSecret = 8

// scheme is how the value of a header may begin, before its secret.
var scheme = regexp.MustCompile(`^(?i:bearer|basic|token|apikey|dpop) +`)

// secretPart returns what is secret of the value of a variable or header, by its name or
// its look; empty if it is no secret, or names variables.
func secretPart(name, text string) string {
	named := name + "=" + text
	if names(text) || canon.Redact(named) == named {
		return ""
	}
	if value := scheme.ReplaceAllString(text, ""); len(value) >= leastSecret {
		return value
	}
	return ""
}

// flagName is the flag that an argument belongs to.
func flagName(args []string, i int) string {
	if flag, _, joined := strings.Cut(args[i], "="); joined && strings.HasPrefix(flag, "-") {
		return flag
	}
	if i > 0 && strings.HasPrefix(args[i-1], "-") {
		return args[i-1]
	}
	return "SECRET"
}

var notInSecret = regexp.MustCompile(`[^A-Z0-9_]+`)

// secretName turns any text into the name of a secret: my-shop_--api-key into
// MY_SHOP_API_KEY.
func secretName(text string) string {
	name := notInSecret.ReplaceAllString(strings.ToUpper(text), "_")
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	if name = strings.Trim(name, "_"); len(name) > 60 {
		name = strings.Trim(name[:60], "_")
	}
	if name == "" {
		return "SECRET"
	}
	return name
}

// A Keeper says where the secrets of a new configuration go.
type Keeper interface {
	// Has returns what it keeps under a name.
	Has(name string) (value string, ok bool, err error)
	Set(name, value string) error
	// Reference names what is kept.
	Reference(name string) secrets.Reference
}

// Keep keeps a literal and puts a reference in its place. The name is another one if
// something else is kept under its own.
func (l Literal) Keep(in Keeper) (secrets.Reference, error) {
	name := l.Name
	for n := 2; ; n++ {
		had, ok, err := in.Has(name)
		if err != nil {
			return secrets.Reference{}, err
		}
		if ok && had == l.Value {
			break
		}
		if !ok {
			if err := in.Set(name, l.Value); err != nil {
				return secrets.Reference{}, err
			}
			break
		}
		name = fmt.Sprintf("%s_%d", l.Name, n)
	}
	r := in.Reference(name)
	l.Take(r)
	return r, nil
}
