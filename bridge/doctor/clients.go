package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/clients"
)

// A registered is one file of a client with servers.
type registered struct {
	place clients.Place
	ours  []clients.Server // entries that start a bridge
	own   []string         // names of the others that are enabled
	same  bool             // one of ours is what install would write
}

// clients checks the files of MCP clients.
func (up *Checkup) clients(context.Context) []Finding {
	command, err := up.Entry()
	if err != nil {
		return []Finding{failing("", err.Error(), "")}
	}
	var all []Finding
	var places []registered
	has := map[string]bool{} // clients with a bridge, in any of their files
	for _, place := range clients.Places(up.System) {
		file, servers, err := place.Read()
		if err == nil && !file.Existed {
			continue
		}
		if err != nil {
			all = append(all, warning(place.String(), err.Error(), "put the file right; the client may not read it either"))
			continue
		}
		if place.Scope == clients.Local && len(servers) == 0 {
			continue // it is a part of the client's file for the user, which is there without it
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
		all = append(all, warning("", "no client starts the bridge", up.Typed("install CLIENT")))
	}
	return all
}

// longest is how many characters many interfaces of models allow for the name of
// a tool, which is "mcp__SERVER__TOOL" in full.
const longest = 64

// client checks one file of a client; with says whether the client has the bridge,
// in that or another file.
func (up *Checkup) client(r registered, command []string, with bool) []Finding {
	name := r.place.String()
	install := "install " + r.place.Client.Name
	if r.place.Scope != r.place.Client.Scopes[0] {
		install += " --scope " + string(r.place.Scope)
	}
	var all []Finding
	for _, s := range r.ours {
		switch _, err := os.Stat(s.Command); {
		case r.same:
			all = append(all, fine(name, "starts this bridge as "+s.Name))
		case filepath.IsAbs(s.Command) && err != nil:
			all = append(all, failing(name, "starts "+s.Command+", which is not there", up.Typed(install)))
		case !strings.HasPrefix(filepath.Base(s.Command), "codemode-bridge"):
			all = append(all, warning(name, fmt.Sprintf("starts the bridge through %s, which looks into the folder that the client is in: a repository there can have programs of its own run", filepath.Base(s.Command)), up.Typed(install)+" has a program started by its path"))
		case s.Command != command[0]:
			all = append(all, warning(name, "starts another copy of the program: "+s.Command, up.Typed(install)+" takes this one"))
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
		all = append(all, warning(name, "the model can call "+strings.Join(r.own, ", ")+" past the bridge", up.Typed(install+" --take-over")))
	}
	return all
}

// tooLong returns the longest name that a tool of ours gets from a client that
// calls the bridge entry; empty if it is not too long.
func (up *Checkup) tooLong(entry string) string {
	if up.config == nil {
		return ""
	}
	full := ""
	for _, profile := range append(slices.Clone(up.config.Profiles), "") {
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
