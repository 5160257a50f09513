package gate

import (
	"slices"
	"strings"
	"unicode"

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

// repository returns the name under which the repository is kept that a call of the
// server names; empty if it names none.
func repository(server string, call known.Reading) string {
	var parts []string
	for _, v := range call.Values {
		if v.Role == known.Place && (v.Param == "owner" || v.Param == "repo" || v.Param == "project_id") {
			parts = append(parts, v.Param+" "+strings.ToLower(v.Text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "repository of " + server + " " + strings.Join(parts, ", ")
}

// orders reports whether the words on what is pressed on a page say that it is paid for.
// Words can only raise a risk: a page may call its button anything.
func orders(call known.Reading) bool {
	return slices.ContainsFunc(call.Values, func(v known.Value) bool {
		return v.Role == known.Place && slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(v.Text), func(c rune) bool { return !unicode.IsLetter(c) }),
			func(word string) bool { return slices.Contains(paying, word) })
	})
}

var paying = strings.Fields(`buy pay order purchase checkout book reserve subscribe donate
	kaufen zahlen bezahlen bestellen buchen reservieren kostenpflichtig zahlungspflichtig verbindlich
	acheter payer commander réserver comprar pagar pedir reservar acquista paga ordina prenota kopen betalen bestel`)

// besides reports whether a call says more to a host than the address in that argument:
// it has text to send there, or names another host on the way.
func besides(call known.Reading, args map[string]any, param string) bool {
	own, _, _ := strings.Cut(param, ".")
	for name, v := range args {
		role := call.Tool.Args[name]
		if name != own && v != nil && (role == known.Content || role == known.Host || role == known.PathOrHost) {
			return true
		}
	}
	return false
}
