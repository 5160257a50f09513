package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/misfit"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// coverOf says what wider answers to c would cover: what they bind, and what they leave
// free. A further call is held to that by its own cover, so whatever is not certain
// here offers none, and covers nothing.
//
// What names a place, a host, a recipient, an amount or a command is always bound.
// Free are the texts that a call writes or sends and, unless it deletes, the numbers
// of items. Of a tool that nobody knows, an argument is free if its name says that it
// is text or counts something, and its value does not look like anything else.
func coverOf(r *Run, view *View, c *call) approval.Cover {
	w := covering{r: r, c: c, args: c.args.Value(), cover: approval.Cover{Kind: c.tool.Name}}
	w.known = c.meaning != nil && c.meaning.Accepted
	if reading, ok := view.reading(c.tool, w.args, c.home(r, view)); ok {
		w.tool, w.values = reading.Tool, reading.Values
	}
	if why := w.never(view); why != "" {
		return approval.Cover{None: why}
	}
	if w.known {
		w.byFile()
	} else {
		w.byNames()
	}
	if w.cover.None != "" {
		return approval.Cover{None: w.cover.None}
	}
	slices.Sort(w.cover.Free)
	w.cover.Free = slices.Compact(w.cover.Free)
	return w.cover
}

// A covering makes the cover of one call.
type covering struct {
	r      *Run
	c      *call
	args   map[string]any
	known  bool // the tool's file is accepted
	tool   known.Tool
	values []known.Value
	cover  approval.Cover
}

// none says why there is no cover; the first reason counts.
func (w *covering) none(format string, args ...any) {
	w.cover.None = cmp.Or(w.cover.None, fmt.Sprintf(format, args...))
}

func (w *covering) bind(param string, kind approval.BoundKind, value string) {
	b := approval.Bound{Param: param, Kind: kind, Value: value}
	if !slices.Contains(w.cover.Bound, b) {
		w.cover.Bound = append(w.cover.Bound, b)
	}
}

func (w *covering) free(param string) { w.cover.Free = append(w.cover.Free, param) }

// never returns why no wider yes covers the call, whatever its arguments mean.
func (w *covering) never(view *View) string {
	if _, unreviewed := view.unreviewed(w.c.tool); unreviewed {
		return "nobody has accepted the tool as it is now"
	}
	if _, hidden := (canon.DisplayOptions{Hidden: w.c.decision.Hidden}).Redact(string(w.c.args.Bytes())); hidden > 0 {
		return "there is something like a secret in it"
	}
	if !w.c.tool.Method {
		if name := misfit.BeyondSchema(w.c.tool.Input, w.args); name != "" {
			return "the tool's schema has no argument " + canon.Escape(name)
		}
	}
	return ""
}

// byFile makes the cover of a call whose tool is known.
func (w *covering) byFile() {
	m := w.c.meaning
	changes := slices.ContainsFunc(m.Effects, func(e string) bool { return e != string(known.Read) })
	deletes := slices.Contains(m.Effects, string(known.Delete)) || slices.Contains(m.Effects, string(known.Spend))
	switch {
	case len(m.Unknown) > 0:
		w.none("nobody has said what the argument %s means", canon.Escape(m.Unknown[0]))
	case len(m.Effects) == 0:
		w.none("nobody has said what it does")
	case w.tool.Stateful && changes:
		w.none("what it does depends on the calls before it")
	}
	w.recipients(m)
	w.paths(m, changes)
	w.hosts()
	across := !w.elsewhere(m)
	leaves := m.Where == string(known.Remote) || m.Net == string(known.NetChosen) || slices.Contains(m.Effects, string(known.Send))
	w.each("", w.args, func(name string, role known.Role, v any) {
		number := misfit.IsNumber(v)
		switch role {
		case known.Command, known.Amount, known.SQL:
			w.bind(name, approval.Exact, exact(v))
		case known.Place:
			if text, ok := v.(string); ok && (strings.ContainsAny(text, misfit.ShellSigns) || strings.HasPrefix(text, "-")) {
				w.none("%s has signs that a shell would read", name)
			}
			if number && !deletes && misfit.IsItem(name) && w.has(known.Place, name) {
				w.free(name)
			} else {
				w.bind(name, approval.Exact, exact(v))
			}
		case known.Content:
			if deletes {
				w.bind(name, approval.Exact, exact(v))
				break
			}
			w.free(name)
			if leaves {
				w.mentions(name, v)
			}
		case known.Plain:
			switch {
			case !changes, across, number && !deletes && !misfit.IsAmount(name):
				if slices.ContainsFunc(misfit.TextsIn(v), misfit.Commands) {
					w.none("%s has signs that a shell would read", name)
				}
				w.free(name)
				if leaves {
					w.mentions(name, v)
				}
			default:
				w.bind(name, approval.Exact, exact(v))
			}
		case known.Path, known.Host, known.PathOrHost, known.Recipient, known.Store: // read as values
		default:
			w.none("nobody has said what the argument %s means", canon.Escape(name))
		}
	})
	if across && !deletes { // elsewhere a call that also sets another text is another one
		for name, role := range w.tool.Args {
			if role == known.Content {
				w.free(name)
			}
		}
	}
	if across {
		w.across(changes)
	}
	w.cover.RunOnly = changes && !across
}

