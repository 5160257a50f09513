// Package instance lets several processes of one user, each with an MCP client
// of its own, be served by one shared bridge: the instance.
//
// A process finds its instance at a [Rendezvous], a socket in a folder that only
// the user can enter (mode 0700, the socket 0600). The socket's name is a keyed
// digest of everything that must be equal for two clients to share an instance: so
// clients that differ never meet, and the name reveals nothing of what went into
// it. Each side asks the system who is at the other end, and talks only to the same
// user.
//
//	client process                            instance
//	[Rendezvous.Join]   -- hello, welcome -->  [Listener.Serve], [Instance]
//	[Rendezvous.Relay]  <-- JSON-RPC lines --> Bridge.Serve, one per connection
//
// On the wire there is one line each way, followed by whatever was asked for:
//
//	client   -> instance   {"join":1,"identity":"<the whole digest>","ask":"serve"}
//	instance -> client     {"join":1,"pid":4711,...}
//
// An instance that closes the connection without its line is about to end; the
// client process then starts another ([Rendezvous.Start]). Two locks make that
// safe. The instance holds NAME.host as long as it lives, so that it may remove a
// socket that a killed one left behind. Whoever starts an instance holds NAME.start
// meanwhile, so that only one of several client processes does. The system drops a
// lock when its process ends, however it ends.
//
// To users an instance's clients are "windows": the configuration, the status
// and the messages say so, and so does the JSON here.
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

// Folders hold the rendezvous of one user.
type Folders struct {
	// State is a folder for what must last: the key, the locks, the sockets.
	State string
	// Runtime takes its place for sockets whose names would be too long there.
	Runtime string
}

// A Rendezvous is where clients that can be served alike meet their instance.
type Rendezvous struct {
	digest []byte // of the identity; nil where it is not known
	locks  string // path prefix of its locks
	socket string
	uid    int // who may be at the other end

	// Bound is the profile that binds the window of this process; empty: none.
	Bound string
}

// maxSocket is the longest name of a socket that every system takes.
const maxSocket = 100

// ErrUnsupported is returned on systems where bridges are not shared.
var ErrUnsupported = errors.New("bridges are not shared on this system")

// At returns the rendezvous of an identity, and makes the folders if need be.
// Group is a part of the identity by which [In] finds every rendezvous of it. The
// error says why there is none that is safe from other users.
func At(f Folders, group string, identity []string) (*Rendezvous, error) {
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
	r := &Rendezvous{digest: digest, locks: filepath.Join(f.State, name), socket: filepath.Join(f.State, name+suffix), uid: os.Geteuid()}
	if len(r.socket) > maxSocket {
		if err := private(f.Runtime); err != nil {
			return nil, err
		}
		if r.socket = filepath.Join(f.Runtime, name+suffix); len(r.socket) > maxSocket {
			return nil, fmt.Errorf("the name of the socket %s is too long", r.socket)
		}
	}
	return r, nil
}

const suffix = ".s"

func groupName(group string) string {
	sum := sha256.Sum256([]byte(group))
	return hex.EncodeToString(sum[:4]) + "-"
}

// In returns each rendezvous of a group that has a socket. It can be asked for
// its status, but not joined: its identity is not known.
func In(f Folders, group string) []*Rendezvous {
	var all []*Rendezvous
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
				all = append(all, &Rendezvous{socket: filepath.Join(dir, name), uid: os.Geteuid()})
			}
		}
	}
	return all
}

// LastWords is the file for what an instance cannot tell its clients: why it
// does not start, or how it crashed. Whoever starts one appends to it, because
// the one before may not have ended; [Rendezvous.Own] empties it.
func (r *Rendezvous) LastWords() string { return r.locks + ".err" }

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
