package confine

import (
	"slices"
	"strings"
)

// agents are variables that lead to the person's session: to agents that hold keys, to the
// desktop, to what starts containers. None of that is in a box.
var agents = []string{
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "SESSION_MANAGER",
	"DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "XDG_RUNTIME_DIR", "PULSE_SERVER", "PIPEWIRE_REMOTE",
	"DOCKER_HOST", "CONTAINER_HOST", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
}

// environ is the environment of a program in a box: without what leads out of it, unless
// the box names where that leads, and with a place for temporary files.
func (b Box) environ(env []string, temp string) []string {
	named := func(value string, places ...string) bool {
		_, path, _ := strings.Cut(value, "/")
		return path != "" && slices.ContainsFunc(places, func(p string) bool { return within("/"+strings.TrimLeft(path, "/"), p) })
	}
	var kept []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		leads := slices.Contains(agents, name) || strings.HasPrefix(name, "DBUS_") || name == "TMPDIR"
		where := slices.Concat(b.Write, b.Read)
		switch name {
		case "DISPLAY":
			value = "/tmp/.X11-unix"
		case "TMPDIR":
			where = b.Write
		}
		if !leads || named(value, where...) {
			kept = append(kept, entry)
		}
	}
	if temp != "" && variable(kept, "TMPDIR") == "" {
		kept = append(kept, "TMPDIR="+temp)
	}
	return kept
}
