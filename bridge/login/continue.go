package login

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A begun is what is kept of an attempt to connect an account, for any process that has
// the same accounts to finish it. It holds secrets: whoever keeps it encrypts it.
type begun struct {
	Person   string `json:"person"`
	Record   record `json:"record"`
	Named    bool   `json:"named,omitempty"`
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
}

// errChanged says that an attempt began at a server that is described otherwise by now.
var errChanged = errors.New("the server was configured in another way when this login began")

// Keep returns what [AccountsAt.Continue] needs to go on with an attempt, in any process.
func (a *Attempt) Keep() ([]byte, error) {
	if a.client.person == nil {
		return nil, errors.New("only the login of a person's account goes on elsewhere")
	}
	kept, err := json.Marshal(begun{a.client.person.name, a.record, a.named, a.redirect, a.state, a.verifier})
	if err != nil {
		return nil, fmt.Errorf("keeping the login: %w", err)
	}
	return kept, nil
}

// Continue returns an attempt of a person that some process began, from what it kept. That
// it is finished once is up to the caller. [ErrOther] means that it is somebody else's.
func (at *AccountsAt) Continue(who string, kept []byte) (*Attempt, error) {
	var b begun
	if err := json.Unmarshal(kept, &b); err != nil {
		return nil, fmt.Errorf("reading the login that was begun: %w", err)
	}
	if b.Person != who || b.State == "" || b.Verifier == "" || b.Record.Secrets == nil {
		return nil, ErrOther
	}
	c := at.connecting(who)
	if !c.binds(&b.Record) {
		return nil, errChanged
	}
	c.keeper.learn(b.Record.Secrets.Client, b.Verifier)
	return &Attempt{client: c, named: b.Named, record: b.Record, redirect: b.Redirect, state: b.State, verifier: b.Verifier}, nil
}
