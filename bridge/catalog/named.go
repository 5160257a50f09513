package catalog

import "codemode-bridge/bridge/tsdecl"

// A Named is an Item with the tool's other name, for people who write policy.
type Named struct {
	Item
	Policy string `json:"policy,omitempty"` // server__tool, which the patterns of policy match; empty for a saved script
}

// Named adds their other names to items of c.
func (c *Catalog) Named(items []Item) []Named {
	all := make([]Named, len(items))
	for i, e := range items {
		all[i].Item = e
		if t, ok := c.byName[e.Name]; ok {
			all[i].Policy = t.path
		}
	}
	return all
}

// Named finds one visible tool or saved script by any name that Resolve knows, with its
// long declaration. The error is an *UnknownError.
func (v *View) Named(name string) (Named, error) {
	t, err := v.find(name)
	if err != nil {
		return Named{}, err
	}
	e := v.catalog.entry(t, false)
	e.Declaration = v.catalog.show(t, tsdecl.Options{Doc: true})
	return v.catalog.Named([]Item{e})[0], nil
}
