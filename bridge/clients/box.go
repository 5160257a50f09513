package clients

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Box is how a client confines a server, in the bridge's own terms: what it writes,
// and what it only reads within that, and the hosts that it reaches. Nothing else.
type Box struct {
	Write, Read []string // absolute, below "~/", or "workspace"
	Net         []string // hosts
	AnyNet      bool
}

// VS Code confines a stdio server with "sandboxEnabled": true, on macOS and Linux. How,
// says the "sandbox" of the whole file: writing is denied but for what allowWrite names,
// reading is allowed but for what denyRead names, and hosts are denied but for
// allowedDomains. The folder of its start it may write too.
//
//	"sandbox": {
//	  "filesystem": { "allowWrite": ["."], "denyRead": ["~/.ssh"], "denyWrite": [".git"] },
//	  "network": { "allowedDomains": ["*.example.com"], "deniedDomains": [] } }
//
// A box of ours can't name what is to be left out of a whole. It reads less than that
// sandbox does, which denies all that denyRead names, unless that is within what it
// writes.

// boxOf returns how a client confines a server; nil if it does not. The problem says why
// it can't be kept, which keeps the server from being taken over.
func (t *translator) boxOf(f *fields, whole map[string]any, s *Server) (box *Box, problem string) {
	own := f.take("sandbox")
	if enabled, said := f.take("sandboxEnabled").(bool); !enabled {
		if _, there := f.m["sandboxEnabled"]; there && !said {
			return nil, `its "sandboxEnabled" is neither true nor false`
		}
		if own != nil {
			s.Notes = append(s.Notes, `left out: "sandbox", which is not enabled`)
		}
		return nil, ""
	}
	if s.Kind != Stdio {
		return nil, "" // the client confines programs only
	}
	if t.place.system.OS == "windows" {
		s.Notes = append(s.Notes, fmt.Sprintf("%s does not confine it on Windows, and neither does the bridge: give it a \"confine\"", t.place.Client.Title))
		return nil, ""
	}
	if own == nil {
		own = whole["sandbox"]
	}
	b := &sandbox{translator: t, title: t.place.Client.Title}
	files, net := b.table(own, "sandbox", "filesystem", "network")
	allow, deny := b.texts(files, "filesystem", "allowWrite", "denyWrite", "denyRead")
	domains, denied := b.texts(net, "network", "allowedDomains", "deniedDomains")
	box = &Box{}
	b.folders(box, allow, deny, s.Cwd)
	b.hosts(box, domains, denied["deniedDomains"])
	if b.problem != "" {
		return nil, fmt.Sprintf("%s confines it, and that can't be kept: %s", b.title, b.problem)
	}
	s.Notes = append(s.Notes, fmt.Sprintf("%s confines it, and so does its box, which reads less: servers allow NAME --read DIR adds to it", b.title))
	if len(b.left) > 0 {
		s.Notes = append(s.Notes, "left out of its box: "+strings.Join(b.left, ", "))
	}
	return box, ""
}

// A sandbox is one of VS Code while it is read.
type sandbox struct {
	*translator
	title   string
	problem string   // the first
	left    []string // keys that allow more, and are not kept
}

func (b *sandbox) bad(format string, args ...any) {
	if b.problem == "" {
		b.problem = fmt.Sprintf(format, args...)
	}
}

// table reads the two tables of an object.
func (b *sandbox) table(v any, name string, first, second string) (one, two map[string]any) {
	m := b.object(v, name)
	b.known(m, first, second)
	return b.object(m[first], first), b.object(m[second], second)
}

func (b *sandbox) object(v any, name string) map[string]any {
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		b.bad("its %q is not an object", name)
	}
	return m
}

// known notes keys that are unknown. What one forbids can't be left out.
func (b *sandbox) known(m map[string]any, keys ...string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case slices.Contains(keys, key):
		case strings.HasPrefix(key, "allow"):
			b.left = append(b.left, strconv.Quote(key))
		default:
			b.bad("what its %q means is not known", key)
		}
	}
}

