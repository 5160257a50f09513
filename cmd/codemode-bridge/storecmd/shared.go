package storecmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/pins"
)

// Shares reports whether bridges on other machines share what is kept for a configuration
// besides its records: they have the same database, and the configuration the same id. A
// path would not do: it may be another configuration's elsewhere.
func Shares(cfg *config.Config) bool { return cfg.ID != "" && InDatabase(cfg.Audit) }

// kindFor names the documents of one kind that belong to a configuration.
func kindFor(kind string, cfg *config.Config) string {
	sum := sha256.Sum256([]byte(cfg.ID))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

// A Shared opens the documents of databases when they are first used, and keeps them open.
type Shared struct {
	// place returns the store of the configuration that is in force, with its secrets.
	place func(context.Context, *config.Config) (config.Audit, error)

	mu    sync.Mutex
	open  map[string]*pgstore.Documents // by the address and key
	fault map[string]fault              // why one could not be opened
}

type fault struct {
	err error
	at  time.Time
}

// openAgain is how long an error stays, so that not everything waits for a server that
// does not answer.
const openAgain = 2 * time.Second

// NewShared returns a Shared without connections. place returns the store of the
// configuration that is in force where cfg is given, with its secrets.
func NewShared(place func(ctx context.Context, cfg *config.Config) (config.Audit, error)) *Shared {
	return &Shared{place: place, open: map[string]*pgstore.Documents{}, fault: map[string]fault{}}
}

// Close ends the connections.
func (s *Shared) Close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, d := range s.open {
		err = errors.Join(err, d.Close())
		delete(s.open, at)
	}
	return err
}

func (s *Shared) at(ctx context.Context, place config.Audit) (*pgstore.Documents, error) {
	o := Database(place)
	at := o.URL + "\n" + string(o.Secret) + "\n" + o.SecretFile
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.open[at]; d != nil {
		return d, nil
	}
	if last := s.fault[at]; last.err != nil && time.Since(last.at) < openAgain {
		return nil, last.err
	}
	d, err := pgstore.OpenDocuments(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			s.fault[at] = fault{err, time.Now()}
		}
		return nil, err
	}
	s.open[at] = d
	return d, nil
}

// Documents returns the documents of one kind that belong to a configuration that shares
// them; see Shares. They are opened when they are used.
func (s *Shared) Documents(kind string, cfg *config.Config) documents.Store {
	return &later{shared: s, cfg: cfg, kind: kindFor(kind, cfg)}
}

// Pins opens the pins of a configuration: those of the store where it shares them, and
// otherwise those in a folder.
func (s *Shared) Pins(cfg *config.Config, folder string) *pins.Store {
	if !Shares(cfg) {
		return pins.Open(folder)
	}
	return pins.OpenShared(s.Documents("pins", cfg), "the store's documents "+kindFor("pins", cfg), folder)
}

// Confirmed returns where machines tell each other what was confirmed of a configuration;
// nil if they do not.
func (s *Shared) Confirmed(cfg *config.Config) confirmed.Documents {
	if s == nil || !Shares(cfg) {
		return nil
	}
	return s.Documents("confirmed", cfg)
}

// Marks returns where it is kept what principals have read of what is labelled, for rules about flows: in
// the store where machines share it, and otherwise in a folder; nil if that is empty.
func (s *Shared) Marks(cfg *config.Config, folder string) documents.Store {
	switch {
	case s != nil && Shares(cfg):
		return s.Documents("marks", cfg)
	case folder == "":
		return nil
	}
	return documents.Folder(folder)
}

// Portable returns what tells each server of a configuration on any machine, by name.
func Portable(cfg *config.Config, env config.Env) map[string]string {
	are := make(map[string]string, len(cfg.Servers))
	for name, s := range cfg.Servers {
		are[name] = s.Portable(cfg, env)
	}
	return are
}

// later is documents of a store that is opened when they are used.
type later struct {
	shared *Shared
	cfg    *config.Config
	kind   string

	mu    sync.Mutex
	place *config.Audit // nil before it is known
}

func (l *later) store(ctx context.Context) (documents.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.place == nil {
		place, err := l.shared.place(ctx, l.cfg)
		if err != nil {
			return nil, err
		}
		l.place = &place
	}
	d, err := l.shared.at(ctx, *l.place)
	if err != nil {
		return nil, err
	}
	return d.Documents(l.kind), nil
}

func (l *later) Read(ctx context.Context, name string) ([]byte, error) {
	d, err := l.store(ctx)
	if err != nil {
		return nil, err
	}
	return d.Read(ctx, name)
}

func (l *later) Names(ctx context.Context) ([]string, error) {
	d, err := l.store(ctx)
	if err != nil {
		return nil, err
	}
	return d.Names(ctx)
}

func (l *later) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	d, err := l.store(ctx)
	if err != nil {
		return err
	}
	return d.Change(ctx, name, change)
}

// Watch begins as soon as the store can be opened. What changed before that is told once.
func (l *later) Watch(ctx context.Context, changed func()) {
	for first := true; ctx.Err() == nil; first = false {
		d, err := l.store(ctx)
		if err == nil {
			if !first {
				changed()
			}
			d.Watch(ctx, changed)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(openAgain):
		}
	}
}
