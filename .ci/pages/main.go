// Command pages makes HTML pages of the README and the documents that it leads to:
//
//	go run ./.ci/pages -out dist/pages
//
// The folder can be opened from a disk or put on any server of files: pages have no
// scripts, and load nothing from elsewhere. Headings have the anchors that GitHub gives
// them. Besides, each key of the configuration has one, `key-http.listen`, and each
// command, `command-servers-add`.
//
// A link or an anchor that leads nowhere is an error, and nothing is written then.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("out", "dist/pages", "the `folder` that gets the pages; it must be empty, or not there")
	root := flag.String("root", ".", "the `folder` of the repository")
	flag.Parse()
	if err := write(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// write makes the pages of a repository and writes them into a folder.
func write(root, out string) error {
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, so that no older page stays in it", out)
	}
	s, err := newSite(os.DirFS(root), "README.md", "CHANGELOG.md")
	if err != nil {
		return err
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	if bad := broken(files); len(bad) > 0 {
		return fmt.Errorf("these links lead nowhere:\n%s", strings.Join(bad, "\n"))
	}
	for name, text := range files {
		to := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d pages; begin with %s\n", len(s.pages), filepath.Join(out, "index.html"))
	return nil
}
