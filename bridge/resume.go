package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A run that waits for people can be suspended: its worker ends, and what is left
// of it is its journal. Whoever resumes it acquires its lease (lease.go) and runs
// its script again, up to where it was (package replay).

// A beginning is what a script's run depends on besides the answers.
type beginning struct {
	Engine    string          `json:"engine"`
	Code      string          `json:"code"`
	Input     json.RawMessage `json:"input,omitempty"`
	Seed      [32]byte        `json:"seed"`
	Start     time.Time       `json:"start"`
	Started   time.Time       `json:"started"`
	Profile   string          `json:"profile"`
	Session   string          `json:"session"`
	Client    string          `json:"client"`
	Principal string          `json:"principal"`
	Fetched   bool            `json:"fetched,omitempty"`
	// Configuration is the one that the run belongs to, and Servers say what its
	// servers were.
	Configuration gate.Configuration `json:"configuration,omitzero"`
	Servers       map[string]string  `json:"servers,omitempty"`
	Trusted       map[string]bool    `json:"trusted,omitempty"`
	// Folder is where its servers ran that have no folder of their own; empty if
	// all have one.
	Folder string `json:"folder,omitempty"`
	// Secret is the SHA-256 of what lets somebody without a principal go on with
	// the run from another session.
	Secret []byte `json:"secret,omitempty"`
}

// ErrEnded: the run has ended, and its answer is still kept.
var ErrEnded = errors.New("the run has ended")

// ErrNoRun: nobody knows the run, or it has ended, or it is another's.
var ErrNoRun = errors.New("there is no such run")

// An ElsewhereError is a run that belongs to another configuration than this
// bridge's: nobody goes on with it, answers for it or ends it here.
type ElsewhereError struct {
	Run           string
	Configuration gate.Configuration // zero: it began in a release that kept none
}

func (e *ElsewhereError) Error() string {
	if e.Configuration.ID == "" {
		return fmt.Sprintf("run %s began in an older release, which did not write down whose configuration it belongs to, so it can only be ended: run its script again", e.Run)
	}
	return fmt.Sprintf("run %s belongs to another configuration, %s, and goes on only under that one", e.Run, canon.Escape(e.Configuration.Name))
}

// Why a run does not go on here.
var (
	errBusyElsewhere = errors.New("another bridge has the run and is busy with it; try again in a moment")
	errExpired       = errors.New("the run expired: it waited too long for a person")
	errNoPolicy      = errors.New("its journal does not have the policy that it began with")
)

// A FolderError is a run whose servers ran in another folder than this bridge's,
// where the same command may be another server.
type FolderError struct {
	Run, Folder string
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("run %s began in %s, where its servers without a folder of their own (cwd) ran, and goes on only there: codemode-bridge runs resume %[1]s goes there", e.Run, canon.Escape(e.Folder))
}

// FolderOf is where a run's servers ran that have no folder of their own, from
// its journal; empty if all have one.
func FolderOf(entries []ledger.JournalEntry) (string, error) {
	p, err := readPast(entries)
	return p.Folder, err
}

// locks are one lock for each run.
type locks struct {
	mu   sync.Mutex
	held map[string]*counted
}

// A counted is the lock of one run. It is held as long as another bridge takes
// to give the run up: a channel, so that a test can let that time pass.
type counted struct {
	held  chan struct{} // has an element while it is held
	users int
}

// lock takes the lock of a run, and returns what gives it back.
func (l *locks) lock(run string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*counted)
	}
	one := l.held[run]
	if one == nil {
		one = &counted{held: make(chan struct{}, 1)}
		l.held[run] = one
	}
	one.users++
	l.mu.Unlock()
	one.held <- struct{}{}
	return func() {
		<-one.held
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, run)
		}
	}
}

// keepJournal gives a run a journal, if there is anything to keep one in.
func (s *Server) keepJournal(r *run, b beginning, names *sandbox.Names) {
	if s.o.Journal == nil {
		return
	}
	r.journal = newJournal(r.id, s.o.Bridge, s.o.JournalBytes)
	r.life.Journal = lifecycle.WholeJournal
	r.journal.lost = func() { r.update(lifecycle.Event{Kind: lifecycle.LosesLease}) }
	r.journal.outgrown = func() { r.update(lifecycle.Event{Kind: lifecycle.Outgrows}) }
	r.journal.profiles = func() []string { return s.addedProfiles(r.session) }
	r.journal.began = func() ledger.JournalEntry {
		b.Servers, b.Trusted = r.gate.Servers(), r.gate.Trusted()
		body, err := json.Marshal(b)
		if err != nil {
			s.o.Logger.Error("writing the journal of a run", "run", r.id, "err", err) // without a body it is refused when it is read
		}
		shared, common := s.commonText(names, r.gate.Policy())
		return ledger.JournalEntry{Run: r.id, Owner: s.o.Bridge, Kind: ledger.Began, Body: body, Configuration: b.Configuration.ID,
			Until: s.o.Now().Add(s.o.Gate.View().Profiles.PausedFor()), Shared: shared, Common: common}
	}
}

