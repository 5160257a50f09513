package setup

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// browserNames are what the browsers are called that boxes were tried with, the usual one
// of servers first.
var browserNames = []string{"google-chrome-stable", "google-chrome", "chromium", "chromium-browser"}

// browser returns the program of a Chrome or Chromium that can start in a box, and the
// folder that the box has to read for it besides the system; both are empty if there is
// none. Those of the system come first: they are kept up to date.
func (b *Boxes) browser() (program, folder string) {
	for _, name := range browserNames {
		for _, dir := range filepath.SplitList(b.Path) {
			if program := browserAt(filepath.Join(dir, name)); program != "" {
				return program, b.beside(program)
			}
		}
	}
	// Playwright keeps its own there, a folder for each revision.
	found, err := filepath.Glob(filepath.Join(b.Home, ".cache", "ms-playwright", "chromium-*", "chrome-linux*", "chrome"))
	if err != nil || b.Home == "" { // a home folder may have characters that mean something to Glob
		return "", ""
	}
	slices.SortFunc(found, func(a, b string) int { // 900 before 1000
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(b, a)
	})
	for _, path := range found {
		if program := browserAt(path); program != "" {
			return program, filepath.Dir(program)
		}
	}
	return "", ""
}

// beside is the folder of a program that no box reads anyway; empty for one of the system.
func (b *Boxes) beside(program string) string {
	for _, system := range []string{"/usr/", "/opt/", "/bin/", "/nix/store/", "/gnu/store/"} {
		if strings.HasPrefix(program, system) {
			return ""
		}
	}
	return filepath.Dir(program)
}

// browserAt returns the program that a path leads to; empty if that is none, or one that
// starts the browser by way of snap: that needs privileges which nothing in a box has.
func browserAt(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(real) || strings.HasPrefix(real, "/snap/") || filepath.Base(real) == "snap" {
		return ""
	}
	at, err := os.Stat(real)
	if err != nil || !at.Mode().IsRegular() || at.Mode()&0o111 == 0 {
		return ""
	}
	f, err := os.Open(real)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 8<<10))
	if err != nil || bytes.HasPrefix(head, []byte("#!")) && bytes.Contains(head, []byte("/snap/")) {
		return ""
	}
	// The script that people start as Chrome only adds what a desktop needs.
	if chrome := filepath.Join(filepath.Dir(real), "chrome"); filepath.Base(real) == "google-chrome" {
		if _, err := os.Stat(chrome); err == nil {
			return chrome
		}
	}
	return real
}
