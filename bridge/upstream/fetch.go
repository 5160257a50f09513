package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/relay"
	"codemode-bridge/bridge/upstream/npm"
	"codemode-bridge/sandbox/confine"

	"github.com/google/uuid"
)

// A child that npx starts is code that its registry holds. In a box it is started in two
// steps, each with less than both would need:
//
//	fetch   a box with the registry alone, which may write the store: npx fetches the
//	        package and what it needs, and their installation scripts run
//	run     the server's own box, which may read the store: the program that npx would
//	        have started is started without it
//
// A package with an exact version is fetched once. Another is looked up at each start,
// as npx does; when the registry can't be reached, the one in the store is run.

// fetchPatience is how long fetching may take, and waiting for another process that
// fetches. It comes before Limits.ConnectTimeout.
const fetchPatience = 5 * time.Minute

// A fetching is what a child's packages are fetched with.
type fetching struct {
	packages []string
	npm      []string // what comes before the arguments of npx: "exec", of npm
	exact    bool     // all packages have exact versions
	command  string   // that they are to run; empty: the first package's own
	args     []string // of the command
}

// A fetchedBin is what fetching has found, as it is kept in the store.
type fetchedBin struct {
	Folder  string `json:"folder"`  // of _npx in the cache, in which the packages are
	Command string `json:"command"` // in its node_modules/.bin, or of the machine
}

// bin returns the folder of the packages' programs.
func (b fetchedBin) bin(cache string) string {
	return filepath.Join(cache, "_npx", b.Folder, "node_modules", ".bin")
}

// fetchingOf reads the arguments of a program. It knows those that name the packages to
// run from a registry; with others npm is left alone, and finds what is already there.
func fetchingOf(p program) (f fetching, ok bool) {
	args := p.args[1:]
	switch strings.TrimSuffix(filepath.Base(p.args[0]), ".cmd") {
	case "npx":
	case "npm":
		if len(args) == 0 || args[0] != "exec" && args[0] != "x" {
			return f, false
		}
		f.npm, args = []string{"exec"}, args[1:]
	default:
		return f, false
	}
	for len(args) > 0 {
		arg, rest := args[0], args[1:]
		name, value, has := strings.Cut(arg, "=")
		switch {
		case arg == "-y", arg == "--yes", arg == "-q", arg == "--quiet":
		case name == "-p" || name == "--package":
			if !has {
				if len(rest) == 0 {
					return f, false
				}
				value, rest = rest[0], rest[1:]
			}
			f.packages = append(f.packages, value)
		case arg == "--" && len(rest) > 0, !strings.HasPrefix(arg, "-"):
			if arg == "--" {
				arg, rest = rest[0], rest[1:]
			}
			if f.command = arg; len(f.packages) == 0 {
				f.packages, f.command = []string{arg}, ""
			}
			f.args, rest = rest, nil
		default:
			return f, false
		}
		args = rest
	}
	f.exact = true
	for _, name := range f.packages {
		m := registered.FindStringSubmatch(name)
		if m == nil {
			return f, false
		}
		f.exact = f.exact && exactVersion.MatchString(m[1])
	}
	return f, len(f.packages) > 0
}

// Fetches returns the hosts with their ports from which a program is fetched, in a box of
// its own, before it is started in one; none if it is not fetched apart. Ours is the
// environment of the bridge.
func Fetches(command string, args, ours, child []string) (hosts []string) {
	if _, ok := fetchingOf(program{args: append([]string{command}, args...)}); !ok {
		return nil
	}
	for _, h := range registries(npm.Read(ours, child, lookup)) {
		hosts = append(hosts, net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))))
	}
	return hosts
}

