package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/profiles"
)

// A checker judges what the decoder cannot see: names, addresses, and which keys
// go together. It also fills in what follows from other keys. There is a method
// for each section of the file; a mistake is added to the findings.
type checker struct {
	*findings
	config *Config
	env    Env
}

func (c *checker) sandbox() {
	s := c.config.Sandbox
	if s.Warm > s.Workers && !c.unusable["/sandbox/warm"] && !c.unusable["/sandbox/workers"] {
		path := "/sandbox/warm"
		if !c.has(path) {
			path = "/sandbox/workers"
		}
		c.at(path, fmt.Sprintf("%d workers are kept ready, but only %d may live", s.Warm, s.Workers), `lower "warm" or raise "workers"`)
	}
	if s.Memory > 0 && s.Memory < s.Heap && !c.unusable["/sandbox/heap"] {
		c.at("/sandbox/memory", fmt.Sprintf("one worker may use %v, but all together only %v", s.Heap, s.Memory), `raise "memory" or lower "heap"`)
	}
	if c.config.HTTP.MaxBody < s.Source && !c.unusable["/http/maxBody"] && !c.unusable["/sandbox/source"] {
		path := "/http/maxBody"
		if !c.has(path) {
			path = "/sandbox/source"
		}
		c.at(path, fmt.Sprintf("a script may have %v, but a request only %v", s.Source, c.config.HTTP.MaxBody), `raise "http.maxBody" or lower "sandbox.source"`)
	}
}

func (c *checker) http() {
	h := &c.config.HTTP
	c.tokens(h)
	c.oauth(&h.Auth)
	checkTLS(c, "/http/tls", &h.TLS)
	checkTLS(c, "/approvals/tls", &c.config.Approvals.TLS)
	if !c.unusable["/http/listen"] {
		c.listen(h)
	}
	c.hosts("/http/allowedHosts", h.AllowedHosts, "7420")
	for i, origin := range h.AllowedOrigins {
		path := fmt.Sprintf("/http/allowedOrigins/%d", i)
		if !c.sound(path) {
			continue
		}
		u, err := url.Parse(origin.Reveal())
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Host) ||
			u.Scheme+"://"+u.Host != origin.Reveal() {
			c.at(path, `"allowedOrigins" takes a scheme and a host, and nothing after it`, `write "https://app.example.com"; "*" and "null" are not accepted`)
		}
	}
}

// checkTLS makes the paths of a certificate absolute. serve says what is wrong with the files.
func checkTLS(c *checker, at string, t *TLS) {
	for key, path := range map[string]*string{"cert": &t.Cert, "key": &t.Key} {
		switch {
		case !c.has(at) || !c.sound(at+"/"+key):
		case strings.TrimSpace(*path) == "":
			c.at(at, fmt.Sprintf("%q names no file", key), `write "tls": {"cert": "/etc/bridge/tls.crt", "key": "/etc/bridge/tls.key"}`)
		default:
			*path = c.fromFolder(*path, at+"/"+key)
		}
	}
}

func (c *checker) listen(h *HTTP) {
	host, ok := c.address("/http/listen", h.Listen, "127.0.0.1:7420")
	if ok && !loopback(host) && !h.AsksForTokens() && !c.unusable["/http/tokens"] && !c.unusable["/http/auth"] {
		c.at("/http/listen", "listening beyond this machine needs a token",
			`add "tokens": [{"name": "me", "token": "${BRIDGE_TOKEN}"}], or listen on 127.0.0.1`)
	}
}

func (c *checker) tokens(h *HTTP) {
	known := newBearers(c.findings, "token", "to be seen in the log")
	for i := range h.Tokens {
		t := &h.Tokens[i]
		known.check(fmt.Sprintf("/http/tokens/%d", i), t.Name, t.SHA256, t.Token, &t.Digest)
	}
}

