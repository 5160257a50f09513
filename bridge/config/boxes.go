package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// This file checks the folders of boxes. A box that holds what decides about it would be
// none: the configuration, the records and the requests of the bridge are in no box, and
// neither is what lets a program out of any box, such as the sockets of the machine.

// A ground is what boxes must not have.
type ground struct {
	home string
	own  []ownPath
}

// An ownPath is a file or folder of the bridge, which no box may change.
type ownPath struct {
	path, words string
	secret      bool // nor read
}

// boxes checks the box of each server, once all other paths are known.
func (c *checker) boxes() {
	g := &c.config.from.ground
	g.home, _ = Home(c.env)
	own := []ownPath{
		{c.config.File, "this configuration", false},
		{c.config.Scripts.Dir, "the saved scripts", false},
		{c.config.Audit.Path, "the audit log", true},
		{c.config.Audit.Requests(), "the audit log", true},
		{c.config.Audit.Checkpoint, "the checkpoints of the audit log", false},
		{c.config.HTTP.TLS.Key, "the key of the certificate", true}, {c.config.Approvals.TLS.Key, "the key of the page's certificate", true},
	}
	if program, err := os.Executable(); err == nil { // and the worker beside it, which makes the boxes
		worker := filepath.Join(filepath.Dir(leads(program)), "codemode-worker"+filepath.Ext(program))
		own = append(own, ownPath{program, "the bridge's own program", false}, ownPath{worker, "the bridge's own worker", false})
	}
	if c.config.Overlay != "" {
		own = append(own, ownPath{c.config.Overlay, "the overlay", false})
	}
	for _, file := range c.config.from.included.files() {
		own = append(own, ownPath{file, "a document that the configuration includes", false})
	}
	if places, err := Paths(c.env); err == nil {
		own = append(own, ownPath{places.StateDir, "the bridge's own state", true}, ownPath{places.CacheDir, "the bridge's own cache", false},
			ownPath{filepath.Dir(places.ConfigFile), "the bridge's own configuration", false})
	}
	g.own = slices.DeleteFunc(own, func(o ownPath) bool { return o.path == "" })
	root := "/servers"
	if !c.sound(root) && c.has("/mcpServers") {
		root = "/mcpServers"
	}
	for _, name := range c.config.ServerNames() {
		at := spot{path: root}.below(name).below("confine").path
		if s := c.config.Servers[name]; s.Confine != nil && c.sound(at) {
			c.box(s.Confine, at)
		}
	}
}

// box checks one box, makes its paths absolute and takes out what is there twice.
func (c *checker) box(box *Confine, at string) {
	c.folders(box.Write, at, "write")
	c.folders(box.Read, at, "read")
	c.programs(box.Run, at)
	c.net(&box.Net, at+"/net")
	box.tidy()
	slices.Sort(box.Run)
	box.Run = slices.Compact(box.Run)
}

// item is the place of one of several texts, or of the one that stands for them.
func (c *checker) item(at string, i int) string {
	if path := fmt.Sprintf("%s/%d", at, i); c.has(path) {
		return path
	}
	return at
}

// folders checks what a box lets its program write or read.
func (c *checker) folders(paths Folders, at, key string) {
	if !c.sound(at + "/" + key) {
		return
	}
	for i, path := range paths {
		place := c.item(at+"/"+key, i)
		switch {
		case strings.TrimSpace(path) == "":
			c.at(place, fmt.Sprintf("%q has an empty name", key), `write "." for the folder of this file, "workspace" for those that scripts work on`)
			continue
		case strings.Contains(path, "${"):
			c.at(place, "variables are not filled in here", `write the path; "~" is the home folder`)
			continue
		case path == WorkspaceWord:
			for _, folder := range c.config.Evaluation.Workspace {
				c.tooMuch(folder, place, key, "the workspace")
			}
			continue
		case strings.ContainsAny(path, "*?"):
			c.at(place, fmt.Sprintf("%q takes folders and files, no patterns", key), "name the folder: all below it belongs to it")
			continue
		}
		paths[i] = c.fromFolder(path, place)
		if meant := didYouMean(path, []string{WorkspaceWord}); meant != "" {
			if _, err := os.Stat(paths[i]); errors.Is(err, fs.ErrNotExist) {
				c.at(place, fmt.Sprintf("there is no folder %s beside this file", strconv.Quote(path)), meant)
				continue
			}
		}
		if c.sound(place) {
			c.tooMuch(paths[i], place, key, strconv.Quote(path))
		}
	}
}

// tooMuch complains of a path that no box may have.
func (c *checker) tooMuch(path, place, key, written string) {
	if why, hint := c.config.from.ground.forbids(path, key == "write"); why != "" {
		c.at(place, fmt.Sprintf("no box may %s %s: %s", key, written, why), hint)
	}
}

