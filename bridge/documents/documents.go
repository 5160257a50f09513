// Package documents keeps small named documents, such as what was accepted of a server
// or a login, which all bridges that share a store read and replace as a whole.
package documents

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Most is how long a document may be, in bytes.
const Most = 64 << 20

// A Store keeps the documents of one kind. A name is that of a file: letters, digits,
// '.', '-' and '_', not beginning with a dot; see [CheckName]. Two names that differ in
// nothing but capitals may be one. Its methods may be called concurrently, by several
// processes too, on several machines where the store is shared by them.
type Store interface {
	// Read returns a document. The error wraps [io/fs.ErrNotExist] if there is none.
	Read(ctx context.Context, name string) ([]byte, error)

	// Names returns the names of all documents, sorted.
	Names(ctx context.Context) ([]string, error)

	// Change replaces a document by what change makes of it, under a lock that every
	// process takes. change is given nil if there is none; if it returns nil, the
	// document is removed; if it returns an error, nothing changes and Change returns
	// that error. When Change returns nil the document is durable. change must be
	// quick: it waits for no network and no person, and changes nothing else in the
	// store.
	Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error

	// Watch calls changed, from the caller's own goroutine, after documents have been
	// changed by any process, until ctx ends. One call may stand for several changes,
	// or for none.
	Watch(ctx context.Context, changed func())
}

// maxName is how long a name may be: a file beside it may need a longer one.
const maxName = 200

// CheckName returns an error if no document can have a name. Names that end in "lock"
// are for the locks of folders.
func CheckName(name string) error {
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(".-_", c) >= 0) {
			return fmt.Errorf("%q names no document: it may have letters, digits, '.', '-' and '_'", name)
		}
	}
	switch {
	case name == "", len(name) > maxName, strings.HasPrefix(name, "."), strings.HasSuffix(name, "."):
		return fmt.Errorf("%q names no document: it must have 1 to %d characters, and no dot at its ends", name, maxName)
	case name == lockName, strings.HasSuffix(name, "."+lockName), !filepath.IsLocal(name):
		return fmt.Errorf("%q names no document: the name has another meaning", name)
	}
	return nil
}

// changed runs change, and checks what it returns.
func changed(name string, old []byte, change func([]byte) ([]byte, error)) ([]byte, error) {
	next, err := change(old)
	if err == nil {
		err = CheckLength(name, next)
	}
	if err != nil {
		return nil, err
	}
	return next, nil
}

// CheckLength returns an error if a document is longer than Most.
func CheckLength(name string, body []byte) error {
	if len(body) > Most {
		return fmt.Errorf("document %s would have %d bytes, which are more than the %d that are kept", name, len(body), Most)
	}
	return nil
}

// Discard removes a document, also one that the store can no longer decrypt.
func Discard(ctx context.Context, s Store, name string) error {
	if s, ok := s.(interface {
		Discard(ctx context.Context, name string) error
	}); ok {
		return s.Discard(ctx, name)
	}
	return s.Change(ctx, name, func([]byte) ([]byte, error) { return nil, nil })
}
