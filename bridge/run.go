package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/elicit"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/lifecycle"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/seal"
	"codemode-bridge/bridge/surface"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
)

// A run is one execution of a script. It has a goroutine and a context of its
// own: a request is attached to it and does not own it.
type run struct {
	id      string
	runner  *runner
	session *session
	names   catalog.Taken
	owner
	profile string
	secret  seal.Secret
	gate    *gate.Run
	trace   *trace.Run // nil: it is not traced
	ctx     context.Context
	cancel  context.CancelCauseFunc // of ctx; see update
	journal *journal                // nil: none is kept
	replay  *replayed               // nil: the run was never suspended
	limits  limits
	fetched bool // its answer is fetched later: no request waits at it from the start
	unasked func(*approval.DeniedError)
	elicit  *elicit.Client // what upstream servers say and ask
	started time.Time

	end  end           // not to be read before done is closed
	done chan struct{} // closed when the run has ended, or goes on elsewhere

	life  lifecycle.Life // once the run is under way, update changes it and nothing else
	slots lifecycle.Slots
	yield func(call int) // has the worker's other calls go on while one waits

	counts
	emitted handles.Emitted
}

// counts are of calls.
type counts struct{ made, answered atomic.Int64 }

// An owner is who may come back for a run.
type owner struct {
	principal string
	groups    []string                 // of the principal, when it began
	joined    atomic.Pointer[[]string] // the same of the client that it went on for last; nil: none
}

// limits are what bounds a run.
type limits struct {
	profile  profiles.Limits
	parallel int // calls at a time
	result   int // bytes of result that the model may have
}

// An end is what came of a run.
type end struct {
	result sandbox.Result
	err    error
	at     time.Time
}

// update has an event happen to the run, with what follows from it, and reports
// whether it did.
func (r *run) update(e lifecycle.Event) bool {
	if !r.life.Step(e) {
		return false
	}
	switch e.Kind {
	case lifecycle.LosesLease:
		r.runner.o.Gate.Broker().Drop(r.id)
		r.cancel(errLeaseLost)
	case lifecycle.Suspends, lifecycle.HandsOver, lifecycle.Evicts:
		r.runner.o.Gate.Broker().Suspend(r.id) // no call is sent any more, and what is asked stays open
		r.cancel(errSuspended)
	}
	return true
}

// now is where the run is at this moment.
func (r *run) now() lifecycle.State {
	r.look()
	return r.life.Now()
}

// quiet reports whether the script can do nothing until people answer.
func (r *run) quiet() bool {
	at := r.now()
	return at.Quiet()
}

// look asks the broker how many calls of the run wait for people.
func (r *run) look() {
	r.update(lifecycle.Event{Kind: lifecycle.AsksPeople, Calls: r.runner.o.Gate.Broker().Waiting(r.id)})
}

// suspend has the run go on from its journal, if all that it does is wait for
// people. It reports whether the run ends here.
func (r *run) suspend() bool {
	r.look()
	return r.update(lifecycle.Event{Kind: lifecycle.Suspends})
}

// handOver does so for another bridge, if no request waits at the run.
func (r *run) handOver() bool {
	r.look()
	return r.update(lifecycle.Event{Kind: lifecycle.HandsOver})
}

// evict does so whatever else the run does, if it asks people anything or is still
// replayed: for a bridge that ends, or has no room. Its timers begin anew when it
// goes on.
func (r *run) evict() bool {
	r.look()
	return r.update(lifecycle.Event{Kind: lifecycle.Evicts})
}

// stop ends the run, for a reason; the first is kept.
func (r *run) stop(why error) {
	if r.update(lifecycle.Event{Kind: lifecycle.Stops}) {
		r.cancel(why)
	}
}

// A gateHost is a run, seen from the gate.
type gateHost run

var _ gate.Host = (*gateHost)(nil)

func (h *gateHost) Profiles() []string           { return h.runner.roster.addedProfiles(h.session) }
func (h *gateHost) AnswersItself() bool          { return h.session.reflex.ByItself() }
func (h *gateHost) ApproveAt() string            { return h.runner.o.ApproveAt(h.id) }
func (h *gateHost) Withholds() bool              { return true }
func (h *gateHost) Stop(why error)               { (*run)(h).stop(why) }
func (h *gateHost) Asks(call int)                { h.yield(call) }
func (h *gateHost) Idle() (int, <-chan struct{}) { return h.life.Idle() }