// A common is what many runs begin with, as it stands in their journals: the
// names that scripts see, and the policy.
type common struct {
	Seen   *sandbox.Names  `json:"seen"`
	Policy json.RawMessage `json:"policy"`
}

// commonText is the form of a common in journals, and its name there. Without
// one, what could not be written is refused when it is read.
func (s *Server) commonText(names *sandbox.Names, policy *profiles.Set) (name string, text []byte) {
	type pair struct {
		names  *sandbox.Names
		policy *profiles.Set
	}
	if known, ok := s.known.Load(pair{names, policy}); ok {
		text = known.([]byte)
	} else {
		source, err := policy.Source()
		if err == nil {
			text, err = json.Marshal(common{names, source})
		}
		if err != nil {
			s.o.Logger.Error("writing the policy of a run", "err", err)
		}
		s.known.Store(pair{names, policy}, text)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), text
}

// readCommon reads what commonText wrote, or the names alone, which is all that
// older releases kept.
func readCommon(text []byte) (names *sandbox.Names, policy *profiles.Set, err error) {
	var c common
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, err
	}
	if c.Seen == nil {
		err = json.Unmarshal(text, &names)
		return names, nil, err
	}
	policy, err = profiles.FromSource(c.Policy)
	return c.Seen, policy, err
}

// leaveInJournal releases the lease of a suspended run. An [approval.StoppedError]
// says that it is to end instead: another bridge wanted that in the same moment.
func (s *Server) leaveInJournal(ctx context.Context, r *run) error {
	if err := r.gate.Paused(ctx, r.journal.entries(ledger.Noted, 0, new(entry))); err != nil {
		return err
	}
	until := s.o.Now().Add(s.o.Gate.View().Profiles.PausedFor())
	_, err := s.o.Journal.ChangeRun(context.WithoutCancel(ctx), r.id, func(k *ledger.JournaledRun) error {
		if stop := cancelRequested(k); stop != nil {
			return stop
		}
		k.Release()
		k.Until = until
		return nil
	})
	if err == nil {
		s.rememberSuspended(r)
	}
	return err
}

// A claimant is who resumes a run, and how people are reached from there.
type claimant struct {
	principal string
	session   string // that they come from; empty for none
	secret    string // of the run, if they have it
	sealed    bool   // they have a state that this bridge, or one like it, sealed for the run
	by        string // in words, for the record
	anyone    bool   // whoever's run it is: the person who runs the bridge
	reach     gate.Reach
	conn      *mcp.ServerSession // nil on the command line
	unasked   func(*approval.DeniedError)
	left      bool // nobody waits for the answer, which is kept for whoever asks
}

// resume goes on with a run that is suspended, or whose bridge has ended, or that
// another bridge hands over. A run that is live here is returned as it is.
// ErrNoRun is a run that nobody knows, or that is another's.
func (s *Server) resume(ctx context.Context, id string, c claimant) (*run, error) {
	defer s.acquiring.lock(id)() // a run that is asked for twice is resumed once
	if r, ok := s.lookup(id); ok {
		if !c.may(r.owner()) {
			return nil, ErrNoRun
		}
		return r, nil
	}
	if s.o.Journal == nil {
		return nil, ErrNoRun
	}
	kept, entries, err := s.o.Journal.Read(ctx, id)
	if errors.Is(err, ledger.ErrNoJournal) || err == nil && kept.State == ledger.Finished {
		return nil, ErrNoRun
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", id, err)
	}
	p, err := readPast(entries)
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", id, err)
	}
	if err := s.ours(kept, p.beginning); err != nil {
		if !c.anyone { // a client learns nothing of what others run
			err = ErrNoRun
		}
		return nil, err
	}
	if !c.may(p.owner()) {
		return nil, ErrNoRun
	}
	if here := s.o.Folder(); p.Folder != "" && here != "" && p.Folder != here {
		return nil, &FolderError{id, p.Folder}
	}
	lease, stop, err := s.acquire(ctx, id, !c.left)
	if err != nil {
		return nil, err
	}
	if stop != nil {
		if err := s.discard(ctx, id, lease, p.beginning, stop); err != nil {
			return nil, errors.Join(fmt.Errorf("ending run %s, which %s stopped: %w", id, stop.By, err), s.release(ctx, id))
		}
		return nil, ErrNoRun
	}
	// What was written before this bridge owned it may not have been seen above.
	if kept, entries, err = s.o.Journal.Read(ctx, id); err == nil {
		p, err = readPast(entries)
	}
	p.bytes = kept.Bytes
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the journal of run %s: %w", id, err), s.release(ctx, id))
	}
	if p.policy == nil {
		return nil, errors.Join(errNoPolicy, s.release(ctx, id))
	}
	if p.Engine != sandbox.Engine {
		err := engineDiffers(p)
		return nil, errors.Join(err, s.discard(ctx, id, lease, p.beginning, err))
	}
	r, err := s.runAgain(ctx, id, lease, p, c)
	if err != nil {
		return nil, errors.Join(err, s.release(ctx, id))
	}
	return r, nil
}

