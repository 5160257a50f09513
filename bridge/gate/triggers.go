package gate

import (
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
		if strings.HasSuffix(strings.ToLower(v.Param), "branch") && known.Delivers(v.Text) || known.Refspec(v.Text) || file.RunsLater != "" || file.Secret != "" || v.Param == "remote" && !known.NamesRemote(v.Text) {
			return false
		}
		branch = branch || v.Param == "branch"
	}
	return branch
}
