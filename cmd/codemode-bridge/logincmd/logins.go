// Package logincmd has the commands that log in to servers, the page's part of that, and
// what they share: the user's logins, and each person's accounts.
package logincmd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/upstream"
)

// Logins are the logins of the user, which all configurations share, and the accounts of
// each person at the servers of one configuration.
type Logins struct {
	*login.Keeper

	kept Kept

	mu       sync.Mutex
	cfg      *config.Config // the last that was authorized
	decided  bool           // whether the store has the user's logins
	shared   *login.Installation
	moves    func(server, file string) // is told of logins that are moved to the store; nil: none may be
	accounts *login.Accounts
	page     func() string // the address of the page; nil: there is none
	named    bool          // whoever calls has a name
}

// A Kept says where a configuration's logins are kept.
type Kept struct {
	// Logins returns the documents of a store with the logins that all use, which it
	// encrypts; nil: they are in files of the user.
	Logins func(cfg *config.Config) documents.Store
	// Accounts returns those with the accounts of people.
	Accounts func(cfg *config.Config) (store documents.Store, encrypted bool)
}

// Open opens the logins of a user. Close ends it; what they are kept in stays the caller's.
func Open(env config.Env, kept Kept) *Logins {
	o := login.Options{Keyring: secrets.System(secrets.Logins)}
	if kept, _ := env("CODEMODE_LOGINS"); kept == "file" {
		o.Keyring = nil
	}
	if places, err := config.Paths(env); err == nil {
		o.Dir = filepath.Join(places.StateDir, "logins")
	}
	return &Logins{Keeper: login.Open(o), kept: kept}
}

// Serve says where the page is, on which people connect their accounts, and whether
// whoever calls has a name: then a call without one has no account, not the local user's.
func (l *Logins) Serve(page func() string, named bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page, l.named = page, named
}

// Move has logins move from files to the store, where the configuration names one that
// has them; told is told of each. It is for whoever goes on with the store from now on: others
// leave the files to the bridge that runs with them.
func (l *Logins) Move(told func(server, file string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves = told
}

// Client returns the login that all use at a server of the configuration. The store that
// has them is the first configuration's: another takes effect at the next start.
func (l *Logins) Client(cfg *config.Config, s login.Server) *login.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.decided {
		l.decided = true
		if store := l.kept.Logins(cfg); store != nil {
			l.shared = l.Installation(login.InstallationOptions{
				Configuration: cfg.ID, Open: func(context.Context) (documents.Store, []byte, error) { return store, nil, nil },
				TakesOver: func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.moves != nil },
				Took:      func(server, file string) { l.mu.Lock(); told := l.moves; l.mu.Unlock(); told(server, file) },
			})
		}
	}
	if l.shared != nil {
		return l.shared.Client(s)
	}
	return l.Keeper.Client(s)
}

// ServerOf converts a server of the configuration for package login; ok is false if it
// takes no login.
func ServerOf(s *config.Server) (_ login.Server, ok bool) {
	if s.Unready != nil || s.Auth.Type != config.AuthPerson && s.Auth.Type != config.AuthCredentials {
		return login.Server{}, false
	}
	if s.Type == config.KindStdio { // a token is for a variable of a server, whatever its program is
		return login.Server{Name: s.Name, URL: "variable " + s.Auth.Env, Pasted: true}, true
	}
	return login.Server{
		Name: s.Name, URL: s.URL.Reveal(), Headers: config.RevealMap(s.Headers),
		ClientID: s.Auth.ClientID.Reveal(), ClientSecret: s.Auth.ClientSecret.Reveal(),
		Credentials: s.Auth.Type == config.AuthCredentials, Scopes: s.Auth.Scopes, Issuer: s.Auth.Issuer.Reveal(),
	}, true
}

// Authorize gives the servers that take logins those of the user or of each person.
func (l *Logins) Authorize(cfg *config.Config, specs []upstream.Spec) []upstream.Spec {
	for i := range specs {
		s := cfg.Servers[specs[i].Name]
		at, ok := ServerOf(s)
		switch {
		case !ok:
		case s.Auth.Per == config.AuthPrincipal:
			all := l.At(cfg, at)
			specs[i].Auth, specs[i].TokenEnv = persons{all.Lister(), all}, s.Auth.Env
		default:
			specs[i].Auth = l.Client(cfg, at)
		}
	}
	return specs
}

