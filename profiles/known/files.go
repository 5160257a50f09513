package known

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed servers/*.jsonc
var files embed.FS

// all are the servers, sorted by name.
var all = sync.OnceValue(func() []Server {
	entries, err := files.ReadDir("servers")
	if err != nil {
		panic("known: " + err.Error()) // they are part of the program
	}
	var servers []Server
	for _, e := range entries {
		text, err := files.ReadFile("servers/" + e.Name())
		if err != nil {
			panic("known: " + err.Error())
		}
		s, err := Parse(strings.TrimSuffix(e.Name(), ".jsonc"), text)
		if err != nil {
			panic(fmt.Sprintf("known: servers/%s: %v", e.Name(), err)) // TestFiles reads them all
		}
		servers = append(servers, s)
	}
	slices.SortFunc(servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return servers
})

// All returns the servers that the program knows, sorted by name. The caller must
// not change them.
func All() []Server { return all() }

// Names returns the names of the known servers, sorted.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
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
