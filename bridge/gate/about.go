package gate

import (
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// about says what a call means, for the person who is asked about it. Of a call that
// is not known to mean just that, it only says which arguments matter.
func (c *call) about(view *View) approval.About {
	if c.meaning == nil {
		return approval.About{}
	}
	return aboutCall(c.meaning, view.Meanings[c.tool.Server].Server.Tools[c.tool.Name])
}

func aboutCall(is *profiles.Meaning, tool known.Tool) approval.About {
	a := approval.About{Accepted: is.Accepted && len(is.Unknown) == 0, Effects: is.Effects, Roles: map[string]string{}}
	for name, role := range tool.Args {
		a.Roles[name] = string(role.Shown())
	}
	for _, p := range is.Paths {
		f := approval.Fact{Param: p.Param, Role: string(known.Path), Inside: p.Inside, Secret: p.Secret, Doubt: p.Doubt}
		if changes(is.Effects) {
			f.RunsLater = p.RunsLater
		}
		f.Leads = p.Path
		a.Facts = append(a.Facts, f)
	}
	for _, h := range is.Hosts {
		if is.Triggers {
			continue // no argument names one: it goes where somebody has set it up to go
		}
		a.Facts = append(a.Facts, approval.Fact{Param: h.Param, Role: string(known.Host), New: h.New, Doubt: h.Doubt})
	}
	for _, r := range is.Recipients {
		a.Facts = append(a.Facts, approval.Fact{Param: r.Param, Role: string(known.Recipient), New: r.New})
	}
	return a
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
