package gate

import (
	"maps"
	"path/filepath"
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// about says what a call means, for the person who is asked about it. Of a call that
// is not known to mean just that, it only says which arguments matter.
func (c *call) about(view *View, ws workspace.Workspace) approval.About {
	var a approval.About
	if c.meaning != nil {
		a = aboutCall(c.meaning, view.Meanings[c.tool.Server].Server, c.tool.Name, ws)
	}
	a.Box = view.box(c.tool.Server).Says
	return a
}

func aboutCall(is *profiles.Meaning, server known.Server, tool string, ws workspace.Workspace) approval.About {
	a := approval.About{Accepted: is.Accepted && len(is.Unknown) == 0, Effects: is.Effects, Roles: map[string]string{}}
	for name, role := range server.Tools[tool].Args {
		a.Roles[name] = string(role.Shown())
	}
	for _, p := range is.Paths {
		f := approval.Fact{Param: p.Param, Role: string(known.Path), Inside: p.Inside, Secret: p.Secret, Doubt: p.Doubt}
		if changes(is.Effects) {
			f.RunsLater = p.RunsLater
		}
		f.Leads = p.Path
		if p.Inside {
			f.Within = below(ws, p.Path)
		}
		a.Facts = append(a.Facts, f)
	}
	for _, h := range is.Hosts {
		f := approval.Fact{Param: h.Param, Role: string(known.Host), New: h.New, Doubt: h.Doubt}
		if h.Param == pageParam {
			if !opensPages(server) {
				continue // whom a command reaches is for the command to say
			}
			f.Leads = h.Name
		}
		a.Facts = append(a.Facts, f)
	}
	for _, r := range is.Recipients {
		a.Facts = append(a.Facts, approval.Fact{Param: r.Param, Role: string(known.Recipient), New: r.New})
	}
	return a
}

// opensPages reports whether calls of a server act on the page that others have opened.
func opensPages(server known.Server) bool {
	for _, tool := range server.Tools {
		if browses(tool) && slices.Contains(slices.Collect(maps.Values(tool.Args)), known.Host) {
			return true
		}
	}
	return false
}

// below returns the path that leads from the folder of the workspace to a place in it;
// empty if the workspace has several folders: people would not know which.
func below(ws workspace.Workspace, path string) string {
	folders := ws.Folders()
	if len(folders) != 1 {
		return ""
	}
	within, err := filepath.Rel(folders[0], path)
	if err != nil || !filepath.IsLocal(within) {
		return ""
	}
	return within
}

// changes reports whether effects are more than reading.
func changes(effects []string) bool {
	return len(effects) == 0 || slices.ContainsFunc(effects, func(e string) bool { return e != string(known.Read) })
}

// order returns the names of the call's arguments in the order of the tool's schema.
func (c *call) order() []string {
	args := c.args.Value()
	return slices.DeleteFunc(c.tool.Arguments(), func(name string) bool { _, has := args[name]; return !has })
}
