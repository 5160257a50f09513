// Package backup writes what a bridge keeps into one file, and reads it back.
//
// The file is a tar archive compressed with gzip. Its first entry, manifest.json, names all
// others in their order, each with its size and SHA-256. What differs from that in anything,
// lacks its end, or has more, is damaged; nothing of it is used.
package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Format is the newest format that this release reads, and the one that it writes.
const Format = 1

const (
	manifestName = "manifest.json"
	mostManifest = 16 << 20 // bytes
)

// ErrDamaged is wrapped by the errors of files that are no whole backup.
var ErrDamaged = errors.New("the backup is damaged, or is none")

// A NewerError is a backup in a format that this release does not know.
type NewerError struct {
	Version string // of the program that wrote it
	Format  int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the backup was written by codemode-bridge %s in format %d, and this release reads formats up to %d: update codemode-bridge", e.Version, e.Format, Format)
}

// A Manifest says what is in a backup.
type Manifest struct {
	Format     int       `json:"format"`
	Version    string    `json:"version"` // of the program
	Time       time.Time `json:"time"`
	ConfigFile string    `json:"configFile"`         // where the configuration was
	Database   bool      `json:"database,omitempty"` // the store was one
	Wrapped    bool      `json:"wrapped,omitempty"`  // the key of the store is encrypted with storeKey
	Files      []File    `json:"files"`
}

// A File is an entry; its name has slashes.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// A Source is a file that goes into a backup: the one at Path, which nobody changes
// meanwhile, or Data if Path is empty.
type Source struct {
	Name, Path string
	Data       []byte
}

func (s *Source) open() (io.ReadCloser, error) {
	if s.Path == "" {
		return io.NopCloser(bytes.NewReader(s.Data)), nil
	}
	return os.Open(s.Path)
}

// Write writes a backup. It sets the manifest's format and files.
func Write(w io.Writer, m Manifest, sources []Source) error {
	m.Format, m.Files = Format, nil
	for _, s := range sources {
		f, err := s.open()
		if err != nil {
			return err
		}
		sum := sha256.New()
		n, err := io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("reading %s: %w", s.Name, err)
		}
		m.Files = append(m.Files, File{s.Name, n, hex.EncodeToString(sum.Sum(nil))})
	}
	says, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(packed)
	if err := entry(t, manifestName, int64(len(says)), m.Time, bytes.NewReader(says)); err != nil {
		return err
	}
	for i, s := range sources {
		f, err := s.open()
		if err != nil {
			return err
		}
		err = entry(t, s.Name, m.Files[i].Size, m.Time, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("writing %s: %w", s.Name, err)
		}
	}
	return errors.Join(t.Close(), packed.Close())
}

func entry(t *tar.Writer, name string, size int64, at time.Time, from io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: at.Truncate(time.Second)}); err != nil {
		return err
	}
	_, err := io.CopyN(t, from, size)
	return err
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Read unpacks a backup into a folder, which is empty, and returns what it says of itself.
// With an error, what is in the folder is of no use.
func Read(r io.Reader, dir string) (m Manifest, err error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return m, damaged("reading it: %v", err)
	}
	t := tar.NewReader(packed)
	head, err := t.Next()
	if err != nil || head.Name != manifestName || head.Size > mostManifest {
		return m, damaged("it does not begin with a manifest")
	}
	says, err := io.ReadAll(t)
	if err != nil {
		return m, damaged("reading the manifest: %v", err)
	}
	if err := json.Unmarshal(says, &m); err != nil {
		return m, damaged("reading the manifest: %v", err)
	}
	if m.Format > Format {
		return m, &NewerError{m.Version, m.Format}
	}
	if m.Format < 1 {
		return m, damaged("the manifest names no format")
	}
	seen := make(map[string]bool)
	for _, f := range m.Files {
		// A name with dots in it is inside the folder as a whole, and outside of the part of it that it names.
		if !fs.ValidPath(f.Name) || !filepath.IsLocal(filepath.FromSlash(f.Name)) || seen[f.Name] {
			return m, damaged("it has a file %q", f.Name)
		}
		seen[f.Name] = true
		head, err := t.Next()
		if err != nil {
			return m, damaged("looking for %s: %v", f.Name, err)
		}
		if head.Name != f.Name || head.Typeflag != tar.TypeReg || head.Size != f.Size {
			return m, damaged("it has %q with %d bytes where %q with %d bytes should be", head.Name, head.Size, f.Name, f.Size)
		}
		if err := unpack(t, filepath.Join(dir, filepath.FromSlash(f.Name)), f); err != nil {
			return m, err
		}
	}
	if head, err := t.Next(); err == nil {
		return m, damaged("it has a file %q that it does not name", head.Name)
	} else if err != io.EOF {
		return m, damaged("reading its end: %v", err)
	}
	if _, err := io.Copy(io.Discard, packed); err != nil { // the checksum is at the end
		return m, damaged("reading its end: %v", err)
	}
	return m, nil
}

// unpack writes one file, whose content must be as the manifest says.
func unpack(from io.Reader, path string, f File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	into, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	read := &reading{Reader: from}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(into, sum), read)
	if read.failed != nil {
		err = damaged("reading %s: %v", f.Name, read.failed)
	}
	if err = errors.Join(err, into.Sync(), into.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return damaged("%s has another content than was written", f.Name)
	}
	return nil
}

// reading tells errors of the backup from those of the disk that it is unpacked to.
type reading struct {
	io.Reader
	failed error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.failed = err
	}
	return n, err
}
