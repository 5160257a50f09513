package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"codemode-bridge/bridge/documents"
)

// Accounts are the logins that each person has of their own at servers where the
// configuration says so. Each is a document, which all bridges with the same store
// share: encrypted under a key of ours, or by the store.
type Accounts struct {
	keeper *Keeper
	o      AccountsOptions
	vault  vault

	mu sync.Mutex
	at map[string]*AccountsAt
}

// AccountsOptions are the settings of Accounts.
type AccountsOptions struct {
	Configuration string // whose accounts they are
	// Open opens the documents, when they are needed first. Key is what they are
	// encrypted under; nil: the store encrypts them itself.
	Open func(ctx context.Context) (store documents.Store, key []byte, err error)
	// Person says whose account the calls of a principal use; the empty principal is
	// the local user. An error refuses the calls.
	Person func(principal string) (person string, err error)
	// Where says where a person connects an account at a server, as the end of a
	// sentence: "connect it at https://...". The empty person is anybody.
	Where func(server, person string) string
}

// A person is who an account belongs to.
type person struct {
	name  string
	where func() string
}

// Accounts makes the Accounts of a configuration. It opens nothing yet.
func (k *Keeper) Accounts(o AccountsOptions) *Accounts {
	return &Accounts{keeper: k, o: o, vault: vault{what: "accounts", open: o.Open}, at: map[string]*AccountsAt{}}
}

// At returns the accounts at a server: the same value as before, as long as the server
// is described in the same way.
func (a *Accounts) At(s Server) *AccountsAt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.at[s.Name]; old != nil && reflect.DeepEqual(old.server, s) {
		return old
	}
	a.keeper.learn(s.ClientSecret)
	at := &AccountsAt{all: a, server: s, clients: map[string]*Client{}}
	at.lister = &Lister{at: at, wants: s.Pasted, bad: map[string]bool{}}
	a.at[s.Name] = at
	return at
}

// AccountsAt are the accounts at one server. Its methods may be called concurrently.
type AccountsAt struct {
	all    *Accounts
	server Server
	lister *Lister

	mu      sync.Mutex
	clients map[string]*Client // by the names of documents
}

// Lister returns what authorizes the listing of the server's tools.
func (at *AccountsAt) Lister() *Lister { return at.lister }

// prefix is what the names of the server's documents begin with.
func (at *AccountsAt) prefix() string {
	short := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:8])
	}
	return short(at.all.o.Configuration) + "." + short(at.server.Name+"\n"+at.server.URL) + "."
}

func (at *AccountsAt) document(person string) string {
	sum := sha256.Sum256([]byte(person))
	return at.prefix() + hex.EncodeToString(sum[:16])
}

// shelfOf is where the account of a person is kept, as long as it is the login with an id.
func (at *AccountsAt) shelfOf(person, id string) *accountShelf {
	return &accountShelf{at: at, person: person, name: at.document(person), id: id}
}

func (at *AccountsAt) client(who string, s *accountShelf) *Client {
	return &Client{keeper: at.all.keeper, server: at.server, shelf: s, person: &person{who, func() string { return at.all.o.Where(at.server.Name, who) }}}
}

// Account returns the client of the person whose account the calls of a principal use:
// the same one as long as the person has the same login. If there is none, the error is
// a [Needed].
func (at *AccountsAt) Account(ctx context.Context, principal string) (*Client, error) {
	who, err := at.all.o.Person(principal)
	if err != nil {
		return nil, err
	}
	return at.of(ctx, who)
}

func (at *AccountsAt) of(ctx context.Context, who string) (*Client, error) {
	d, err := at.shelfOf(who, "").document(ctx)
	if err != nil {
		return nil, err
	}
	name := at.document(who)
	at.mu.Lock()
	defer at.mu.Unlock()
	if d == nil {
		delete(at.clients, name)
		return nil, at.client(who, nil).needed("", nil)
	}
	if old := at.clients[name]; old != nil && old.shelf.(*accountShelf).id == d.ID {
		return old, nil
	}
	c := at.client(who, at.shelfOf(who, d.ID))
	at.clients[name] = c
	return c, nil
}

// Begin begins the login of a person, whose browser is sent back to redirect with state,
// which nobody can guess. Finishing the attempt connects the account in the place of the
// one that they had.
func (at *AccountsAt) Begin(ctx context.Context, who, redirect, state string) (*Attempt, error) {
	return at.connecting(who).begin(ctx, redirect, state)
}

// LogIn has a person log in, wherever the browser is.
func (at *AccountsAt) LogIn(ctx context.Context, who string, terminal Terminal) (Info, error) {
	return at.connecting(who).LogIn(ctx, terminal)
}

func (at *AccountsAt) connecting(who string) *Client {
	s := at.shelfOf(who, "")
	s.next = rand.Text()
	return at.client(who, s)
}

var errPasted = errors.New("nobody logs in to this server in the browser: make a token there, and paste it")

// maxPasted is how long a pasted token may be, in bytes.
const maxPasted = 8 << 10

// Paste connects the account of a person by a token that they made at the server, in the
// place of the one that they had.
func (at *AccountsAt) Paste(ctx context.Context, who, token string) error {
	token = strings.TrimSpace(token)
	switch {
	case !at.server.Pasted:
		return errors.New("no token is pasted for this server: log in to it in the browser")
	case token == "":
		return errors.New("the token is empty")
	case len(token) > maxPasted:
		return fmt.Errorf("the token is longer than %d bytes", maxPasted)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }):
		return errors.New("the token has a space, a line break or another character in it that no token has")
	}
	c := at.connecting(who)
	unlock, err := c.shelf.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.shelf.write(ctx, record{Server: at.server.URL, Pasted: true, Secrets: &confidential{Access: token}})
}

