package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemFolders is what any program needs of the machine, to read and to run.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"}

// stores are the folders below a home in which the programs that start servers keep what
// they start; each is read by the programs of this name.
var stores = []struct {
	programs []string
	folders  []string
}{
	{[]string{"node", "npx", "npm"}, []string{".npm/_npx", ".npm/_cacache"}},
	{[]string{"pnpm", "pnpx"}, []string{".local/share/pnpm", ".cache/pnpm"}},
	{[]string{"bun", "bunx"}, []string{".bun"}},
	{[]string{"uv", "uvx", "python", "python3"}, []string{".cache/uv", ".local/share/uv"}},
	{[]string{"pipx"}, []string{".local/share/pipx", ".local/pipx"}},
	{[]string{"deno"}, []string{".cache/deno"}},
}

// Needs returns the folders that a program has to read to run at all, besides those of
// the system: its own installation, those of the programs that it finds in its PATH, and
// where its kind keeps packages. The environment is the program's. Loose are the folders
// that it, or code that it came with, may have changed: a link in them brings nothing
// along, or it would choose what its next box has.
func Needs(program string, env, loose []string) []string {
	home := variable(env, "HOME")
	var needs []string
	add := func(path string) {
		if !filepath.IsAbs(path) || slices.Contains(needs, path) || OfSystem(path) || path == "/" || home != "" && within(home, path) {
			return // all of a home is more than any program needs
		}
		if _, err := os.Stat(path); err == nil { // a PATH may name folders that are closed to its user
			needs = append(needs, path)
		}
	}
	add(program)
	if to, sure := Leads(program, loose); sure {
		add(installation(filepath.Dir(to), home))
	}
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		if filepath.IsAbs(folder) {
			add(installation(filepath.Clean(folder), home))
		}
	}
	name := strings.TrimSuffix(filepath.Base(program), filepath.Ext(program))
	for _, s := range stores {
		if home != "" && slices.Contains(s.programs, name) {
			for _, folder := range s.folders {
				add(filepath.Join(home, folder))
			}
		}
	}
	return needs
}

// installation returns the folder to which the programs of a folder were installed: the
// one above bin, with the libraries beside it, unless that holds more than programs; then
// bin alone.
func installation(bin, home string) string {
	above := filepath.Dir(bin)
	if name := filepath.Base(bin); name != "bin" && name != "sbin" {
		return bin
	}
	if above == home || above == filepath.Join(home, ".local") || above == string(filepath.Separator) {
		return bin
	}
	if _, err := os.Stat(filepath.Join(above, "lib")); err != nil {
		return bin
	}
	return above
}

// OfSystem reports whether every box has a path, to read.
func OfSystem(path string) bool {
	return slices.ContainsFunc(systemFolders, func(s string) bool { return path == s || strings.HasPrefix(path, s+"/") })
}
