// Package learned runs an MCP server without a box, notes what it uses, and proposes the
// smallest box in which it can do the same again.
//
// What a server uses is seen at its system calls (confine.Watch). Where the system allows
// it, the server has a network of its own whose every address leads to a relay, so that
// the names of its hosts are known. All of that is an observation and no boundary, and a
// proposal is only as good as the use that it was made from.
//
// Propose is a pure function of what was seen. It leaves out what every box has, and what
// a person should decide: keys, tokens, the bridge's own files, sockets of this machine.
package learned

import (
	"cmp"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codemode-bridge/sandbox/confine"
)

// A Seen is something that a server used, as often as it did.
type Seen struct {
	Kind  confine.UseKind
	Path  string // as the server names it
	Real  string // with all links followed; Path where there are none
	Host  string // a name, or an address where no name is known; with a port
	Count int
	// Of paths: New where there was nothing before, Place where its folder changed,
	// Folder where it is a folder, Gone where there is nothing any more.
	New, Place, Folder, Gone bool
}

// Notes are what was seen. Its methods may be called from several goroutines.
type Notes struct {
	mu   sync.Mutex
	seen map[string]*Seen
}

// Add notes a use of paths, of a socket of this machine, or of a port to listen on.
func (n *Notes) Add(use confine.Use) {
	s := Seen{Kind: use.Kind, Path: use.Path, New: use.New, Place: use.Place}
	if use.Path == "" {
		s.Host = use.To.String()
	} else {
		s.Real = leads(use.Path)
		if at, err := os.Stat(use.Path); err == nil {
			s.Folder = at.IsDir()
		}
	}
	n.add(s)
}

// Met notes a connection to a host.
func (n *Notes) Met(name string, port uint16) {
	n.add(Seen{Kind: confine.Connects, Host: hostPort(name, port)})
}

func hostPort(name string, port uint16) string {
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return name + ":" + strconv.Itoa(int(port))
}

func (n *Notes) add(s Seen) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = make(map[string]*Seen)
	}
	key := string(s.Kind) + " " + s.Path + " " + s.Host
	known := n.seen[key]
	if known == nil {
		known = &s
		n.seen[key] = known
	}
	known.Count++
	known.New = known.New || s.New
	known.Place = known.Place || s.Place
	known.Folder = known.Folder || s.Folder
}

// All returns what was seen, sorted, with what has become of it.
func (n *Notes) All() []Seen {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []Seen
	for _, s := range n.seen {
		all = append(all, *s)
	}
	for i, s := range all {
		if s.Path == "" {
			continue
		}
		at, err := os.Stat(s.Path)
		all[i].Gone = err != nil
		all[i].Folder = s.Folder || err == nil && at.IsDir()
	}
	slices.SortFunc(all, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Host, b.Host))
	})
	return all
}

// leads returns where a path leads, links followed as far as they exist.
func leads(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	above := filepath.Dir(path)
	if above == path {
		return path
	}
	return filepath.Join(leads(above), filepath.Base(path))
}

// Around is what a proposal has to know of the machine.
type Around struct {
	Home      string
	Workspace []string // its folders
	Temp      []string // folders for temporary files
	Had       []string // folders and files that the box has anyway: the program's own, its package manager's
	// System reports whether any box has a path to read; nil: none.
	System func(path string) bool
	// Secret says why a path is not proposed; empty if it may be. Nil: each may.
	Secret func(path string) string
	// Fetched are hosts with their ports that the program is fetched from beforehand, in a
	// box of its own.
	Fetched []string
	Own     bool // the names of hosts are known
	Run     bool // which programs it may start is limited, too
}

