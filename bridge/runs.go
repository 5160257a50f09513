package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A run is one execution of a script. It has a goroutine and a context of its
// own: a request is attached to it and does not own it.
type run struct {
	id      string
	server  *Server
	session *session
	// principal is who may come back for the run.
	principal string
	// secret lets somebody without a principal go on with the run from another
	// session; empty where only its hash is known.
	secret     string
	secretHash []byte
	gate       *gate.Run
	ctx        context.Context
	cancel     context.CancelCauseFunc // of ctx; see update
	journal    *journal                // nil: none is kept
	replay     *replayed               // nil: the run was never suspended
	limits     profiles.Limits         // of its profile
	parallel   int                     // calls at a time
	fetched    bool                    // its answer is fetched later: no request waits at it from the start
	unasked    func(*approval.DeniedError)
	started    time.Time
	ended      time.Time      // set before done is closed
	maxResult  int            // bytes of result that the model may have
	done       chan struct{}  // closed when result and err are set
	elicit     *elicit.Client // what upstream servers say and ask

	result sandbox.Result
	err    error

	lifeMu sync.Mutex
	life   lifecycle.State // guarded by lifeMu; changed by update

	mu       sync.Mutex
	media    []emitted
	emitted  int // bytes of media
	made     int // calls
	answered int
}

// start begins a run of a script. An error means that there is no run.
func (s *Server) start(sess *session, o gate.Origin, principal string, args evalArgs, unasked func(*approval.DeniedError)) (*run, error) {
	r := s.newRun(newID("r"), sess, principal, o.Profile, o.Reach == gate.ByApprovers)
	r.unasked = unasked
	o.Folder = s.o.Folder()
	s.identify(r, &o, args)
	names := s.names(o.Profile)
	script := s.script(r, args, names)
	s.seed(&script.Seed)
	r.secret, r.secretHash = newSecret()
	s.keepJournal(r, beginning{
		Engine: sandbox.Engine, Code: args.Code, Input: args.Input, Seed: script.Seed, Start: script.Start.Round(0), Started: r.started,
		Profile: o.Profile, Session: sess.id, Client: sess.client, Principal: principal, Fetched: r.fetched,
		Configuration: s.configuration(), Secret: r.secretHash, Folder: o.Folder,
	}, names)
	var err error
	if r.gate, err = s.o.Gate.Begin(r.ctx, o, (*gateHost)(r)); err != nil {
		r.stop(err)
		return nil, err
	}
	if err := s.launch(r, script); err != nil {
		return nil, err
	}
	return r, nil
}

// newRun makes a run that is not under way.
func (s *Server) newRun(id string, sess *session, principal, profile string, fetched bool) *run {
	r := &run{
		id: id, server: s, session: sess, principal: principal,
		done:    make(chan struct{}),
		started: s.o.Now(), fetched: fetched,
	}
	r.elicit = s.elicitFor(r)
	r.ctx, r.cancel = context.WithCancelCause(context.Background()) // it outlives the request that starts it
	r.limits = s.o.Gate.View().Limits(profile)
	r.maxResult = least(s.o.MaxResult, r.limits.Result)
	return r
}

// identify puts into an origin what it has of the run.
func (s *Server) identify(r *run, o *gate.Origin, args evalArgs) {
	o.ID, o.Session, o.Client, o.Requester = r.id, r.session.id, r.session.client, r.principal
	o.Script, o.Input = args.Code, args.Input
	o.CallTimeout = time.Duration(deref(r.limits.Call))
}

// A gateHost is a run, seen from the gate.
type gateHost run

var _ gate.Host = (*gateHost)(nil)

func (h *gateHost) Profiles() []string  { return h.server.addedProfiles(h.session) }
func (h *gateHost) AnswersItself() bool { return h.session.reflex.ByItself() }
func (h *gateHost) ApproveAt() string   { return h.server.o.ApproveAt(h.id) }
func (h *gateHost) Stop(why error)      { (*run)(h).stop(why) }

func (h *gateHost) Attended() bool {
	at := (*run)(h).now()
	return h.fetched || at.Attended()
}

func (h *gateHost) Sends(call int) bool {
	return (*run)(h).update(lifecycle.Event{Kind: lifecycle.Sends, Call: call})
}

