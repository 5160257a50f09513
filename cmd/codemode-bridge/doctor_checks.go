package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox"
)

// A checkup is one look of the doctor at an installation.
type checkup struct {
	app    *console
	path   string
	limit  time.Duration // of each server
	logins *login.Keeper
	known  recorder.Secrets

	cfg    *config.Config // nil: it cannot be used; set by config
	states map[string]upstream.State
}

// An area is what belongs together of an installation.
type area struct {
	name  string
	slow  string // what it does, if that takes a while
	check func(context.Context) []finding
}

// areas are what is looked at, in this order: what needs a configuration finds
// nothing where there is none.
func (up *checkup) areas() []area {
	return []area{
		{"config", "", up.config},
		{"servers", "connecting to the servers", up.servers},
		{"tools", "", up.tools},
		{"logins", "", up.storedLogins},
		{"sandbox", "", up.sandbox},
		{"store", "", up.store},
		{"ports", "", up.ports},
		{"clients", "", up.clients},
	}
}

func (up *checkup) config(context.Context) []finding {
	a := up.app
	cfg, err := a.load()
	var problems config.Problems
	var setup *configError
	switch {
	case errors.As(err, &problems):
		var all []finding
		for _, p := range problems {
			f := failing(p.Path, p.Message, p.Hint)
			f.File, f.Line, f.Column = p.File, p.Line, p.Column
			all = append(all, f)
		}
		return append(all, up.blind())
	case errors.As(err, &setup):
		return []finding{failing("", err.Error(), setup.hint), up.blind()}
	case err != nil:
		return []finding{failing("", err.Error(), ""), up.blind()}
	}
	up.cfg = cfg
	up.known.Learn(given(specs(cfg)), a.env)
	all := []finding{fine("", fmt.Sprintf("%s, %s", count(len(cfg.Servers), "server"), count(len(cfg.Profiles.Names()), "profile")))}
	if !cfg.Profiles.Enabled() {
		all = append(all, warning("", "evaluation.enabled is false: nothing is asked, only denials hold", "remove it from the configuration"))
	}
	if cfg.Profiles.Default() == cfg.Profiles.Unrestricted() {
		all = append(all, warning("", "eval may call every tool unasked: there is no evaluation.defaultProfile", "name a profile there; profiles add --template has ready-made ones"))
	}
	if nobodyMayConfirm(cfg) {
		all = append(all, warning("", nobodyConfirms, "give one of them the role admin"))
	}
	return append(all, up.configFile()...)
}

// blind says what cannot be looked at without a configuration.
func (up *checkup) blind() finding {
	return fine("", "servers, tools, logins, store and ports are not looked at as long as it cannot be used")
}

// configFile looks at who else can read or change the configuration.
func (up *checkup) configFile() []finding {
	info, err := os.Stat(up.path)
	if err != nil || runtime.GOOS == "windows" {
		return nil
	}
	var all []finding
	name := homeShort(up.app, up.path)
	if info.Mode().Perm()&0o002 != 0 {
		all = append(all, failing("", "everybody on this machine can change it", "chmod o-w "+name))
	}
	if text, err := os.ReadFile(up.path); err == nil && info.Mode().Perm()&0o044 != 0 && len(setup.Secrets(text)) > 0 {
		all = append(all, warning("", "it has values of env and headers in it, and others can read it", "chmod 600 "+name+", or write ${NAME} and set the variables"))
	}
	return all
}

func (up *checkup) servers(ctx context.Context) []finding {
	if up.cfg == nil {
		return nil
	}
	up.states = map[string]upstream.State{}
	all := make([]finding, len(up.cfg.Servers))
	var mu sync.Mutex // guards up.states
	var trying sync.WaitGroup
	for i, spec := range specsWithLogins(up.cfg, up.logins) {
		if spec.Disabled {
			all[i] = fine(spec.Name, "disabled")
			continue
		}
		trying.Go(func() {
			limited, cancel := context.WithTimeout(ctx, up.limit)
			defer cancel()
			r := try(limited, spec, nil)
			mu.Lock()
			up.states[r.Name] = upstream.State(r.State)
			mu.Unlock()
			all[i] = up.tried(r)
		})
	}
	trying.Wait()
	return all
}

