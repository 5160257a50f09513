// Package recorder carries every record of one process to the audit log.
//
//	gate, page, commands ── Record ──▶ Secrets.Scrub ──▶ backlog ──▶ ledger.Store ──▶ slog
//	what cannot be refused ── Enqueue ──▶      "           "
//
// [Secrets] are values that the configuration gives to servers, recognised by the names
// of variables, headers and flags and by their look: if a server repeats one in an
// answer or an error, it must not get into the log. The backlog holds records of what
// has already happened, such as an edit of the configuration, but could not be written
// yet: until it is written nothing else is, and so no call is made. Once a record is
// stored, the program's own log says that something was requested, approved or denied,
// but never with which arguments.
//
// The constructors in records.go define the records of configuration files and
// of a bridge's start and end.
package recorder

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// Options say where a Recorder writes.
type Options struct {
	Store  ledger.Store // nil keeps nothing
	Refuse error        // unless nil, Record returns it for every record, and keeps none
	Log    *slog.Logger // nil is slog.Default()
}

// An Observer is told of records that were written together, which took so long (0 where
// none are kept), or of the error for which they were not. It must not block or change them.
type Observer func(all []ledger.Record, took time.Duration, err error)

// A Recorder hides secrets in records, stores them in order, and logs the decisions in
// them. It may be used by many goroutines at once.
type Recorder struct {
	store   ledger.Store
	refuse  error
	log     *slog.Logger
	secrets *Secrets
	observe Observer // may be nil

	mu      sync.Mutex
	backlog []ledger.Record // must be recorded before anything else is
}

// New returns a recorder that knows no secrets yet. Closing it closes the store.
func New(o Options) *Recorder {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Recorder{store: o.Store, refuse: o.Refuse, log: o.Log, secrets: new(Secrets)}
}

// Observe has o told of every record from now on. It must be called before the recorder
// is used by several goroutines.
func (r *Recorder) Observe(o Observer) { r.observe = o }

// Record stores records in one transaction, after the backlog and without known secrets.
// An error means that none was stored, so that what they announce must not be done.
func (r *Recorder) Record(ctx context.Context, all ...ledger.Record) error {
	if r.refuse != nil {
		return r.refuse
	}
	all = slices.Clone(all)
	for i := range all {
		r.secrets.Scrub(&all[i])
	}
	if r.store != nil {
		if err := r.writeBacklog(ctx); err != nil {
			return err
		}
		if err := r.write(ctx, all...); err != nil {
			return err
		}
	} else if r.observe != nil {
		r.observe(all, 0, nil)
	}
	for _, rec := range all {
		r.logDecision(ctx, rec)
	}
	return nil
}

// write stores records, and tells the observer.
func (r *Recorder) write(ctx context.Context, all ...ledger.Record) error {
	if r.observe == nil {
		return r.store.Record(ctx, all...)
	}
	began := time.Now()
	err := r.store.Record(ctx, all...)
	r.observe(all, time.Since(began), err)
	return err
}

// Backlog is how many records wait to be written that cannot be refused.
func (r *Recorder) Backlog() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.backlog)
}

// Err says why Record fails at present; nil if it does not.
func (r *Recorder) Err() error {
	if r.refuse != nil || r.store == nil {
		return r.refuse
	}
	return r.store.Err()
}

// Shared reports whether several sessions have recorded something lately, as far as the store knows.
func (r *Recorder) Shared() bool {
	s, ok := r.store.(interface{ Shared() bool })
	return !ok || s.Shared()
}

// Enqueue records something that has already happened, such as an edit of the
// configuration: now if the store can write, else as soon as it can, before anything
// else is recorded.
func (r *Recorder) Enqueue(ctx context.Context, rec ledger.Record) {
	if r.store == nil {
		return
	}
	r.secrets.Scrub(&rec)
	if rec.Time.IsZero() {
		rec.Time = time.Now()
	}
	r.mu.Lock()
	r.backlog = append(r.backlog, rec)
	r.mu.Unlock()
	if err := r.writeBacklog(ctx); err != nil {
		r.log.Error("calls are refused until the audit log can be written", "event", rec.Event, "err", err)
	}
}

// writeBacklog writes the backlog, the oldest record first.
func (r *Recorder) writeBacklog(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.backlog) > 0 {
		if err := r.write(ctx, r.backlog[0]); err != nil {
			return err
		}
		r.backlog = r.backlog[1:]
	}
	return nil
}

// Unavailable returns why records cannot be written; "" if they can.
func (r *Recorder) Unavailable() string {
	if r.store == nil {
		return ""
	}
	if err := r.store.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// logDecision logs a request, a verdict or a refusal.
func (r *Recorder) logDecision(ctx context.Context, rec ledger.Record) {
	level, message := slog.LevelInfo, ""
	switch {
	case rec.Event == ledger.Asked:
		message = "requested"
	case rec.Event == ledger.Verdict && rec.Outcome == ledger.Refused:
		level, message = slog.LevelWarn, "verdict refused" // it came too late, or from who may not give it
	case rec.Event == ledger.Verdict && rec.Channel == "fallback" && strings.HasPrefix(rec.Answer, "yes"):
		level, message = slog.LevelWarn, "allowed by fallback" // and by nobody
	case rec.Event == ledger.Verdict && strings.HasPrefix(rec.Answer, "yes"):
		message = "approved"
	case rec.Event == ledger.Verdict, rec.Event == ledger.Refusal && rec.Disposition == profiles.Deny.String():
		level, message = slog.LevelWarn, "denied"
	default:
		return
	}
	line := []any{"trace", rec.Trace, "run", rec.Run, "call", rec.Call, "tool", rec.Path(), "risk", rec.Risk}
	for _, more := range []struct{ key, value string }{
		{"profile", rec.Profile}, {"request", rec.Request}, {"answer", rec.Answer}, {"approver", rec.Approver}, {"channel", rec.Channel},
	} {
		if more.value != "" {
			line = append(line, more.key, more.value)
		}
	}
	if rec.Wait > 0 {
		line = append(line, "wait", rec.Wait)
	}
	r.log.Log(ctx, level, message, line...)
}

// Journal is where runs are kept that can outlive this process; nil if no records are
// kept.
func (r *Recorder) Journal() ledger.Journal {
	if j, ok := r.store.(ledger.Journal); ok && r.refuse == nil {
		return j
	}
	return nil
}

// Store is where the records are; nil if none are kept.
func (r *Recorder) Store() ledger.Store { return r.store }

// Secrets are those that Record hides.
func (r *Recorder) Secrets() *Secrets { return r.secrets }

// Refuses reports whether every record is refused, so that no call can be made.
func (r *Recorder) Refuses() bool { return r.refuse != nil }

// Close closes the store, if there is one.
func (r *Recorder) Close() error {
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}
