package known

import (
	"slices"
	"strings"
)

// Delivers reports whether software is usually delivered from a branch of that name.
func Delivers(branch string) bool {
	branch = strings.TrimPrefix(strings.ToLower(branch), "refs/heads/")
	first := strings.FieldsFunc(branch, func(c rune) bool { return strings.ContainsRune("/-_.", c) })
	return len(first) == 0 || slices.Contains(delivering, first[0])
}

var delivering = strings.Fields("main master trunk default develop production prod live release releases stable staging deploy gh head refs")

// Refspec reports whether git takes the name of a branch for more than that: "+main"
// overwrites, ":main" deletes.
func Refspec(name string) bool { return strings.HasPrefix(name, "+") || strings.Contains(name, ":") }

// NamesRemote reports whether a name has only letters, digits, "-" and "_": that of a
// remote is no address then.
func NamesRemote(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