// texts reads the lists of a table: what it allows, and by their names what it denies.
func (b *sandbox) texts(m map[string]any, name, allow string, deny ...string) (allowed []string, denied map[string][]string) {
	b.known(m, append(deny, allow)...)
	list := func(key string) (all []string) {
		values, ok := m[key].([]any)
		if m[key] != nil && !ok {
			b.bad("its %q is not a list", name+"."+key)
		}
		for _, v := range values {
			text, ok := v.(string)
			if !ok {
				b.bad("its %q is not a list of texts", name+"."+key)
			}
			all = append(all, text)
		}
		return all
	}
	denied = map[string][]string{}
	for _, key := range deny {
		denied[key] = list(key)
	}
	return list(allow), denied
}

// folders keeps what a sandbox lets its server write.
func (b *sandbox) folders(box *Box, allow []string, deny map[string][]string, cwd string) {
	if cwd != "" {
		allow = append(allow, cwd)
	}
	for _, path := range allow {
		if path = b.path(path); !slices.Contains(box.Write, path) {
			box.Write = append(box.Write, path)
		}
	}
	for _, path := range deny["denyWrite"] {
		path = b.path(path)
		box.Write = slices.DeleteFunc(box.Write, func(w string) bool { return inside(path, w, true) })
		if slices.ContainsFunc(box.Write, func(w string) bool { return inside(w, path, false) }) {
			box.Read = append(box.Read, path)
		}
	}
	for _, path := range deny["denyRead"] {
		path = b.path(path)
		for _, w := range box.Write {
			if inside(w, path, true) || inside(path, w, true) {
				b.bad("it may write %s and not read %s", w, path)
			}
		}
	}
}

// path translates a path of a sandbox.
func (b *sandbox) path(path string) string {
	const home = "${userHome}"
	written := path
	if strings.ContainsAny(path, "*?[") {
		b.bad("its sandbox has the pattern %s", written)
	}
	if rest, ok := strings.CutPrefix(path, home); ok {
		path = "~" + rest
	}
	folder := b.place.project()
	if rest, ok := strings.CutPrefix(path, "${workspaceFolder}"); ok {
		path = "." + rest
	}
	switch {
	case strings.Contains(path, "${"):
		b.bad("its sandbox names %s, which only %s can fill in", written, b.title)
	case filepath.IsAbs(path):
		if home, err := filepath.Rel(b.place.system.home(), path); err == nil && filepath.IsLocal(home) {
			path = filepath.Join("~", home)
		}
		return path
	case strings.HasPrefix(path, "~"), path == "":
		return path
	case folder != "":
		return filepath.Join(folder, path)
	case filepath.Clean(path) == ".":
		return "workspace"
	default:
		b.bad("its sandbox names %s, and only %s knows where that is", written, b.title)
	}
	return path
}

// inside reports whether a path is in a folder, or, if that counts, the folder itself.
// Where the workspace is nobody knows here: anything may be in it but what no project has.
func inside(folder, path string, itself bool) bool {
	folder, path = filepath.Clean(folder), filepath.Clean(path)
	if folder == path {
		return itself
	}
	if folder == "workspace" || path == "workspace" {
		other := strings.TrimSuffix(folder, "workspace") + strings.TrimSuffix(path, "workspace")
		return !strings.HasPrefix(other, "~/.") && !strings.HasPrefix(other+"/", "/etc/")
	}
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// hosts keeps what a sandbox lets its server reach.
func (b *sandbox) hosts(box *Box, allowed, denied []string) {
	for _, domain := range denied {
		if i := slices.Index(allowed, domain); i >= 0 {
			allowed = slices.Delete(slices.Clone(allowed), i, i+1)
		}
		for _, a := range allowed {
			if parent, wild := strings.CutPrefix(a, "*."); a == "*" || wild && (strings.HasSuffix(domain, "."+parent) || domain == parent) {
				b.bad("it may reach %s and not %s", a, domain)
			}
		}
	}
	box.Net, box.AnyNet = allowed, slices.Contains(allowed, "*")
}
