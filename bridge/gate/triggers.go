package gate

import (
	"slices"
	"strings"

	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles/known"
)

// A call may set off code that it does not bring: the hooks of a repository when
// another branch is taken, the CI of a branch when something is pushed to it. That
// is less than running code, as long as it is certain that it is no more than that.

// triggers reports whether all that a call runs is what others have set up. A push is
// more if it may go to a branch from which software is delivered, or brings a file that
// says what runs.
func triggers(call known.Reading) bool {
	if len(call.Unknown) > 0 || call.Tool.Runs == "" {
		return false
	}
	if call.Tool.Runs == known.Hooks {
		return true
	}
	branch := false
	for _, v := range call.Values {
		if v.Role == known.Host {
			return false
		}
		if v.Role != known.Place {
			continue
		}
		file := workspace.Workspace{}.Locate(v.Text, "")
		if strings.HasSuffix(strings.ToLower(v.Param), "branch") && delivers(v.Text) || refspec(v.Text) || file.RunsLater != "" || file.Secret != "" || v.Param == "remote" && !isWord(v.Text) {
			return false
		}
		branch = branch || v.Param == "branch"
	}
	return branch
}

// delivers reports whether software is usually delivered from a branch of that name.
func delivers(branch string) bool {
	branch = strings.TrimPrefix(strings.ToLower(branch), "refs/heads/")
	first := strings.FieldsFunc(branch, func(c rune) bool { return strings.ContainsRune("/-_.", c) })
	return len(first) == 0 || slices.Contains(delivering, first[0])
}

var delivering = strings.Fields("main master trunk default develop production prod live release releases stable staging deploy gh head refs")

// refspec reports whether git takes the name of a branch for more than that: "+main"
// overwrites, ":main" deletes.
func refspec(name string) bool { return strings.HasPrefix(name, "+") || strings.Contains(name, ":") }

// isWord reports whether a name has only letters, digits, "-" and "_": that of a remote
// is no address then.
func isWord(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
