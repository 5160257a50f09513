package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// An account is the document of one person's login at one server.
type account struct {
	Configuration string    `json:"configuration"`
	Server        string    `json:"server"`
	URL           string    `json:"url"`
	Person        string    `json:"person"`
	ID            string    `json:"id"` // of the login: another one has another
	Since         time.Time `json:"since"`
	Record        record    `json:"record"`
	// Renewing says that a process renews the login, so that no other uses its
	// refresh token.
	Renewing *renewing `json:"renewing,omitempty"`
}

// An accountShelf is where a person's login is kept, as long as it is the login with an
// id. It sees no other.
type accountShelf struct {
	at           *AccountsAt
	person, name string
	id           string
	next         string // the id that the login gets which write connects; empty: it changes the one that there is
}

// document returns the document; nil: there is none.
func (s *accountShelf) document(ctx context.Context) (*account, error) {
	store, seal, err := s.at.all.vault.opened(ctx)
	if err != nil {
		return nil, err
	}
	body, err := store.Read(ctx, s.name)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the account: %w", err)
	}
	return s.parse(seal, body)
}

func (s *accountShelf) parse(seal *sealer, body []byte) (*account, error) {
	d := &account{}
	text, err := seal.open(s.name, body)
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the account: it cannot be decrypted; was its key replaced? (%w)", err)
	}
	a := s.at
	if d.Configuration != a.all.o.Configuration || d.Server != a.server.Name || d.URL != a.server.URL || s.person != "" && d.Person != s.person {
		return nil, nil // somebody else's
	}
	if d.Record.Secrets == nil {
		d.Record.Secrets = &confidential{}
	}
	a.all.keeper.learn(d.Record.Secrets.Access, d.Record.Secrets.Refresh, d.Record.Secrets.Client)
	return d, nil
}

// change replaces the document by what edit makes of it, in one step. With nil it is
// removed.
func (s *accountShelf) change(ctx context.Context, edit func(*account) (*account, error)) error {
	store, seal, err := s.at.all.vault.opened(ctx)
	if err != nil {
		return err
	}
	return store.Change(ctx, s.name, func(old []byte) ([]byte, error) {
		var d *account
		if old != nil {
			if d, err = s.parse(seal, old); err != nil && s.next == "" {
				return nil, err
			} // what cannot be read is replaced by a new login
		}
		next, err := edit(d)
		if err != nil || next == nil {
			return nil, err
		}
		text, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		return seal.close(s.name, text), nil
	})
}

func (s *accountShelf) current(ctx context.Context) (*record, error) { return s.read(ctx) }

func (s *accountShelf) read(ctx context.Context) (*record, error) {
	d, err := s.document(ctx)
	if err != nil || d == nil {
		return nil, err
	}
	if d.ID != s.id && d.ID != s.next && s.next == "" {
		return nil, nil
	}
	return &d.Record, nil
}

func (s *accountShelf) holds() bool {
	d, err := s.document(context.Background())
	return err != nil || d != nil
}

// lock marks the login as being renewed, once no other process renews it.
func (s *accountShelf) lock(ctx context.Context) (unlock func(), err error) {
	if s.next != "" { // nobody else has the login that is being made
		return func() {}, nil
	}
	unlock, err = mark(ctx, s.at.all.keeper.options.now, func(ctx context.Context, edit func(*renewing) (*renewing, error)) error {
		return s.change(ctx, func(d *account) (*account, error) {
			if d == nil || d.ID != s.id {
				return nil, errDisconnected
			}
			d.Renewing, err = edit(d.Renewing)
			return d, err
		})
	})
	if errors.Is(err, errDisconnected) {
		return nil, s.at.client(s.person, nil).needed("", nil)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the account: %w", err)
	}
	return unlock, nil
}

// write keeps the record: in the login with the shelf's id, or as a new login.
func (s *accountShelf) write(ctx context.Context, r record) error {
	secrets := r.Secrets
	s.at.all.keeper.learn(secrets.Access, secrets.Refresh, secrets.Client)
	r.InKeyring = false
	err := s.change(ctx, func(d *account) (*account, error) {
		if s.next != "" {
			return &account{
				Configuration: s.at.all.o.Configuration, Server: s.at.server.Name, URL: s.at.server.URL, Person: s.person,
				ID: s.next, Since: s.at.all.keeper.options.now().UTC().Truncate(time.Second), Record: r,
			}, nil
		}
		if d == nil || d.ID != s.id {
			return nil, errDisconnected
		}
		d.Record = r
		return d, nil
	})
	if err != nil {
		return fmt.Errorf("keeping the account: %w", err)
	}
	return nil
}

// remove removes the login with the shelf's id.
func (s *accountShelf) remove(ctx context.Context) error {
	return s.change(ctx, func(d *account) (*account, error) {
		if d == nil || d.ID == s.id {
			return nil, nil
		}
		return d, nil
	})
}

// take removes the document, whichever login it is, and returns it; nil: there was none.
// One that cannot be read is removed, too.
func (s *accountShelf) take(ctx context.Context) (taken *account, err error) {
	store, seal, err := s.at.all.vault.opened(ctx)
	if err != nil {
		return nil, err
	}
	there := false
	err = store.Change(ctx, s.name, func(old []byte) ([]byte, error) {
		if there = old != nil; there {
			taken, _ = s.parse(seal, old) // a damaged one must not stay either
		}
		return nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("deleting the account: %w", err)
	}
	if there && taken == nil {
		taken = &account{Record: record{Secrets: &confidential{}}}
	}
	return taken, nil
}
