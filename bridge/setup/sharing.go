package setup

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/profiles/known"
)

// All clients that start the bridge have all of its servers, so a take-over can give a
// client what it did not have. And where two clients start one server with different
// arguments, both go into the configuration. A person should know of either beforehand,
// and may say no.

// A Choice is asked before servers move: keep is false if they are to stay where they are.
type Choice func(question string, some []*Server) (keep bool, err error)

// sharedWith are the titles of the other clients that start the bridge.
func sharedWith(system clients.System, but clients.Client) (titles []string, has [][]clients.Server) {
	for _, place := range clients.Places(system) {
		if place.Client.Name == but.Name {
			continue
		}
		_, servers, err := place.Read()
		if err != nil || !slices.ContainsFunc(servers, func(s clients.Server) bool { return s.Bridge && !s.Disabled }) {
			continue
		}
		if !slices.Contains(titles, place.Client.Title) {
			titles = append(titles, place.Client.Title)
		}
		has = append(has, servers)
	}
	return titles, has
}

// shares asks which servers other clients may have, too: those that they do not have
// themselves. What runs commands is asked about by itself. It returns the others.
func (in *Installation) shares(system clients.System, moving []*Server, choose Choice) ([]*Server, error) {
	titles, has := sharedWith(system, in.Place.Client)
	var ours, commands []*Server
	for _, s := range moving {
		everybody := !slices.ContainsFunc(has, func(all []clients.Server) bool {
			return !slices.ContainsFunc(all, func(t clients.Server) bool { return t.Same(s.Server) })
		})
		switch {
		case len(titles) == 0 || s.There || s.Disabled || everybody:
		case s.runsCommands():
			commands = append(commands, s)
		default:
			ours = append(ours, s)
		}
	}
	for _, one := range []struct {
		some     []*Server
		question string
	}{
		{ours, "%s can then use %s, which only %s had: move them?"},
		{commands, "%s can then run commands with %s, which only %s had: move them?"},
	} {
		if len(one.some) == 0 {
			continue
		}
		question := fmt.Sprintf(one.question, strings.Join(titles, ", "), namesOf(one.some), in.Place.Client.Title)
		keep, err := choose(question, one.some)
		if err != nil {
			return nil, err
		}
		if !keep {
			moving = in.leave(moving, one.some, "only "+in.Place.Client.Title+" is to have it")
		}
	}
	return moving, nil
}

// OldRules are the servers that move and whose tools a file of the client's permissions
// names.
func (in *Installation) OldRules(system clients.System) (names []string) {
	for _, s := range in.Named(system) {
		names = append(names, canon.Escape(s.Name))
	}
	return names
}

// Named are the servers of OldRules.
func (in *Installation) Named(system clients.System) (named []*Server) {
	for _, p := range clients.PermissionFiles(system) {
		if p.Client.Name != in.Place.Client.Name {
			continue
		}
		file, err := clients.ReadFile(p.File)
		if err != nil || !file.Existed {
			continue
		}
		rules, err := p.Read(file.Text)
		if err != nil {
			continue
		}
		for _, s := range in.Moving {
			if rules.Names(s.Name) && !slices.Contains(named, s) {
				named = append(named, s)
			}
		}
	}
	return named
}

// leave takes servers out of those that move.
func (in *Installation) leave(moving, some []*Server, why string) []*Server {
	for _, s := range some {
		in.staying[s.Name] = why
	}
	return slices.DeleteFunc(moving, func(s *Server) bool { return slices.Contains(some, s) })
}

// runsCommands reports whether a server runs commands or code: by what is known of it, or
// by its name.
func (s *Server) runsCommands() bool {
	r, _ := recognize(s.written())
	for _, tool := range r.Server.Tools {
		if slices.Contains(tool.Effects, known.Execute) {
			return true
		}
	}
	for _, word := range append([]string{s.Name, path.Base(s.Command)}, programOf(s.Server)) {
		for part := range strings.FieldsFuncSeq(strings.ToLower(word), func(r rune) bool { return r < 'a' || r > 'z' }) {
			if slices.Contains([]string{"shell", "bash", "terminal", "ssh", "exec", "command", "commander", "repl", "jupyter"}, part) {
				return true
			}
		}
	}
	return false
}

func namesOf(some []*Server) string {
	names := make([]string, len(some))
	for i, s := range some {
		names[i] = canon.Escape(s.Name)
	}
	return strings.Join(names, ", ")
}

// runners start a program that an argument names.
var runners = []string{"npx", "bunx", "pnpx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "docker", "podman", "uv", "pnpm", "yarn", "npm"}

// programOf is what a server is, without how it is started: its package without the
// version, its program, or its address without the query. Two servers with the same are
// one server, started in two ways.
func programOf(s clients.Server) string {
	if s.Kind != clients.Stdio {
		address, _, _ := strings.Cut(s.URL, "?")
		return strings.TrimSuffix(address, "/")
	}
	base := strings.TrimSuffix(path.Base(strings.ReplaceAll(s.Command, `\`, "/")), ".exe")
	if !slices.Contains(runners, strings.TrimSuffix(base, ".cmd")) {
		return base
	}
	for _, arg := range s.Args {
		if strings.HasPrefix(arg, "-") || slices.Contains([]string{"run", "dlx", "exec", "x"}, arg) {
			continue
		}
		if i := strings.LastIndexByte(arg, '@'); i > 0 {
			arg = arg[:i]
		}
		return arg
	}
	return base
}

// Twins are the servers that are another one, started in another way: both would be in
// the configuration.
func Twins(some []*Server) (all []*Server) {
	for _, s := range some {
		if s.Twin != "" && !s.There && s.Problem == "" {
			all = append(all, s)
		}
	}
	return all
}

// TwinsQuestion asks whether both stay.
func TwinsQuestion(twins []*Server) string {
	words := make([]string, len(twins))
	for i, s := range twins {
		words[i] = fmt.Sprintf("%s is %s with other arguments or variables", s.As, canon.Escape(s.Twin))
	}
	return strings.Join(words, "; ") + ": have both?"
}

// OneOnly are the servers that run commands and that only one of several clients has: in
// the configuration, all clients that start the bridge have them. Question asks about them.
func OneOnly(some []*Server) (all []*Server, question string) {
	seen := map[string]bool{}
	for _, s := range some {
		for _, from := range s.From {
			seen[clientOf(from)] = true
		}
	}
	if len(seen) < 2 {
		return nil, ""
	}
	var words []string
	for _, s := range some {
		only := clientOf(s.From[0])
		if s.Disabled || !s.runsCommands() || slices.ContainsFunc(s.From, func(from string) bool { return clientOf(from) != only }) {
			continue
		}
		all = append(all, s)
		words = append(words, fmt.Sprintf("%s, which only %s has", canon.Escape(s.Name), only))
	}
	return all, fmt.Sprintf("each client that starts the bridge can then run commands with %s: take that, too?", strings.Join(words, "; "))
}

// clientOf is the client of a place, as [clients.Place] names it for people.
func clientOf(place string) string {
	client, _, _ := strings.Cut(place, " (")
	return client
}
