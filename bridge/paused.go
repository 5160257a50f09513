package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
)

// The runs that wait in their journals, and that no bridge has.

// unowned are the runs of this configuration that no bridge has.
func (l *leases) unowned(ctx context.Context) ([]ledger.JournaledRun, error) {
	if l.o.Journal == nil {
		return nil, nil
	}
	all, err := l.o.Journal.Runs(ctx)
	return slices.DeleteFunc(all, func(k ledger.JournaledRun) bool {
		return k.State == ledger.Finished || k.Configuration != l.o.Gate.Configuration().ID || k.Owner != "" && !l.o.Gone(k.Owner)
	}), err
}

// paused are the runs of this configuration that no bridge has, and those that
// this bridge is about to resume.
func (l *leases) paused(ctx context.Context) []ledger.JournaledRun {
	if l.o.Journal == nil {
		return nil
	}
	all, err := l.o.Journal.Runs(ctx)
	if err != nil {
		l.o.Logger.Warn("looking for paused runs", "err", err)
	}
	return slices.DeleteFunc(all, func(k ledger.JournaledRun) bool {
		_, here := l.roster.lookup(k.Run)
		return here || k.State == ledger.Finished || k.Configuration != l.o.Gate.Configuration().ID || k.Owner != "" && k.Owner != l.o.Bridge && !l.o.Gone(k.Owner)
	})
}

// state is what is known of a run that no bridge has.
func (l *leases) state(ctx context.Context, k ledger.JournaledRun) RunState {
	b, ok := l.begun.Load(k.Run)
	if !ok {
		if _, entries, err := l.o.Journal.Read(ctx, k.Run); err == nil && len(entries) > 0 {
			var read beginning
			if json.Unmarshal(entries[0].Body, &read) == nil {
				read.Code, read.Input = "", nil
				b, _ = l.begun.LoadOrStore(k.Run, read)
			}
		}
	}
	st := RunState{ID: k.Run, State: lifecycle.RunPaused, Started: k.Began}
	if k.State == ledger.Live && k.Owner != l.o.Bridge { // else this bridge is about to resume it
		st.State = lifecycle.RunInterrupted
	}
	if b, ok := b.(beginning); ok {
		st.Session, st.Client, st.Requester, st.Profile = b.Session, b.Client, b.Principal, b.Profile
	}
	if st.Profile == "" {
		st.Profile = l.o.Gate.View().Profiles.Default().Name() // what binds eval when it goes on
	}
	return st
}

// answeredUnowned are the last answers, since a time, to runs that no bridge has
// and that ask nothing any more.
func (l *leases) answeredUnowned(ctx context.Context, since time.Time) (last []approval.StoredRequest, err error) {
	unowned, err := l.unowned(ctx)
	if err != nil || len(unowned) == 0 {
		return nil, err
	}
	broker := l.o.Gate.Broker()
	entries, err := broker.Requests(ctx, approval.Filter{Open: l.o.Now()})
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, e := range entries {
		open[e.Run] = true
	}
	for _, k := range unowned {
		if open[k.Run] {
			continue
		}
		entries, err := broker.Requests(ctx, approval.Filter{Run: k.Run})
		if err != nil {
			return nil, err
		}
		answers := slices.DeleteFunc(entries, func(e approval.StoredRequest) bool { return e.Verdict == nil || e.Verdict.By == "" })
		if len(answers) == 0 {
			continue
		}
		newest := slices.MaxFunc(answers, func(a, b approval.StoredRequest) int { return a.Verdict.Time.Compare(b.Verdict.Time) })
		if newest.Verdict.Time.After(since) {
			last = append(last, newest)
		}
	}
	return last, nil
}

// leaveInJournal releases the lease of a suspended run. An [approval.StoppedError]
// says that it is to end instead: another bridge wanted that in the same moment.
func (l *leases) leaveInJournal(ctx context.Context, r *run) error {
	if err := r.gate.Paused(ctx, r.journal.entries(ledger.Noted, 0, new(entry))); err != nil {
		return err
	}
	until := l.o.Now().Add(l.o.Gate.View().Profiles.PausedFor())
	_, err := l.o.Journal.ChangeRun(context.WithoutCancel(ctx), r.id, func(k *ledger.JournaledRun) error {
		if stop := cancelRequested(k); stop != nil {
			return stop
		}
		k.Release()
		k.Until = until
		return nil
	})
	if err == nil {
		l.rememberSuspended(r)
	}
	return err
}

// A suspendedKey is what a run that was suspended here has in common with a request
// that sends its script again.
type suspendedKey struct {
	session, principal, profile string
	script                      [32]byte
}

func scriptDigest(code string, input []byte) [32]byte {
	return sha256.Sum256(append([]byte(code+"\x00"), input...))
}

// rememberSuspended notes that a run was suspended here.
func (l *leases) rememberSuspended(r *run) {
	key := suspendedKey{session: r.session.id, principal: r.principal, profile: r.gate.Profile, script: scriptDigest(r.gate.Script, r.gate.Input)}
	if r.session.brief && r.replay == nil {
		if key.session = ""; r.principal == "" {
			return // anybody could have sent it
		}
	}
	l.suspended.Store(key, r.id)
}

// suspendedAs is the run that was suspended here with such a key.
func (l *leases) suspendedAs(key suspendedKey) (id string, ok bool) {
	found, ok := l.suspended.Load(key)
	if ok {
		id = found.(string)
	}
	return id, ok
}