// engineDiffers ends a run that began in another release: the same script
// might do something else in this one.
func engineDiffers(p past) *replay.DivergedError {
	return &replay.DivergedError{Message: fmt.Sprintf("this release runs scripts in engine %s, it began in engine %s", sandbox.Engine, p.Engine)}
}

// unowned are the runs of this configuration that no bridge has.
func (s *Server) unowned(ctx context.Context) ([]ledger.JournaledRun, error) {
	if s.o.Journal == nil {
		return nil, nil
	}
	all, err := s.o.Journal.Runs(ctx)
	return slices.DeleteFunc(all, func(k ledger.JournaledRun) bool {
		return k.State == ledger.Finished || k.Configuration != s.configuration().ID || k.Owner != "" && !s.o.Gone(k.Owner)
	}), err
}

// paused are the runs of this configuration that no bridge has, and those that
// this bridge is about to resume.
func (s *Server) paused(ctx context.Context) []ledger.JournaledRun {
	if s.o.Journal == nil {
		return nil
	}
	all, err := s.o.Journal.Runs(ctx)
	if err != nil {
		s.o.Logger.Warn("looking for paused runs", "err", err)
	}
	return slices.DeleteFunc(all, func(k ledger.JournaledRun) bool {
		_, here := s.lookup(k.Run)
		return here || k.State == ledger.Finished || k.Configuration != s.configuration().ID || k.Owner != "" && k.Owner != s.o.Bridge && !s.o.Gone(k.Owner)
	})
}

// pausedState is what is known of a run that no bridge has.
func (s *Server) pausedState(ctx context.Context, k ledger.JournaledRun) RunState {
	b, ok := s.begun.Load(k.Run)
	if !ok {
		if _, entries, err := s.o.Journal.Read(ctx, k.Run); err == nil && len(entries) > 0 {
			var read beginning
			if json.Unmarshal(entries[0].Body, &read) == nil {
				read.Code, read.Input = "", nil
				b, _ = s.begun.LoadOrStore(k.Run, read)
			}
		}
	}
	st := RunState{ID: k.Run, State: RunPaused, Started: k.Began}
	if k.State == ledger.Live && k.Owner != s.o.Bridge { // else this bridge is about to resume it
		st.State = RunInterrupted
	}
	if b, ok := b.(beginning); ok {
		st.Session, st.Client, st.Requester, st.Profile = b.Session, b.Client, b.Principal, b.Profile
	}
	if st.Profile == "" {
		st.Profile = s.o.Gate.View().Profiles.Default().Name() // what binds eval when it goes on
	}
	return st
}

