package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/clients"
)

// desktopPath is the PATH of programs that are started from the desktop.
func desktopPath(system string) []string {
	if system == "darwin" {
		return []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	}
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// PathFor returns the PATH that the bridge needs in a client which is started from the
// desktop, and the programs that it would not find without it: those of servers that are
// only found on the person's own PATH. It is empty if none is needed.
func PathFor(system clients.System, client clients.Client, programs []string) (path string, missing []string) {
	own, _ := system.Env("PATH")
	if !client.Desktop || system.OS == "windows" || own == "" {
		return "", nil
	}
	var folders []string
	for _, folder := range filepath.SplitList(own) {
		if filepath.IsAbs(folder) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	for _, program := range programs {
		if program != "" && !strings.ContainsAny(program, `/\$`) && !slices.Contains(missing, program) &&
			!found(program, desktopPath(system.OS)) && found(program, folders) {
			missing = append(missing, program)
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	slices.Sort(missing)
	return strings.Join(folders, string(filepath.ListSeparator)), missing
}

// found reports whether a folder has the program.
func found(program string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		info, err := os.Stat(filepath.Join(folder, program))
		return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
	})
}