// hosts checks a list of host names; port is the one that the hint shows.
func (c *checker) hosts(at string, allowed []Value, port string) {
	for i, host := range allowed {
		path := fmt.Sprintf("%s/%d", at, i)
		if c.sound(path) && !isHost(host.Reveal()) {
			c.at(path, `"allowedHosts" takes host names, with or without a port`,
				fmt.Sprintf(`write "bridge.example.com" or "bridge.example.com:%s"`, port))
		}
	}
}

// address checks an address to listen on and returns its host.
func (c *checker) address(at string, listen Value, example string) (host string, ok bool) {
	form := fmt.Sprintf("write %q", example)
	host, port, err := net.SplitHostPort(listen.Reveal())
	n, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		c.at(at, `"listen" must be a host and a port`, form)
	case portErr != nil || strconv.FormatUint(n, 10) != port:
		c.at(at, `"listen" has no valid port`, "ports go from 0 (any) to 65535")
	case host != "" && !isHost(host) && !isAddress(host):
		c.at(at, `"listen" must be a host and a port`, form)
	default:
		return host, true
	}
	return host, false
}

// loopback reports whether only this machine reaches the host. A name that
// has to be looked up could lead anywhere.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// httpsOrLocal reports whether text is an https address, or an http one on this
// machine.
func httpsOrLocal(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// isHost reports whether text is a host name or address, with a port or not.
func isHost(text string) bool {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if !validPort(port) {
			return false
		}
		host = h
	} else if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		return isAddress(text[1 : len(text)-1])
	}
	return len(host) <= 253 && (hostName.MatchString(host) || isAddress(host))
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// scripts makes the folder of saved scripts absolute, or fills in the default.
func (c *checker) scripts() {
	const at = "/scripts/dir"
	switch {
	case !c.has(at):
		if places, err := Paths(c.env); err == nil {
			c.config.Scripts.Dir = filepath.Join(filepath.Dir(places.ConfigFile), "scripts")
		}
	case c.sound(at) && strings.TrimSpace(c.config.Scripts.Dir) == "":
		c.at(at, `"dir" is empty`, "leave it out, or name a folder")
	case c.sound(at):
		c.config.Scripts.Dir = c.fromFolder(c.config.Scripts.Dir, at)
	}
}

// audit makes the paths of the audit log absolute, or fills in the default.
func (c *checker) audit() {
	for key, path := range map[string]*string{"path": &c.config.Audit.Path, "checkpoint": &c.config.Audit.Checkpoint} {
		at := "/audit/" + key
		switch {
		case !c.has(at):
		case c.sound(at) && strings.TrimSpace(*path) == "":
			c.at(at, fmt.Sprintf("%q is empty", key), "leave it out, or name a file")
		case c.sound(at):
			*path = c.fromFolder(*path, at)
		}
	}
	if places, err := Paths(c.env); err == nil && !c.has("/audit/path") {
		c.config.Audit.Path = filepath.Join(places.StateDir, "audit.db")
	}
	if c.config.Audit.Path != "" && c.config.Audit.Path == c.config.Audit.Checkpoint {
		c.at("/audit/checkpoint", "the checkpoints would be in the log itself", "name another file, best on another disk")
	}
	c.store()
	checkCentre(c)
}

// seed is the form of a centre's key.
var seed = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// checkCentre checks what makes this a centre of laptops.
func checkCentre(c *checker) {
	const at = "/centre/signingKey"
	key := c.config.Centre.SigningKey
	switch {
	case !c.has("/centre"):
	case !c.has(at):
		c.at("/centre", "it has no signingKey", `make one with openssl rand -hex 32, and name where it is: "signingKey": "${keyring:CENTRE_KEY}"`)
	case c.sound(at) && !reference.MatchString(written(c.places[at])):
		c.at(at, "a key may not stand in the file", `name a variable or a secret: "signingKey": "${keyring:CENTRE_KEY}"`)
	case c.sound(at) && !key.Secret() && !seed.MatchString(strings.TrimSpace(key.Reveal())):
		c.at(at, "it is no key", "a key has 64 hexadecimal digits: make one with openssl rand -hex 32")
	}
	if c.config.Centre.Policy != "" {
		c.config.Centre.Policy = c.fromFolder(c.config.Centre.Policy, "/centre/policy")
	}
	if c.has("/centre") && !c.config.Audit.Enabled {
		c.at("/centre", "a centre keeps records, and audit.enabled is false", "leave audit.enabled out")
	}
}

