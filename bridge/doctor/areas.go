package doctor

import (
	"context"

	"codemode-bridge/bridge/canon"
)

// An Area is one part of an installation, such as its servers.
type Area struct {
	Name  string
	Slow  string // what its check does, if that takes a while; else empty
	check func(context.Context) []Finding
	up    *Checkup
}

// Areas returns the areas in the order in which they are checked. The first reads
// the configuration; those that need one find nothing without it.
func (up *Checkup) Areas() []Area {
	return []Area{
		{"config", "", up.readConfig, up},
		{"versions", "", up.versions, up},
		{"servers", "connecting to the servers", up.servers, up},
		{"tools", "", up.tools, up},
		{"logins", "", up.logins, up},
		{"sandbox", "", up.sandbox, up},
		{"store", "", up.store, up},
		{"ports", "", up.ports, up},
		{"clients", "", up.clients, up},
	}
}

// Check checks the area.
func (a Area) Check(ctx context.Context) []Finding {
	found := a.check(ctx)
	for i := range found {
		found[i].Area = a.Name
		a.up.clean(&found[i])
	}
	return found
}

// clean makes what others wrote fit to be shown: without known secrets, and
// with every character visible.
func (up *Checkup) clean(f *Finding) {
	show := func(text string) string { return canon.Escape(canon.Redact(up.Hide(text))) }
	f.About, f.Text = show(f.About), show(f.Text)
	for i := range f.Said {
		f.Said[i] = show(f.Said[i])
	}
}