// tried is what trying a server has shown.
func (up *checkup) tried(r tried) finding {
	why, said, _ := strings.Cut(r.Why, "; its stderr ends: ")
	again := typed(up.app, "servers test "+r.Name)
	var f finding
	switch {
	case r.OK && len(r.Tools) == 0:
		f = warning(r.Name, "it is connected and has no tools", "look at its tools.allow and tools.deny, and at what it needs to have some")
	case r.OK:
		return fine(r.Name, fmt.Sprintf("%s, in %s", count(len(r.Tools), "tool"), took(r.Took)))
	case r.State == string(upstream.NeedsLogin):
		f = warning(r.Name, "it needs a login", typed(up.app, "servers login "+r.Name))
		if up.cfg.Servers[r.Name].Auth.Type == config.AuthNone {
			f.Do = "its headers or its auth in the configuration are what it refuses"
		}
	case r.State == "":
		f = failing(r.Name, fmt.Sprintf("it has not answered within %v", up.limit), "start it by hand to see why, or give it longer with --timeout")
	case strings.HasPrefix(why, "starting the process"):
		f = failing(r.Name, why, "install the program, or write where it is")
	default:
		f = failing(r.Name, why, again+" tries again; servers disable "+r.Name+" does without it")
	}
	if said != "" {
		f.Said = strings.Split(said, " | ")
	}
	return f
}

// tools looks for those that wait to be reviewed.
func (up *checkup) tools(context.Context) []finding {
	if up.cfg == nil {
		return nil
	}
	waiting, err := pins.Open(pinFolder(up.app, up.cfg.File)).Waiting(up.cfg.ServerNames())
	if err != nil {
		return []finding{failing("", err.Error(), "every tool of that server asks until the file is put right; removing it accepts what the server lists next")}
	}
	n := map[pins.State]int{}
	for _, w := range waiting {
		n[w.State]++
	}
	all := []finding{}
	if held := n[pins.New] + n[pins.Changed] + n[pins.Unknown]; held > 0 {
		all = append(all, warning("", count(held, "tool")+" of servers are not what somebody has accepted", typed(up.app, "tools review")))
	}
	if n[pins.Blocked] > 0 {
		all = append(all, fine("", count(n[pins.Blocked], "tool")+" blocked"))
	}
	if len(all) == 0 {
		all = append(all, fine("", "none waits to be reviewed"))
	}
	return all
}

func (up *checkup) storedLogins(context.Context) []finding {
	if up.cfg == nil {
		return nil
	}
	all := []finding{}
	for _, name := range up.cfg.ServerNames() {
		s, ok := serverToLogIn(up.cfg.Servers[name])
		if !ok || up.cfg.Servers[name].Disabled {
			continue
		}
		info, held := up.logins.Client(s).Held()
		again := typed(up.app, "servers login "+name)
		switch {
		case !held && up.states[name] == upstream.NeedsLogin:
			all = append(all, warning(name, "there is none, and the server wants one", again))
		case !held:
		case up.states[name] == upstream.NeedsLogin:
			all = append(all, warning(name, "the server does not take it any more", again))
		case !info.Renews && !info.Expires.IsZero() && time.Now().After(info.Expires):
			all = append(all, warning(name, "it has expired on "+info.Expires.Local().Format(time.DateTime), again))
		default:
			all = append(all, fine(name, describeLogin(info)))
		}
	}
	if len(all) == 0 {
		all = append(all, fine("", "none is stored, and none is needed"))
	}
	return all
}

