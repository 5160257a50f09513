package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// A Grant is a grant as the API shows it.
type Grant struct {
	ID      string           `json:"id"`
	Script  string           `json:"script"` // the tool's name in scripts
	Server  string           `json:"server"`
	Tool    string           `json:"tool"`
	Profile string           `json:"profile,omitempty"`
	Session string           `json:"session"`
	Client  string           `json:"client,omitempty"` // of the session, as it calls itself
	Run     string           `json:"run,omitempty"`    // whose calls alone it covers; empty for all of the session's
	Covers  string           `json:"covers,omitempty"` // what it binds and leaves free, in words
	Bound   []approval.Bound `json:"bound,omitempty"`  // of the first kind of call; Covers has all
	Free    []string         `json:"free,omitempty"`
	By      string           `json:"by"`
	Made    time.Time        `json:"made"`
	Until   time.Time        `json:"until"`
	Left    int              `json:"left"` // uses
	// Configuration names the one whose calls it covers, if it is another one.
	Configuration string `json:"configuration,omitempty"`
}

func (s *Site) grants(ctx context.Context) ([]Grant, error) {
	all, err := s.o.Requests.Grants(ctx)
	if err != nil {
		return nil, err
	}
	shown := []Grant{}
	for _, g := range all {
		one := Grant{ID: g.ID, Script: canon.Escape(g.Script), Server: canon.Escape(g.Key.Server), Tool: canon.Escape(g.Key.Tool),
			Profile: cmp.Or(g.Profile, g.Key.Profile), Session: g.Key.Session, Client: canon.Escape(g.Client), Run: g.Run, Covers: g.Covers, Bound: g.Cover.Bound, Free: g.Cover.Free, By: canon.Escape(g.By), Made: g.Made, Until: g.Until, Left: g.Left}
		if !g.Cover.Offered() {
			one.Covers = "nothing: it is of an earlier release"
		}
		if g.Key.Configuration != s.o.Configuration {
			one.Configuration = canon.Escape(cmp.Or(g.Configuration, "another"))
		}
		shown = append(shown, one)
	}
	return shown, nil
}

func (s *Site) listGrants(_ *caller, w http.ResponseWriter, r *http.Request) error {
	all, err := s.grants(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"grants": all})
}

// revoke ends a grant, even if that cannot be recorded; the answer then says so.
func (s *Site) revoke(who *caller, w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	all, err := s.o.Requests.Grants(r.Context())
	if err != nil {
		return err
	}
	rec := ledger.Record{Event: ledger.Revoked}
	for _, g := range all {
		if g.ID == id {
			rec.Session, rec.Profile, rec.Server, rec.Tool = g.Key.Session, g.Key.Profile, g.Key.Server, g.Key.Tool
		}
	}
	found, err := s.o.Requests.Revoke(r.Context(), id)
	if err != nil {
		return fmt.Errorf("revoking a grant: %w", err)
	}
	if !found {
		return ErrUnknown
	}
	rec.Detail, _ = json.Marshal(map[string]string{"grant": id})
	if err := s.record(r.Context(), who, rec); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"id": id, "revoked": true})
}