// elsewhere reports whether a call does more than read and write in the workspace or
// in a store of its server on this machine.
func (w *covering) elsewhere(m *profiles.Meaning) bool {
	simple := func(e string) bool { return e == string(known.Read) || e == string(known.Write) }
	return slices.ContainsFunc(m.Effects, func(e string) bool { return !simple(e) }) ||
		m.Where == string(known.Remote) || m.Where == string(known.Workspace) && len(m.Paths) == 0 || m.Net == string(known.NetChosen) ||
		len(m.Hosts)+len(m.Recipients)+len(m.Commands) > 0 || m.Spends
}

// across makes the call like those of its server's other tools that only read or only
// write there, and one that writes in the workspace like those of other known servers.
func (w *covering) across(changes bool) {
	w.cover.Across, w.cover.Kind = true, "read"
	if changes {
		w.cover.Kind = "write"
	}
	if w.c.meaning.Where == string(known.Local) {
		w.cover.Bound = slices.Insert(w.cover.Bound, 0, approval.Bound{Param: "store", Kind: approval.Exact, Value: w.c.tool.Server})
	}
	w.cover.Free = []string{"content"} // the names of arguments differ from tool to tool
	m := w.c.meaning
	w.cover.Shared = changes && m.Where == string(known.Workspace) && !slices.ContainsFunc(m.Paths, func(p profiles.PathFact) bool { return !p.Inside })
}

func (w *covering) recipients(m *profiles.Meaning) {
	for _, to := range m.Recipients {
		w.bind(misfit.PlainName(to.Param), approval.ToRecipient, to.Name)
	}
}

// paths binds the folders of the call's paths: the workspace's, or outside of it the
// path's own.
func (w *covering) paths(m *profiles.Meaning, changes bool) {
	folders := map[string]string{} // by parameter
	for _, p := range m.Paths {
		name := canon.Escape(p.Param)
		switch {
		case p.Doubt != "":
			w.none("%s: %s", name, p.Doubt)
		case p.Secret != "":
			w.none("%s names %s", name, p.Secret)
		case p.RunsLater != "" && changes:
			w.none("%s: %s", name, p.RunsLater)
		case strings.ContainsAny(filepath.Base(p.Path), "$`;|&<>"):
			w.none("%s has signs that a shell would read", name)
		}
		folder := w.folder(p)
		if folder == "" {
			w.none("the folder of %s is too wide", name)
		}
		folders[p.Param] = folder
	}
	one := len(slices.Compact(slices.Sorted(maps.Values(folders)))) <= 1
	for _, p := range m.Paths {
		name := misfit.PlainName(p.Param)
		if one {
			name = "folder"
		}
		w.bind(name, approval.UnderFolder, folders[p.Param])
	}
}

// folder returns what a yes about a path may cover; empty for nothing.
func (w *covering) folder(p profiles.PathFact) string {
	if p.Inside {
		for _, folder := range w.r.Workspace.Folders() {
			if rest, ok := strings.CutPrefix(p.Path, folder); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
				return folder
			}
		}
		return ""
	}
	folder := filepath.Dir(p.Path)
	if is, err := os.Stat(p.Path); err == nil && is.IsDir() {
		folder = p.Path
	}
	if ws, err := workspace.New([]string{folder}, nil); err != nil || !slices.Contains(ws.Folders(), folder) {
		return ""
	}
	return folder
}

// hosts binds the hosts that the arguments name, and the queries of addresses: what is
// asked of a host, and not just read there, may tell it something.
func (w *covering) hosts() {
	for _, v := range w.values {
		if v.Role != known.Host {
			continue
		}
		param := misfit.PlainName(v.Param)
		w.host(param, approval.AtHost, v.Text)
		address, _, _ := strings.Cut(v.Text, "#")
		if _, query, asks := strings.Cut(address, "?"); asks {
			w.bind(approval.QueryOf+param, approval.Exact, exact(query))
		}
	}
}

