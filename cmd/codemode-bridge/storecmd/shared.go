package storecmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
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

// SignIns is the kind of the documents with who is signed in to the approval page.
const SignIns = "sign-ins"

// kindFor names the documents of one kind that belong to a configuration.
func kindFor(kind string, cfg *config.Config) string {
	sum := sha256.Sum256([]byte(cfg.ID))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

// A Shared opens the documents of databases when they are first used, and keeps them open.
type Shared struct {
	// place returns the store of the configuration that is in force, with its secrets.
	place func(context.Context, *config.Config) (config.Audit, error)

	life context.Context // of what is being opened
	end  context.CancelFunc

	mu   sync.Mutex
	open map[string]*opened // by the address and key
}

// An opened is the documents of a database, or why they could not be opened; both are
// known once done is closed.
type opened struct {
	done chan struct{}
	*pgstore.Documents
	err error
	at  time.Time
}

// openAgain is how long an error stays, so that not everything waits for a server that
// does not answer.
const openAgain = 2 * time.Second

// NewShared returns a Shared without connections. place returns the store of the
// configuration that is in force where cfg is given, with its secrets.
func NewShared(place func(ctx context.Context, cfg *config.Config) (config.Audit, error)) *Shared {
	s := &Shared{place: place, open: map[string]*opened{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends the connections. It is called once, when nothing uses them any more.
func (s *Shared) Close() (err error) {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, o := range s.open {
		<-o.done
		if o.err == nil {
			err = errors.Join(err, o.Close())
		}
		delete(s.open, at)
	}
	return err
}

// at returns the documents of a database. They are opened once for all who ask, who wait
// no longer than their own contexts last.
func (s *Shared) at(ctx context.Context, place config.Audit) (*pgstore.Documents, error) {
	if !InDatabase(place) {
		return nil, errors.New("the edit of the configuration that names the store waits for an approver")
	}
	o := s.opening(Database(place))
	select {
	case <-o.done:
		return o.Documents, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the store: %w", context.Cause(ctx))
	}
}

func (s *Shared) opening(with pgstore.Options) *opened {
	at := with.URL + "\n" + string(with.Secret) + "\n" + with.SecretFile
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.open[at]; last != nil {
		select {
		case <-last.done:
			if last.err == nil || time.Since(last.at) < openAgain {
				return last
			}
		default:
			return last
		}
	}
	o := &opened{done: make(chan struct{})}
	s.open[at] = o
	go func() {
		defer close(o.done)
		o.Documents, o.err = pgstore.OpenDocuments(s.life, with)
		o.at = time.Now()
	}()
	return o
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

// Logins returns where bridges keep the logins that all use at servers; nil if they stay in
// the files of each user.
func (s *Shared) Logins(cfg *config.Config) documents.Store {
	if !Shares(cfg) {
		return nil
	}
	return s.Documents("logins", cfg)
}

// Accounts returns where the accounts of people are kept. encrypted reports whether the
// store encrypts them itself.
func (s *Shared) Accounts(cfg *config.Config) (_ documents.Store, encrypted bool) {
	const kind = "accounts" // of every configuration: their names say of which
	if !InDatabase(cfg.Audit) {
		return documents.Folder(filepath.Join(filepath.Dir(cfg.Audit.Path), "documents", kind)), false
	}
	return &later{shared: s, cfg: cfg, kind: kind}, true
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
	is := l.place
	l.mu.Unlock()
	if is == nil { // nobody waits for another who reads secrets
		place, err := l.shared.place(ctx, l.cfg)
		if err != nil {
			return nil, err
		}
		is = &place
		l.mu.Lock()
		l.place = is
		l.mu.Unlock()
	}
	d, err := l.shared.at(ctx, *is)
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

// Discard removes a document, whatever its body is. See [documents.Discard].
func (l *later) Discard(ctx context.Context, name string) error {
	d, err := l.store(ctx)
	if err != nil {
		return err
	}
	return documents.Discard(ctx, d, name)
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
