package known

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed servers/*.jsonc
var files embed.FS

// all are the servers, sorted by name. Reading them takes longer than most of the program's
// commands: whoever only wants their names does without.
var all = sync.OnceValue(func() []Server {
	var servers []Server
	for _, name := range Names() {
		text, err := files.ReadFile("servers/" + name + ending)
		if err != nil {
			panic("known: " + err.Error()) // they are part of the program
		}
		s, err := Parse(name, text)
		if err != nil {
			panic(fmt.Sprintf("known: servers/%s%s: %v", name, ending, err)) // TestFiles reads them all
		}
		servers = append(servers, s)
	}
	return servers
})

const ending = ".jsonc"

// All returns the servers that the program knows, sorted by name. The caller must
// not change them.
func All() []Server { return all() }

// Names returns the names of the known servers, sorted. It reads none of them.
func Names() []string {
	entries, err := files.ReadDir("servers")
	if err != nil {
		panic("known: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ending)
	}
	slices.Sort(names) // as file names "a-b.jsonc" comes before "a.jsonc"
	return names
}

// Find returns the server with that name.
func Find(name string) (Server, bool) {
	servers := All()
	i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return servers[i], true
}
