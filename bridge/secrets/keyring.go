package secrets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// Keys is a keyring: it keeps texts under names, for one user.
type Keys interface {
	Set(name, text string) error
	// Get and Delete return [ErrNoKey] for a name that it does not have.
	Get(name string) (string, error)
	Delete(name string) error
}

// ErrNoKey says that the keyring has nothing under a name.
var ErrNoKey = keyring.ErrNotFound

// What the system's keyring keeps our texts under: names of one are not names of the other.
const (
	Service = "codemode-bridge/secrets" // the secrets that people set
	Logins  = "codemode-bridge"         // the tokens of logins
)

// System is the system's keyring: the Secret Service of a Linux desktop, the Keychain of
// macOS, the Credential Manager of Windows. It has what is kept under service.
func System(service string) Keys { return system{service} }

type system struct{ service string }

func (s system) Set(name, text string) error {
	if err := reachable(); err != nil {
		return err
	}
	return keyring.Set(s.service, name, text)
}

func (s system) Get(name string) (string, error) {
	if err := reachable(); err != nil {
		return "", err
	}
	return keyring.Get(s.service, name)
}

func (s system) Delete(name string) error {
	if err := reachable(); err != nil {
		return err
	}
	return keyring.Delete(s.service, name)
}

// Patient returns a keyring whose operations end when ctx does, or after a while: the
// system's own know no context, and may be waiting for the person.
func Patient(ctx context.Context, keys Keys, timeout time.Duration) Keys {
	return patient{ctx, keys, timeout}
}

type patient struct {
	ctx     context.Context
	keys    Keys
	timeout time.Duration
}

func (p patient) Set(name, text string) error {
	_, err := p.wait(func() (string, error) { return "", p.keys.Set(name, text) })
	return err
}

func (p patient) Get(name string) (string, error) {
	return p.wait(func() (string, error) { return p.keys.Get(name) })
}

func (p patient) Delete(name string) error {
	_, err := p.wait(func() (string, error) { return "", p.keys.Delete(name) })
	return err
}

func (p patient) wait(do func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	said := make(chan answer, 1)
	go func() {
		text, err := do()
		said <- answer{text, err}
	}()
	ctx, cancel := context.WithTimeoutCause(p.ctx, p.timeout, &silentError{p.timeout})
	defer cancel()
	select {
	case a := <-said:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// A silentError says that a keyring has not answered in time.
type silentError struct{ within time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("it did not answer within %v", e.within) }

// fromKeyring says why a keyring did not give a secret; nil if it did.
func fromKeyring(name string, err error) *Error {
	switch {
	case errors.Is(err, ErrNoKey):
		return &Error{fmt.Sprintf("the keyring has no secret %q", name), "codemode-bridge secrets set " + name}
	case err != nil:
		return NoKeyring(err)
	}
	return nil
}

// NoKeyring is the error for a keyring that cannot be used, and says what can be
// instead.
func NoKeyring(err error) *Error {
	return &Error{"the keyring of this system cannot be used: " + short(err.Error()),
		`unlock it, if there is one; without a keyring keep the secret in a file that only you can read: "${file:PATH}"`}
}

// short is the first line of a text, or its beginning.
func short(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + "..."
	}
	return text
}
