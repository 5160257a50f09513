// Package instance brings several processes of one user, each with a client of its
// own (a window), to one process that serves them all (the host).
//
// They meet at a socket in a folder that is the user's alone (mode 0700, the
// socket 0600). Its name is a keyed digest of all that must be equal for two
// windows to be served alike, so that those who differ do not meet, and the
// name tells nothing of what went into it. Each side asks the system who is at
// the other end, and talks to no other user.
//
// On the wire there is one line each way, and after that whatever the two have
// agreed on:
//
//	window -> host   {"join":1,"identity":"<the whole digest>","ask":"serve"}
//	host -> window   {"join":1,"pid":4711,...}
//
// A host that closes the connection without its line is about to end; the
// window then starts another. Two locks make that safe: the host holds one as
// long as it lives (NAME.host), so that it may remove a socket that a killed
// one has left, and whoever starts a host holds the other meanwhile
// (NAME.start), so that of five windows one does. The system drops a lock when
// its process ends, however it does.
package instance

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders are where windows meet.
type Folders struct {
	// State is a folder for what must last: the key, the locks, the sockets.
	State string
	// Runtime takes its place for sockets whose names would be too long there.
	Runtime string
}

// A Place is where those windows meet that are alike.
type Place struct {
	digest []byte // of the identity; nil where it is not known
	locks  string // what the names of its locks begin with
	socket string
	uid    int // who may be at the other end
}

// maxSocket is the longest name of a socket that every system takes.
const maxSocket = 100

// ErrUnsupported is returned on systems where processes cannot meet.
var ErrUnsupported = errors.New("bridges are not shared on this system")

// At returns the place of an identity, and makes the folders if need be. Group
// is a part of the identity by which [In] finds all its places. The error says
// why there is no place that is safe from other users.
func At(f Folders, group string, identity []string) (*Place, error) {
	if !supported {
		return nil, ErrUnsupported
	}
	if err := private(f.State); err != nil {
		return nil, err
	}
	key, err := readKey(f.State)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the folder where windows meet: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range append([]string{group}, identity...) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	digest := mac.Sum(nil)
	name := groupName(group) + hex.EncodeToString(digest[:6])
	p := &Place{digest: digest, locks: filepath.Join(f.State, name), socket: filepath.Join(f.State, name+suffix), uid: os.Geteuid()}
	if len(p.socket) > maxSocket {
		if err := private(f.Runtime); err != nil {
			return nil, err
		}
		if p.socket = filepath.Join(f.Runtime, name+suffix); len(p.socket) > maxSocket {
			return nil, fmt.Errorf("the name of the socket %s is too long", p.socket)
		}
	}
	return p, nil
}

const suffix = ".s"

func groupName(group string) string {
	sum := sha256.Sum256([]byte(group))
	return hex.EncodeToString(sum[:4]) + "-"
}

// In returns the places of a group that have a socket. They can be asked, but
// serve no window: their identities are not known.
func In(f Folders, group string) []*Place {
	var all []*Place
	for _, dir := range slices.Compact([]string{f.State, f.Runtime}) {
		if !supported || dir == "" || checkPrivate(dir) != nil {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasPrefix(name, groupName(group)) && strings.HasSuffix(name, suffix) {
				all = append(all, &Place{socket: filepath.Join(dir, name), uid: os.Geteuid()})
			}
		}
	}
	return all
}

// Said is the file for what a host says that it cannot say to windows: why it
// does not start, or how it crashed. Who starts one appends, because the one
// before may not have ended; [Place.Host] empties it.
func (p *Place) Said() string { return p.locks + ".err" }

// private makes a folder that is the user's alone, or says why it is not.
func private(dir string) error {
	if dir == "" {
		return errors.New("there is no folder where windows could meet")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder where windows meet: %w", err)
	}
	return checkPrivate(dir)
}

// checkPrivate says why a folder is not the user's alone.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("looking at the folder where windows meet: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to other users (mode %04o); it must have mode 0700", dir, info.Mode().Perm())
	case owner(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", dir)
	}
	return nil
}

// readKey reads the key of a folder, and makes it where there is none: of two
// processes that do so at the same time, both get the same.
func readKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "key")
	for range 2 {
		key, err := os.ReadFile(path)
		if err == nil && len(key) != sha256.Size {
			return nil, fmt.Errorf("%s is damaged; remove it while no bridge runs", path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return key, err
		}
		f, err := os.CreateTemp(dir, "key-*") // of mode 0600
		if err != nil {
			return nil, err
		}
		key = make([]byte, sha256.Size)
		rand.Read(key)
		_, err = f.Write(key)
		if err = errors.Join(err, f.Close()); err == nil {
			if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
				err = nil // somebody else's, which counts
			}
		}
		if err = errors.Join(err, os.Remove(f.Name())); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s comes and goes", path)
}