// in reports whether a path is a folder or something below it.
func in(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func inAny(path string, folders []string) string {
	for _, f := range folders {
		if f != "" && in(path, f) {
			return f
		}
	}
	return ""
}

// tooWide says why a folder is more than a box should have; empty if it is not.
func (a Around) tooWide(folder string) string {
	switch {
	case folder == "/":
		return "it is all there is"
	case a.Home != "" && in(a.Home, folder):
		return "the home folder, with all keys, is in it"
	case slices.Contains(a.Temp, folder):
		return "it is shared by all programs"
	case strings.Count(folder, "/") == 1:
		return "it is a whole part of the machine"
	}
	return ""
}

// A Proposal is the smallest box that has what was used, as far as it is proposed.
type Proposal struct {
	Write []string `json:"write,omitempty"`
	Read  []string `json:"read,omitempty"`
	Net   []string `json:"net,omitempty"` // none: no network
	Run   []string `json:"run,omitempty"`
	// Limited tells that only the programs of Run may be started.
	Limited bool `json:"-"`

	Used []Used        `json:"-"`
	Not  []NotProposed `json:"-"`
}

// A Used is what a server used of one folder, or of one host.
type Used struct {
	Kind    confine.UseKind `json:"kind"`
	What    string          `json:"what"`
	Count   int             `json:"count"`
	Example string          `json:"example,omitempty"`
}

// A NotProposed is what a server used and its box does not have.
type NotProposed struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// A proposer makes a proposal.
type proposer struct {
	Around
	made  []string                     // folders and files that the server made
	files map[bool]map[string][]string // by whether they are written: folder, and what of it
	wants map[bool]map[string]bool     // folders and files that are needed for certain
	used  map[confine.UseKind]map[string]*Used
	p     Proposal
}

const workspaceWord = "workspace"

// Propose makes the smallest box.
func Propose(all []Seen, a Around) Proposal {
	p := &proposer{Around: a, used: make(map[confine.UseKind]map[string]*Used)}
	p.files = map[bool]map[string][]string{true: {}, false: {}}
	p.wants = map[bool]map[string]bool{true: {}, false: {}}
	for _, s := range all {
		if s.Kind == confine.Writes && s.New {
			p.made = append(p.made, s.Path, s.Real)
		}
	}
	for _, s := range all {
		switch {
		case s.Kind == confine.Starts:
			p.starts(s)
		case s.Kind == confine.Listens:
			p.note(confine.Listens, s.Host, s)
		case s.Kind == confine.Connects:
			p.connects(s)
		default:
			p.path(s)
		}
	}
	p.p.Write = p.folders(true, nil)
	p.p.Read = p.folders(false, p.p.Write)
	p.p.Limited = a.Run
	p.secretsInside()
	for _, kind := range []confine.UseKind{confine.Writes, confine.Reads, confine.Connects, confine.Starts, confine.Listens} {
		for _, what := range slices.Sorted(maps.Keys(p.used[kind])) {
			p.p.Used = append(p.p.Used, *p.used[kind][what])
		}
	}
	return p.p
}

// note counts a use for what it is shown under.
func (p *proposer) note(kind confine.UseKind, what string, s Seen) {
	if p.used[kind] == nil {
		p.used[kind] = make(map[string]*Used)
	}
	u := p.used[kind][what]
	if u == nil {
		u = &Used{Kind: kind, What: what}
		if s.Path != what {
			u.Example = s.Path
		}
		p.used[kind][what] = u
	}
	u.Count += s.Count
}

func (p *proposer) not(what, why string) {
	n := NotProposed{what, why}
	if !slices.Contains(p.p.Not, n) {
		p.p.Not = append(p.p.Not, n)
	}
}

func (p *proposer) starts(s Seen) {
	p.note(confine.Starts, s.Path, s)
	if p.Run && !slices.Contains(p.p.Run, s.Path) {
		p.p.Run = append(p.p.Run, s.Path)
	}
}

func (p *proposer) connects(s Seen) {
	if s.Path != "" {
		p.not(s.Path, "it is a socket of a program of this machine; a box has none of them")
		return
	}
	name, port, ok := strings.Cut(s.Host, ":")
	if i := strings.LastIndexByte(s.Host, ':'); i >= 0 {
		name, port, ok = strings.Trim(s.Host[:i], "[]"), s.Host[i+1:], true
	}
	if !ok || port == "0" || port == "53" && !p.Own {
		return
	}
	address, err := netip.ParseAddr(name)
	p.note(confine.Connects, s.Host, s)
	switch {
	case name == "localhost" || err == nil && address.IsLoopback():
		p.not(s.Host, "it is a program of this machine: name localhost and the port if the server shall reach it")
	case err == nil && !p.Own:
		p.not(s.Host, "the name of the host is not known here")
	case err == nil && (address.IsPrivate() || address.IsLinkLocalUnicast()):
		p.not(s.Host, "it is in the network of this machine: name it if the server shall reach it")
	case slices.Contains(p.Fetched, s.Host):
		p.not(s.Host, "its program is fetched from there beforehand, in a box of its own: name it if the server itself shall reach it")
	default:
		p.p.Net = append(p.p.Net, strings.TrimSuffix(s.Host, ":443"))
	}
}

// machine are the folders of the system that no box gets from a proposal.
var machine = []string{"/proc", "/sys", "/dev"}

// path looks at what is read or written.
func (p *proposer) path(s Seen) {
	for _, path := range slices.Compact([]string{s.Path, s.Real}) {
		write := s.Kind == confine.Writes
		switch {
		case inAny(path, machine) != "", p.temporary(path), inAny(path, p.Had) != "":
			continue
		case p.System != nil && p.System(path):
			if write {
				p.not(path, "it belongs to the system")
			}
			continue
		case in(path, "/run"), in(path, "/var/run"):
			p.not(path, "what programs of this machine share leads out of any box")
			continue
		}
		if path == s.Path {
			p.note(s.Kind, p.shownUnder(s), s)
		}
		if why := p.secret(path); why != "" {
			p.not(path, why)
			continue
		}
		if inAny(path, p.Workspace) != "" {
			p.wants[write][workspaceWord] = true
			continue
		}
		p.need(path, s, write)
	}
}

// shownUnder is the folder under which a use is shown.
func (p *proposer) shownUnder(s Seen) string {
	if inAny(s.Path, p.Workspace) != "" {
		return workspaceWord
	}
	if all := packages(s.Path); all != "" && s.Kind == confine.Reads {
		return all
	}
	if s.Folder {
		return s.Path
	}
	return filepath.Dir(s.Path)
}

func (p *proposer) secret(path string) string {
	if p.Secret == nil {
		return ""
	}
	if why := p.Secret(path); why != "" {
		return why
	}
	return p.Secret(filepath.Join(path, "x")) // a folder of secrets
}

// temporary reports whether a path is of a folder for temporary files, and was made there
// by the server.
func (p *proposer) temporary(path string) bool {
	temp := inAny(path, p.Temp)
	if temp == "" {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path[len(temp):], "/"), "/")
	return first == "" || slices.Contains(p.made, filepath.Join(temp, first))
}

