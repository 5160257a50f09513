package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/commons"
	"codemode-bridge/bridge/entries"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
)

// A past is an earlier part of a run, as its journal has it.
type past struct {
	beginning
	names    *sandbox.Names
	policy   *profiles.Set // that it began with; nil: an older release kept none
	calls    map[int]*pastCall
	turns    []replay.Turn
	profiles []string                   // the profiles that bound the session beside the run's own, at last
	taken    map[string]catalog.ToolRef // what its script meant by names in other spellings
	bytes    int64                      // that its journal has
	read     int                        // entries
	answer   []byte                     // of a run that is over; nil: it is not kept
}

// A pastCall is a call that was made then.
type pastCall struct {
	*entry
	answered bool // else it was only sent
}

// readPast reads a run's entries.
func readPast(all []ledger.JournalEntry) (past, error) {
	return past{calls: map[int]*pastCall{}, taken: map[string]catalog.ToolRef{}}.further(all)
}

// further reads the entries of the same run that came since: a journal only grows.
// What was kept twice, since nobody could tell whether it was kept, counts once.
func (p past) further(all []ledger.JournalEntry) (past, error) {
	if len(all) < max(p.read, 1) {
		return p, ledger.ErrNoJournal
	}
	for _, e := range all[p.read:] {
		if (e.Kind == ledger.Began) != (p.read == 0) {
			return p, fmt.Errorf("%w: it does not begin once", entries.ErrEntry)
		}
		p.read++
		switch e.Kind {
		case ledger.Began:
			if err := json.Unmarshal(e.Body, &p.beginning); err != nil {
				return p, fmt.Errorf("%w: %v", entries.ErrEntry, err)
			}
			names, policy, err := commons.Read(e.Common)
			if err != nil {
				return p, fmt.Errorf("%w: %v", entries.ErrEntry, err)
			}
			p.names, p.policy = (*sandbox.Names)(names), policy
		case ledger.Sent, ledger.Replied, ledger.Noted:
			s, err := decodeEntry(e.Body)
			if err != nil {
				return p, err
			}
			p.profiles = s.Profiles
			maps.Copy(p.taken, s.Names)
			if s.Op == entries.AnswerOp {
				p.answer = s.Value
			}
			if known := p.calls[e.Call]; e.Kind != ledger.Noted && (known == nil || !known.answered) {
				p.calls[e.Call] = &pastCall{s, e.Kind == ledger.Replied}
			}
			next := len(p.turns)
			if p.turns, err = s.ReadTurns(p.turns); err != nil {
				return p, fmt.Errorf("%w: %v", entries.ErrEntry, err)
			}
			for _, t := range p.turns[next:] {
				if len(t.Answer) == 0 {
					continue
				}
				answer, err := decodeEntry(t.Answer)
				if err != nil {
					return p, err
				}
				p.calls[t.Call] = &pastCall{answer, true}
			}
		}
	}
	return p, nil
}

// A replayed is a run that goes on from its past: package replay says when each call
// gets its answer, and here is what the answer is.
type replayed struct {
	*replay.Replay
	past past
	r    *run
}

func newReplay(r *run, p past) *replayed {
	o := replay.Options{
		Calls: map[int]replay.Past{}, Turns: p.turns, Now: r.runner.o.Now, Moves: r.moves, Over: r.done,
		CaughtUp: func() {
			r.journal.replayed(len(p.turns))
			r.update(lifecycle.Event{Kind: lifecycle.Begins})
		},
		Diverged: func(err *replay.DivergedError) { r.stop(err) },
	}
	for number, known := range p.calls {
		o.Calls[number] = replay.Past{Call: replay.Call{Op: known.Op, Name: known.Name, Digest: known.Digest}, Answered: known.answered}
	}
	return &replayed{replay.New(o), p, r}
}

// call meets a call of the script. Unless it is live, settle is given the answer
// that is kept.
func (p *replayed) call(ctx context.Context, c sandbox.Call, settle func(sandbox.Reply)) replay.Found {
	return p.Call(ctx, c.Number, replay.Call{Op: string(c.Op), Name: c.Name, Digest: entries.Digest(c.Args)}, func(at time.Time) error {
		return p.answer(c, p.past.calls[c.Number], at, settle)
	})
}

// timer meets a timer of the script, and reports whether the replay serves it.
func (p *replayed) timer(c sandbox.Call, wait time.Duration, settle func(sandbox.Reply)) bool {
	return p.Timer(c.Number, wait, func(at time.Time) { settle(sandbox.Reply{Time: at}) })
}

// answer gives a call the answer that is kept.
func (p *replayed) answer(c sandbox.Call, known *pastCall, at time.Time, settle func(sandbox.Reply)) error {
	if known.Past != nil {
		p.r.gate.Recall(c.Position, *known.Past, c.Args, known.Value)
	} else if c.Op == sandbox.OpRead && len(known.Value) > 0 {
		p.r.readEarlier(c, known.Value)
	}
	p.r.session.handles.Restore(known.Items)
	p.r.emitted.Saw(known.Items)
	if known.Media != nil {
		content, err := p.r.session.handles.Content(p.r.id, known.Media)
		if err == nil {
			err = p.r.emitted.Add(c.Number, content, len(known.Media))
		}
		if err != nil {
			return fmt.Errorf("what call %d attached to the answer cannot be attached again: %w", c.Number, err)
		}
	}
	if known.Past == nil && p.r.journal != nil { // its answer travels with its turn again
		if err := p.r.journal.carry(c.Number, known.entry); err != nil {
			return err
		}
	}
	p.r.count(0, 1)
	settle(replyIn(known.entry, at))
	return nil
}

// FolderOf is where a run's servers ran that have no folder of their own, from
// its journal; empty if all have one.
func FolderOf(all []ledger.JournalEntry) (string, error) {
	p, err := readPast(all)
	return p.Folder, err
}
