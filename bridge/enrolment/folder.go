// Package enrolment is the laptop's side of a centre: it enrols a machine with a one-time
// code, and sends the rows of its audit log up from then on. Package wire has what is
// said. [Folder] is where a laptop keeps what it knows: its key, the centre's, and how far the
// centre has its rows.
package enrolment

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/filelock"
)

// A Folder is where a laptop keeps what it knows of its centre, beside its audit log:
//
//	enrolment.json  an Enrolment
//	key             the seed of the laptop's key, in hexadecimal; nobody else can read it
//	sent.json       a Sent, which the sending process replaces
//	lock            is locked by the process that sends
//	asks-*          by the one that asks for a configuration
type Folder string

// FolderOf returns the folder of the audit log in a file.
func FolderOf(log string) Folder { return Folder(filepath.Join(filepath.Dir(log), "centre")) }

// An Enrolment says at which centre a laptop is enrolled, and as whom.
type Enrolment struct {
	Centre    string    `json:"centre"`    // its address
	CentreKey []byte    `json:"centreKey"` // that answers are signed with
	Laptop    string    `json:"laptop"`
	Person    string    `json:"person"`
	Enrolled  time.Time `json:"enrolled"`
	From      wire.Head `json:"from"`                // rows after this one go up
	PolicyKey string    `json:"policyKey,omitempty"` // that signs the centre's policy for laptops
}

// A Sent says how far the centre has the rows, and how the last attempt went.
type Sent struct {
	Head    wire.Head   `json:"head"` // what the centre has confirmed
	Waiting int64       `json:"waiting"`
	Reached time.Time   `json:"reached,omitzero"` // the last signed answer that was no error
	Tried   time.Time   `json:"tried,omitzero"`
	Problem string      `json:"problem,omitempty"` // of the last attempt
	Reason  wire.Reason `json:"reason,omitempty"`  // the centre's, if it refused
	// Skew is how far the centre's clock is ahead of this machine's, if that is more than
	// wire.MaxSkew.
	Skew time.Duration `json:"skew,omitempty"`
}

// ErrNotEnrolled: this machine is enrolled at no centre.
var ErrNotEnrolled = errors.New("this machine is enrolled at no centre")

const maxFile = 64 << 10

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Enrolment returns where the laptop is enrolled, or [ErrNotEnrolled].
func (f Folder) Enrolment() (e Enrolment, err error) {
	err = f.read("enrolment.json", &e)
	if errors.Is(err, fs.ErrNotExist) {
		return e, ErrNotEnrolled
	}
	return e, err
}

// Sent returns how far the rows were sent; nothing was if that is not known.
func (f Folder) Sent() (s Sent, err error) {
	if err = f.read("sent.json", &s); errors.Is(err, fs.ErrNotExist) {
		return Sent{}, nil
	}
	return s, err
}

func (f Folder) read(name string, into any) error {
	text, err := atomicfile.Read(f.path(name), maxFile)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.path(name), err)
	}
	return nil
}

func (f Folder) write(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = atomicfile.Write(f.path(name), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.path(name), err)
	}
	return nil
}

// Save notes an enrolment, from whose first row on everything is still to be sent.
func (f Folder) Save(e Enrolment) error {
	if err := f.write("sent.json", Sent{Head: e.From}); err != nil {
		return err
	}
	return f.write("enrolment.json", e)
}

// Key returns the laptop's key. If there is none and create is set, it makes one.
func (f Folder) Key(create bool) (ed25519.PrivateKey, error) {
	text, err := atomicfile.ReadUnlinked(f.path("key"), maxFile)
	if errors.Is(err, fs.ErrNotExist) && create {
		_, key, err := ed25519.GenerateKey(nil)
		if err == nil {
			err = os.MkdirAll(string(f), 0o700)
		}
		if err == nil {
			err = atomicfile.Write(f.path("key"), []byte(hex.EncodeToString(key.Seed())+"\n"))
		}
		if err != nil {
			return nil, fmt.Errorf("making this machine's key: %w", err)
		}
		return key, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading this machine's key: %w", err)
	}
	key, err := ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.path("key"), err)
	}
	return key, nil
}

// ParseKey reads the seed of a key: 64 hexadecimal digits.
func ParseKey(text string) (ed25519.PrivateKey, error) {
	seed, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("a key has %d hexadecimal digits: make one with openssl rand -hex %d", 2*ed25519.SeedSize, ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Leave forgets the enrolment and the key.
func (f Folder) Leave() error {
	var failed error
	for _, name := range []string{"enrolment.json", "key", "sent.json"} { // the first ends the sending
		if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("forgetting the centre: %w", err))
		}
	}
	return failed
}

// lock takes the lock of the process that sends. Err is [filelock.ErrHeld] if another has it.
func (f Folder) lock() (unlock func(), err error) { return f.lockFile("lock") }

// LockAsking takes the lock of the process that asks the centre's approvers for a
// configuration, in the same way.
func (f Folder) LockAsking(configuration string) (unlock func(), err error) {
	sum := sha256.Sum256([]byte(configuration))
	return f.lockFile("asks-" + hex.EncodeToString(sum[:6]))
}

func (f Folder) lockFile(name string) (unlock func(), err error) {
	file, err := os.OpenFile(f.path(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Try(file); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil // which releases it
}
