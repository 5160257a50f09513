package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
)

// An Installation has the logins that all use at the servers of a configuration which
// runs at several bridges. Each is a document, which all of them share: whichever renews
// it first marks it, and the others take what it brings. A login that this machine has in a
// file from before is taken over where the store has nothing yet of that server.
type Installation struct {
	keeper *Keeper
	o      InstallationOptions
	vault  vault

	mu      sync.Mutex
	clients map[string]*Client
}

// InstallationOptions are the settings of an Installation.
type InstallationOptions struct {
	Configuration string // whose logins they are
	// Open opens the documents, when they are needed first. Key is what they are
	// encrypted under; nil: the store encrypts them itself.
	Open func(ctx context.Context) (store documents.Store, key []byte, err error)
	// TakesOver reports whether logins in files may be moved into the store. Otherwise
	// they stay there, and are used as they are where the store has nothing yet.
	TakesOver func() bool
	// Took is told that the login at a server was moved from a file; nil: nobody is.
	Took func(server, file string)
}

// Installation makes the logins of an installation. It opens nothing yet.
func (k *Keeper) Installation(o InstallationOptions) *Installation {
	return &Installation{keeper: k, o: o, vault: vault{what: "logins", open: o.Open}, clients: map[string]*Client{}}
}

// Client returns the client for a server: the same one as before, as long as the
// server is described in the same way.
func (in *Installation) Client(s Server) *Client {
	in.mu.Lock()
	defer in.mu.Unlock()
	if old := in.clients[s.Name]; old != nil && reflect.DeepEqual(old.server, s) {
		return old
	}
	in.keeper.learn(s.ClientSecret)
	sum := sha256.Sum256([]byte(s.Name + "\n" + s.URL))
	c := &Client{keeper: in.keeper, server: s, shelf: &sharedShelf{
		in: in, server: s, name: hex.EncodeToString(sum[:16]),
		file: &fileShelf{records: &in.keeper.records, path: in.keeper.records.file(s.Name, s.URL)},
	}}
	in.clients[s.Name] = c
	return c
}

// A sharedLogin is the document of the login that all use at one server.
type sharedLogin struct {
	Configuration string `json:"configuration"`
	Server        string `json:"server"`
	URL           string `json:"url"`
	// Record is nil after the login was deleted: then no file is taken over any more.
	Record   *record   `json:"record,omitempty"`
	Renewing *renewing `json:"renewing,omitempty"`

	there bool // it was read, and not made
}

// A sharedShelf keeps a record in a document. While there is none, it is the shelf of the
// file from before, unless that may be moved.
type sharedShelf struct {
	in     *Installation
	server Server
	name   string // of the document
	file   *fileShelf
}

// errUnreadable says that a record is there, and that no login can be read from it.
var errUnreadable = errors.New("what is kept of the login cannot be decrypted")

// document returns the document; nil: there is none.
func (s *sharedShelf) document(ctx context.Context) (*sharedLogin, error) {
	store, seal, err := s.in.vault.opened(ctx)
	if err != nil {
		return nil, err
	}
	body, err := store.Read(ctx, s.name)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.wrong("reading the login", err)
	}
	return s.parse(seal, body)
}

