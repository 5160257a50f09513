package userfiles

import (
	"runtime"
	"testing"
)

func TestLocations(t *testing.T) {
	type vars map[string]string
	for _, r := range []struct {
		system string
		env    vars
		want   Locations
	}{
		{"linux", vars{"HOME": "/h"}, Locations{"/h/.config/codemode-bridge/config.json", "/h/.local/state/codemode-bridge", "/h/.cache/codemode-bridge", "/h/.local/share/codemode-bridge"}},
		{"linux", vars{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "relative", "XDG_CACHE_HOME": ""}, Locations{"/c/codemode-bridge/config.json", "/h/.local/state/codemode-bridge", "/h/.cache/codemode-bridge", "/h/.local/share/codemode-bridge"}},
		{"linux", vars{"XDG_CONFIG_HOME": "/x", "XDG_STATE_HOME": "/x", "XDG_CACHE_HOME": "/x", "XDG_DATA_HOME": "/d"}, Locations{"/x/codemode-bridge/config.json", "/x/codemode-bridge/state", "/x/codemode-bridge/cache", "/d/codemode-bridge"}},
		{"linux", vars{"XDG_CONFIG_HOME": "/x", "XDG_STATE_HOME": "/y", "XDG_CACHE_HOME": "/z"}, Locations{"/x/codemode-bridge/config.json", "/y/codemode-bridge", "/z/codemode-bridge", ""}},
		{"linux", vars{"HOME": "relative"}, Locations{}},
		{"darwin", vars{"HOME": "/h"}, Locations{"/h/Library/Application Support/codemode-bridge/config.json", "/h/Library/Application Support/codemode-bridge/state", "/h/Library/Caches/codemode-bridge", "/h/Library/Application Support/codemode-bridge"}},
		{"windows", vars{"APPDATA": "/r", "LOCALAPPDATA": "/l"}, Locations{"/r/codemode-bridge/config.json", "/l/codemode-bridge/state", "/l/codemode-bridge/cache", "/l/codemode-bridge"}},
		{"windows", vars{"USERPROFILE": "/u"}, Locations{"/u/AppData/Roaming/codemode-bridge/config.json", "/u/AppData/Local/codemode-bridge/state", "/u/AppData/Local/codemode-bridge/cache", "/u/AppData/Local/codemode-bridge"}},
		{"windows", vars{"HOME": "/h"}, Locations{}},
	} {
		if runtime.GOOS == "windows" {
			t.Skip("the paths of these rows are those of other systems")
		}
		got, err := On(r.system, func(name string) (string, bool) { v, ok := r.env[name]; return v, ok })
		if got != r.want || (err == nil) != (r.want != Locations{}) {
			t.Errorf("%s %v: got %+v (%v), want %+v", r.system, r.env, got, err, r.want)
		}
	}
	if _, err := Of(nil); err == nil {
		t.Error("without an environment there are no default folders")
	}
}
