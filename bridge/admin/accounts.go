package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/login"
)

// Accounts are the accounts that people have of their own at upstream servers. Its texts
// are safe to show.
type Accounts interface {
	// Any reports whether there is a server at which people have accounts.
	Any() bool
	// List returns the servers at which somebody may have an account, by name.
	List(ctx context.Context, who approval.Approver) ([]login.Connection, error)
	// Begin begins to connect somebody's account at a server: their browser goes to the
	// link, and comes back to redirect with state. Finish takes what it came back with,
	// and what Begin wanted to be kept, which holds secrets; it may be another bridge's.
	// login.ErrNoLogin means that there are no accounts at such a server.
	Begin(ctx context.Context, who approval.Approver, server, redirect, state string) (link string, keep []byte, err error)
	Finish(ctx context.Context, who approval.Approver, server string, kept []byte, returned string) error
	// Paste connects somebody's account at a server by a token that they made there, where
	// List says so. login.ErrNoLogin means that there are no accounts at such a server.
	Paste(ctx context.Context, who approval.Approver, server, token string) error
	// Disconnect deletes somebody's account. NotRevoked says why the server may take
	// it all the same. login.ErrNoLogin means that there is none.
	Disconnect(ctx context.Context, who approval.Approver, server string) (revoked bool, notRevoked, err error)
	// Person is whose accounts those of an approver are: a principal.
	Person(who approval.Approver) string
}

// An Account is somebody's account at a server.
type Account struct {
	Server string     `json:"server"`
	Since  *time.Time `json:"since,omitempty"` // when it was connected; nil: it is not
	// Ended reports whether it has to be connected again.
	Ended  bool   `json:"ended,omitempty"`
	Issuer string `json:"issuer,omitempty"`
	Pasted bool   `json:"pasted,omitempty"` // it is connected by pasting a token
}

// maxConnecting bounds the accounts that are being connected; the oldest is dropped.
const maxConnecting = 1000

// A connection waits for a browser to come back. Only the person who began it can finish
// it: nobody gets somebody else's account by having them follow a link.
type connection struct {
	Who    string `json:"who"`
	Server string `json:"server"`
	Keep   []byte `json:"keep"`
}

// accountsDone is where browsers come back to.
const accountsDone = "/accounts/done"

// accountHandlers are what people do with their own accounts.
type accountHandlers struct{ *Site }

func (s accountHandlers) list(who *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.of(who, r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"accounts": all})
}

func (s accountHandlers) of(who *caller, r *http.Request) ([]Account, error) {
	if s.o.Accounts == nil {
		return nil, missing("accounts")
	}
	list, err := s.o.Accounts.List(r.Context(), who.Approver)
	all := make([]Account, 0, len(list))
	for _, c := range list {
		one := Account{Server: c.Server, Ended: c.Ended, Issuer: c.Issuer, Pasted: c.Pasted}
		if !c.Since.IsZero() {
			one.Since = &c.Since
		}
		all = append(all, one)
	}
	return all, err
}

func (s accountHandlers) page(who *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.of(who, r)
	if err != nil {
		return err
	}
	return pages(s).tab(who, w, r, "accounts", "Your accounts", all)
}

// donePage is where a browser comes back to from elsewhere, so it has no cookie here: its
// script, which has one, finishes what was begun.
func (s accountHandlers) donePage(_ *caller, w http.ResponseWriter, _ *http.Request) error {
	pages(s).render(w, http.StatusOK, "connected", frame{Title: "Connecting your account"})
	return nil
}

// connect says where the caller's browser goes to connect an account. It comes back to
// the address that the browser has this page from. With a token, there is nowhere to go.
func (s accountHandlers) connect(who *caller, w http.ResponseWriter, r *http.Request) error {
	var server, token string
	if err := s.read(w, r, fields{"server": &server, "token": &token}); err != nil {
		return err
	}
	if s.o.Accounts == nil {
		return missing("accounts")
	}
	if who.channel != "page" {
		return &failure{http.StatusBadRequest, "page", "an account is connected in a browser", "sign in on the page, or run codemode-bridge servers login"}
	}
	if token != "" {
		if err := s.o.Accounts.Paste(r.Context(), who.Approver, server, token); err != nil {
			return s.failed("connecting an account", server, err)
		}
		return s.connected(who, w, r, server)
	}
	scheme := "http://"
	if overTLS(r) {
		scheme = "https://"
	}
	state := s.auth.signIns.secret(flowTime)
	link, keep, err := s.o.Accounts.Begin(r.Context(), who.Approver, server, scheme+r.Host+accountsDone, state)
	if err != nil {
		return s.failed("connecting an account", server, err)
	}
	to, err := url.Parse(link)
	if err != nil || to.Scheme != "https" && to.Scheme != "http" {
		return invalid("the server's login is at no web address", "") // another scheme must not get into a link
	}
	if err := s.auth.signIns.put(r.Context(), connecting, state, maxConnecting, connection{who.Name, server, keep}); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"server": server, "link": link})
}

