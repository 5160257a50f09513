// Package push sends the rows of the audit log to others, as they are kept: each row at
// least once, in order.
//
//	log ── rows after the last acknowledged ──▶ Sink ──▶ acknowledged: noted in the state
//	                                              └────▶ refused: the same rows again, later
//
// How far each sink has come is a document of the store, and so is which bridge pushes: one
// of those that share the store, until it ends. Another takes over from where it was, so a
// row that was sent when a bridge was killed comes again. [Keeping] keeps rows that are not
// acknowledged from being pruned.
//
// A sink that is away costs room on disk and nothing else: no call waits for it.
package push

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
)

const (
	lookEvery  = time.Second // for new rows, or for the bridge that pushes to end
	firstWait  = time.Second // after a failure; it doubles
	longWait   = 5 * time.Minute
	sendWithin = 30 * time.Second

	maxRows  = 500
	maxBytes = 1 << 20
)

// A Sink takes rows of a store, which has an id, in their order. Send returns nil once all of
// them are kept there; after an error the same rows are sent again. It is called by one
// goroutine at a time.
type Sink interface {
	Send(ctx context.Context, store string, rows []ledger.Link) error
}

// A Log is the audit log whose rows are sent.
type Log interface {
	ledger.Linked
	Head(ctx context.Context) (int64, ledger.Hash, error)
}

// Options say what is sent, and where to.
type Options struct {
	Log    Log
	State  documents.Store // of the log's store
	Bridge string          // this one's name
	// Gone reports whether the bridge of a name has ended.
	Gone   func(bridge string) bool
	Sinks  map[string]Sink // by name
	Logger *slog.Logger
}

// A Pusher sends what is in a log, and what comes into it.
type Pusher struct{ o Options }

// New returns a pusher.
func New(o Options) *Pusher { return &Pusher{o} }

// Run sends until ctx ends.
func (p *Pusher) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(p.o.Sinks)) {
		all.Go(func() { p.feed(ctx, name, p.o.Sinks[name]) })
	}
	all.Wait()
	p.leave(context.WithoutCancel(ctx))
}

// feed sends to one sink until ctx ends.
func (p *Pusher) feed(ctx context.Context, name string, to Sink) {
	failures, said := 0, false
	for ctx.Err() == nil {
		n, err := p.turn(ctx, name, to)
		wait := lookEvery
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = min(firstWait<<min(failures, 10), longWait)
			if failures++; !said {
				p.o.Logger.Warn("records are not pushed, and are kept until they are", "to", name, "err", err)
			}
			said = true
			wait += rand.N(wait / 4)
		default:
			if said {
				p.o.Logger.Info("records are pushed again", "to", name)
			}
			if failures, said = 0, false; n > 0 {
				continue // there may be more
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// turn sends one batch, and returns how many rows were acknowledged.
func (p *Pusher) turn(ctx context.Context, name string, to Sink) (int, error) {
	ours, at, err := p.claim(ctx, name)
	if err != nil || !ours {
		return 0, err
	}
	store, rows, err := batch(ctx, p.o.Log, at)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	sending, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if err := to.Send(sending, store, rows); err != nil {
		return 0, err
	}
	last := rows[len(rows)-1]
	return len(rows), p.change(context.WithoutCancel(ctx), func(s *state) error {
		if s.Owner != p.o.Bridge {
			return errTaken
		}
		s.Sinks[name] = Position{store, last.Seq, hex.EncodeToString(last.Hash[:])}
		return nil
	})
}

var errTaken = errors.New("another bridge pushes now")

// claim reports whether this bridge pushes, and how far the sink has come.
func (p *Pusher) claim(ctx context.Context, name string) (ours bool, at Position, err error) {
	s, err := read(ctx, p.o.State)
	if err != nil {
		return false, at, err
	}
	if s.Owner == p.o.Bridge {
		return true, s.Sinks[name], nil
	}
	if !p.vacant(s.Owner) {
		return false, at, nil
	}
	err = p.change(ctx, func(s *state) error {
		if ours = s.Owner == p.o.Bridge || p.vacant(s.Owner); ours {
			s.Owner, at = p.o.Bridge, s.Sinks[name]
		}
		return nil
	})
	return ours && err == nil, at, err
}

func (p *Pusher) vacant(owner string) bool { return owner == "" || p.o.Gone(owner) }

// leave lets another bridge push at once.
func (p *Pusher) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := read(ctx, p.o.State)
	if err == nil && s.Owner == p.o.Bridge {
		err = p.change(ctx, func(s *state) error {
			if s.Owner == p.o.Bridge {
				s.Owner = ""
			}
			return nil
		})
	}
	if err != nil {
		p.o.Logger.Warn("the other bridges do not know that this one pushes no more", "err", err) // until it is gone
	}
}

// batch reads the rows after a position. If the log is not the one that the position is in,
// because a damaged one was set aside or an older copy is in its place, it begins anew: rather
// twice than never.
func batch(ctx context.Context, log ledger.Linked, at Position) (string, []ledger.Link, error) {
	after := at.Seq
	store, links, err := log.LinksAfter(ctx, max(0, after-1), 1, 1)
	if err == nil {
		if store != at.Store || len(links) == 0 || links[0].Seq == after && hex.EncodeToString(links[0].Hash[:]) != at.Hash {
			after = 0
		}
		store, links, err = log.LinksAfter(ctx, after, maxRows, maxBytes)
	}
	if err != nil {
		return "", nil, fmt.Errorf("reading the rows to push: %w", err)
	}
	return store, links, nil
}

// A Position is how far a sink has come.
type Position struct {
	Store string `json:"store"`
	Seq   int64  `json:"seq"`  // of the last row that it has acknowledged
	Hash  string `json:"hash"` // of that row
}

// A state is the document of a store about its pusher.
type state struct {
	Owner string              `json:"owner,omitempty"` // the bridge that pushes
	Sinks map[string]Position `json:"sinks"`
}

// document is its name.
const document = "audit"

func read(ctx context.Context, from documents.Store) (state, error) {
	text, err := from.Read(ctx, document)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil {
		return state{}, fmt.Errorf("reading how far records were pushed: %w", err)
	}
	return parse(text)
}

func parse(text []byte) (s state, err error) {
	if text != nil {
		if err := json.Unmarshal(text, &s); err != nil {
			return state{}, fmt.Errorf("reading how far records were pushed: %w", err)
		}
	}
	if s.Sinks == nil {
		s.Sinks = map[string]Position{}
	}
	return s, nil
}

func (p *Pusher) change(ctx context.Context, change func(*state) error) error {
	return p.o.State.Change(ctx, document, func(old []byte) ([]byte, error) {
		s, err := parse(old)
		if err != nil {
			return nil, err
		}
		if err := change(&s); err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
}

// Waiting returns how many rows of a log each of the named sinks has not acknowledged.
func Waiting(ctx context.Context, log Log, from documents.Store, sinks []string) (map[string]int64, error) {
	s, err := read(ctx, from)
	if err != nil {
		return nil, err
	}
	store, _, err := log.LinksAfter(ctx, 0, 1, 1)
	if err != nil {
		return nil, err
	}
	last, _, err := log.Head(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, name := range sinks {
		if all[name] = last; s.Sinks[name].Store == store {
			all[name] = max(0, last-s.Sinks[name].Seq)
		}
	}
	return all, nil
}