func (h *gateHost) Returns(call int) {
	(*run)(h).update(lifecycle.Event{Kind: lifecycle.Returns, Call: call})
}
func (h *gateHost) Suspended() bool { return (*run)(h).now().Phase == lifecycle.Suspended }

func (h *gateHost) Unasked(denied *approval.DeniedError) {
	if h.unasked != nil {
		h.unasked(denied)
	}
}

// script is what a run runs, without its seed.
func (s *Server) script(r *run, args evalArgs, names *sandbox.Names) sandbox.Script {
	t := r.limits
	script := sandbox.Script{
		Source: args.Code,
		Input:  args.Input,
		Names:  names,
		Limits: s.o.Limits.Tighten(sandbox.Limits{
			CPU: time.Duration(deref(t.CPU)), Heap: int64(deref(t.Heap)), Calls: deref(t.Calls), Parallel: deref(t.Parallel),
			Source: int64(deref(t.Source)), Input: int64(deref(t.Input)), Logs: int64(deref(t.Logs)),
		}),
		Start: s.o.Now(),
	}
	r.parallel = s.o.Pool.Limits().Tighten(script.Limits).Parallel
	return script
}

// launch has a run under way, in a goroutine of its own.
func (s *Server) launch(r *run, script sandbox.Script) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && r.replay != nil { // it stays as it was
		r.stop(ErrClosed)
		return ErrClosed
	}
	if s.closed {
		r.stop(ErrClosed)
		return errors.Join(ErrClosed, r.gate.End(r.ctx, outcomeOf(ErrClosed), ErrClosed.Error(), r.journal.ending(0, s.o.Now())))
	}
	s.live[r.id] = r
	s.turnLocked()
	r.session.runs++
	r.session.ran = true
	s.runs.Add(1)
	go func() {
		defer s.runs.Done()
		defer r.cancel(nil)
		s.carryOut(r, script)
		r.session.prompts.Forget(r.id)
		s.mu.Lock()
		r.session.runs--
		delete(s.live, r.id)
		s.keepLocked(r)
		r.ended = s.o.Now()
		close(r.done)
		s.turnLocked()
		s.mu.Unlock()
		s.closeSession(r.session)
	}()
	return nil
}

// carryOut runs a run's script to its end, and records that, or that the run is
// suspended.
func (s *Server) carryOut(r *run, script sandbox.Script) {
	ctx := r.ctx
	select {
	case r.session.slots <- struct{}{}:
		if r.replay == nil { // else it begins once it is where it was
			r.update(lifecycle.Event{Kind: lifecycle.Begins})
		}
		r.result, r.err = r.session.sandbox.Run(upstream.WithClient(ctx, r.elicit), script, (*workerHost)(r))
		<-r.session.slots
	case <-ctx.Done():
		r.err = context.Cause(ctx)
	}
	if ctx.Err() != nil { // stopped: what the script has still returned does not count
		r.err = context.Cause(ctx)
	} else if r.replay != nil {
		if err := r.replay.Unmet(); err != nil && limitOf(r.err) == nil {
			r.err = err
		}
	}
	if !r.update(lifecycle.Event{Kind: lifecycle.Ends}) && !s.finishSuspension(ctx, r) {
		return // it goes on elsewhere
	}
	why := ""
	if r.err != nil {
		why = r.err.Error()
	}
	if err := r.gate.End(ctx, outcomeOf(r.err), why, r.journal.ending(s.o.KeepJournals, s.o.Now())); err != nil {
		s.o.Logger.Error("recording the end of a run", "run", r.id, "err", err)
	}
}

// finishSuspension leaves a suspended run to whoever acquires it. It reports
// whether the run ends here instead: that could not be written down, or somebody
// wanted its end in the same moment.
func (s *Server) finishSuspension(ctx context.Context, r *run) (ends bool) {
	if r.now().LeaseLost {
		r.err = errLeaseLost
		return false
	}
	err := s.leaveInJournal(ctx, r)
	if err == nil {
		return false
	}
	var stop *approval.StoppedError
	if !errors.As(err, &stop) {
		s.o.Logger.Error("suspending a run", "run", r.id, "err", err)
		err = fmt.Errorf("the run could not be suspended: %w", err)
	}
	if !r.update(lifecycle.Event{Kind: lifecycle.FailsToSuspend}) {
		r.err = errLeaseLost
		return false
	}
	r.err = err
	err = s.o.Gate.Broker().Abandon(context.WithoutCancel(ctx), r.err, func(e approval.StoredRequest) bool { return e.Run == r.id })
	if err != nil {
		s.o.Logger.Error("ending the questions of a run", "run", r.id, "err", err)
	}
	return true
}

