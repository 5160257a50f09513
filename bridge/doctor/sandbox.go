package doctor

import (
	"context"
	"maps"
	"slices"
)

// sandbox has a worker read a script, and checks what confines it.
func (up *Checkup) sandbox(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, up.Limit)
	defer cancel()
	steps, problem := up.Options.Sandbox(ctx)
	if problem != nil {
		return []Finding{problem.finding()}
	}
	return hardening(steps)
}

// wanted says what to do where a step of the hardening is off.
var wanted = map[string]string{
	"namespaces":        "let processes of users make user namespaces: kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or the container's own profile",
	"landlock":          "use Linux 5.13 or later with landlock among its security modules, and a codemode-worker that was built with CGO_ENABLED=0",
	"no-new-privileges": "use a codemode-worker that was built with CGO_ENABLED=0",
	"seccomp":           "use a kernel with seccomp filters, on amd64 or arm64",
}

// hardening checks the steps that confine a worker, as the worker reports them.
func hardening(steps map[string]string) []Finding {
	var all []Finding
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		switch state := steps[step]; {
		case state == "on":
			all = append(all, fine(step, "on"))
		case step == "cgroup" && steps["memory-limit"] == "on":
			all = append(all, fine(step, "off ("+state+"); memory-limit holds in its place. \"Delegate=memory pids\" in the systemd unit turns it on"))
		default:
			all = append(all, warning(step, "off: "+state, wanted[step]))
		}
	}
	if steps["seccomp"] == "" && steps["landlock"] == "" {
		all = append(all, warning("", "on this system nothing keeps a worker from files and the network but that it has no code for them",
			"run the bridge on Linux where that matters"))
	}
	return all
}
