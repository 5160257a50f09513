package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// idForm is the form of an id: short enough to be read aloud.
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Identity tells the configuration from others that share its store, however its
// text changes: by the id that it was given, or else by the paths of its files,
// links resolved. The name is for people.
func (c *Config) Identity() (id, name string) {
	if c.ID != "" {
		return "id " + c.ID, c.ID
	}
	sum := sha256.New()
	for _, file := range []string{c.File, c.Overlay} {
		if file == "" {
			continue
		}
		sum.Write([]byte(resolved(file) + "\x00"))
	}
	name = resolved(c.File)
	if c.Overlay != "" {
		name += " with " + filepath.Base(c.Overlay)
	}
	return "file " + hex.EncodeToString(sum.Sum(nil)[:16]), name
}

// resolved returns an absolute path; without links, if there is such a file.
func resolved(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// rotates reports whether the value of a variable, header or credential may change
// without making it another server.
func (s *Server) rotates(name string) bool {
	return slices.ContainsFunc(s.Rotating, func(r string) bool { return strings.EqualFold(r, name) })
}

// IsID reports whether a text can be the id of a configuration.
func IsID(text string) bool { return idForm.MatchString(text) }

// identity checks the configuration's id.
func (c *checker) identity() {
	if c.sound("/id") && !IsID(c.config.ID) {
		c.at("/id", fmt.Sprintf("the id %q is not made of at most 64 letters, digits, \".\", \"_\" and \"-\"", c.config.ID), "leave it out, and the place of the file tells the configuration from others")
	}
}

// rotating checks that a server is given what is said to rotate.
func (c *checker) rotating(s *Server, at string) {
	given := slices.Concat(sortedKeys(s.Env), s.PassEnv, sortedKeys(s.Headers), sortedKeys(s.Credentials))
	for i, name := range s.Rotating {
		path := fmt.Sprintf("%s/rotating/%d", at, i)
		if c.sound(path) && !slices.ContainsFunc(given, func(g string) bool { return strings.EqualFold(g, name) }) {
			c.at(path, fmt.Sprintf("the server is given no variable, header or credential %q", name), "name one of env, passEnv, headers or credentials")
		}
	}
}

// Portable tells what the server is on any machine: "sha256:" and hex digits over how it
// is written. It may be published: of variables, headers and credentials only the names
// count, of references such as "${TOKEN}" what is written, and what looks like a secret
// in an argument or an address does not count at all. Paths in the folder of the
// configuration count from there, others in the home folder from that. The box is no part
// of it: it says what a program may do, not which it is.
func (s *Server) Portable(c *Config, env Env) string {
	home, _ := Home(env)
	place := func(v Value) string {
		text := strings.ReplaceAll(showURL(v.String()), "${HOME}", "~")
		for _, one := range []struct{ folder, short string }{{filepath.Dir(c.File), "."}, {home, "~"}} {
			if len(one.folder) > 1 {
				text = namesFolder(one.folder).ReplaceAllString(text, "${1}"+one.short+"${2}")
			}
		}
		return filepath.ToSlash(text)
	}
	args := []string{}
	for _, arg := range s.Args {
		args = append(args, place(arg))
	}
	headers := sortedKeys(s.Headers)
	for i, name := range headers {
		headers[i] = strings.ToLower(name)
	}
	text, err := json.Marshal([]any{"server 1", s.Type, place(s.Command), args, place(s.Cwd), place(s.URL), place(s.OpenAPI),
		sortedKeys(s.Env), slices.Sorted(slices.Values(s.PassEnv)), headers, sortedKeys(s.Credentials), s.Auth.Type, s.Auth.Issuer.String()})
	if err != nil {
		panic("config: writing what a server is: " + err.Error()) // texts have a JSON form
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// namesFolder finds where a text names a folder or something in it: at its beginning, or
// after what separates a path from a flag or from another path.
func namesFolder(folder string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[=:,;])` + regexp.QuoteMeta(folder) + `($|[/\\:,;])`)
}

// Identity tells the server from another one that might get its name: a digest,
// under a key, of its program or address and all that it is given. What may differ
// without making it another server does not count: the variables that any program
// needs (for which usual is true), the folder of the window, time-outs, and what
// may be called. Of what rotates, only the names count.
//
// The box counts, as part of what the server is: a person who allowed calls in advance,
// or a run that waits, was told "confined to /home/me/app, no network", and the same
// program without that is another thing. A digest can't tell a tighter box from a looser
// one, so after any change of it people are asked once more. A server without a box
// has the identity that it had before there were boxes.
func (s *Server) Identity(key []byte, env Env, usual func(variable string) bool) string {
	given := func(values map[string]Value) map[string]string {
		texts := RevealMap(values)
		for name := range texts {
			if s.rotates(name) {
				texts[name] = ""
			}
		}
		return texts
	}
	passed := map[string]string{}
	for _, name := range s.PassEnv {
		if usual(name) {
			continue
		}
		passed[name] = ""
		if value, ok := env(name); ok && !s.rotates(name) {
			passed[name] = value
		}
	}
	all := []any{s.Type, s.Builtin, s.Command.Reveal(), Reveal(s.Args), s.Cwd.Reveal(), s.URL.Reveal(), s.OpenAPI.Reveal(),
		given(s.Env), passed, given(s.Headers), given(s.Credentials), s.Auth.Type, s.Auth.ClientID.Reveal(), s.Auth.Issuer.Reveal()}
	if s.Confine != nil {
		all = append(all, s.Confine.sorted())
	}
	if s.Auth.Per == AuthPrincipal { // a run that waits goes on with no other account
		all = append(all, s.Auth.Per)
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("config: writing what a server is: " + err.Error()) // texts have a JSON form
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
