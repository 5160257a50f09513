package login

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"codemode-bridge/bridge/documents"
)

// A vault is where documents with logins are kept, which other processes use too.
type vault struct {
	what string // is in it, for errors
	open func(ctx context.Context) (store documents.Store, key []byte, err error)

	mu    sync.Mutex
	store documents.Store // nil: not opened yet
	seal  *sealer         // nil: the store encrypts
}

// opened returns the documents, and what encrypts them. While they are opened nobody else
// waits; whoever comes meanwhile opens them, too.
func (v *vault) opened(ctx context.Context) (documents.Store, *sealer, error) {
	v.mu.Lock()
	store, seal := v.store, v.seal
	v.mu.Unlock()
	if store != nil {
		return store, seal, nil
	}
	store, key, err := v.open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the %s: %w", v.what, err)
	}
	if key != nil {
		if seal, err = newSealer(key); err != nil {
			return nil, nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil {
		v.store, v.seal = store, seal
	}
	return v.store, v.seal, nil
}

// A renewing says which process renews a login, so that no other uses its refresh token.
type renewing struct {
	By    string    `json:"by"`
	Until time.Time `json:"until"`
}

const (
	// renewalTime is how long a renewal may take, with room for clocks that differ:
	// when it is over, whoever renews has crashed, and the next one tries.
	renewalTime = 2*patience + 50*time.Second
	renewalLook = 50 * time.Millisecond // between looks whether another's renewal is over
)

// errNotOurs says that the mark on a document is another process's by now.
var errNotOurs = errors.New("another process renews the login")

// mark marks a document as being renewed by us, once no other process renews it, until
// unlock is called. swap replaces the mark of the document by what edit makes of it, in one
// step.
func mark(ctx context.Context, now func() time.Time, swap func(ctx context.Context, edit func(*renewing) (*renewing, error)) error) (unlock func(), err error) {
	mine := rand.Text()
	for {
		taken := false
		err := swap(ctx, func(is *renewing) (*renewing, error) {
			if taken = is != nil && now().Before(is.Until); taken {
				return is, nil
			}
			return &renewing{By: mine, Until: now().Add(renewalTime).UTC()}, nil
		})
		if err != nil {
			return nil, err
		}
		if !taken {
			break
		}
		timer := time.NewTimer(renewalLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("waiting for another process that renews the login: %w", context.Cause(ctx))
		}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = swap(ctx, func(is *renewing) (*renewing, error) { // if that fails, its time ends
			if is == nil || is.By != mine {
				return nil, errNotOurs
			}
			return nil, nil
		})
	}, nil
}

// A sealer encrypts documents; nil: they are kept as they are.
type sealer struct{ cipher.AEAD }

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("encrypting accounts: %w", err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("encrypting accounts: %w", err)
	}
	return &sealer{gcm}, nil
}

// bound is what binds an encrypted document to its name.
func bound(name string) []byte { return []byte("codemode-bridge account 1\n" + name) }

func (s *sealer) close(name string, text []byte) []byte {
	if s == nil {
		return text
	}
	return s.Seal(nil, nil, text, bound(name))
}

func (s *sealer) open(name string, body []byte) ([]byte, error) {
	if s == nil {
		return body, nil
	}
	return s.Open(nil, nil, body, bound(name))
}
