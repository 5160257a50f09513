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

// A Proposal is a rule that would allow calls like those of a request in every run to
// come, and what the configuration would be with it.
type Proposal struct {
	Profile  string   `json:"profile"`
	Diff     []string `json:"diff"`     // of the file, safe to show
	Revision string   `json:"revision"` // of the text that the diff is from
	Text     string   `json:"-"`        // of the section `evaluation`, with the rule
}

// edits are the endpoints that change the profiles.
type edits struct{ *Site }

// proposal returns what whoever may edit the configuration can have written instead of
// answering calls like these again; nil if there is nothing.
func (s edits) proposal(ctx context.Context, who *caller, shown Request, e approval.StoredRequest) (*Proposal, error) {
	rule := e.Proposed()
	if rule == nil || s.o.Policy == nil || !shown.May || shown.Elsewhere || !who.May(approval.Edit) {
		return nil, nil
	}
	p, err := s.o.Policy.Propose(ctx, e.Decision.Profile, *rule)
	if err != nil {
		s.o.Logger.Warn("nothing is proposed for calls like these", "request", e.ID, "err", err)
		return nil, nil // the question can be answered all the same
	}
	return &p, nil
}

// always writes the rule that a request proposes into the configuration, and allows its
// calls and those like them for the rest of the run: that was begun without the rule.
func (s edits) always(who *caller, w http.ResponseWriter, r *http.Request) error {
	var revision, reason string
	var about *canon.Digest
	if err := s.read(w, r, fields{"revision": &revision, "digest": &about, "reason": &reason}); err != nil {
		return err
	}
	if revision == "" || about == nil {
		return invalid("revision or digest is missing", "send both as GET /api/pending/{id} gives them")
	}
	shown, e, err := s.fullRequest(who, r)
	if err != nil {
		return err
	}
	if shown.Digest != *about {
		return approval.ErrDigest
	}
	p, err := s.proposal(r.Context(), who, shown, e)
	switch {
	case err != nil:
		return err
	case p == nil || shown.Status != "pending":
		return invalid("no rule is proposed for these calls", "answer the request by itself")
	case p.Revision != revision:
		return ErrChanged
	}
	yes := approval.Verdict{Approve: true, Scope: approval.RunScope, Count: e.MaxCount(), Text: reason}
	signed, err := s.o.Approvers().Sign(who.Approver, e.Request, yes, who.channel, s.o.Now())
	if err != nil {
		return &failure{http.StatusForbidden, "role", canon.Escape(err.Error()), "somebody with another role, or a higher limit, can"}
	}
	if err := signed.Valid(e.Request, s.o.Now()); err != nil { // nothing is written for a yes that could not count
		return invalid(canon.Escape(err.Error()), "answer the request by itself")
	}
	detail, _ := json.Marshal(map[string]string{"edit": "always", "was": revision, "request": e.ID})
	if err := s.save(r.Context(), who, p.Text, revision, detail); err != nil {
		return err
	}
	if _, err := s.o.Settler.Settle(r.Context(), e.ID, *about, signed); err != nil {
		return fmt.Errorf("the rule is written; settling request %s: %w", canon.Escape(e.ID), err)
	}
	return answer(w, http.StatusOK, map[string]any{"saved": true, "status": "approved"})
}

// save puts another text of the profiles in force. That is recorded first.
func (s edits) save(ctx context.Context, who *caller, text, revision string, detail json.RawMessage) error {
	if err := s.record(ctx, who, ledger.Record{Event: ledger.ConfigChanged, Detail: detail}); err != nil {
		return err
	}
	if err := s.o.Policy.Save(ctx, text, revision, who.Name); err != nil {
		refused := ledger.Record{Event: ledger.ConfigChanged, Outcome: ledger.Refused, Error: canon.EscapeLines(canon.Redact(err.Error())), Detail: detail}
		if err := s.record(ctx, who, refused); err != nil {
			return err
		}
		if classify(err).status != http.StatusInternalServerError {
			return err
		}
		return invalid(canon.EscapeLines(err.Error()), "nothing was changed")
	}
	return nil
}
