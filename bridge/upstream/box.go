package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/relay"
	"codemode-bridge/sandbox/confine"
)

// A Box is what a child may do, and how it is kept to that.
type Box struct {
	// Box has the folders, hosts and programs; names in its Run are looked up in the
	// child's PATH. What any program of the child's kind needs is added when it starts.
	confine.Box
	Launcher string // the program that makes boxes: codemode-worker
	// Store is a folder for what the child's package manager fetches, its own; empty:
	// nothing is fetched, and the child has what is there.
	Store string
	// Wrong, if not empty, says why there is no such box: the child is not started.
	Wrong string
}

// Boxed says what holds a child.
type Boxed struct {
	Box   confine.Box // what the configuration says
	Steps confine.Steps
	Held  confine.Hold
	// Refused are hosts that it asked for and that its box does not name.
	Refused []string
}

// A program is what a child runs: what exec.Cmd is made of.
type program struct {
	path  string
	args  []string // its name first
	dir   string
	env   []string
	files [3]*os.File // stdin, stdout and stderr
}

func (p program) command() *exec.Cmd {
	return &exec.Cmd{
		Path: p.path, Args: p.args, Dir: p.dir, Env: p.env, SysProcAttr: groupAttributes(),
		Stdin: p.files[0], Stdout: p.files[1], Stderr: p.files[2],
	}
}

// A contained is a program that was started, in a box if it has one.
type contained struct {
	cmd *exec.Cmd

	// Of a box; nil without one.
	box     *confine.Program
	boxed   Boxed
	relay   *relay.Relay
	allowed confine.Box // boxed.Box with what programs need
}

// run starts a program, in a box unless that is nil. Dial connects its hosts; nil: as
// package relay does.
func (p program) run(box *Box, o relay.Options) (*contained, error) {
	if box == nil {
		cmd := p.command()
		return &contained{cmd: cmd}, cmd.Start()
	}
	in, err := box.around(p)
	if err != nil {
		return nil, err
	}
	started, err := in.Start(box.Launcher, p.command)
	if err != nil {
		return nil, err
	}
	c := &contained{cmd: started.Cmd, box: started, allowed: in}
	c.boxed = Boxed{Box: box.Box, Steps: started.Steps, Held: box.Holds(started.Steps)}
	if len(started.Sockets) > 0 {
		o.Names = confine.Names
		for _, h := range box.Net.Hosts {
			o.Hosts = append(o.Hosts, relay.Host{Name: h.Name, Port: h.Port})
		}
		var sockets []relay.Socket
		for _, s := range started.Sockets {
			sockets = append(sockets, relay.Socket{File: s.File, Port: s.Port})
		}
		if c.relay, err = relay.Serve(sockets, o); err != nil {
			c.close()
			_ = c.cmd.Wait() // it was ended
			return nil, err
		}
	}
	return c, nil
}

// close ends what is left of a box.
func (c *contained) close() {
	if c.box == nil {
		return
	}
	c.box.Close()
	if c.relay != nil {
		c.relay.Close()
	}
}

// status is what is known of the box; nil without one.
func (c *contained) status() *Boxed {
	if c.box == nil {
		return nil
	}
	b := c.boxed
	if c.relay != nil {
		b.Refused = c.relay.Refused()
	}
	return &b
}

// around returns the box for one program: with what it needs to run at all.
func (b *Box) around(p program) (confine.Box, error) {
	in := b.Box
	if b.Wrong != "" {
		return in, errors.New(b.Wrong)
	}
	for _, path := range in.Write {
		if _, err := os.Stat(path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return in, fmt.Errorf("its box may write %s, which is not there: make it, or take it out of confine.write", path)
			}
			return in, fmt.Errorf("its box may write %s: %w", path, err)
		}
	}
	program := p.path
	if !filepath.IsAbs(program) {
		program = filepath.Join(p.dir, program)
	}
	others := slices.Clone(in.Write) // in which the server, or an installation script, may have made links
	if b.Store != "" {
		others = append(others, b.Store)
	}
	needs := confine.Needs(program, p.env, others...)
	if code := codeOf(p, others...); code != "" {
		needs = append(needs, code)
	}
	in.Read = slices.Clone(in.Read)
	if to, foreign := confine.Leads(program, others...); foreign && !confine.OfSystem(to) &&
		!slices.ContainsFunc(slices.Concat(others, in.Read, needs), func(place string) bool {
			place, _ = confine.Leads(place)
			return within(to, place)
		}) {
		return in, fmt.Errorf("%s is a link that the server may have made, which leads to %s: name that in confine.read", program, to)
	}
	for _, path := range needs {
		// A folder to read within one to write is read-only: what a program only
		// needs must not take away what it is given.
		if !slices.ContainsFunc(in.Write, func(folder string) bool { return within(path, folder) }) && !slices.Contains(in.Read, path) {
			in.Read = append(in.Read, path)
		}
	}
	if in.Run != nil {
		in.Run = slices.Clone(in.Run)
		for i, name := range in.Run {
			if filepath.IsAbs(name) {
				continue
			}
			path, err := lookPath(name, p.env)
			if err != nil {
				return in, fmt.Errorf("its box may run %s: %w", name, err)
			}
			in.Run[i] = path
		}
	}
	return in, nil
}

// interpreter matches the programs whose first argument is a program.
var interpreter = regexp.MustCompile(`^(node|nodejs|bun|deno|python[0-9.]*|ruby|perl|php)$`)

// codeOf returns where the code of a program is that an interpreter runs: the packages
// that it belongs to, or its package, or the file itself if it lies in the home folder.
// Of what lies in one of the folders others nothing more is needed.
func codeOf(p program, others ...string) string {
	name := strings.TrimSuffix(filepath.Base(p.args[0]), ".exe")
	if !interpreter.MatchString(name) {
		return ""
	}
	for _, arg := range p.args[1:] {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		file := arg
		if !filepath.IsAbs(file) {
			file = filepath.Join(p.dir, file)
		}
		if is, err := os.Stat(file); err != nil || !is.Mode().IsRegular() {
			continue
		}
		to, foreign := confine.Leads(file, others...)
		if foreign {
			return ""
		}
		home, _ := lookup(p.env, "HOME")
		home, _ = confine.Leads(home)
		return packageOf(to, home)
	}
	return ""
}

func packageOf(file, home string) string {
	const modules = string(filepath.Separator) + "node_modules"
	if i := strings.Index(file, modules+string(filepath.Separator)); i >= 0 {
		return file[:i+len(modules)]
	}
	for dir := filepath.Dir(file); dir != filepath.Dir(dir) && !within(home, dir); dir = filepath.Dir(dir) {
		for _, sign := range []string{"package.json", "pyproject.toml", "deno.json"} {
			if _, err := os.Stat(filepath.Join(dir, sign)); err == nil {
				return dir
			}
		}
	}
	if dir := filepath.Dir(file); !within(home, dir) {
		return dir
	}
	return file
}

// within reports whether a path is a folder or below it.
func within(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// note logs once what of a box does not hold.
func (c *contained) note(log *slog.Logger) {
	if c.box == nil {
		return
	}
	if lacks := c.boxed.Box.Lacks(c.boxed.Steps); len(lacks) > 0 {
		log.Warn("the server's box does not hold as it is configured; \"require\": true would refuse to start it", "lacks", lacks)
	}
	log.Debug("server runs in a box", "box", c.boxed.Box.String(), "off", c.boxed.Steps.Off())
}