// host binds one host with what leads to another server there: its scheme and port.
func (w *covering) host(param string, kind approval.BoundKind, text string) {
	fact := profiles.HostNamed(param, text)
	if fact.Doubt != "" {
		w.none("%s: %s", param, fact.Doubt)
		return
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		w.none("%s: it is no address", param)
		return
	}
	value := fact.Name
	if port := u.Port(); port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
		value += ":" + port
	}
	if u.Scheme != "https" {
		value = u.Scheme + "://" + value
	}
	w.bind(param, kind, value)
}

// mentions binds the hosts that a text names.
func (w *covering) mentions(param string, v any) {
	for _, text := range misfit.TextsIn(v) {
		found := misfit.Addresses.FindAllStringSubmatch(text, maxMentions+1)
		if len(found) > maxMentions { // there may be others behind them
			w.none("%s names more hosts than anybody would read", param)
			return
		}
		for _, m := range found {
			host := strings.TrimRight(cmp.Or(m[1], m[2], m[3]), ".,;:!?)]}")
			if m[1] != "" { // up to its path
				w.host(param, approval.Mentions, "https://"+host)
			} else {
				w.host(param, approval.Mentions, host)
			}
			if len(w.cover.Bound) > maxMentions {
				w.none("%s names more hosts than anybody would read", param)
				return
			}
		}
	}
}

// maxMentions bounds what a cover binds.
const maxMentions = 20

// has reports whether the call has another argument of the role besides one.
func (w *covering) has(role known.Role, besides string) bool {
	return slices.ContainsFunc(w.values, func(v known.Value) bool {
		return v.Role == role && misfit.PlainName(v.Param) != besides && !misfit.IsItem(misfit.PlainName(v.Param))
	})
}

// each calls do for each argument that has a role of its own, with its dotted name
// and, for paths, hosts and recipients, for nothing: those are read as values.
func (w *covering) each(name string, object map[string]any, do func(name string, role known.Role, v any)) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		w.leaf(name+key, object[key], do)
	}
}

func (w *covering) leaf(name string, v any, do func(name string, role known.Role, v any)) {
	role := w.tool.Args[name]
	if role == known.Content || role == known.Plain {
		do(name, role, v)
		return
	}
	switch v := v.(type) {
	case []any:
		had := len(w.cover.Bound)
		for _, element := range v {
			w.leaf(name, element, do)
		}
		others := slices.DeleteFunc(slices.Clone(w.cover.Bound[had:]), func(b approval.Bound) bool { return b.Kind == approval.Exact })
		if len(others) < len(w.cover.Bound)-had { // bound is the list, with its order and what belongs together in it
			w.cover.Bound = append(w.cover.Bound[:had], others...)
			w.bind(name, approval.Exact, exact(v))
		}
	case map[string]any:
		w.each(name+".", v, do)
	case nil:
	default:
		do(name, role, v)
	}
}

// byNames makes the cover of a call of a tool that nobody knows.
func (w *covering) byNames() {
	deletes := misfit.Deletes(w.c.tool.Name)
	for _, name := range slices.Sorted(maps.Keys(w.args)) {
		v := w.args[name]
		role := w.tool.Args[name]
		text, isText := v.(string)
		switch {
		case role != "" && role != known.Content && role != known.Plain: // a file that nobody accepted can bind
			w.bind(name, approval.Exact, exact(v))
		case isText && misfit.IsContent(name) && !misfit.LooksLikeAPlace(text) && !misfit.Runs(w.c.tool.Name) && !deletes && !misfit.IsStatement(text):
			w.free(name)
			w.mentions(name, v)
		case misfit.IsNumber(v) && misfit.IsItem(name) && !deletes:
			w.free(name)
		default:
			w.bind(name, approval.Exact, exact(v))
		}
	}
}

// exact returns the canonical text of a value that is bound as it is.
func exact(v any) string {
	text, isText := v.(string)
	if !isText || text == "" || json.Valid([]byte(text)) || strings.HasPrefix(text, digest) { // "5" is not 5
		b, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text = string(b)
	}
	if len(text) > maxExact {
		return fmt.Sprintf(digest+"%x", sha256.Sum256([]byte(text)))
	}
	return text
}

// maxExact bounds the bytes of a bound value that are kept as they are; of others there
// is the digest.
const (
	maxExact = 200
	digest   = "sha256:"
)
