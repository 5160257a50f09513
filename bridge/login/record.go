package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/secrets"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// keyringPatience is how long the keyring may take: it may be asking the person
// for its password.
const keyringPatience = 10 * time.Second

// A record is what is kept of the login at one server: a file of its own, for
// its owner only. Its secrets stand in it or, if InKeyring, in the keyring under
// the name of the file.
type record struct {
	// Server is the address that the login was made for. Like Issuer and the
	// configured client, it binds the record: for another one it is no login.
	Server   string `json:"server"`
	Resource string `json:"resource"` // as the authorization server knows the server
	Issuer   string `json:"issuer"`   // the authorization server
	Token    string `json:"tokenEndpoint"`
	Revoke   string `json:"revocationEndpoint,omitempty"`
	// Network is where the server was, and so where its authorization server
	// may be beside public addresses.
	Network network `json:"network"`
	Client  oauthID `json:"client"`
	// Pasted marks a token that a person made at the server, and pasted.
	Pasted bool `json:"pasted,omitempty"`
	// Credentials marks a token that was granted for the client's own rights; Asked
	// are the scopes that were asked for.
	Credentials bool      `json:"credentials,omitempty"`
	Asked       []string  `json:"asked,omitempty"`
	Scopes      []string  `json:"scopes,omitempty"` // that were granted
	Wanted      []string  `json:"wanted,omitempty"` // that the server asked for since
	Expires     time.Time `json:"expires,omitzero"` // of the access token; zero: not known
	// InKeyring says where the secrets are.
	InKeyring bool          `json:"inKeyring,omitempty"`
	Secrets   *confidential `json:"secrets,omitempty"`

	shared bool // it was read from a document that several bridges use
}

// An oauthID is our identity at an authorization server.
type oauthID struct {
	ID string `json:"id"`
	// Method is how it authenticates itself at the token endpoint: none,
	// client_secret_basic or client_secret_post.
	Method string `json:"method"`
	// Redirect is the address that it was registered with, empty if it stands
	// in the configuration.
	Redirect string `json:"redirect,omitempty"`
}

// confidential are the parts of a record that nobody may see.
type confidential struct {
	Access  string `json:"accessToken,omitempty"`
	Refresh string `json:"refreshToken,omitempty"`
	Client  string `json:"clientSecret,omitempty"` // of a registered client
}

// records are the logins of one user, each in a file of one folder.
type records struct {
	dir     string                  // made when it is needed
	keyring secrets.Keys            // nil: the files have the secrets
	learn   func(secrets ...string) // is told the secrets of each record
}

// file returns the path of the file of a login. It depends on the URL, too: two
// configurations may use one name for two servers.
func (rs *records) file(name, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(rs.dir, name+"-"+hex.EncodeToString(sum[:6])+".json")
}

// maxRecord is how long a record may be, in bytes: its tokens came in answers of
// at most [maxBody].
const maxRecord = 4 * maxBody

// read returns the record in a file; nil: there is none.
func (rs *records) read(path string) (*record, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the login: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord)) // a longer one is cut short
	if err != nil {
		return nil, fmt.Errorf("reading the login: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, nil // cut short or written by hand; a new login replaces it
	}
	if r.InKeyring {
		r.Secrets = &confidential{}
		if rs.keyring == nil {
			return nil, errors.New("reading the login: it is in a keyring, and there is none")
		}
		text, err := rs.keyring.Get(filepath.Base(path))
		if err != nil {
			return nil, fmt.Errorf("reading the login from the keyring: %w", err)
		}
		if err := json.Unmarshal([]byte(text), r.Secrets); err != nil {
			return nil, nil
		}
	}
	if r.Secrets == nil {
		r.Secrets = &confidential{}
	}
	rs.learn(r.Secrets.Access, r.Secrets.Refresh, r.Secrets.Client)
	return r, nil
}

// write keeps a record: its secrets in the keyring if that takes them, and otherwise
// in the file, which replaces the old one in one step.
func (rs *records) write(path string, r record) error {
	rs.learn(r.Secrets.Access, r.Secrets.Refresh, r.Secrets.Client)
	was := r.InKeyring
	r.InKeyring = false
	if rs.keyring != nil {
		text, err := json.Marshal(r.Secrets)
		if err != nil {
			return fmt.Errorf("keeping the login: %w", err)
		}
		err = rs.keyring.Set(filepath.Base(path), string(text))
		r.InKeyring = err == nil
		if err != nil && was { // what it still holds is old
			rs.forget(path)
		}
	}
	if r.InKeyring {
		r.Secrets = nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the login: %w", err)
	}
	if err := atomicfile.Write(path, append(data, '\n')); err != nil {
		return fmt.Errorf("keeping the login: %w", err)
	}
	return nil
}

// remove deletes a record, wherever its parts are.
func (rs *records) remove(path string) error {
	rs.forget(path)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting the login: %w", err)
	}
	return nil
}

// forget deletes what the keyring has for a file.
func (rs *records) forget(path string) {
	if rs.keyring != nil {
		_ = rs.keyring.Delete(filepath.Base(path)) // it may have none
	}
}

// lock keeps all other processes, and other goroutines, from changing the record in a
// file until unlock is called.
func (rs *records) lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of logins: %w", err)
	}
	type locked struct {
		unlock func()
		err    error
	}
	got := make(chan locked)
	go func() {
		unlock, err := lockedfile.MutexAt(path + ".lock").Lock()
		select {
		case got <- locked{unlock, err}:
		case <-ctx.Done():
			if err == nil {
				unlock()
			}
		}
	}()
	select {
	case l := <-got:
		if l.err != nil {
			return nil, fmt.Errorf("locking the login: %w", l.err)
		}
		return l.unlock, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another process that refreshes the login: %w", context.Cause(ctx))
	}
}
