package confine

import (
	"errors"
	"io/fs"
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
// where its kind keeps packages. The environment is the program's. A folder with the home
// in it is more than programs, and one that nobody here may look into has none for it.
func Needs(program string, env []string) []string {
	home := variable(env, "HOME")
	var needs []string
	add := func(path string) {
		if path != "" && filepath.IsAbs(path) && !slices.Contains(needs, path) && !OfSystem(path) && !hasHome(path, home) && !closed(path) {
			needs = append(needs, path)
		}
	}
	add(program)
	add(installation(program, home))
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		if filepath.IsAbs(folder) {
			add(installation(filepath.Join(folder, "program"), home))
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

// hasHome reports whether the home folder is a folder or within it, by whatever name.
func hasHome(folder, home string) bool {
	if home == "" {
		return false
	}
	real := func(path string) string {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			return to
		}
		return filepath.Clean(path)
	}
	rest, err := filepath.Rel(real(folder), real(home))
	return err == nil && filepath.IsLocal(rest)
}

// closed reports whether this process may not even see what is at a path.
func closed(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrPermission)
}

// installation returns the folder that a program was installed to: the one above its bin,
// with the libraries beside it, unless that holds more than programs; then bin alone.
func installation(program, home string) string {
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	bin := filepath.Dir(program)
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