// finish connects the account that a browser came back from.
func (s accountHandlers) finish(who *caller, w http.ResponseWriter, r *http.Request) error {
	var returned string
	if err := s.read(w, r, fields{"returned": &returned}); err != nil {
		return err
	}
	query, err := url.ParseQuery(returned)
	if err != nil || s.o.Accounts == nil {
		return invalid("this is not what a login comes back with", "connect the account again")
	}
	c, ok, err := s.auth.signIns.takeConnection(r.Context(), query.Get("state"), who.Name)
	if err != nil {
		return err
	}
	if !ok {
		return &failure{http.StatusForbidden, "state", "this login was not begun by " + canon.Escape(who.Name) + ", or too long ago", "connect the account again"}
	}
	if err := s.o.Accounts.Finish(r.Context(), who.Approver, c.Server, c.Keep, returned); err != nil {
		return s.failed("connecting an account", c.Server, err)
	}
	return s.connected(who, w, r, c.Server)
}

// connected records that an account was connected, and takes it back if that fails.
func (s accountHandlers) connected(who *caller, w http.ResponseWriter, r *http.Request, server string) error {
	if err := s.note(who, r, ledger.AccountConnected, server, nil); err != nil {
		_, _, undo := s.o.Accounts.Disconnect(context.WithoutCancel(r.Context()), who.Approver, server)
		if undo != nil {
			s.o.Logger.Error("disconnecting an account whose connecting could not be recorded", "server", server, "err", undo)
		}
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"server": server})
}

func (s accountHandlers) disconnect(who *caller, w http.ResponseWriter, r *http.Request) error {
	var server string
	if err := s.read(w, r, fields{"server": &server}); err != nil {
		return err
	}
	if s.o.Accounts == nil {
		return missing("accounts")
	}
	revoked, notRevoked, err := s.o.Accounts.Disconnect(r.Context(), who.Approver, server)
	if err != nil {
		return s.failed("disconnecting an account", server, err)
	}
	if notRevoked != nil {
		s.o.Logger.Warn("an account was deleted, and could not be revoked", "server", server, "err", notRevoked)
	}
	if err := s.note(who, r, ledger.AccountDisconnected, server, map[string]bool{"revoked": revoked}); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"server": server, "revoked": revoked})
}

func (s accountHandlers) note(who *caller, r *http.Request, event ledger.Event, server string, detail any) error {
	rec := ledger.Record{Event: event, Server: server, Principal: s.o.Accounts.Person(who.Approver), Outcome: ledger.Done}
	if detail != nil {
		text, err := json.Marshal(detail)
		if err != nil {
			return err
		}
		rec.Detail = text
	}
	return s.record(r.Context(), who, rec)
}

// failed says why a login failed in the words of package login, which hold no secret.
func (s accountHandlers) failed(doing, server string, err error) error {
	if f := classify(err); f.status != http.StatusInternalServerError {
		return err
	}
	s.o.Logger.Warn(doing, "server", server, "err", err)
	return &failure{http.StatusBadGateway, "login", canon.Escape(canon.Redact(err.Error())), "try again; the bridge's log says more"}
}

// takeConnection uses up a connection of somebody. That of somebody else stays theirs.
func (d *signIns) takeConnection(ctx context.Context, state, who string) (c connection, ok bool, err error) {
	_, ok, err = d.read(ctx, connecting, state, &c)
	if err != nil || !ok || c.Who != who {
		return connection{}, false, err
	}
	ok, err = d.take(ctx, connecting, state, &c)
	return c, ok, err
}
