package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

func (s *Site) servers(_ *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Status == nil {
		return missing("status")
	}
	return answer(w, http.StatusOK, s.o.Status(r.Context()))
}

// A Source is the text that the profiles are written in.
type Source struct {
	Text     string `json:"text"`
	Revision string `json:"revision"`
}

// policy returns the profiles, and their source for those who may edit it.
func (s *Site) policy(who *caller, ctx context.Context) ([]Profile, *Source, error) {
	if s.o.Policy == nil {
		return nil, nil, missing("profiles to show")
	}
	all := append([]Profile{}, s.o.Policy.Profiles()...)
	if !who.May(approval.Edit) {
		return all, nil, nil
	}
	text, revision, err := s.o.Policy.Source(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the profiles: %w", err)
	}
	return all, &Source{text, revision}, nil
}

func (s *Site) listProfiles(who *caller, w http.ResponseWriter, r *http.Request) error {
	all, source, err := s.policy(who, r.Context())
	if err != nil {
		return err
	}
	out := map[string]any{"profiles": all}
	if source != nil {
		out["source"] = source
	}
	return answer(w, http.StatusOK, out)
}

// saveProfiles puts another text in force. That is recorded first.
func (s edits) saveProfiles(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Policy == nil {
		return missing("profiles to edit")
	}
	var text, revision string
	if err := s.read(w, r, fields{"text": &text, "revision": &revision}); err != nil {
		return err
	}
	if revision == "" {
		return invalid("revision is missing", "send the one that GET /api/profiles gave with the text")
	}
	detail, _ := json.Marshal(map[string]string{"edit": "profiles", "was": revision})
	if err := s.save(r.Context(), who, text, revision, detail); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"saved": true})
}

// tryProfiles says what another text would have changed. It changes nothing.
func (s *Site) tryProfiles(_ *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Policy == nil {
		return missing("profiles to try")
	}
	var text string
	if err := s.read(w, r, fields{"text": &text}); err != nil {
		return err
	}
	found, err := s.o.Policy.Try(r.Context(), text)
	if err != nil {
		return invalid(canon.Escape(err.Error()), "")
	}
	return answer(w, http.StatusOK, found)
}

func (s *Site) listSessions(_ *caller, w http.ResponseWriter, _ *http.Request) error {
	if s.o.Sessions == nil {
		return missing("sessions")
	}
	all := append([]Session{}, s.o.Sessions.List()...)
	for i := range all {
		all[i].Client = canon.Escape(all[i].Client)
	}
	return answer(w, http.StatusOK, map[string]any{"sessions": all})
}

// tighten binds a session to another profile. Undoing that loosens, so it is recorded
// first.
func (s *Site) tighten(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Sessions == nil {
		return missing("sessions")
	}
	var profile *string
	if err := s.read(w, r, fields{"profile": &profile}); err != nil {
		return err
	}
	if profile == nil {
		return invalid("profile is missing", `"" takes back what was set before`)
	}
	id := r.PathValue("id")
	what := "session " + canon.Escape(id) + " is put under profile " + canon.Escape(*profile)
	if *profile == "" {
		what = "session " + canon.Escape(id) + " is under the profile of its tools alone again"
	}
	rec := ledger.Record{Event: ledger.ConfigChanged, Session: id, Profile: *profile, Reasons: []string{what}}
	if err := s.record(r.Context(), who, rec); err != nil {
		return err
	}
	if err := s.o.Sessions.Tighten(r.Context(), id, *profile, who.Name); err != nil {
		rec.Outcome, rec.Error = ledger.Refused, canon.Escape(err.Error())
		if lost := s.record(r.Context(), who, rec); lost != nil {
			s.o.Logger.Error("recording that a session stays as it was", "err", lost)
		}
		if classify(err).status != http.StatusInternalServerError {
			return err
		}
		return invalid(canon.Escape(err.Error()), "")
	}
	return answer(w, http.StatusOK, map[string]any{"session": id, "profile": *profile})
}
