package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemFolders is what any program needs of the machine, to read and to run. Of Nix it is
// what was built: beside that is the socket of a daemon that fetches and builds for anyone.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/nix/var/nix/profiles", "/gnu/store"}

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
// where its kind keeps packages. The environment is the program's.
//
// In the folders others a server may make links, and one of them would bring along what it
// leads to: nothing in there is needed besides them, and no link in there is followed. No
// program needs the folder that a home is in.
func Needs(program string, env []string, others ...string) []string {
	home := variable(env, "HOME")
	real, _ := Leads(home)
	var needs []string
	add := func(path string) {
		if path == "" || !filepath.IsAbs(path) || slices.Contains(needs, path) || OfSystem(path) {
			return
		}
		if _, err := os.Stat(path); err != nil {
			return // a PATH may name folders that are gone, or closed to its user
		}
		to, foreign := Leads(path, others...)
		if foreign || home != "" && (within(home, path) || within(real, to)) {
			return
		}
		needs = append(needs, path)
	}
	add(program)
	if to, foreign := Leads(program, others...); !foreign {
		add(installation(filepath.Dir(to), home, real))
	}
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		if filepath.IsAbs(folder) {
			add(installation(filepath.Clean(folder), home, real))
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

// Leads returns where a path leads, and whether it is in one of the folders others, or a
// link in one of them is on the way.
func Leads(path string, others ...string) (to string, foreign bool) {
	to, links, err := follow("", path)
	if err != nil {
		return path, true
	}
	return to, slices.ContainsFunc(others, func(folder string) bool {
		real, _, err := follow("", folder)
		return err != nil || within(to, real) || slices.ContainsFunc(links, func(on link) bool { return within(on.At, real) })
	})
}

// installation returns the folder that the programs of a folder were installed to: the one
// above bin, with the libraries beside it, unless that holds more than programs; then bin
// alone.
func installation(bin string, homes ...string) string {
	above := filepath.Dir(bin)
	if name := filepath.Base(bin); name != "bin" && name != "sbin" {
		return bin
	}
	for _, home := range homes {
		if above == home || above == filepath.Join(home, ".local") || above == string(filepath.Separator) {
			return bin
		}
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