// limitOf is the limit that ended a run, if one did.
func limitOf(err error) *sandbox.LimitError {
	var limit *sandbox.LimitError
	errors.As(err, &limit)
	return limit
}

// quiet reports whether the script can do nothing until people answer.
func (r *run) quiet() bool {
	at := r.now()
	return at.Quiet()
}

// deref is what p points at, or zero.
func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// least is n, or the smaller limit that a profile sets.
func least(n int, limit *profiles.Size) int {
	if limit != nil && int(*limit) < n {
		return int(*limit)
	}
	return n
}

// names are what a script under a profile may call. They are the same value
// as long as they are the same names, so that a worker is told only once.
func (s *Server) names(profile string) *sandbox.Names {
	view := s.o.Gate.View().Sees(profile)
	if known, ok := s.known.Load(view); ok {
		return known.(*sandbox.Names)
	}
	names := &sandbox.Names{Names: view.Names()}
	sum := sha256.New()
	for _, name := range names.Names {
		fmt.Fprintln(sum, name)
	}
	for _, server := range view.Servers() {
		names.Servers = append(names.Servers, server.Server)
		fmt.Fprintln(sum, server.Server)
	}
	names.Revision = hex.EncodeToString(sum.Sum(nil)[:12])
	s.known.Store(view, names)
	return names
}

// isDone reports whether the run has ended.
func (r *run) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// soFar says in a few words what the run has done.
func (r *run) soFar() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d calls done, %d under way", r.answered, r.made-r.answered)
}

// workerHost serves a run's script. It is a run, seen from its worker.
type workerHost run

// What the sandbox asks for by type assertion.
var (
	_ sandbox.TimerHost = (*workerHost)(nil)
	_ sandbox.OrderHost = (*workerHost)(nil)
)

// Preview keeps what could be read from the script before it ran.
func (h *workerHost) Preview(report analysis.Report) {
	if err := h.gate.Preview(context.WithoutCancel(h.ctx), report); err != nil {
		h.server.o.Logger.Error("recording a preview", "run", h.id, "err", err)
	}
}

// Idle is told when only answers can move the script on.
func (h *workerHost) Idle(open int) {
	(*run)(h).update(lifecycle.Event{Kind: lifecycle.Idles, Calls: open})
	if h.replay != nil {
		h.replay.Idles(open)
	}
}

// Call does what the script asks for.
func (h *workerHost) Call(ctx context.Context, c sandbox.Call, settle func(sandbox.Reply)) {
	r := (*run)(h)
	r.count(1, 0)
	known := replay.Found{}
	if r.replay != nil {
		if known = r.replay.call(ctx, c, settle); !known.Live {
			return
		}
	}
	reply, err := r.serve(ctx, c, known)
	switch {
	case errors.Is(err, gate.ErrSuspended):
		return // the run goes on elsewhere, and with it this call
	case err != nil:
		reply = sandbox.Reply{Err: thrown(err)}
	}
	reply.Time = r.server.o.Now()
	r.count(0, 1) // before the script moves, which may tell at once that it is idle again
	settle(reply)
}

// Answered notes the order of answers.
func (h *workerHost) Answered(call int, at time.Time) {
	if h.journal != nil {
		h.journal.answered(call, at)
	}
}

// Timer is told of the script's timers.
func (h *workerHost) Timer(c sandbox.Call, wait time.Duration, settle func(sandbox.Reply)) bool {
	return h.replay != nil && h.replay.timer(c, wait, settle)
}

func (r *run) count(made, settled int) {
	r.mu.Lock()
	r.made += made
	r.answered += settled
	r.mu.Unlock()
	if settled > 0 {
		r.moves()
	}
}

// moves notes that an answer moves the script, which says when it is idle again.
func (r *run) moves() { r.update(lifecycle.Event{Kind: lifecycle.Moves}) }

