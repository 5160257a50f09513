package pins

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// A Recorder keeps records of tools.
type Recorder interface {
	ledger.Recorder
	// Enqueue records, as soon as that is possible, what has already happened.
	Enqueue(context.Context, ledger.Record)
}

// A Reviewer takes decisions on tools, from people who have been authenticated.
// Each is recorded before it takes effect.
type Reviewer struct {
	Store    *Store
	Recorder Recorder
}

// Accept accepts a tool as w shows it. The error is ErrUnknown, ErrChanged, or
// says what failed.
func (r Reviewer) Accept(ctx context.Context, w UnreviewedTool, by, channel string) error {
	return r.decide(ctx, ledger.ToolAccepted, w, by, channel, r.Store.Accept)
}

// Block keeps a tool from scripts.
func (r Reviewer) Block(ctx context.Context, w UnreviewedTool, by, channel string) error {
	return r.decide(ctx, ledger.ToolBlocked, w, by, channel, r.Store.Block)
}

// An ObjectionError says why accepting a tool would not let its calls through.
type ObjectionError struct{ why string }

func (e *ObjectionError) Error() string { return e.why }

// Decide accepts or blocks the definition with that digest. The error is ErrUnknown,
// ErrChanged, an [ObjectionError], or says what failed.
func (r Reviewer) Decide(ctx context.Context, accept bool, server, tool, digest, by, channel string) error {
	w, ok, err := r.Store.Find(server, tool)
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrUnknown
	}
	w.Digest = digest
	if !accept {
		return r.Block(ctx, w, by, channel)
	}
	if why := r.Store.Objection(server, tool, digest); why != "" {
		return &ObjectionError{why}
	}
	return r.Accept(ctx, w, by, channel)
}

func (r Reviewer) decide(ctx context.Context, event ledger.Event, w UnreviewedTool, by, channel string, do func(server, tool, digest, by string, now time.Time) error) error {
	is, ok, err := r.Store.Find(w.Server, w.Tool)
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrUnknown
	case is.Digest != w.Digest:
		return ErrChanged
	}
	rec := ledger.Record{Event: event, Time: time.Now(), Server: w.Server, Tool: canon.Escape(w.Tool), Approver: by, Channel: channel, Durable: true,
		Detail: ledger.Detail(toolDetail{What: string(w.State), Old: w.Was, New: w.Digest})}
	ctx = context.WithoutCancel(ctx)
	if err := r.Recorder.Record(ctx, rec); err != nil {
		return fmt.Errorf("recording what %s decided: %w", cmp.Or(by, "nobody"), err)
	}
	if err = do(w.Server, w.Tool, w.Digest, by, rec.Time); err != nil {
		rec.Outcome, rec.Error = ledger.Failed, canon.Escape(err.Error())
		r.Recorder.Enqueue(ctx, rec)
	}
	return err
}

// Count counts the tools of some servers that wait for review, and those that were
// blocked.
func (s *Store) Count(servers []string) (unreviewed, blocked int, err error) {
	waiting, err := s.Unreviewed(servers)
	for _, w := range waiting {
		if w.State == Blocked {
			blocked++
		} else {
			unreviewed++
		}
	}
	return unreviewed, blocked, err
}

// Then returns what becomes of the tool under its server's rules until somebody
// accepts it.
func (w UnreviewedTool) Then(r Rules) Reaction {
	then := Allow
	switch w.State {
	case Blocked:
		return Quarantine
	case Changed:
		then = r.Changed
	case New:
		then = r.New
	case Accepted, Unknown:
		return Allow
	}
	if w.Strict && Ask.stricter(then) {
		return Ask
	}
	return then
}

// A NameError says why there is no tool of the name that somebody gave.
type NameError struct{ text string }

func (e *NameError) Error() string { return e.text }

// Choose returns the tools that a person names as server__tool, with the digest of
// what they saw (server__tool@sha256:...) or without. Seen reports whether each had
// one, so that all are as they were seen. The error is a [NameError], says that a
// tool has changed since, or is about the files.
func (s *Store) Choose(names []string, isServer func(string) bool) (chosen []UnreviewedTool, seen bool, err error) {
	seen = true
	for _, name := range names {
		digest := ""
		if i := strings.LastIndex(name, "@"+digestScheme); i >= 0 {
			name, digest = name[:i], name[i+1:]
			if hex := digest[len(digestScheme):]; len(hex) < leastDigest || strings.Trim(hex, "0123456789abcdef") != "" {
				return nil, false, &NameError{fmt.Sprintf("%s is not the digest of %s: that takes %d hex digits at least, as tools review shows them", digest, name, leastDigest)}
			}
		}
		seen = seen && digest != ""
		server, tool, ok := strings.Cut(name, "__") // no server has that in its name
		if !ok || !isServer(server) {
			return nil, false, &NameError{fmt.Sprintf("there is no server of a tool %q; name it as server__tool", name)}
		}
		w, ok, err := s.Find(server, tool)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return nil, false, &NameError{fmt.Sprintf("server %s has never listed a tool %q to a bridge with this configuration", server, tool)}
		}
		if !strings.HasPrefix(w.Digest, digest) {
			return nil, false, fmt.Errorf("%s is not what you saw: it is %s now, not %s; look at it again with tools review", name, w.Digest, digest)
		}
		chosen = append(chosen, w)
	}
	return chosen, seen, nil
}

// A definition may be named by the beginning of its digest: at least leastDigest
// hex digits, too many to match by chance. It is shown with shownDigest.
const (
	digestScheme = "sha256:"
	leastDigest  = 12
	shownDigest  = 24
)
