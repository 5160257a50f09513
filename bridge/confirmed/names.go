package confirmed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A pointer says which files a name has led to since somebody last confirmed what
// was there, the latest last.
type pointer struct {
	Version int      `json:"version"`
	Name    string   `json:"name"`
	Files   []string `json:"files"` // each the File of a Record
}

// maxLinks is how many links are followed: as many as operating systems follow.
const maxLinks = 40

// Names returns all names of a file on the way from the given one, made absolute,
// to the resolved one.
func Names(path string) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	resolved := Resolve(path)
	for range maxLinks {
		add(path)
		if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(folder, filepath.Base(path))
			add(path)
		}
		next, err := os.Readlink(path)
		if err != nil {
			break // no link
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = filepath.Clean(next)
	}
	add(resolved)
	return names
}

// Records returns all records that a file is compared with: its own, and those of
// the files that any of its names has led to since somebody last confirmed what was
// there. What was last in force under the given name comes first. A record that
// cannot be read is an error.
func (s *Store) Records(file string) ([]Record, error) {
	own, err := s.Read(file)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range Names(file) {
		led, err := s.led(name)
		if err != nil {
			return nil, err
		}
		slices.Reverse(led)
		files = append(files, led...)
	}
	var all []Record
	for _, f := range append(files, own.File) {
		if slices.ContainsFunc(all, func(r Record) bool { return r.File == f }) {
			continue
		}
		r := own
		if f != own.File {
			if r, err = read(s.path(f)); err != nil {
				return nil, err
			}
		}
		if len(r.Environments) > 0 {
			all = append(all, r)
		}
	}
	return all, nil
}

// Points reports whether every name of a file is stored as leading to that record.
func (s *Store) Points(file, record string) bool {
	return !slices.ContainsFunc(Names(file), func(name string) bool {
		led, err := s.led(name)
		return err != nil || len(led) == 0 || led[len(led)-1] != record
	})
}

// led returns the files that a name has led to, the latest last. A name without a
// pointer may be that of a file with a record of its own.
func (s *Store) led(name string) ([]string, error) {
	text, err := os.ReadFile(s.pointerPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(s.path(name)); err == nil {
			return []string{name}, nil
		}
		return nil, nil
	}
	var p pointer
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err == nil && (p.Version != version || len(p.Files) == 0) {
		err = fmt.Errorf("its version is %d, and this program reads %d", p.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what %s led to: %w", name, err)
	}
	return p.Files, nil
}

// point stores that all names of a file lead to a record; with anew, to no other.
func (s *Store) point(file, record string, anew bool) error {
	for _, name := range Names(file) {
		led, err := s.led(name)
		switch {
		case anew:
			led = nil
		case err != nil:
			return err
		}
		led = append(slices.DeleteFunc(led, func(f string) bool { return f == record }), record)
		if _, err := os.Stat(s.pointerPath(name)); name == record && len(led) == 1 && errors.Is(err, fs.ErrNotExist) {
			continue // the record itself has that name
		}
		if err := s.write(s.pointerPath(name), pointer{version, name, led}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) pointerPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".name")
}
