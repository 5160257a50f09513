package provenance

import (
	"path/filepath"
	"strings"
)

// Within writes what an answer was asked for by its path from the workspace's
// folder, which ends in a separator, if it is a path in it.
func Within(folder, from string) string {
	tool, path, _ := strings.Cut(from, " ")
	if folder != "" && path+string(filepath.Separator) == folder {
		return tool
	}
	within, ok := strings.CutPrefix(path, folder)
	if folder == "" || !ok || !filepath.IsLocal(within) || filepath.Clean(within) != within {
		return from
	}
	return tool + " " + within
}