// wrong tells a document that cannot be read from a store that cannot.
func (s *sharedShelf) wrong(doing string, err error) error {
	if errors.Is(err, ledger.ErrDamaged) {
		return fmt.Errorf("%s: %w", doing, errUnreadable)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (s *sharedShelf) parse(seal *sealer, body []byte) (*sharedLogin, error) {
	d := &sharedLogin{}
	text, err := seal.open(s.name, body)
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	if err != nil || d.Configuration != s.in.o.Configuration || d.Server != s.server.Name || d.URL != s.server.URL {
		return nil, fmt.Errorf("reading the login: %w", errUnreadable)
	}
	d.there = true
	if d.Record != nil {
		d.Record.shared = true
		if d.Record.Secrets == nil {
			d.Record.Secrets = &confidential{}
		}
		s.in.keeper.learn(d.Record.Secrets.Access, d.Record.Secrets.Refresh, d.Record.Secrets.Client)
	}
	return d, nil
}

// change replaces the document by what edit makes of it, in one step; edit is given an
// empty one if there is none.
func (s *sharedShelf) change(ctx context.Context, edit func(*sharedLogin) error) error {
	store, seal, err := s.in.vault.opened(ctx)
	if err != nil {
		return err
	}
	return store.Change(ctx, s.name, func(old []byte) ([]byte, error) {
		d := &sharedLogin{Configuration: s.in.o.Configuration, Server: s.server.Name, URL: s.server.URL}
		if old != nil {
			if d, err = s.parse(seal, old); err != nil {
				return nil, err
			}
		}
		if err := edit(d); err != nil {
			return nil, err
		}
		text, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		return seal.close(s.name, text), nil
	})
}

// look returns the document; nil: there is none. inFile is set if the login is still in
// the file.
func (s *sharedShelf) look(ctx context.Context) (d *sharedLogin, inFile bool, err error) {
	if d, err = s.document(ctx); err != nil || d != nil || !s.file.holds() {
		return d, false, err
	}
	if !s.in.o.TakesOver() {
		return nil, true, nil
	}
	if err := s.takeOver(ctx); err != nil {
		return nil, false, fmt.Errorf("moving the login from %s to the store: %w", s.file.path, err)
	}
	d, err = s.document(ctx)
	return d, false, err
}

// takeOver moves the login from the file into the document, unless that is there by now.
// It does not stay in the file as well: a refresh token that two use ends the login.
func (s *sharedShelf) takeOver(ctx context.Context) error {
	unlock, err := s.file.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.file.read(ctx)
	if err != nil || r == nil {
		return err
	}
	moved := *r
	moved.InKeyring = false
	errThere := errors.New("the store has it")
	err = s.change(ctx, func(d *sharedLogin) error {
		if d.there {
			return errThere
		}
		d.Record = &moved
		return nil
	})
	if errors.Is(err, errThere) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.in.o.Took != nil {
		s.in.o.Took(s.server.Name, s.file.path)
	}
	return s.file.remove(ctx)
}

func (s *sharedShelf) current(ctx context.Context) (*record, error) { return s.read(ctx) }

func (s *sharedShelf) read(ctx context.Context) (*record, error) {
	d, inFile, err := s.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case inFile:
		return s.file.current(ctx)
	case d == nil:
		return nil, nil
	}
	return d.Record, nil
}

func (s *sharedShelf) holds() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, inFile, err := s.look(ctx)
	return err != nil || inFile || d != nil && d.Record != nil
}

// lock marks the document as being renewed, once no other process renews it. One that
// cannot be read makes room for a new login.
func (s *sharedShelf) lock(ctx context.Context) (unlock func(), err error) {
	// A file that cannot be read must not keep anybody from logging in anew.
	_, inFile, err := s.look(ctx)
	if inFile {
		if unlock, err = s.file.lock(ctx); err != nil {
			return nil, err
		}
		if _, still, err := s.look(ctx); still && err == nil {
			return unlock, nil
		}
		unlock() // it was moved meanwhile
	}
	if errors.Is(err, errUnreadable) {
		store, _, err := s.in.vault.opened(ctx)
		if err == nil {
			err = documents.Discard(ctx, store, s.name)
		}
		if err != nil {
			return nil, fmt.Errorf("deleting a login that cannot be read: %w", err)
		}
	}
	unlock, err = mark(ctx, s.in.keeper.options.now, func(ctx context.Context, edit func(*renewing) (*renewing, error)) error {
		return s.change(ctx, func(d *sharedLogin) (err error) {
			d.Renewing, err = edit(d.Renewing)
			return err
		})
	})
	if err != nil {
		return nil, s.wrong("locking the login", err)
	}
	return unlock, nil
}

func (s *sharedShelf) write(ctx context.Context, r record) error {
	s.in.keeper.learn(r.Secrets.Access, r.Secrets.Refresh, r.Secrets.Client)
	if _, inFile, err := s.look(ctx); err == nil && inFile {
		return s.file.write(ctx, r)
	}
	r.InKeyring = false
	if err := s.change(ctx, func(d *sharedLogin) error { d.Record = &r; return nil }); err != nil {
		return s.wrong("keeping the login", err)
	}
	return nil
}

func (s *sharedShelf) remove(ctx context.Context) error {
	if _, inFile, err := s.look(ctx); err == nil && inFile {
		return s.file.remove(ctx)
	}
	if err := s.change(ctx, func(d *sharedLogin) error { d.Record = nil; return nil }); err != nil {
		return s.wrong("deleting the login", err)
	}
	return nil
}