// serve answers one call of the script. Tools are behind the gate; the rest
// concerns only what this session already has.
func (r *run) serve(ctx context.Context, c sandbox.Call, known replay.Found) (sandbox.Reply, error) {
	call := gate.Call{Number: c.Number, Name: c.Name, Args: c.Args, Position: c.Position, Again: known.Live, Lost: known.Lost}
	var err error
	switch c.Op {
	case sandbox.OpResource, sandbox.OpPrompt:
		if call.Name, call.Args, err = r.method(c); err != nil {
			break
		}
		fallthrough
	case sandbox.OpTool, sandbox.OpRaw:
		return r.pass(ctx, c, call)
	}
	s, reply := entryOf(c), sandbox.Reply{}
	if err == nil {
		reply, err = r.serveLocal(ctx, c, call, s)
	}
	if errors.Is(err, gate.ErrSuspended) {
		return sandbox.Reply{}, err
	}
	if err != nil {
		reply = sandbox.Reply{Err: thrown(err)}
	}
	if r.journal != nil {
		s.setReply(reply)
		if err := r.journal.carry(c.Number, s); err != nil {
			return sandbox.Reply{}, err
		}
	}
	return reply, nil
}

// pass makes a call at the gate.
func (r *run) pass(ctx context.Context, c sandbox.Call, call gate.Call) (sandbox.Reply, error) {
	if r.journal != nil {
		call.Journal = &callJournal{r: r, call: c}
	}
	call.Reply = func(answer gate.Answer, err error) gate.Reply { return r.replyTo(c, answer, err) }
	answer, err := r.server.o.Gate.Call(ctx, r.gate, call)
	if errors.Is(err, gate.ErrSuspended) {
		return sandbox.Reply{}, err
	}
	if err == nil && (c.Op == sandbox.OpTool || c.Op == sandbox.OpRaw) {
		r.server.observe(c.Name, answer)
	}
	return answer.Reply.(scriptReply).Reply, nil
}

// observe tells of an answer whose type is not declared.
func (s *Server) observe(name string, answer gate.Answer) {
	if s.o.Observed == nil || answer.IsError {
		return
	}
	if tool, ok := s.o.Gate.View().Catalog.Lookup(name); ok && tool.Server != "" && len(tool.Output) == 0 {
		s.o.Observed(tool, answer)
	}
}

// A scriptReply is what the script gets for a call that passed the gate, and what its
// handles stand for.
type scriptReply struct {
	sandbox.Reply
	items []handles.Kept
}

func (r *run) replyTo(c sandbox.Call, answer gate.Answer, err error) scriptReply {
	on := shelf{r.session.handles.Shelf()}
	var got sandbox.Reply
	switch {
	case err != nil:
		err = r.explain(err)
	case c.Op == sandbox.OpRaw:
		got = sandbox.Reply{Value: answer.Raw}
	case c.Op == sandbox.OpPrompt && c.Name == "get":
		got, err = on.prompt(answer)
	default:
		got, err = on.value(answer)
	}
	if err != nil {
		got = sandbox.Reply{Err: thrown(err)}
	}
	return scriptReply{got, on.Made}
}

// serveLocal answers a call of what this session has. What a replay must do
// besides answering is put into s.
func (r *run) serveLocal(ctx context.Context, c sandbox.Call, call gate.Call, s *entry) (sandbox.Reply, error) {
	switch c.Op {
	case sandbox.OpRun:
		script, err := r.server.o.Gate.Saved(ctx, r.gate, call)
		if err != nil {
			return sandbox.Reply{}, err
		}
		return sandbox.SavedReply(script.Name, script.Source)
	case sandbox.OpRead:
		var args struct {
			Handle handles.Ref `json:"handle"`
			Path   string      `json:"path"`
		}
		if err := readArguments(c.Args, &args); err != nil {
			return sandbox.Reply{}, fmt.Errorf("codemode.read: %w", err)
		}
		value, err := r.session.handles.Read(string(args.Handle), args.Path)
		if err != nil {
			return sandbox.Reply{}, fmt.Errorf("codemode.read: %w", err)
		}
		return sandbox.Reply{Value: value}, nil
	case sandbox.OpEmit:
		var args struct {
			Handle json.RawMessage `json:"handle"`
		}
		if err := readArguments(c.Args, &args); err != nil {
			return sandbox.Reply{}, fmt.Errorf("emit: %w", err)
		}
		content, err := r.session.handles.Content(args.Handle)
		if err == nil {
			s.Media, err = json.Marshal(content)
		}
		if err == nil {
			err = r.emit(c.Number, content, len(s.Media))
		}
		if err != nil {
			s.Media = nil
			return sandbox.Reply{}, fmt.Errorf("emit: %w", err)
		}
		return sandbox.Reply{}, nil
	default:
		return sandbox.Reply{}, fmt.Errorf("there is no operation %q", c.Op)
	}
}

