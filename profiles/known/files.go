package known

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed servers/*.jsonc
var files embed.FS

// all are the servers, sorted by name. Reading them takes longer than most of the program's
// commands, and 14 MB: whoever only wants their names, or one of them, does without.
var all = sync.OnceValue(func() []Server {
	var servers []Server
	for _, name := range Names() {
		servers = append(servers, parsed(name))
	}
	return servers
})

// A head is what a file says of how its server is started: all that is needed to find the
// server that a configuration starts.
type head struct {
	name     string
	Verified string   `json:"verified"`
	Launch   []Launch `json:"launch"`
}

// heads are those of all files, sorted by name.
var heads = sync.OnceValue(func() []head {
	var list []head
	var plain []byte
	for _, name := range Names() {
		plain = appendPlain(plain[:0], fileText(name))
		h := head{name: name}
		if err := json.Unmarshal(plain, &h); err != nil {
			panic(fmt.Sprintf("known: servers/%s%s: %v", name, ending, err)) // TestFiles reads them all
		}
		list = append(list, h)
	}
	return list
})

// found are the files that somebody has asked for.
var found struct {
	sync.Mutex
	servers map[string]Server
}

// server returns the server of a file, which is read once.
func server(name string) Server {
	found.Lock()
	defer found.Unlock()
	s, ok := found.servers[name]
	if !ok {
		s = parsed(name)
		if found.servers == nil {
			found.servers = make(map[string]Server)
		}
		found.servers[name] = s
	}
	return s
}

func parsed(name string) Server {
	s, err := Parse(name, fileText(name))
	if err != nil {
		panic(fmt.Sprintf("known: servers/%s%s: %v", name, ending, err)) // TestFiles reads them all
	}
	return s
}

// fileText returns what a file says.
func fileText(name string) []byte {
	b, err := files.ReadFile("servers/" + name + ending)
	if err != nil {
		panic("known: " + err.Error()) // they are part of the program
	}
	return b
}

// appendPlain appends JSON with comments without them. It is for files that Parse can
// read: it makes no mistake in them and finds none.
func appendPlain(plain, b []byte) []byte {
	for len(b) > 0 {
		n := 1
		switch {
		case b[0] == '"':
			for n < len(b) && b[n] != '"' {
				if b[n] == '\\' {
					n++
				}
				n++
			}
			n++
			plain = append(plain, b[:min(n, len(b))]...)
		case bytes.HasPrefix(b, []byte("//")):
			if n = bytes.IndexByte(b, '\n'); n < 0 {
				n = len(b)
			}
		case bytes.HasPrefix(b, []byte("/*")):
			if n = bytes.Index(b, []byte("*/")) + 2; n < 2 {
				n = len(b)
			}
		case b[0] == ']' || b[0] == '}':
			plain = append(bytes.TrimRight(plain, ", \t\r\n"), b[0])
		default:
			plain = append(plain, b[0])
		}
		b = b[min(n, len(b)):]
	}
	return plain
}

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
	if !slices.Contains(Names(), name) {
		return Server{}, false
	}
	return server(name), true
}
