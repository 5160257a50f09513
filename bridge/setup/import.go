package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// An Import gives servers of clients names of their own in a configuration.
type Import struct {
	// Servers are those that were found, in the order of their places.
	Servers []*Server
	// LeftOut are places whose servers are imported only if a person names them.
	LeftOut []LeftOut
	// Offers are what clients may call without asking; see Offer.
	Offers []*Offer
	// Boxes writes the boxes of servers that are added from now on.
	Boxes *Boxes

	system clients.System
	called []called
	taken  map[string]string // the servers with names, as texts, by their folded names
	filled map[string]string // the same with their secrets filled in, as clients have them
	names  map[string]string // the names themselves, by their folded ones
	twins  map[string]string // the names, by the programs
	boxed  map[string]bool   // which of those that the configuration has are in a box
}

// A LeftOut is a place whose servers are not imported unless it is named.
type LeftOut struct {
	Place   string `json:"place"`
	From    string `json:"from"` // what to name
	Servers int    `json:"servers"`
	Why     string `json:"why"`
	path    string
}

// NewImport returns an Import that has found nothing. Variables are looked up, and
// relative names read, as system says.
func NewImport(system clients.System) *Import {
	return &Import{system: system, taken: map[string]string{}, filled: map[string]string{}, names: map[string]string{}, boxed: map[string]bool{}, twins: map[string]string{}}
}

// Configured notes the servers that a configuration has already: their names are
// taken, and one that is added and is the same is There. Text is the configuration's.
// One that names secrets which cfg has filled in is the same as one with their texts:
// a client still has the secret that init moved away.
func (i *Import) Configured(text []byte, cfg *config.Config) error {
	for _, name := range cfg.ServerNames() {
		section, err := jsonc.Section(text, ServersKey(cfg)+"/"+name)
		if err != nil {
			return err
		}
		i.take(name, comparable(unconfined(section)))
		s := cfg.Servers[name]
		i.filled[strings.ToLower(name)] = comparable(filled(unconfined(section), s))
		i.boxed[strings.ToLower(name)] = s.Confine != nil
		like := clients.Server{Kind: clients.HTTP, URL: s.URL.String(), Command: s.Command.String()}
		if s.Type == config.KindStdio {
			like.Kind = clients.Stdio
		}
		for _, arg := range s.Args {
			like.Args = append(like.Args, arg.String())
		}
		if s.Type != config.KindBuiltin {
			i.twins[programOf(like)] = name
		}
	}
	return nil
}

func (i *Import) take(name, text string) {
	i.taken[strings.ToLower(name)], i.names[strings.ToLower(name)] = text, name
}

// unconfined is a server without its box and the flags that go with that, which does not
// make it another server: what a client starts without a box is the same in ours, and no
// looser. What it starts in a box is the same in a box of ours, which somebody may have
// widened.
func unconfined(text jsonc.Text) jsonc.Text {
	without, err := jsonc.Remove(text, "/confine")
	if err != nil {
		return text // it has none
	}
	if r, args := recognize(text); r.Box != nil && r.Box.Browser != nil {
		if own, err := jsonc.Replace(without, "/args", jsonc.Text(flatJSON(r.Box.Browser.Own(args)))); err == nil {
			return own
		}
	}
	return without
}

// comparable is a server in the form of the configuration, without the keys that do
// not make it another server.
func comparable(text jsonc.Text) string {
	plain, err := text.MarshalJSON()
	var m map[string]any
	if err != nil || json.Unmarshal(plain, &m) != nil {
		return string(text)
	}
	for _, key := range []string{"disabled", "timeout", "connectTimeout", "type", "quarantine", "newTools", "changedTools", "known", "perSession"} {
		delete(m, key)
	}
	if r, args := recognize(text); len(args) > 0 { // one without a version is the same as the version that is pinned
		m["args"] = pinned(r, args)
	}
	same, err := json.Marshal(m)
	if err != nil {
		return string(text)
	}
	return string(same)
}

// filled is a server with the secrets that it names written out, as far as they are known.
func filled(text jsonc.Text, s *config.Server) jsonc.Text {
	secrets := map[string]string{}
	for _, v := range slices.Concat(s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers))) {
		if text := v.Reveal(); v.Secret() && text != "" && !names(text) {
			secrets[v.Origin()] = text
		}
	}
	plain, err := text.MarshalJSON()
	var m any
	if len(secrets) == 0 || err != nil || json.Unmarshal(plain, &m) != nil {
		return text
	}
	return jsonc.Text(flatJSON(replaced(m, secrets)))
}

// replaced is a value with other texts in the place of those that are keys of by.
func replaced(value any, by map[string]string) any {
	switch v := value.(type) {
	case string:
		if text, ok := by[v]; ok {
			return text
		}
	case []any:
		for n := range v {
			v[n] = replaced(v[n], by)
		}
	case map[string]any:
		for k := range v {
			v[k] = replaced(v[k], by)
		}
	}
	return value
}

// ErrNoSource is wrapped by the error of Find for a name that is neither a file
// nor a client.
var ErrNoSource = errors.New("neither a file nor a client")