// sandbox has a worker parse a script, and looks at what confines it.
func (up *checkup) sandbox(ctx context.Context) []finding {
	program, err := worker()
	if err != nil {
		do := ""
		var setup *configError
		if errors.As(err, &setup) {
			do = setup.hint
		}
		return []finding{failing("", err.Error(), do)}
	}
	o := sandbox.Options{Worker: program, Warm: warm(0), MaxWorkers: 1}
	if up.cfg != nil {
		o.Limits = limits(up.cfg.Sandbox)
	}
	pool, err := sandbox.NewPool(o)
	if err != nil {
		return []finding{failing("", err.Error(), "")}
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, up.limit)
	defer cancel()
	if err := bridge.CheckScript(ctx, pool, "return 1"); err != nil {
		return []finding{failing("", "no script can run: "+err.Error(), "install codemode-bridge and codemode-worker from the same release into one folder")}
	}
	return hardening(pool.Status().Hardening)
}

// wanted says of steps of the hardening what to do where one is off.
var wanted = map[string]string{
	"namespaces":        "let processes of users make user namespaces: kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or the container's own profile",
	"landlock":          "use Linux 5.13 or later with landlock among its security modules, and a codemode-worker that was built with CGO_ENABLED=0",
	"no-new-privileges": "use a codemode-worker that was built with CGO_ENABLED=0",
	"seccomp":           "use a kernel with seccomp filters, on amd64 or arm64",
}

// hardening are the steps that confine a worker, as it says itself.
func hardening(steps map[string]string) []finding {
	var all []finding
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		switch state := steps[step]; {
		case state == "on":
			all = append(all, fine(step, "on"))
		case step == "cgroup" && steps["memory-limit"] == "on":
			all = append(all, fine(step, "off ("+state+"); memory-limit holds in its place. systemd's Delegate=memory pids turns it on"))
		default:
			all = append(all, warning(step, "off: "+state, wanted[step]))
		}
	}
	if steps["seccomp"] == "" && steps["landlock"] == "" {
		all = append(all, warning("", "on this system nothing keeps a worker from files and the network but that it has no code for them",
			"run the bridge on Linux where that matters"))
	}
	return all
}

// lowSpace and noSpace are how many bytes the store's disk should and must
// have.
const lowSpace, noSpace = 1 << 30, 64 << 20

func (up *checkup) store(ctx context.Context) []finding {
	if up.cfg == nil {
		return nil
	}
	var all []finding
	places, err := config.Paths(up.app.env)
	if err != nil {
		all = append(all, failing("", err.Error(), "set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME"))
	}
	place := up.cfg.Audit
	loose := up.open(places.StateDir, place.Path) // before SQLite makes more of the kind
	folders := []string{places.StateDir, places.CacheDir}
	if place.Enabled && place.Path != "" {
		all = append(all, up.log(ctx, place)...)
		if folder := filepath.Dir(place.Path); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	} else if !place.Enabled {
		all = append(all, warning("", "the audit log is off: no record is kept, and no run can go on after a restart", "remove audit.enabled from the configuration"))
	}
	for _, folder := range folders {
		if folder != "" {
			all = append(all, up.folder(folder)...)
		}
	}
	return append(all, loose...)
}

// log looks at the audit log.
func (up *checkup) log(ctx context.Context, place config.Audit) []finding {
	name := homeShort(up.app, place.Path)
	if _, err := os.Stat(place.Path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(place.Path + ".key"); errors.Is(err, fs.ErrNotExist) {
			return []finding{fine(name, "there is no audit log yet")}
		}
	}
	o := storeOptions(place)
	o.ReadOnly = true
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return []finding{failing(name, err.Error(), "put that right, or name another file with audit.path")}
	}
	defer db.Close()
	last, _, headErr := db.Head(ctx)
	switch err := db.Err(); {
	case errors.Is(err, ledger.ErrDamaged):
		return []finding{failing(name, err.Error(), typed(up.app, "audit verify")+" says more; "+typed(up.app, "audit repair")+" sets it aside and begins a new one: until then calls are refused")}
	case headErr != nil:
		return []finding{failing(name, headErr.Error(), typed(up.app, "audit verify")+" says more")}
	}
	return []finding{fine(name, fmt.Sprintf("it opens, and its end is whole (last row %d); audit verify checks all", last))}
}