// need notes the folder or file that a use needs.
func (p *proposer) need(path string, s Seen, write bool) {
	folder := filepath.Dir(path)
	if made := p.madeFolder(path, s); write && made != "" {
		// It is there now: the box need not have the one above.
		p.want(made, true)
		return
	}
	switch all := packages(path); {
	case !write && all != "":
		p.want(all, false)
	case s.Folder && !(write && s.Place):
		if why := p.tooWide(path); why != "" {
			p.not(path, why)
			return
		}
		p.want(path, write)
	case write && s.Place:
		why := p.tooWide(folder)
		switch {
		case why == "":
			p.want(folder, true)
		case s.Gone:
			p.not(path, "it was made in "+folder+" or removed from there: "+why)
		default:
			p.want(path, true)
		}
	default:
		if !slices.Contains(p.files[write][folder], path) {
			p.files[write][folder] = append(p.files[write][folder], path)
		}
	}
}

// packages returns the outermost folder of installed packages that a path is in, which a
// program has as a whole; empty if it is in none.
func packages(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if slices.Contains([]string{"node_modules", "site-packages", "dist-packages", ".venv", "venv"}, part) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

// madeFolder returns the outermost folder on the way to a path that the server made;
// empty if there is none.
func (p *proposer) madeFolder(path string, s Seen) (made string) {
	at := filepath.Dir(path)
	if s.Folder && !s.Gone {
		at = path
	}
	for ; at != "/" && at != "."; at = filepath.Dir(at) {
		if slices.Contains(p.made, at) {
			made = at
		}
	}
	return made
}

func (p *proposer) want(path string, write bool) { p.wants[write][path] = true }

// several is how many files of a folder show that the server uses the folder.
const several = 2

// folders returns what a list of the box has, without what another one brings along.
func (p *proposer) folders(write bool, already []string) []string {
	for folder, files := range p.files[write] {
		if len(files) >= several && p.tooWide(folder) == "" && p.secret(folder) == "" {
			p.want(folder, write)
			continue
		}
		for _, file := range files {
			p.want(file, write)
		}
	}
	var all []string
	for _, path := range slices.Sorted(maps.Keys(p.wants[write])) {
		if slices.Contains(already, path) || inAny(path, already) != "" || inAny(path, all) != "" {
			continue
		}
		all = append(all, path)
	}
	if i := slices.Index(all, workspaceWord); i > 0 {
		all = slices.Insert(slices.Delete(all, i, i+1), 0, workspaceWord)
	}
	return all
}

// secretsInside says which secrets that were used are in the box all the same.
func (p *proposer) secretsInside() {
	has := slices.Concat(p.p.Write, p.p.Read)
	for i, n := range p.p.Not {
		folder := inAny(n.What, has)
		if folder == "" && slices.Contains(has, workspaceWord) && inAny(n.What, p.Workspace) != "" {
			folder = "the workspace"
		}
		if folder != "" {
			p.p.Not[i].Why += "; but it is in " + folder + ", which the box has"
		}
	}
}