func (h *gateHost) Attended() bool {
	at := (*run)(h).now()
	return h.fetched || at.Attended()
}

func (h *gateHost) Sends(call int) bool {
	h.slots.Enter(h.ctx, call, h.limits.parallel)
	return (*run)(h).update(lifecycle.Event{Kind: lifecycle.Sends, Call: call})
}

func (h *gateHost) Returns(call int) {
	h.slots.Leave()
	(*run)(h).update(lifecycle.Event{Kind: lifecycle.Returns, Call: call})
}
func (h *gateHost) Suspended() bool { return (*run)(h).now().Phase == lifecycle.Suspended }
func (h *gateHost) Unasked(denied *approval.DeniedError) {
	if h.unasked != nil {
		h.unasked(denied)
	}
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

// isDone reports whether the run has ended.
func (r *run) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// soFar says in a few words what the run has done, all of which is written down.
func (r *run) soFar(ctx context.Context) (string, error) {
	answered := r.answered.Load() // first: what is answered was made
	text := fmt.Sprintf("%d calls done, %d under way", answered, r.made.Load()-answered)
	return text, r.gate.Flush(ctx)
}

// workerHost serves a run's script. It is a run, seen from its worker.
type workerHost run

// What the sandbox asks for by type assertion.
var (
	_ sandbox.TimerHost = (*workerHost)(nil)
	_ sandbox.OrderHost = (*workerHost)(nil)
	_ sandbox.YieldHost = (*workerHost)(nil)
)

// Preview keeps what could be read from the script before it ran.
func (h *workerHost) Preview(report analysis.Report) {
	defer h.trace.Previewed()
	if err := h.gate.Preview(context.WithoutCancel(h.ctx), report); err != nil {
		h.runner.o.Logger.Error("recording a preview", "run", h.id, "err", err)
	}
}

// Idle is told when only answers can move the script on.
func (h *workerHost) Idle(open int) {
	(*run)(h).update(lifecycle.Event{Kind: lifecycle.Idles, Calls: open})
	if h.replay != nil {
		h.replay.Idles(open)
	}
}

func (h *workerHost) Yields(yield func(call int)) { h.yield = yield }

// Call does what the script asks for.
func (h *workerHost) Call(ctx context.Context, c sandbox.Call, settle func(sandbox.Reply)) {
	r := (*run)(h)
	r.count(1, 0)
	known := replay.Found{}
	if r.replay != nil {
		r.yield(c.Number) // it waits for its turn
		if known = r.replay.call(ctx, c, settle); !known.Live {
			return
		}
	}
	reply, err := r.serve(ctx, c, known)
	switch {
	case errors.Is(err, gate.ErrSuspended):
		return // the run goes on elsewhere, and with it this call
	case err != nil:
		reply = sandbox.Reply{Err: thrown(err, r.gate.TraceID)}
	}
	reply.Time = r.runner.o.Now()
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

func (r *run) count(made, settled int64) {
	r.made.Add(made)
	r.answered.Add(settled)
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
		reply = sandbox.Reply{Err: thrown(err, r.gate.TraceID)}
	}
	if r.journal != nil {
		setReply(s, reply)
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
	var made []handles.Kept
	call.Reply = func(answer gate.Answer, err error) gate.Reply {
		reply := r.replyTo(c, answer, err)
		made = append(made, reply.items...)
		return reply
	}
	call.Written = func(lost error) { r.session.handles.Settle(made, lost == nil) }
	if c.Op == sandbox.OpTool || c.Op == sandbox.OpRaw {
		call.Kept = r.observe
	}
	answer, err := r.runner.o.Gate.Call(ctx, r.gate, call)
	if errors.Is(err, gate.ErrSuspended) {
		return sandbox.Reply{}, err
	}
	return answer.Reply.(scriptReply).Reply, nil
}

// A scriptReply is what the script gets for a call that passed the gate, and what its
// handles stand for.
type scriptReply struct {
	sandbox.Reply
	items []handles.Kept
}

func (r *run) replyTo(c sandbox.Call, answer gate.Answer, err error) scriptReply {
	on := shelf{r.session.handles.Shelf(r.id)}
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
		got = sandbox.Reply{Err: thrown(err, r.gate.TraceID)}
	}
	r.emitted.Saw(on.Made)
	return scriptReply{got, on.Made}
}

// serveLocal answers a call of what this session has. What a replay must do
// besides answering is put into s.
func (r *run) serveLocal(ctx context.Context, c sandbox.Call, call gate.Call, s *entry) (sandbox.Reply, error) {
	switch c.Op {
	case sandbox.OpRun:
		script, err := r.runner.o.Gate.Saved(ctx, r.gate, call)
		if err != nil {
			return sandbox.Reply{}, err
		}
		return sandbox.SavedReply(script.Name, script.Source)
	case sandbox.OpRead:
		var args struct {
			Handle handles.Ref `json:"handle"`
			Path   string      `json:"path"`
		}
		if err := surface.ReadArguments(c.Args, &args); err != nil {
			return sandbox.Reply{}, fmt.Errorf("codemode.read: %w", err)
		}
		value, h := json.RawMessage(nil), r.session.handles
		read := func() (err error) { value, err = h.Read(r.id, string(args.Handle), args.Path); return err }
		if err := r.runner.o.Gate.InTurn(ctx, r.gate, read); err != nil {
			return sandbox.Reply{}, fmt.Errorf("codemode.read: %w", err)
		}
		r.readEarlier(c, value)
		return sandbox.Reply{Value: value}, nil
	case sandbox.OpEmit:
		var args struct {
			Handle json.RawMessage `json:"handle"`
		}
		if err := surface.ReadArguments(c.Args, &args); err != nil {
			return sandbox.Reply{}, fmt.Errorf("emit: %w", err)
		}
		content, err := r.session.handles.Content(r.id, args.Handle)
		if err == nil {
			s.Media, err = json.Marshal(content)
		}
		if err == nil {
			err = r.emitted.Add(c.Number, content, len(s.Media))
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

// readEarlier notes what the script reads by a handle, unless the run has made that itself.
func (r *run) readEarlier(c sandbox.Call, value json.RawMessage) {
	var args struct{ Handle handles.Ref }
	if json.Unmarshal(c.Args, &args) == nil && !r.emitted.Made(string(args.Handle)) {
		r.runner.o.Gate.ReadEarlier(r.gate, c.Number, value)
	}
}

// explain adds to "there is no such tool" how the tool's server is, where that
// may be why.
func (r *run) explain(err error) error {
	var unknown *gate.UnknownToolError
	if !errors.As(err, &unknown) {
		return err
	}
	view := r.runner.o.Gate.View()
	meant := view.Catalog.Owners(unknown.Name)
	for _, st := range r.runner.o.Upstreams.Status() {
		shown := func(m catalog.ToolRef) bool {
			return m.Server == st.Name && view.May(r.profile, m.Server, m.Tool) && gate.Within((*gateHost)(r).Scope(), m.Server)
		} // nothing that the profile hides
		if st.State == upstream.Connected || st.State == upstream.Idle || !slices.ContainsFunc(meant, shown) {
			continue
		}
		why := string(st.State)
		if st.Why() != "" {
			why += ": " + st.Why()
		}
		more := *unknown
		more.Message = fmt.Sprintf("%s is unavailable: server %s (%s)", unknown.Name, st.Name, why)
		if st.State == upstream.Connecting && st.Login == "" {
			more.Message = fmt.Sprintf("server %s of %s is still connecting: run the same script again in a moment, nothing in it has to be corrected", st.Name, unknown.Name)
		}
		return &more
	}
	return err
}

// thrown is err as the script sees it, in a run of a trace.
func thrown(err error, trace string) *sandbox.ReplyError {
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
		return &sandbox.ReplyError{Name: "ToolCallDeniedError", Message: denied.Message, Fields: fields(denied.Fields(trace))}
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

// observe tells of an answer whose type is not declared.
func (r *run) observe(answer gate.Answer) {
	if r.runner.o.Observed == nil {
		return
	}
	if tool, ok := r.runner.o.Gate.View().Catalog.Lookup(answer.Tool); ok && tool.Server != "" && len(tool.Output) == 0 {
		r.runner.o.Observed(tool, answer)
	}
}