// machine are the folders through which programs reach the system and each other.
var machine = []string{"/proc", "/sys", "/dev", "/run", "/var/run"}

// disks are those of them that hold disks which somebody has plugged in.
const disks = "/run/media"

// forbids says why a box may not have a path, and what to do; empty if it may.
func (g *ground) forbids(path string, write bool) (why, hint string) {
	const narrower = "name the folders that the server needs"
	for _, p := range []string{path, leads(path)} {
		if filepath.Dir(p) == p {
			return "it is all there is", narrower
		}
		if runtime.GOOS != "windows" {
			for _, folder := range machine {
				if inFolder(p, folder) && !inFolder(p, disks) || inFolder(folder, p) {
					return "the sockets and devices of this machine lead out of any box", narrower
				}
			}
			if p == "/tmp" || p == "/private/tmp" {
				return "it is shared by all programs", "a box has a /tmp of its own; name a folder below it if it must be that one"
			}
		}
		for _, home := range []string{g.home, leads(g.home)} {
			if g.home != "" && inFolder(home, p) {
				return "the home folder is in it, with all keys", narrower
			}
		}
		for _, o := range g.own {
			for _, f := range []string{o.path, leads(o.path)} {
				const apart = "name folders apart from it: a box that has what decides about it is none"
				switch {
				case !write && !o.secret:
				case f == p:
					return "it is " + o.words, apart
				case inFolder(f, p):
					return o.words + " is in it", apart
				case inFolder(p, f):
					return "it belongs to " + o.words, apart
				}
			}
		}
	}
	return "", ""
}

// leads returns where a path leads, links followed as far as they exist.
func leads(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	above := filepath.Dir(path)
	if above == path {
		return path
	}
	return filepath.Join(leads(above), filepath.Base(path))
}

