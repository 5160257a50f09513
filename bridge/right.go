package bridge

import (
	"context"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/seal"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Resuming a run takes a right to it, the same in the bridge that it began in, in
// another one, and after a restart. A run of a principal is that principal's. A run
// of nobody in particular belongs to its session, and to whoever has its secret,
// which only the client got, with the paused answer.

// A claimant is who resumes a run, and how people are reached from there.
type claimant struct {
	principal string
	groups    []string
	refused   func(profile string) bool // whether they may not use a profile; nil: they may use all
	session   string                    // that they come from; empty for none
	secret    string                    // of the run, if they have it
	sealed    bool                      // they have a state that this bridge, or one like it, sealed for the run
	by        string                    // in words, for the record
	anyone    bool                      // whoever's run it is: the person who runs the bridge
	reach     gate.Reach
	conn      *mcp.ServerSession // nil on the command line
	unasked   func(*approval.DeniedError)
	left      bool // nobody waits for the answer, which is kept for whoever asks
}

// An ownership says who may go on with a run.
type ownership struct {
	principal, session string
	secret             []byte // its SHA-256
	profile            string // of the run
}

func (b *beginning) ownership() ownership {
	return ownership{b.Principal, b.Session, b.Secret, b.Profile}
}

func (r *run) ownership() ownership {
	return ownership{r.principal, r.session.id, r.secret.Hash, r.profile}
}

// may reports whether the claimant has a right to a run.
func (c claimant) may(o ownership) bool {
	switch {
	case c.anyone:
		return true
	case c.principal != o.principal:
		return false
	case c.refused != nil && c.refused(o.profile):
		return false
	case c.principal != "" || c.sealed:
		return true
	case c.session != "" && c.session == o.session:
		return true
	}
	return c.knows(o.secret)
}

// knows reports whether the claimant has the secret with this SHA-256.
func (c claimant) knows(secret []byte) bool { return seal.Secret{Text: c.secret}.Has(secret) }

// claimantOf is the client of a request, with the run's secret if it sent one.
func (s *Server) claimantOf(ctx context.Context, req *mcp.CallToolRequest, secret string) claimant {
	who := "a client that calls itself nothing"
	if info := req.ClientInfo(); info != nil && info.Name != "" {
		who = "client " + canon.Cut(info.Name, 100)
	}
	c := claimant{principal: principal(req), groups: rpc.Caller(ctx, req.Extra).Groups, secret: secret, by: who, reach: reach(req), conn: req.Session}
	c.refused = func(profile string) bool {
		return scope(s.o.Gate.View(), profile, s.o.rightsOf(ctx, req.Extra)).Refuses("") != ""
	}
	if sess := s.roster.sessionOf(req.Session); sess != nil && !sess.brief {
		c.session = sess.id
	}
	return c
}

// ours returns an [ElsewhereError] for a run that belongs to another
// configuration.
func ours(here gate.Configuration, k ledger.JournaledRun, b beginning) error {
	if k.Configuration != here.ID || b.Configuration.ID != here.ID {
		return &ElsewhereError{k.Run, b.Configuration}
	}
	return nil
}