// folder looks whether files can be made in a folder, or where it would be
// made, and how many.
func (up *checkup) folder(folder string) []finding {
	name := homeShort(up.app, folder)
	there := folder
	for {
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			return []finding{failing(name, there+" is a file, not a folder", "move it away")}
		}
		if err == nil || filepath.Dir(there) == there {
			break
		}
		there = filepath.Dir(there)
	}
	f, err := os.CreateTemp(there, ".codemode-doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	if err != nil {
		return []finding{failing(name, "nothing can be written there: "+err.Error(), "make it yours and writable, or set XDG_STATE_HOME and XDG_CACHE_HOME")}
	}
	free, err := freeSpace(there)
	switch {
	case err != nil:
		return []finding{fine(name, "writable")}
	case free < noSpace:
		return []finding{failing(name, size(free)+" are free on its disk; calls are refused once nothing can be recorded", "make room, or audit prune")}
	case free < lowSpace:
		return []finding{warning(name, size(free)+" are free on its disk", "make room, or let audit.keep remove old records")}
	}
	return []finding{fine(name, "writable, "+size(free)+" free")}
}

func size(bytes uint64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d GB", bytes>>30)
}

// open looks for files that others can read.
func (up *checkup) open(state, log string) []finding {
	if runtime.GOOS == "windows" {
		return nil
	}
	var all []string
	loose := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	if log != "" {
		for _, end := range []string{"", "-wal", "-shm", ".key"} {
			loose(log + end)
		}
		loose(up.cfg.Audit.Requests())
	}
	_ = filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			loose(path)
		}
		return nil // what cannot be read is not open to others either
	})
	if len(all) == 0 {
		return []finding{fine("", "what is kept is for you alone")}
	}
	for i, path := range all {
		all[i] = homeShort(up.app, path)
	}
	const few = 4
	do := "chmod 600 " + strings.Join(all, " ")
	if len(all) > few {
		do = "chmod 600 what is in " + homeShort(up.app, state)
		all = append(all[:few], fmt.Sprintf("and %d more", len(all)-few))
	}
	return []finding{warning("", "others can read "+strings.Join(all, ", "), do)}
}

func (up *checkup) ports(ctx context.Context) []finding {
	if up.cfg == nil {
		return nil
	}
	listen := up.cfg.HTTP.Listen.Reveal()
	var all []finding
	if err := mayListen(listen, len(up.cfg.HTTP.Tokens) > 0); err != nil {
		all = append(all, warning("http.listen", "serve refuses it: "+err.Error(), "listen on 127.0.0.1, or add a token to http.tokens"))
	}
	all = append(all, up.port(ctx, "http.listen", listen))
	if page := up.cfg.Approvals.Listen.Reveal(); page == config.ListenOff {
		all = append(all, fine("approvals.listen", "off: there is no approval page"))
	} else {
		all = append(all, up.port(ctx, "approvals.listen", page))
	}
	return all
}

// port looks whether serve could listen on an address, or a bridge does.
func (up *checkup) port(ctx context.Context, key, address string) finding {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
		return fine(key, address+" is free")
	}
	if isBridgeAt(ctx, address) {
		return fine(key, "a bridge listens on "+address)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return warning(key, fmt.Sprintf("serve cannot listen on %s: %v", address, err), "end the program that has it, or name another address")
}

// isBridgeAt reports whether it is a bridge that listens on an address.
func isBridgeAt(ctx context.Context, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r) // no proxy, no redirect
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<10)
	answer.Body.Close()
	return answer.Header.Get("Server") == "codemode-bridge"
}

// A registered is a place of a client's servers as the doctor sees it.
type registered struct {
	place clients.Place
	ours  []clients.Server // entries that start a bridge
	own   []string         // names of the others that are on
	same  bool             // one of ours is what install would write
}