// password finds the one in the address of a database.
var password = regexp.MustCompile(`^[a-z]+://[^/?#@:]*:([^/?#@]+)@|[?&]password=([^&#]+)`)

// leastKey is how many characters storeKey has at least.
const leastKey = 16

// store checks the database that is the store.
func (c *checker) store() {
	c.config.Audit.Store, c.config.Audit.StoreKey = c.config.Store, c.config.StoreKey
	const address = `write "postgres://USER:${STORE_PASSWORD}@HOST/DATABASE"`
	if url := c.config.Store.Reveal(); c.sound("/store") && !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		c.at("/store", "it is not the address of a PostgreSQL database", address+"; a file of SQLite is named by audit.path")
	} else if of := password.FindStringSubmatch(written(c.places["/store"])); of != nil && !strings.Contains(of[0], "${") {
		c.at("/store", "a password may not stand in the file", address)
	}
	if c.sound("/storeKey") && !reference.MatchString(written(c.places["/storeKey"])) {
		c.at("/storeKey", "a key may not stand in the file", `name a variable or a secret: "storeKey": "${STORE_KEY}"`)
	}
	if key := c.config.StoreKey; c.sound("/storeKey") && !key.Secret() && !key.IsZero() && len(key.Reveal()) < leastKey {
		c.at("/storeKey", fmt.Sprintf("the key is shorter than %d characters", leastKey), "make one with: openssl rand -hex 32")
	}
	if c.has("/storeKey") && !c.has("/store") {
		c.at("/storeKey", "there is no store that it is for", `add "store"`)
	}
}

// fromFolder makes a path absolute: "~" is the home folder, and a relative path
// starts from the configuration's folder.
func (c *checker) fromFolder(path, at string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || isSeparator(rune(rest[0]))) {
		home, ok := Home(c.env)
		if !ok {
			c.at(at, fmt.Sprintf("%q starts with \"~\", but the home folder is not known", at[strings.LastIndexByte(at, '/')+1:]), "set HOME, or write the path")
			return path
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.config.File), path)
	}
	return filepath.Clean(path)
}

func isSeparator(r rune) bool { return r == '/' || r == filepath.Separator }

// evaluation builds the policy, and finds the places of its mistakes.
func (c *checker) evaluation(options []profiles.Options) {
	c.workspace()
	var o profiles.Options
	if len(options) > 0 {
		o = options[len(options)-1]
	}
	if o.Builtins == nil {
		o.Builtins = builtinProfiles()
	}
	o.OwnFiles = slices.Clone(o.OwnFiles)
	for _, file := range []string{c.config.Scripts.Dir, c.config.Audit.Path, c.config.Audit.Requests(), c.config.Audit.Checkpoint, c.config.HTTP.TLS.Key, c.config.Approvals.TLS.Key} { // no call may name them
		if file != "" {
			o.OwnFiles = append(o.OwnFiles, file)
		}
	}
	o.OwnFiles = append(o.OwnFiles, c.config.from.included.files()...)
	set, problems := profiles.Parse(c.config.Evaluation.Spec, o)
	for _, p := range problems {
		path := "/evaluation" + p.Path
		if c.unusable[path] {
			continue // the decoder has said so already
		}
		c.inside(path, p.Offset, p.Message, p.Hint)
	}
	c.config.Profiles = set
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
