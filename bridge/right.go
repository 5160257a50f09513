package bridge

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Resuming a run takes a right to it, the same in the bridge that it began
// in, in another one, and after a restart. A run of a principal is that
// principal's. One of nobody in particular is its session's, and whoever's who
// has its secret, which the client got with the paused answer and nobody else.

// An ownership says who may go on with a run.
type ownership struct {
	principal, session string
	secret             []byte // its SHA-256
}

func (b *beginning) owner() ownership { return ownership{b.Principal, b.Session, b.Secret} }

func (r *run) owner() ownership { return ownership{r.principal, r.session.id, r.secretHash} }

// may reports whether the claimant has a right to a run.
func (c claimant) may(o ownership) bool {
	switch {
	case c.anyone:
		return true
	case c.principal != o.principal:
		return false
	case c.principal != "" || c.sealed:
		return true
	case c.session != "" && c.session == o.session:
		return true
	}
	return c.knows(o.secret)
}

// knows reports whether the claimant has the secret that has a SHA-256.
func (c claimant) knows(secret []byte) bool {
	sum := sha256.Sum256([]byte(c.secret))
	return c.secret != "" && len(secret) == len(sum) && subtle.ConstantTimeCompare(sum[:], secret) == 1
}

// newSecret makes the secret of a run, and its SHA-256, which is what is kept.
func newSecret() (secret string, sum []byte) {
	var random [16]byte
	rand.Read(random[:])
	secret = strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
	hash := sha256.Sum256([]byte(secret))
	return secret, hash[:]
}

// claimantOf is the client of a request, with the run's secret if it sent one.
func (s *Server) claimantOf(req *mcp.CallToolRequest, secret string) claimant {
	who := "a client that calls itself nothing"
	if info := req.ClientInfo(); info != nil && info.Name != "" {
		who = "client " + canon.Cut(info.Name, 100)
	}
	c := claimant{principal: principal(req), secret: secret, by: who, reach: reach(req), conn: req.Session}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[req.Session]; sess != nil && !sess.brief {
		c.session = sess.id
	}
	return c
}

// configuration is the one whose runs these are.
func (s *Server) configuration() gate.Configuration { return s.o.Gate.Configuration() }

// ours returns an [ElsewhereError] for a run that belongs to another
// configuration.
func (s *Server) ours(k ledger.JournaledRun, b beginning) error {
	if own := s.configuration().ID; k.Configuration != own || b.Configuration.ID != own {
		return &ElsewhereError{k.Run, b.Configuration}
	}
	return nil
}