func (up *checkup) clients(context.Context) []finding {
	system := clientSystem(up.app)
	command, err := clientEntry(up.app, up.path)
	if err != nil {
		return []finding{failing("", err.Error(), "")}
	}
	var all []finding
	var places []registered
	has := map[string]bool{} // clients with a bridge, in any of their files
	for _, place := range clients.Places(system) {
		file, err := clients.ReadFile(place.File)
		if err == nil && !file.Existed {
			continue
		}
		var servers []clients.Server
		if err == nil {
			servers, err = place.Servers(file.Text)
		}
		if err != nil {
			all = append(all, warning(place.String(), err.Error(), "put the file right; the client may not read it either"))
			continue
		}
		r := registered{place: place}
		for _, s := range servers {
			switch {
			case s.Bridge && !s.Disabled:
				r.ours = append(r.ours, s)
				if _, same, err := place.Installed(file.Text, s.Name, command); err == nil && same {
					r.same = true
				}
			case !s.Bridge && !s.Disabled && s.Problem == "":
				r.own = append(r.own, s.Name)
			}
		}
		has[place.Client.Name] = has[place.Client.Name] || len(r.ours) > 0
		places = append(places, r)
	}
	for _, r := range places {
		all = append(all, up.client(r, command, has[r.place.Client.Name])...)
	}
	if len(has) == 0 {
		return append(all, fine("", "none of the clients that are known has servers here"))
	}
	if !slices.Contains(slices.Collect(maps.Values(has)), true) {
		all = append(all, warning("", "no client starts the bridge", typed(up.app, "install CLIENT")))
	}
	return all
}

// longest is how many characters many models' interfaces allow for the name of
// a tool, "mcp__SERVER__TOOL" in all.
const longest = 64

// client looks at one file of a client; with says whether the client has the bridge,
// there or in another file.
func (up *checkup) client(r registered, command []string, with bool) []finding {
	name := r.place.String()
	install := "install " + r.place.Client.Name
	if r.place.Scope != r.place.Client.Scopes[0] {
		install += " --scope " + string(r.place.Scope)
	}
	var all []finding
	for _, s := range r.ours {
		switch _, err := os.Stat(s.Command); {
		case r.same:
			all = append(all, fine(name, "starts this bridge as "+s.Name))
		case filepath.IsAbs(s.Command) && err != nil:
			all = append(all, failing(name, "starts "+s.Command+", which is not there", typed(up.app, install)))
		case s.Command != command[0]:
			all = append(all, warning(name, "starts another copy of the program: "+s.Command, typed(up.app, install)+" takes this one"))
		default:
			all = append(all, fine(name, "starts the bridge with other arguments than install would write, as "+s.Name))
		}
		if long := up.tooLong(s.Name); long != "" {
			all = append(all, warning(name, fmt.Sprintf("the tool %s has more than %d characters, and some clients leave it out", long, longest), "shorten the name of the profile, or of the server "+s.Name))
		}
	}
	switch {
	case len(r.ours) == 0 && !with:
		all = append(all, fine(name, "without the bridge"))
	case len(r.own) > 0 && with:
		all = append(all, warning(name, "the model can call "+strings.Join(r.own, ", ")+" past the bridge", typed(up.app, install+" --take-over")))
	}
	return all
}

// tooLong is the longest name that a tool of ours has with clients that call
// the bridge so, if that is too long.
func (up *checkup) tooLong(entry string) string {
	if up.cfg == nil {
		return ""
	}
	full := ""
	for _, profile := range append(up.cfg.Profiles.Names(), "") {
		tool := "mcp__" + entry + "__codemode_eval_" + profile
		if profile == "" {
			tool = "mcp__" + entry + "__get_tool_schema" // the longest of the others
		}
		if len(tool) > max(longest, len(full)) {
			full = tool
		}
	}
	return full
}

// typed is a command as the person types it, with the configuration that they
// have named.
func typed(con *console, command string) string {
	if con.configPath != "" {
		command += " --config " + con.configPath
	}
	if con.environment != "" {
		command += " --env " + con.environment
	}
	return "codemode-bridge " + command
}