// A Connection describes the account of a person.
type Connection struct {
	Server string
	Person string
	Since  time.Time // zero: nothing is connected
	// Ended reports whether the login is of no use any more: the person has to
	// connect again.
	Ended bool
	// Pasted reports whether it is connected by pasting a token.
	Pasted bool
	Info
}

// Connection returns the connected account of a person; ok is false if there is none.
func (at *AccountsAt) Connection(ctx context.Context, who string) (_ Connection, ok bool, err error) {
	d, err := at.shelfOf(who, "").document(ctx)
	if err != nil || d == nil {
		return Connection{}, false, err
	}
	return at.connection(d), true, nil
}

func (at *AccountsAt) connection(d *account) Connection {
	c := at.client(d.Person, nil)
	works := c.binds(&d.Record) && (c.fresh(&d.Record) || d.Record.Secrets.Refresh != "")
	return Connection{Server: d.Server, Person: d.Person, Since: d.Since, Ended: !works, Pasted: d.Record.Pasted, Info: d.Record.info()}
}

// Connections are the connected accounts of all, by the time at which they were connected.
func (at *AccountsAt) Connections(ctx context.Context) ([]Connection, error) {
	all, err := at.documents(ctx)
	if err != nil {
		return nil, err
	}
	connections := make([]Connection, 0, len(all))
	for _, d := range all {
		connections = append(connections, at.connection(d))
	}
	return connections, nil
}

func (at *AccountsAt) documents(ctx context.Context) (all []*account, err error) {
	store, _, err := at.all.vault.opened(ctx)
	if err != nil {
		return nil, err
	}
	names, err := store.Names(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the accounts: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, at.prefix()) {
			continue
		}
		s := &accountShelf{at: at, name: name}
		if d, err := s.document(ctx); err == nil && d != nil && at.document(d.Person) == name {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *account) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// Disconnect deletes the account of a person, and then asks the authorization server to
// revoke it if that offers to. notRevoked says why that failed.
func (at *AccountsAt) Disconnect(ctx context.Context, who string) (revoked bool, notRevoked, err error) {
	s := at.shelfOf(who, "")
	d, err := s.take(ctx)
	if err != nil {
		return false, nil, err
	}
	if d == nil {
		return false, nil, ErrNoLogin
	}
	c := at.client(who, s)
	switch {
	case !c.binds(&d.Record): // today's secret must not go to another issuer
		return false, errors.New("revoking the login: it was made by another client, or at another authorization server, than is configured now"), nil
	case d.Record.Revoke == "":
		return false, nil, nil
	}
	notRevoked = c.revoke(ctx, &d.Record)
	return notRevoked == nil, notRevoked, nil
}

// A Lister authorizes the connection that lists a server's tools, and makes no call: it
// uses the account that was connected first of those that work, and none where nobody has
// connected one and the server lists its tools to everybody.
type Lister struct {
	at *AccountsAt

	mu     sync.Mutex
	chosen *Client
	wants  bool            // the server lists nothing without a login
	bad    map[string]bool // ids of logins that the server refused
}

// Token returns the token for the next request.
func (l *Lister) Token(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chosen == nil {
		if err := l.choose(ctx); err != nil {
			return "", err
		}
	}
	if l.chosen == nil && l.wants {
		return "", l.needed()
	}
	if l.chosen == nil {
		return "", nil
	}
	token, err := l.chosen.Token(ctx)
	return token, l.lost(err)
}

// Refused is told that the server did not take a token.
func (l *Lister) Refused(ctx context.Context, token string, status int, header http.Header) (again bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chosen != nil && token != "" {
		again, err = l.chosen.Refused(ctx, token, status, header)
		return again, l.lost(err)
	}
	if status != http.StatusUnauthorized || bearerChallenge(header) == nil && len(l.at.server.Headers) > 0 {
		return false, nil
	}
	l.wants = true
	if err := l.choose(ctx); err != nil {
		return false, err
	}
	if l.chosen == nil {
		return false, l.needed()
	}
	return true, nil
}

// lost forgets an account that is of no use any more.
func (l *Lister) lost(err error) error {
	var needed interface{ NeedsLogin() }
	if errors.As(err, &needed) && l.chosen != nil {
		l.bad[l.chosen.shelf.(*accountShelf).id] = true
		l.chosen = nil
	}
	return err
}

// choose chooses an account if there is one.
func (l *Lister) choose(ctx context.Context) error {
	all, err := l.at.documents(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if !l.bad[d.ID] && !l.at.connection(d).Ended {
			l.chosen = l.at.client(d.Person, l.at.shelfOf(d.Person, d.ID))
			return nil
		}
	}
	return nil
}

func (l *Lister) needed() error {
	return &Needed{Server: l.at.server.Name, Where: l.at.all.o.Where(l.at.server.Name, "")}
}

// Holds reports whether a token is still that of the account which lists the tools.
func (l *Lister) Holds(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chosen == nil || !l.chosen.Holds(token) {
		l.chosen = nil // the next one is, if there is one
		return false
	}
	return true
}

// Ready reports whether a listing may be tried again.
func (l *Lister) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chosen == nil && l.choose(ctx) != nil {
		return false
	}
	return l.chosen != nil || !l.wants
}

// Hide takes every token and secret that was seen out of a text.
func (l *Lister) Hide(text string) string { return l.at.all.keeper.Hide(text) }

var errDisconnected = errors.New("the account was disconnected meanwhile")

// notThere reports whether an error says that there is no such document.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