// explain adds to "there is no such tool" how the tool's server is, where that
// may be why.
func (r *run) explain(err error) error {
	var unknown *gate.UnknownToolError
	if !errors.As(err, &unknown) {
		return err
	}
	name, tool, _ := strings.Cut(unknown.Name, "__")
	for _, st := range r.server.o.Upstreams.Status() {
		if !r.server.o.Gate.View().May(r.gate.Profile, st.Name, tool) {
			continue // nothing that the profile hides
		}
		if st.Name != name && strings.ReplaceAll(st.Name, "-", "_") != name || st.State == upstream.Connected || st.State == upstream.Idle {
			continue
		}
		why := string(st.State)
		if st.Err != "" {
			why += ": " + st.Err
		}
		more := *unknown
		more.Message = fmt.Sprintf("%s is unavailable: server %s is %s", unknown.Name, st.Name, why)
		return &more
	}
	return err
}

// An emitted is one piece of media of the answer, with the number of the call
// that emitted it.
type emitted struct {
	call    int
	content mcp.Content
}

// mediaLocked are what was emitted, in the order of the calls.
func (r *run) mediaLocked() []mcp.Content {
	slices.SortStableFunc(r.media, func(a, b emitted) int { return a.call - b.call })
	var all []mcp.Content
	for _, m := range r.media {
		all = append(all, m.content)
	}
	return all
}

// emit attaches media, of so many bytes, to the run's answer.
func (r *run) emit(call int, content mcp.Content, size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.media) >= maxMedia || r.emitted+size > maxMediaBytes {
		return fmt.Errorf("an answer carries at most %d pieces of media and %d MB", maxMedia, maxMediaBytes>>20)
	}
	r.media = append(r.media, emitted{call, content})
	r.emitted += size
	return nil
}

// Bounds on what one run may attach to its answer.
const (
	maxMedia      = 32
	maxMediaBytes = 16 << 20
)

// thrown is err as the script sees it.
func thrown(err error) *sandbox.ReplyError {
	fields := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return b
	}
	var denied *approval.DeniedError
	var args *gate.ArgumentError
	var name *gate.UnknownToolError
	var unknown *gate.UnknownOutcomeError
	var failed *gate.CallError
	var tool *toolError
	switch {
	case errors.As(err, &denied):
		return &sandbox.ReplyError{Name: "ToolCallDeniedError", Message: denied.Message, Fields: fields(map[string]any{
			"toolName": denied.Tool, "reason": denied.Reason, "retryable": denied.Retryable()})}
	case errors.As(err, &args):
		return &sandbox.ReplyError{Name: "ArgumentError", Message: args.Message, Fields: fields(map[string]any{
			"tool": args.Tool, "path": args.Path, "declaration": args.Declaration})}
	case errors.As(err, &name):
		return &sandbox.ReplyError{Name: "UnknownToolError", Message: name.Message, Fields: fields(map[string]any{
			"tool": name.Name, "near": name.Near})}
	case errors.As(err, &unknown):
		return &sandbox.ReplyError{Name: "UnknownOutcomeError", Message: unknown.Error(), Fields: fields(map[string]any{
			"tool": unknown.Tool, "server": unknown.Server})}
	case errors.As(err, &failed):
		return &sandbox.ReplyError{Name: "ToolError", Message: failed.Error(), Fields: fields(map[string]any{
			"tool": failed.Tool, "server": failed.Server, "content": []any{}})}
	case errors.As(err, &tool):
		return &sandbox.ReplyError{Name: "ToolError", Message: tool.Error(), Fields: fields(map[string]any{
			"tool": tool.answer.Tool, "server": tool.answer.Server, "content": tool.content()})}
	default:
		return &sandbox.ReplyError{Name: "Error", Message: err.Error()}
	}
}