// inFolder reports whether a path is a folder or something below it. Where systems
// compare names without case, so does it.
func inFolder(path, folder string) bool {
	if runtime.GOOS != "linux" {
		path, folder = strings.ToLower(path), strings.ToLower(folder)
	}
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// tidy takes out what is there twice: a path that the nearest one around it brings
// along. Besides being of no use, a program that may write the outer one could make the
// inner one a link to anywhere. Of a path in both lists, Write counts.
func (b *Confine) tidy() {
	b.Read = slices.DeleteFunc(slices.Clone(b.Read), func(path string) bool { return slices.Contains(b.Write, path) })
	write, read := outermost(b.Write, b.Read), outermost(b.Read, b.Write)
	b.Write, b.Read = write, read
}

// outermost returns those paths of a list that are not within another one of it, or only
// beyond one of the other list.
func outermost(paths, other Folders) Folders {
	var kept Folders
	for i, p := range paths {
		around := nearest(paths, p, true)
		apart := len(nearest(other, p, true)) > len(around) || slices.Contains(other, WorkspaceWord) // which may be in between
		if (around == "" || apart) && !slices.Contains(paths[:i], p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// nearest returns the longest of the paths that a path is within; empty if there is none.
// Beyond says that the path itself does not count.
func nearest(paths Folders, path string, beyond bool) string {
	longest := ""
	for _, p := range paths {
		if p != WorkspaceWord && path != WorkspaceWord && inFolder(path, p) && (!beyond || p != path) && len(p) > len(longest) {
			longest = p
		}
	}
	return longest
}

// programs checks which programs a box may start.
func (c *checker) programs(programs Programs, at string) {
	if !c.sound(at + "/run") {
		return
	}
	for i, program := range programs {
		place := c.item(at+"/run", i)
		switch {
		case strings.TrimSpace(program) == "":
			c.at(place, `"run" has an empty name`, `leave it out; "run": [] lets it start nothing but itself`)
		case strings.Contains(program, "${"):
			c.at(place, "variables are not filled in here", `write the path; "~" is the home folder`)
		case strings.ContainsAny(program, "*?"):
			c.at(place, `"run" takes programs, no patterns`, "name each of them")
		case strings.ContainsFunc(program, isSeparator), strings.HasPrefix(program, "~"):
			programs[i] = c.fromFolder(program, place)
		case strings.Contains(program, " "):
			c.at(place, `"run" holds more than the name of a program`, "arguments are not looked at; name the program alone")
		}
	}
}

// net reads the hosts of a box.
func (c *checker) net(net *Net, at string) {
	if !c.sound(at) {
		return
	}
	var hosts []NetHost
	var ports []uint16
	for i, written := range net.Hosts {
		place := c.item(at, i)
		host, m := parseNetHost(written.Name)
		if m != nil {
			c.at(place, m.Message, m.Hint)
			continue
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
		if slices.Contains(ports, host.Port) {
			continue
		}
		if ports = append(ports, host.Port); len(ports) == maxPorts+1 {
			c.at(place, fmt.Sprintf("the hosts of a box have at most %d different ports", maxPorts), `name fewer, or write "net": "any"`)
		}
	}
	net.Hosts = hosts
}

// Box returns the box of a server as it is to be made now: the folders of the workspace
// stand in the place of the word, which are those of the configuration, or else the
// folder here, in which the bridge was started. It is nil for a server that has none.
// Whether folders are there is for whoever makes the box; [Config.BoxRemarks] says it.
func (c *Config) Box(s *Server, here string) (*Confine, error) {
	if s.Confine == nil {
		return nil, nil
	}
	box := *s.Confine
	var err error
	if box.Write, err = c.filled(box.Write, here, true); err != nil {
		return nil, fmt.Errorf("the box of %s: %w", s.Name, err)
	}
	if box.Read, err = c.filled(box.Read, here, false); err != nil {
		return nil, fmt.Errorf("the box of %s: %w", s.Name, err)
	}
	box.tidy()
	if err := box.fixed(); err != nil {
		return nil, fmt.Errorf("the box of %s: %w", s.Name, err)
	}
	return &box, nil
}

// fixed says why a box could become another one without an edit, or be another one than
// it reads.
func (b *Confine) fixed() error {
	for _, path := range slices.Concat(b.Write, b.Read) {
		if link := linkWithin(path, b.Write); link != "" {
			return fmt.Errorf("%s is a link in a folder that the server may write, which could make it lead anywhere; name %s", link, leads(path))
		}
	}
	for _, w := range b.Write {
		for _, r := range b.Read {
			for _, pair := range [][2]string{{w, r}, {r, w}} {
				in, around := pair[0], pair[1]
				if inFolder(leads(in), leads(around)) && !inFolder(in, around) {
					return fmt.Errorf("it may write %s and read %s, and by way of a link one is in the other; name where they lead: %s and %s", w, r, leads(w), leads(r))
				}
			}
		}
	}
	return nil
}

// filled puts the folders of the workspace in the place of the word.
func (c *Config) filled(paths Folders, here string, write bool) (Folders, error) {
	var all Folders
	for _, path := range paths {
		if path != WorkspaceWord {
			all = append(all, path)
			continue
		}
		if len(c.Evaluation.Workspace) > 0 {
			all = append(all, c.Evaluation.Workspace...)
			continue
		}
		const way = "set evaluation.workspace to the folders that scripts work on"
		if here == "" {
			return nil, errors.New("it has the workspace, and nobody has said which folders that is: " + way)
		}
		if why, _ := c.from.ground.forbids(here, write); why != "" {
			return nil, fmt.Errorf("it has the workspace, which would be the folder that the bridge was started in, %s: %s; %s", here, why, way)
		}
		all = append(all, here)
	}
	return all, nil
}

// linkWithin returns the first link on the way to a path that is below a writable
// folder; empty if there is none.
func linkWithin(path string, writable []string) string {
	for at := path; filepath.Dir(at) != at; at = filepath.Dir(at) {
		real := filepath.Join(leads(filepath.Dir(at)), filepath.Base(at))
		below := slices.ContainsFunc(writable, func(folder string) bool {
			return at != folder && real != leads(folder) && (inFolder(at, folder) || inFolder(real, leads(folder)))
		})
		if is, err := os.Lstat(at); below && err == nil && is.Mode()&fs.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}

// BoxRemarks says which boxes can't be made on this machine as it is, one line each:
// folders are missing, or are links that the server could change. A configuration may be
// shared by machines that do not all have the folders, so that is no mistake in it; the
// server does not start without what it is to write.
func (c *Config) BoxRemarks() []string {
	var all []string
	for _, name := range c.ServerNames() {
		s := c.Servers[name]
		if s.Confine == nil || s.Disabled {
			continue
		}
		if err := s.Confine.fixed(); err != nil {
			all = append(all, fmt.Sprintf("server %s: its box: %v", name, err))
		}
		for _, part := range []struct {
			key   string
			paths Folders
			what  string
		}{
			{"write", s.Confine.Write, "make it, or take it out of \"write\"; until then the server does not start"},
			{"read", s.Confine.Read, "make it, or take it out of \"read\""},
		} {
			for _, path := range part.paths {
				if path == WorkspaceWord {
					continue
				}
				if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
					all = append(all, fmt.Sprintf("server %s: its box may %s %s, which is not there: %s", name, part.key, path, part.what))
				}
			}
		}
	}
	return all
}
