// Package confirmed stores, for each configuration file, the text that somebody
// last confirmed and the text that was applied since. An edit that is looser
// than either waits for an approver: if each edit were compared only with the
// one before it, two harmless edits could add up to a harmful one.
//
// A folder has one JSON file for each configuration file, named by a digest of
// its resolved path:
//
//	{"version": 1, "file": "/home/ann/config.json",
//	 "environments": {
//	   "":                           {"confirmed": {"name": ..., "file": ...}, "by": "ann", ...},
//	   "/home/ann/config.prod.json": {"confirmed": {...}, "taken": {...}}}}
//
// A link can be pointed at another file. So the names by which a file was given
// are stored too, each in a file of its own (*.name): which files that name has
// led to since somebody last confirmed what was there. See [Store.Records].
//
// Texts are stored as they were written, with the names of variables and without
// their values. Files have mode 0600 and are replaced as a whole, under a lock
// that all processes using the folder take.
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
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/filelock"
)

// A Store keeps the records of one user. Its methods may be called concurrently,
// by several processes too.
type Store struct{ dir string }

// Open returns the store in a folder, which is made by the first Change.
func Open(dir string) *Store { return &Store{dir} }

// A Record is what is stored about one configuration file.
type Record struct {
	Version int    `json:"version"`
	File    string `json:"file"` // its resolved path
	// Environments are those that the file was started with, by the resolved path of
	// the overlay; "" means without one.
	Environments map[string]Standing `json:"environments"`
}

// Texts are a configuration as it was written: a file and, if there is one, its
// overlay, with their absolute names.
type Texts struct {
	Name        string `json:"name"`
	File        string `json:"file"`
	OverlayName string `json:"overlay_name,omitempty"`
	Overlay     string `json:"overlay,omitempty"`
	Included    string `json:"included,omitempty"` // the documents that the file included
}

// A Standing is what was confirmed and applied of a file with one overlay.
type Standing struct {
	// Confirmed is what an approver confirmed, or else what was there at first.
	Confirmed Texts `json:"confirmed"`
	// Taken, if not nil, was applied since because it loosens nothing.
	Taken *Texts `json:"taken,omitempty"`
	// By, Channel and At say who confirmed it, how and when; By is empty if nobody
	// had to.
	By      string    `json:"by,omitempty"`
	Channel string    `json:"channel,omitempty"`
	At      time.Time `json:"at"`
}

// InForce returns the texts that are in force.
func (s Standing) InForce() Texts {
	if s.Taken != nil {
		return *s.Taken
	}
	return s.Confirmed
}

const version = 1

// Resolve returns the path of a file with all links resolved, so that all its links
// share it. The path of a file that does not exist is only made absolute.
func Resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path
}

// Read returns the record of a file, by whatever name the file is given; a Record
// without environments if there is none. A record that cannot be read is an error.
func (s *Store) Read(file string) (Record, error) {
	resolved := Resolve(file)
	r, err := read(s.path(resolved))
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if r, ok := s.sameFile(resolved); ok {
		return r, nil
	}
	return Record{Version: version, File: resolved, Environments: map[string]Standing{}}, nil
}

// sameFile finds the record of a file under another name: a hard link, or a name
// that differs only in case, where the file system ignores that.
func (s *Store) sameFile(resolved string) (Record, bool) {
	info, err := os.Stat(resolved)
	if err != nil {
		return Record{}, false
	}
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return Record{}, false
	}
	for _, path := range paths {
		r, err := read(path)
		if err != nil {
			continue // starting with that file reports it
		}
		if other, err := os.Stat(r.File); err == nil && os.SameFile(info, other) {
			return r, true
		}
	}
	return Record{}, false
}

// Change replaces the record of a file; all other processes wait meanwhile. anew
// means that somebody has confirmed the file: what its names led to before no
// longer counts, and an unreadable record is dropped, which is otherwise an error.
// An error of change leaves everything as it was.
func (s *Store) Change(file string, anew bool, change func(*Record) error) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("keeping the confirmed configuration: %w", err)
	}
	unlock, err := filelock.Wait(filepath.Join(s.dir, "lock"), lockWait)
	if err != nil {
		return fmt.Errorf("keeping the confirmed configuration: %w", err)
	}
	defer unlock()
	r, err := s.Read(file)
	if err != nil {
		if !anew {
			return err
		}
		r = Record{Version: version, File: Resolve(file), Environments: map[string]Standing{}}
	}
	if err := change(&r); err != nil {
		return err
	}
	if err := s.write(s.path(r.File), r); err != nil {
		return err
	}
	return s.point(file, r.File, anew)
}

// lockWait is how long a change waits for the changes of other processes.
const lockWait = 10 * time.Second

func (s *Store) path(resolved string) string {
	sum := sha256.Sum256([]byte(resolved))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".json")
}

func read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("reading the confirmed configuration: %w", err)
	}
	var r Record
	err = json.Unmarshal(text, &r)
	if err == nil && (r.Version != version || len(r.Environments) == 0) {
		err = fmt.Errorf("its version is %d, and this program reads %d", r.Version, version)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the confirmed configuration in %s: %w", path, err)
	}
	return r, nil
}

// write replaces a file of the folder as a whole.
func (s *Store) write(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("keeping the confirmed configuration: %w", err)
	}
	if err := atomicfile.Write(path, text); err != nil {
		return fmt.Errorf("keeping the confirmed configuration: %w", err)
	}
	return nil
}