// Find adds the servers that all clients have for this user, or those of the
// clients and files that the person names. A file of the folder has to be
// named: it may have come with a repository, and a server is a program. A file
// that was not named and cannot be read is passed over.
func (i *Import) Find(from []string, passedOver func(clients.Place, error)) error {
	places, err := i.places(from)
	if err != nil {
		return err
	}
	i.LeftOut = slices.DeleteFunc(i.LeftOut, func(l LeftOut) bool {
		return slices.ContainsFunc(places, func(p clients.Place) bool { return p.File == l.path && p.Scope != clients.User })
	})
	for _, place := range places {
		file, servers, err := place.Read()
		if err == nil && !file.Existed {
			continue
		}
		if err != nil {
			if len(from) > 0 {
				return err
			}
			passedOver(place, err)
			continue
		}
		for _, s := range servers {
			one := i.Add(s, place)
			i.called = append(i.called, called{place.Client.Name, place.Scope == clients.User || place.Scope == clients.Local, s.Name, one.As})
		}
	}
	return nil
}

// places are those to look at.
func (i *Import) places(from []string) ([]clients.Place, error) {
	var places []clients.Place
	if len(from) == 0 {
		for _, place := range clients.Places(i.system) {
			if place.Scope == clients.User {
				places = append(places, place)
			} else {
				i.leave(place)
			}
		}
	}
	for _, name := range from {
		if c, ok := clients.Find(name); ok {
			for _, scope := range c.Scopes {
				place, err := c.Place(i.system, scope)
				switch {
				case err != nil:
				case scope == clients.Project:
					i.leave(place)
				default:
					places = append(places, place)
				}
			}
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%q is %w; the clients are: %s", name, ErrNoSource, strings.Join(ClientNames(), ", "))
		}
		file, err := clients.ReadFile(path)
		if err != nil {
			return nil, err
		}
		place, err := clients.At(i.system, path, file.Text)
		if err != nil && i.permits(path) {
			continue
		}
		if err != nil {
			return nil, err
		}
		places = append(places, place)
	}
	return places, nil
}

// ClientNames are the names of all clients, as people type them.
func ClientNames() []string {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

// leave notes a place whose servers are left out, if it has any.
func (i *Import) leave(place clients.Place) {
	_, servers, err := place.Read()
	if err != nil || len(servers) == 0 {
		return
	}
	l := LeftOut{Place: place.String(), From: place.Client.Name, Servers: len(servers), Why: "they are for this folder alone", path: place.File}
	if place.Scope == clients.Project {
		l.Why = "whoever wrote this folder may have named the programs"
		l.From = filepath.Base(place.File)
		if rel, err := filepath.Rel(i.system.Folder, place.File); i.system.Folder != "" && err == nil {
			l.From = rel
		}
	}
	i.LeftOut = append(i.LeftOut, l)
}

// Add adds a server: it is merged into one that is the same, or gets a name that no
// other has. One with a Problem gets no name.
func (i *Import) Add(s clients.Server, place clients.Place) *Server {
	s.Problem = cmp.Or(s.Problem, boxProblem(i.system, s))
	one := &Server{Server: s, From: []string{place.String()}, Boxes: i.Boxes}
	for _, v := range s.Variables {
		if _, ok := i.system.Env(v.Name); !ok {
			one.Unset = append(one.Unset, v)
		}
	}
	if s.Problem != "" {
		i.Servers = append(i.Servers, one)
		return one
	}
	text := comparable(one.Text())
	for _, other := range i.Servers {
		if other.Problem == "" && other.As != "" && comparable(other.Text()) == text {
			other.From = append(other.From, place.String())
			one.As, one.There = other.As, true
			return one
		}
	}
	bare := text
	if s.Box != nil {
		bare = comparable(unconfined(one.Text()))
	}
	for _, folded := range slices.Sorted(maps.Keys(i.taken)) {
		if (i.taken[folded] == bare || i.filled[folded] == bare) && (s.Box == nil || i.boxed[folded]) {
			one.As, one.There = i.names[folded], true
			i.Servers = append(i.Servers, one)
			return one
		}
	}
	client := place.Client.Name
	if place.Scope == "" {
		client = "" // the file is no particular client's
	}
	one.As = i.free(s.Name, client)
	i.take(one.As, text)
	if program := programOf(s); i.twins[program] == "" {
		i.twins[program] = one.As
	} else {
		one.Twin = i.twins[program]
	}
	i.Servers = append(i.Servers, one)
	return one
}

// free returns a legal name like wish that no server has.
func (i *Import) free(wish, client string) string {
	base := config.ServerName(wish)
	name := base
	for n := 1; ; n++ {
		if _, used := i.taken[strings.ToLower(name)]; !used {
			return name
		}
		if name = config.ServerName(base + "-" + client); n > 1 {
			name = config.ServerName(base + "-" + strconv.Itoa(n))
		}
	}
}

// New are the servers that go into the configuration.
func (i *Import) New() []*Server {
	return slices.DeleteFunc(slices.Clone(i.Servers), func(s *Server) bool { return s.Problem != "" || s.There })
}

// Secrets are the texts of all servers that are not to be shown.
func (i *Import) Secrets() []string {
	var secrets []string
	for _, s := range i.Servers {
		secrets = append(secrets, s.Secrets...)
	}
	return secrets
}

// Client is the name of the first client that servers are from; "CLIENT" if there is
// none.
func (i *Import) Client() string {
	for _, s := range i.Servers {
		for _, c := range clients.All() {
			if strings.HasPrefix(s.From[0], c.Title+" (") {
				return c.Name
			}
		}
	}
	return "CLIENT"
}