// runAgain runs the script of a run again whose lease this bridge has acquired.
func (s *Server) runAgain(ctx context.Context, id string, lease int64, p past, c claimant) (*run, error) {
	sess := s.loose(p.Client)
	sess.id, sess.owner, sess.conn, sess.started, sess.closed, sess.boundBefore = p.Session, p.Principal, c.conn, p.Started, true, p.profiles
	s.mu.Lock()
	if from := s.sessions[c.conn]; from != nil {
		sess.reflex = from.reflex
	}
	s.mu.Unlock()
	r := s.newRun(id, sess, p.Principal, p.Profile, p.Fetched)
	r.started = p.Started
	if c.left {
		r.update(lifecycle.Event{Kind: lifecycle.Leaves, At: time.Now()})
	}
	if r.secretHash = p.Secret; c.knows(p.Secret) {
		r.secret = c.secret
	}
	s.keepJournal(r, p.beginning, p.names)
	r.journal.lease, r.journal.open, r.journal.bytes = lease, true, p.bytes
	r.replay, r.life.Resumed = newReplay(r, p), true
	o := gate.Origin{Profile: p.Profile, Policy: p.policy, Servers: p.Servers, Trusted: p.Trusted, Folder: p.Folder, Reach: c.reach}
	if c.reach == gate.Nobody && p.Fetched {
		o.Reach = gate.ByApprovers
	}
	r.unasked = c.unasked
	s.identify(r, &o, evalArgs{Code: p.Code, Input: p.Input})
	var err error
	if r.gate, err = s.o.Gate.Resume(ctx, o, (*gateHost)(r), p.Started, c.by); err != nil {
		sess.sandbox.Close()
		return nil, err
	}
	script := s.script(r, evalArgs{Code: p.Code, Input: p.Input}, p.names)
	script.Seed, script.Start = p.Seed, p.Start
	if err := s.launch(r, script); err != nil {
		sess.sandbox.Close()
		return nil, err
	}
	return r, nil
}

// Resume goes on with a run that is suspended, or whose bridge has ended, for
// the person who runs the bridge, and returns what its eval tool would answer.
// When ctx ends while the run waits for people, it is suspended again, and the
// error is ctx's cause.
func (s *Server) Resume(ctx context.Context, id, by string, unasked func(*approval.DeniedError)) (*mcp.CallToolResult, error) {
	r, err := s.resume(ctx, id, claimant{by: by, anyone: true, reach: gate.ByApprovers, unasked: unasked})
	if err != nil {
		return nil, err
	}
	r.update(lifecycle.Event{Kind: lifecycle.Attaches}) // and it is not handed over
	defer r.update(lifecycle.Event{Kind: lifecycle.Detaches})
	select {
	case <-r.done:
	case <-ctx.Done():
		if !r.evict() {
			r.stop(context.Cause(ctx))
		}
		<-r.done
	}
	switch at := r.now(); {
	case at.Phase != lifecycle.Suspended:
		return r.answer(), nil
	case !at.LeaseLost && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, errLeaseLost
	}
}

// ResumeInBackground is Resume without waiting: the run goes on, and its answer is kept for a
// while, for the client that comes back. It is [ErrEnded] for a run that is over.
func (s *Server) ResumeInBackground(ctx context.Context, id, by string) error {
	if r, ok := s.lookup(id); ok && r.isDone() {
		return ErrEnded
	}
	_, err := s.resume(ctx, id, claimant{by: by, anyone: true, reach: gate.ByApprovers, left: true})
	if errors.Is(err, errBusyElsewhere) {
		return nil // it goes on there
	}
	return err
}

// ResumeAnswered goes on with the runs that no bridge has as soon as people have
// answered all that they asked, until ctx ends. What nobody answers in time
// expires. What was settled before this bridge began is left to whoever resumes
// it, and so is a run that asks nobody, because its bridge was killed: a restart
// makes no calls of its own. An answer that waited for a bridge to judge it is
// settled by this one, and moves its run on.
func (s *Server) ResumeAnswered(ctx context.Context) {
	if s.o.Journal == nil {
		return
	}
	tried := map[string]bool{}
	for ctx.Err() == nil {
		changed := s.o.Gate.Broker().Changed() // before looking: nothing is missed
		if err := s.o.Gate.Broker().Judge(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("looking for answers to paused runs", "err", err)
		}
		answered, err := s.answeredUnowned(ctx, s.began)
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("looking for paused runs that were answered", "err", err)
		}
		for _, e := range answered {
			if tried[e.ID] {
				continue
			}
			tried[e.ID] = true
			if err := s.ResumeInBackground(ctx, e.Run, e.Verdict.By+" answered"); err != nil && !errors.Is(err, ErrNoRun) && !errors.As(err, new(*FolderError)) && ctx.Err() == nil {
				s.o.Logger.Error("going on with a run that was answered", "run", e.Run, "err", err)
				delete(tried, e.ID) // the next look tries again
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(10 * time.Second): // a bridge may have been killed
		}
	}
}

// answeredUnowned are the last answers, since a time, to runs that no bridge has
// and that ask nothing any more.
func (s *Server) answeredUnowned(ctx context.Context, since time.Time) (last []approval.StoredRequest, err error) {
	unowned, err := s.unowned(ctx)
	if err != nil || len(unowned) == 0 {
		return nil, err
	}
	broker := s.o.Gate.Broker()
	entries, err := broker.Requests(ctx, approval.Filter{Open: s.o.Now()})
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
