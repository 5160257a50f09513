package lockfile

import (
	"errors"
	"io/fs"
)

// A Change is one difference between two locks.
type Change struct {
	Kind   string `json:"kind"` // "+" for what is new, "-" for what is gone, "~" for what differs
	Server string `json:"server"`
	Tool   string `json:"tool,omitempty"` // its raw name; empty of a server
	Text   string `json:"text"`           // for people
}

// Compare returns what differs, by server and tool. A nil lock is empty.
func Compare(was, is *Lock) []Change {
	var all []Change
	names := map[string]bool{}
	for _, l := range []*Lock{was, is} {
		if l != nil {
			for name := range l.Servers {
				names[name] = true
			}
		}
	}
	for _, name := range sorted(names) {
		old, now := was.Server(name), is.Server(name)
		switch {
		case old == nil:
			all = append(all, Change{"+", name, "", "the server is new"})
			old = &Server{}
		case now == nil:
			all = append(all, Change{"-", name, "", "the server is gone"})
			continue
		case old.Identity != now.Identity:
			all = append(all, Change{"~", name, "", "it is another server: its program, arguments, address or what it is given differ"})
		}
		tools := map[string]bool{}
		for _, s := range []*Server{old, now} {
			for tool := range s.Tools {
				tools[tool] = true
			}
		}
		for _, tool := range sorted(tools) {
			before, had := old.Tools[tool]
			after, has := now.Tools[tool]
			switch {
			case !had:
				all = append(all, Change{"+", name, tool, "the tool is new"})
			case !has:
				all = append(all, Change{"-", name, tool, "the tool is gone"})
			case before.Digest != after.Digest:
				all = append(all, Change{"~", name, tool, "its definition differs"})
			case before.Script != after.Script:
				all = append(all, Change{"~", name, tool, "scripts call it " + word(after.Script) + ", not " + word(before.Script)})
			}
		}
	}
	return all
}

// Counts says how much was compared.
type Counts struct {
	Servers, Tools int // in one lock or in both
	Differ         int // tools that are in one lock only, or not alike in both
}

// Count counts what [Compare] compares.
func Count(was, is *Lock) (n Counts) {
	if was == nil {
		was = &Lock{}
	}
	n.Servers, n.Tools = len(was.Servers), was.Count()
	for name, s := range was.Servers {
		for tool, line := range s.Tools {
			if now, has := is.Tool(name, tool); !has || now != line {
				n.Differ++
			}
		}
	}
	if is == nil {
		return n
	}
	for name, s := range is.Servers {
		if was.Server(name) == nil {
			n.Servers++
		}
		for tool := range s.Tools {
			if _, had := was.Tool(name, tool); !had {
				n.Tools++
				n.Differ++
			}
		}
	}
	return n
}

// Load reads the lock of a configuration file, nil if there is none, and returns its path.
func Load(config string) (lock *Lock, path string, err error) {
	path = Path(config)
	lock, err = Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, path, nil
	}
	return lock, path, err
}