var (
	// registered matches the packages of a registry, with the version.
	registered   = regexp.MustCompile(`^(?:@[a-zA-Z0-9._~-]+/)?[a-zA-Z0-9_~-][a-zA-Z0-9._~-]*(?:@([^/:]+))?$`)
	exactVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?$`)
)

// fetched returns the spec by which a child is started from its store, after it has
// fetched what is not there yet. It returns other specs as they are.
func (s Spec) fetched(ctx context.Context, ours []string, log *slog.Logger, shown redactor) (Spec, error) {
	if s.Box == nil || s.Box.Store == "" || s.Box.Wrong != "" || s.kind() != Stdio || !searchable {
		return s, nil
	}
	p, err := s.program(ours)
	if err != nil {
		return s, &startError{err}
	}
	f, ok := fetchingOf(p)
	if !ok {
		return s, nil
	}
	cache := filepath.Join(s.Box.Store, "npm")
	found, err := f.find(ctx, s, p, ours, cache, log, shown)
	if err != nil {
		return s, &startError{fmt.Errorf("fetching %s: %w", strings.Join(f.packages, ", "), err)}
	}
	box := *s.Box
	box.Read = append(slices.Clone(box.Read), cache)
	s.Box = &box
	path, _ := lookup(p.env, "PATH")
	s.Env = maps.Clone(s.Env)
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	s.Env["PATH"] = found.bin(cache) + string(filepath.ListSeparator) + path
	s.Command, s.Args = found.Command, f.args
	return s, nil
}

// find says what to run, and fetches it if need be. One process at a time does.
func (f fetching) find(ctx context.Context, s Spec, p program, ours []string, cache string, log *slog.Logger, shown redactor) (fetchedBin, error) {
	n := npm.Read(ours, p.env, lookup)
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Clone(f.packages), f.command, n.Registry), "\n")))
	note := filepath.Join(s.Box.Store, "fetched-"+hex.EncodeToString(sum[:8])+".json")
	had := func() (found fetchedBin, ok bool) {
		text, err := os.ReadFile(note)
		if err != nil || json.Unmarshal(text, &found) != nil {
			return found, false
		}
		return found, isFolder(found.bin(cache))
	}
	if found, ok := had(); ok && f.exact {
		return found, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchPatience, errors.New("it took too long"))
	defer cancel()
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fetchedBin{}, err
	}
	unlock, err := locked(ctx, filepath.Join(s.Box.Store, "lock"))
	if err != nil {
		return fetchedBin{}, fmt.Errorf("waiting for another process that fetches: %w", err)
	}
	defer unlock()
	before, ok := had()
	if ok && f.exact {
		return before, nil // fetched by the other process
	}
	log.Info("fetching what a server in a box runs", "packages", f.packages, "registry", n.Registry)
	found, err := f.run(ctx, s, p, n, cache, log, shown)
	switch {
	case err != nil && ok && ctx.Err() == nil:
		log.Warn("the newest version of a server's package could not be looked up, so the one that is there is run", "packages", f.packages, "err", err)
		return before, nil
	case err != nil:
		return fetchedBin{}, err
	}
	text, err := json.Marshal(found)
	if err != nil {
		return fetchedBin{}, err
	}
	return found, os.WriteFile(note, text, 0o600) // what is half written is fetched again
}

// where is a program for node that says in which folder npm has put the packages: the
// first of its PATH.
const where = `console.log(process.env.PATH.split(require("path").delimiter).find(p => p.includes("_npx")) || "")`

// run runs npm in a box that reaches the registry alone.
func (f fetching) run(ctx context.Context, s Spec, p program, n npm.Settings, cache string, log *slog.Logger, shown redactor) (found fetchedBin, err error) {
	p.args = append([]string{p.args[0]}, f.npm...)
	p.args = append(p.args, "-y")
	for _, name := range f.packages {
		p.args = append(p.args, "--package="+name)
	}
	p.args, p.dir = append(p.args, "--", "node", "-e", where), cache
	// Of the server's own variables none is needed here, and some are secrets.
	p.env = Inherited(nil, p.env)
	for name, value := range n.Variables {
		p.env = append(p.env, name+"="+value)
	}
	p.env = append(p.env, "npm_config_cache="+cache, "npm_config_userconfig="+os.DevNull, "npm_config_update_notifier=false",
		"npm_config_logs_max=0", "npm_config_audit=false", "npm_config_fund=false")
	box := *s.Box
	box.Box = confine.Box{Write: []string{cache}, Read: n.Files, Net: confine.Net{Hosts: registries(n)}, Require: box.Require}
	said, printed, refused, err := p.finish(ctx, &box, relay.Options{Log: log, Dial: n.Dial}, log, shown)
	if err != nil {
		text := err.Error() + said
		if len(refused) > 0 {
			text += "; it asked for " + strings.Join(refused, ", ") + ", which is not its registry"
		}
		return found, errors.New(text)
	}
	// What is printed may be what the package wants.
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	m := npxFolder.FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		return found, errors.New("npm has not said where it put it")
	}
	found.Folder, found.Command = m[1], f.command
	if !isFolder(found.bin(cache)) {
		return found, errors.New("it has no program")
	}
	if found.Command == "" {
		found.Command, err = mainBin(cache, filepath.Join("_npx", found.Folder, "node_modules"), f.packages[0])
	}
	return found, err
}

var npxFolder = regexp.MustCompile(`[/\\]_npx[/\\]([0-9a-f]+)[/\\]node_modules[/\\]\.bin$`)

// mainBin returns the name of a package's program, as npx finds it: the only one, or the
// one with the package's name.
func mainBin(cache, modules, spec string) (string, error) {
	name := spec
	if i := strings.LastIndex(name, "@"); i > 0 {
		name = name[:i]
	}
	text, err := readWithin(cache, filepath.Join(modules, filepath.FromSlash(name), "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", fmt.Errorf("reading package.json of %s: %w", name, err)
	}
	short := name[strings.LastIndex(name, "/")+1:]
	var bins map[string]string
	if json.Unmarshal(manifest.Bin, &bins) != nil {
		return short, nil // a single path, or lookPath says that there is none
	}
	if _, ok := bins[short]; !ok {
		only := slices.Compact(slices.Sorted(maps.Values(bins)))
		if len(only) != 1 {
			return "", fmt.Errorf("%s has the programs %s; name one: npx --package=%s -- NAME", name, strings.Join(slices.Sorted(maps.Keys(bins)), ", "), spec)
		}
		short = slices.Sorted(maps.Keys(bins))[0]
	}
	if filepath.Base(short) != short {
		return "", fmt.Errorf("%s has a program with the name %q", name, short)
	}
	return short, nil
}

// maxManifest bounds a package.json.
const maxManifest = 4 << 20

// readWithin reads a file of a folder in which installation scripts may have put anything:
// links that lead out of it, pipes, files without end.
func readWithin(folder, name string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	is, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() || is.Size() > maxManifest {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", name, maxManifest)
	}
	return io.ReadAll(io.LimitReader(file, maxManifest))
}

// maxPrinted bounds what is kept of what npm prints.
const maxPrinted = 64 << 10

// finish runs a program in a box to its end, or ctx's. It returns its last lines, what it
// printed, and the hosts that it was refused.
func (p program) finish(ctx context.Context, box *Box, o relay.Options, log *slog.Logger, shown redactor) (said, printed string, refused []string, err error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", "", nil, err
	}
	files = append(files, null)
	p.files[0] = null
	var ends [2]*os.File
	for i := range ends {
		r, w, err := os.Pipe()
		if err != nil {
			return "", "", nil, err
		}
		files = append(files, r, w)
		ends[i], p.files[i+1] = r, w
	}
	cookie := uuid.NewString()
	p.env = append(p.env, marker+"="+cookie)
	c, err := p.run(box, o)
	if err != nil {
		return "", "", nil, err
	}
	p.files[1].Close()
	p.files[2].Close()
	group := newGroup(c.cmd.Process)
	stop := context.AfterFunc(ctx, func() { c.close(); group.kill(cookie) })
	defer stop()
	lines := tail{shown: shown, asks: func(string) {}}
	out := make(chan string)
	go func() {
		text, err := io.ReadAll(io.LimitReader(ends[0], maxPrinted))
		if err == nil {
			_, _ = io.Copy(io.Discard, ends[0]) // so that it does not wait for us
		}
		out <- string(text)
	}()
	lines.read(ends[1], log) // until all of them have ended
	printed = <-out
	err = c.cmd.Wait()
	refused = c.status().Refused
	c.close()
	group.close()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return lines.last(), printed, refused, err
}

// locked takes the lock of a file until unlock.
func locked(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := filelock.Try(file)
		if err == nil {
			return func() { file.Close() }, nil // which lets it go
		}
		if !errors.Is(err, filelock.ErrHeld) {
			file.Close()
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			file.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// registries are the hosts that a box lets fetching reach.
func registries(n npm.Settings) (all []confine.Host) {
	for _, h := range n.Hosts {
		all = append(all, confine.Host{Name: h.Name, Port: h.Port})
	}
	return all
}
