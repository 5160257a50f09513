package doctor

import (
	"testing"

	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
)

// What is said of a tried box is what holds here, what does not and why, and what was
// refused.
func TestBoxWords(t *testing.T) {
	t.Parallel()
	box := confine.Box{Write: []string{"/srv/a"}}
	all := confine.Steps{confine.Files: "on", confine.Landlock: "on", confine.Network: "on", confine.Powers: "on", confine.Calls: "on"}
	some := confine.Steps{confine.Files: "on", confine.Landlock: "on", confine.Network: "not permitted", confine.Powers: "on", confine.Calls: "on"}
	rows := []Trial{
		{Name: "a", Box: tried(&upstream.Boxed{Box: box, Steps: all})},
		{Name: "b", Box: tried(&upstream.Boxed{Box: box, Steps: some, Refused: []string{"telemetry.example.com"}})},
		{Name: "c", Box: tried(nil)},
	}
	want := []string{
		"a ran in its box: writes /srv/a, no network; all of it holds (calls, files, landlock, network, powers)",
		"b ran in the tightest box: writes /srv/a, no network; not enforced here: which hosts it reaches (network: not permitted)",
		"  it was refused telemetry.example.com; to let it: codemode-bridge servers allow b --net telemetry.example.com",
		"c did not run in its box",
	}
	if diff := cmp.Diff(want, BoxWords(rows, map[string]string{"a": "its box", "b": "the tightest box", "c": "its box"})); diff != "" {
		t.Error(diff)
	}
}
