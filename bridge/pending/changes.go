package pending

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"codemode-bridge/bridge/config"
)

// Changes says which servers, profiles and sections of two configurations differ.
// A server also differs if a variable that it names has another value; the values
// themselves are not told. runAs returns how a configuration's servers are run, by
// name: a server also differs if its OpenAPI document does.
func Changes(old, cfg *config.Config, runAs func(*config.Config) map[string]any) []string {
	var all []string
	servers := func(c *config.Config) map[string]any {
		m := map[string]any{}
		for name, run := range runAs(c) {
			m[name] = []any{run, c.Servers[name]}
		}
		return m
	}
	policies := func(c *config.Config) map[string]any {
		m := map[string]any{}
		for name, p := range c.Evaluation.Profiles {
			m[name] = p
		}
		return m
	}
	for _, things := range []struct {
		what   string
		before map[string]any
		after  map[string]any
	}{{"profile", policies(old), policies(cfg)}, {"server", servers(old), servers(cfg)}} {
		names := slices.AppendSeq(slices.Collect(maps.Keys(things.before)), maps.Keys(things.after))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			was, had := things.before[name]
			is, has := things.after[name]
			switch {
			case !had:
				all = append(all, things.what+" "+name+" added")
			case !has:
				all = append(all, things.what+" "+name+" removed")
			case !reflect.DeepEqual(was, is):
				all = append(all, things.what+" "+name+" changed")
			}
		}
	}
	was, is := old.Evaluation, cfg.Evaluation
	was.Profiles, is.Profiles = nil, nil
	for _, section := range []struct {
		name    string
		was, is any
	}{
		{"evaluation", was, is}, {"sandbox", old.Sandbox, cfg.Sandbox}, {"surface", old.Surface, cfg.Surface},
		{"http", old.HTTP, cfg.HTTP}, {"access", old.Access, cfg.Access}, {"runs", old.Runs, cfg.Runs}, {"approvals", old.Approvals, cfg.Approvals}, {"audit", old.Audit, cfg.Audit}, {"store", old.Store, cfg.Store}, {"centre", old.Centre, cfg.Centre}, {"log", old.Log, cfg.Log},
	} {
		if !reflect.DeepEqual(section.was, section.is) {
			all = append(all, section.name+" changed")
		}
	}
	for _, doc := range cfg.Included().Documents {
		i := slices.IndexFunc(old.Included().Documents, func(had config.Document) bool { return had.Ref == doc.Ref })
		switch signed := fmt.Sprintf("included document %s, serial %d, signed by %s", doc.Name, doc.Serial, doc.Key); {
		case i >= 0 && old.Included().Documents[i] == doc:
		case doc.Key != "":
			all = append(all, signed)
		default:
			all = append(all, "included document "+doc.Name)
		}
	}
	if len(all) == 0 {
		all = []string{"nothing but the text changed"}
	}
	return all
}
