package upstream

import (
	"testing"

	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
)

func TestBoxSaysWhatHolds(t *testing.T) {
	all := func() confine.Steps {
		return confine.Steps{"files": "on", "processes": "on", "network": "on", "landlock": "on", "powers": "on", "calls": "on", "limits": "on"}
	}
	app := confine.Box{Write: []string{"/home/me/app"}}
	local := confine.Box{Write: app.Write, Net: confine.Net{Hosts: []confine.Host{{Name: "localhost", Port: 3000}, {Name: "localhost", Port: 80}}}}
	for _, row := range []struct {
		name           string
		box            confine.Box
		off            map[confine.Step]string
		line, sentence string
	}{
		{"all holds", app, nil, "confined: writes app, no network", "confined to /home/me/app, no network"},
		{"it writes nothing", confine.Box{}, nil, "confined: writes nothing, no network", "confined to writing nothing, no network"},
		{"hosts with their ports", local, nil, "confined: writes app, reaches localhost:3000 and localhost:80", "confined to /home/me/app, reaches localhost:3000 and localhost:80"},
		{"any network is no lack", confine.Box{Write: app.Write, Net: confine.Net{Any: true}}, map[confine.Step]string{"network": "off"}, "confined: writes app, any network", "confined to /home/me/app, any network"},
		{"Landlock stands in for files", app, map[confine.Step]string{"files": "no"}, "confined: writes app, no network", "confined to /home/me/app, no network"},
		{"limits confine nothing", app, map[confine.Step]string{"limits": "no"}, "confined: writes app, no network", "confined to /home/me/app, no network"},
		{"no network namespace", app, map[confine.Step]string{"network": "not permitted"}, "confined in part: writes app; not on: network: not permitted", "confined to /home/me/app"},
		{"files are free", app, map[confine.Step]string{"files": "no root", "landlock": "no kernel"}, "confined in part: no network; not on: files: no root", "confined in its network only, no network"},
		{"nothing holds", app, map[confine.Step]string{"files": "a", "landlock": "b", "network": "c", "calls": "d"}, "not confined: files: a; network: c; calls: d", "not confined"},
		{"many folders", confine.Box{Write: []string{"/a", "/b", "/c", "/d"}}, nil, "confined: writes a, b and more, no network", "confined to /a, /b and more, no network"},
	} {
		s := all()
		for step, why := range row.off {
			s[step] = why
		}
		b := &Boxed{Box: row.box, Steps: s, Held: row.box.Holds(s)}
		if diff := cmp.Diff([]string{row.line, row.sentence}, []string{b.Line(), b.Sentence()}); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
	}
	var none *Boxed
	if diff := cmp.Diff([]string{NotConfined, NotConfined, ""}, []string{none.Line(), none.Sentence(), none.On()}); diff != "" {
		t.Error(diff)
	}
}
