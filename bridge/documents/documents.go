// Package documents keeps small named documents, such as what was accepted of a server
// or a login, which all bridges that share a store read and replace as a whole.
package documents

import "context"

// A Store keeps the documents of one kind. A name is that of a file: lower-case
// letters, digits, '.', '-' and '_', not beginning with a dot. Its methods may be
// called concurrently, by several processes too, on several machines where the store
// is shared by them.
type Store interface {
	// Read returns a document. The error wraps [io/fs.ErrNotExist] if there is none.
	Read(ctx context.Context, name string) ([]byte, error)

	// Names returns the names of all documents, sorted.
	Names(ctx context.Context) ([]string, error)

	// Change replaces a document by what change makes of it, under a lock that every
	// process takes. change is given nil if there is none; if it returns nil, the
	// document is removed; if it returns an error, nothing changes and Change returns
	// that error. When Change returns nil the document is durable. change must be
	// quick: it waits for no network and no person.
	Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error

	// Watch calls changed, from the caller's own goroutine, after documents have been
	// changed by any process, until ctx ends. One call may stand for several changes.
	Watch(ctx context.Context, changed func())
}