// persons are accounts as package upstream wants them: what lists the tools, and each
// person's.
type persons struct {
	*login.Lister
	at *login.AccountsAt
}

func (p persons) Account(ctx context.Context, principal string) (upstream.Authorizer, error) {
	c, err := p.at.Account(ctx, principal)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// At returns the accounts at a server of the configuration.
func (l *Logins) At(cfg *config.Config, s login.Server) *login.AccountsAt {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg = cfg
	if l.accounts == nil {
		id, _ := cfg.Identity()
		l.accounts = l.Accounts(login.AccountsOptions{Configuration: id, Open: l.open, Person: l.person, Where: l.where})
	}
	return l.accounts.At(s)
}

// open opens the documents with the accounts: where the store is in files, they are
// encrypted under the file accounts.key beside it, which only the user may read.
func (l *Logins) open(context.Context) (documents.Store, []byte, error) {
	l.mu.Lock()
	cfg := l.cfg
	l.mu.Unlock()
	store, encrypted := l.kept.Accounts(cfg)
	if encrypted {
		return store, nil, nil
	}
	key, err := keyIn(filepath.Join(filepath.Dir(cfg.Audit.Path), "accounts.key"))
	return store, key, err
}

// keyLength is how many bytes a key has, which is kept in hexadecimal.
const keyLength = 32

// keyIn returns the key in a file, which it makes if there is none.
func keyIn(path string) ([]byte, error) {
	// A login may be the first thing that anybody does here.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the audit log: %w", err)
	}
	unlock, err := filelock.Wait(path+".lock", 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("locking the key of the accounts: %w", err)
	}
	defer unlock()
	text, err := atomicfile.ReadUnlinked(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, keyLength)
		rand.Read(key)
		if err := atomicfile.Write(path, []byte(hex.EncodeToString(key)+"\n")); err != nil {
			return nil, fmt.Errorf("keeping the key of the accounts: %w", err)
		}
		return key, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of the accounts: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyLength {
		return nil, fmt.Errorf("reading the key of the accounts: %s has no key of %d bytes in hexadecimal; without it they cannot be read: delete the file, and everybody connects anew", path, keyLength)
	}
	return key, nil
}

// Local is whose accounts the calls use of whoever has no name: the local user, who
// is the owner of a page without approvers.
var Local = approval.Owner.Name

// PersonOf says whose accounts the calls of a principal use. What an approver starts on
// the page uses those that they have as a client.
func PersonOf(cfg *config.Config, principal string) string {
	if principal == "" {
		return Local
	}
	if slices.ContainsFunc(cfg.HTTP.Tokens, func(t config.Token) bool { return t.Name == principal }) {
		return principal
	}
	for _, a := range cfg.Approvals.Approvers {
		if a.Name == principal && a.Principal != "" {
			return a.Principal
		}
	}
	return principal
}

func (l *Logins) person(principal string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if principal == "" && l.named {
		return "", errors.New("each person has an account of their own at this server, and the call is of nobody who has a name")
	}
	return PersonOf(l.cfg, principal), nil
}

// where says where a person connects an account.
func (l *Logins) where(server, person string) string {
	l.mu.Lock()
	page, back := l.page, l.cfg.Approvals.OIDC.RedirectURL.Reveal()
	l.mu.Unlock()
	at := ""
	if page != nil {
		at = page()
	}
	if public, ok := strings.CutSuffix(back, "/login/done"); ok && at != "" {
		at = public // as browsers reach it
	}
	command := "codemode-bridge servers login " + server
	switch {
	case at != "" && person == Local:
		return "connect it at " + at + "/accounts, or run " + command
	case at != "":
		return "connect it at " + at + "/accounts"
	case person == Local:
		return "run " + command
	case person == "":
		return "nobody has connected one yet; run " + command + ", or with --as for somebody else"
	}
	return "ask whoever runs the bridge to run " + command + " --as " + quoted(person)
}

// quoted quotes a text for a shell if it has to be.
func quoted(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
