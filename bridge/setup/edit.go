package setup

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// Flags describe a server on the command line, besides its name and its command or
// address.
type Flags struct {
	Transport, Cwd    string
	Headers, Env      []string // NAME=VALUE
	PassEnv           []string
	Disabled, Replace bool
}

// FromFlags returns the server that a command line describes: a name, and an address
// or a command. Dash is how many arguments stand before the "--", or -1.
func FromFlags(o Flags, args []string, dash int) (*Server, error) {
	s := &Server{As: args[0], Server: clients.Server{Name: args[0], Cwd: o.Cwd, PassEnv: o.PassEnv, Disabled: o.Disabled}}
	rest := args[1:]
	u, err := url.Parse(rest[0])
	address := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || o.Transport == "http" || o.Transport == "sse"
	switch {
	case dash == 0:
		return nil, errors.New(`the name comes before the "--"`)
	case dash > 1:
		return nil, errors.New(`only flags may stand between the name and the "--"`)
	case address && o.Transport != "stdio" && dash < 0:
		if len(rest) > 1 {
			return nil, fmt.Errorf("an address has no arguments, but %q follows it", rest[1])
		}
		s.Kind, s.URL = clients.HTTP, rest[0]
		if o.Transport == "sse" {
			s.Kind = clients.SSE
		}
	case o.Transport != "" && o.Transport != "stdio":
		return nil, fmt.Errorf("--transport %s goes with an address, not with a command; it is stdio, http or sse", o.Transport)
	default:
		s.Kind, s.Command, s.Args = clients.Stdio, rest[0], rest[1:]
	}
	if s.Env, err = pairs("--env", o.Env, "="); err != nil {
		return nil, err
	}
	if s.Headers, err = pairs("--header", o.Headers, "=:"); err != nil {
		return nil, err
	}
	switch {
	case s.Kind != clients.Stdio && (len(s.Env) > 0 || len(s.PassEnv) > 0 || s.Cwd != ""):
		return nil, errors.New("--env, --pass-env and --cwd are for programs; a server at an address has --header")
	case s.Kind == clients.Stdio && len(s.Headers) > 0:
		return nil, errors.New("--header is for servers at an address; a program has --env")
	}
	return s, nil
}

// pairs reads NAME=VALUE; for headers, NAME: VALUE as well.
func pairs(flag string, all []string, separators string) (map[string]string, error) {
	m := map[string]string{}
	for _, one := range all {
		i := strings.IndexAny(one, separators)
		if i <= 0 {
			return nil, fmt.Errorf("%s takes NAME=VALUE", flag) // what was given may be a secret
		}
		name, value := one[:i], one[i+1:]
		if one[i] == ':' {
			value = strings.TrimSpace(value)
		}
		m[name] = value
	}
	return m, nil
}

// FromJSON turns a server that is given as JSON, in our own form or as clients write
// it, into the form of the configuration. A text that is right already is returned as
// it is, comments included. The notes say what was not taken over.
func FromJSON(system clients.System, name string, text []byte) (_ jsonc.Text, notes []string, err error) {
	for _, key := range []string{"/mcpServers", "/servers", "/context_servers", "/mcp"} {
		section, err := jsonc.Section(text, key)
		if err != nil {
			return nil, nil, fmt.Errorf("the JSON of %s is not JSON: write it in single quotes, as one argument", name)
		}
		if section == nil {
			continue
		}
		place, err := clients.At(system, "the JSON", text)
		if err != nil {
			return nil, nil, err
		}
		servers, err := place.Servers(text)
		if err != nil {
			return nil, nil, err
		}
		if len(servers) != 1 {
			return nil, nil, fmt.Errorf("the JSON has %s, not one", count(len(servers), "server"))
		}
		return translated(system, servers[0])
	}
	alone, err := jsonc.Insert([]byte("{}"), "/servers/"+config.ServerName(name), jsonc.Text(text))
	if err == nil {
		if _, err = config.Parse("config.json", alone, func(string) (string, bool) { return "x", true }); err == nil {
			return text, nil, nil
		}
	}
	server, err := clients.Entry(system, name, text)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the JSON of %s: %w", name, err)
	}
	return translated(system, server)
}

// translated returns a client's server in the form of the configuration.
func translated(system clients.System, s clients.Server) (jsonc.Text, []string, error) {
	s.Problem = cmp.Or(s.Problem, boxProblem(system, s))
	if s.Problem != "" {
		return nil, nil, fmt.Errorf("the server cannot be added: %s", s.Problem)
	}
	notes := s.Notes
	s.Notes = nil
	return (&Server{Server: s}).Text(), notes, nil
}

// ErrThere means that the configuration has a server or profile of that name already.
var ErrThere = errors.New("the configuration has it already")

// AddServer adds a server to the text of a configuration, or replaces it. There is
// true if the configuration had one of that name; without replace the error is then
// ErrThere.
func AddServer(old []byte, cfg *config.Config, name string, text jsonc.Text, replace bool) (next []byte, there bool, err error) {
	at := ServersKey(cfg) + "/" + name
	switch there = cfg.Has(at); {
	case !there:
		next, err = jsonc.Insert(old, at, text)
	case !replace:
		err = ErrThere
	default:
		next, err = jsonc.Replace(old, at, jsonc.Text(strings.ReplaceAll(string(text), "\n", "\n    ")))
	}
	return next, there, err
}

// Switch enables or disables the server at a JSON pointer of a configuration.
func Switch(text []byte, at string, off bool) ([]byte, error) {
	said, err := jsonc.Section(text, at+"/disabled")
	switch {
	case err != nil:
		return nil, err
	case said == nil && off:
		return jsonc.Insert(text, at+"/disabled", true)
	case said == nil:
		return text, nil
	case off:
		return jsonc.Replace(text, at+"/disabled", jsonc.Text("true"))
	}
	return jsonc.Remove(text, at+"/disabled")
}

// AddProfile adds a profile, as it is written in a configuration, to the text of one.
// Parse reads such a text. The error is ErrThere if there is a profile of that name.
func AddProfile(text []byte, name, profile string, parse func(text []byte) (*config.Config, error)) ([]byte, error) {
	cfg, err := parse(text)
	if err != nil {
		return nil, err
	}
	at := "/evaluation/profiles/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	if cfg.Has(at) {
		return nil, ErrThere
	}
	if !cfg.Has("/evaluation/profiles") {
		if text, err = jsonc.Insert(text, "/evaluation/profiles", map[string]any{}); err != nil {
			return nil, err
		}
	}
	return jsonc.Insert(text, at, jsonc.Text(profile))
}

// AddRule adds a rule to a profile in the text of a configuration.
func AddRule(text []byte, profile string, rule any) ([]byte, error) {
	at := "/evaluation/profiles/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(profile)
	section, err := jsonc.Section(text, at)
	if err != nil {
		return nil, err
	}
	if section == nil {
		return nil, fmt.Errorf("the profile %s is not written in this file", profile)
	}
	return jsonc.Insert(text, at+"/rules/-", rule)
}
