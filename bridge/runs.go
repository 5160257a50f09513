package bridge

import (
	"context"
	"crypto/rand"
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
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// A run is one execution of a script. It has a goroutine and a context of its
// own: a request is attached to it and does not own it.
type run struct {
	id      string
	server  *Server
	session *session
	// principal is who may come back for the run.
	principal string
	gate      *gate.Run
	holders   int       // requests that hold the run; guarded by Server.mu
	parked    time.Time // when it was let go while it waits for a person; guarded by Server.mu
	fetched   bool      // its answer is fetched later: nobody holds it from the start
	started   time.Time
	ended     time.Time               // set before done is closed
	maxResult int                     // bytes of result that the model may have
	stop      context.CancelCauseFunc // the first reason is kept
	done      chan struct{}           // closed when result and err are set
	news      chan news               // for the attached client, lossy
	reports   *rate.Limiter           // of servers' progress that is passed on
	logged    *rate.Limiter           // of servers' logs

	result sandbox.Result
	err    error

	mu      sync.Mutex
	media   []emitted
	emitted int // bytes of media
	made    int // calls
	settled int
	open    int // open calls when the script was last idle; 0 while it is not
}

// start begins a run of a script. An error means that there is no run.
func (s *Server) start(sess *session, o gate.Origin, principal string, args evalArgs) (*run, error) {
	ctx, stop := context.WithCancelCause(context.Background())
	r := &run{
		id: newID("r"), server: s, session: sess, principal: principal, stop: stop,
		done: make(chan struct{}), news: make(chan news, 16), reports: rate.NewLimiter(10, 10), logged: rate.NewLimiter(10, 50), started: s.o.Now(), fetched: o.Reach == gate.ByApprovers,
	}
	tight := s.o.Gate.View().Limits(o.Profile)
	r.maxResult = least(s.o.MaxResult, tight.Result)
	o.ID, o.Session, o.Client, o.Requester, o.Stop = r.id, sess.id, sess.client, principal, stop
	o.Script, o.Input = args.Code, args.Input
	o.Attached = func() bool { return r.fetched || s.held(r) }
	o.Also = func() []string { return s.tightened(sess) }
	o.CallTimeout = time.Duration(deref(tight.Call))
	var err error
	if r.gate, err = s.o.Gate.Begin(ctx, o); err != nil {
		stop(err)
		return nil, err
	}
	script := sandbox.Script{
		Source: args.Code,
		Input:  args.Input,
		Names:  s.names(o.Profile),
		Limits: s.o.Limits.Tighten(sandbox.Limits{
			CPU: time.Duration(deref(tight.CPU)), Heap: int64(deref(tight.Heap)), Calls: deref(tight.Calls), Parallel: deref(tight.Parallel),
			Source: int64(deref(tight.Source)), Input: int64(deref(tight.Input)), Logs: int64(deref(tight.Logs)),
		}),
		Start: s.o.Now(),
	}
	rand.Read(script.Seed[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stop(ErrClosed)
		return nil, errors.Join(ErrClosed, r.gate.End(ctx, outcomeOf(ErrClosed), ErrClosed.Error()))
	}
	s.live[r.id] = r
	s.turnLocked()
	sess.runs++
	s.runs.Add(1)
	go func() {
		defer s.runs.Done()
		defer stop(nil)
		select {
		case sess.slots <- struct{}{}:
			r.result, r.err = sess.sandbox.Run(upstream.WithClient(ctx, (*voice)(r)), script, (*host)(r))
			<-sess.slots
		case <-ctx.Done():
			r.err = context.Cause(ctx)
		}
		if ctx.Err() != nil { // stopped: what the script has still returned does not count
			r.err = context.Cause(ctx)
		}
		why := ""
		if r.err != nil {
			why = r.err.Error()
		}
		if err := r.gate.End(ctx, outcomeOf(r.err), why); err != nil {
			s.o.Logger.Error("recording the end of a run", "run", r.id, "err", err)
		}
		sess.floor.forget(r)
		s.mu.Lock()
		sess.runs--
		delete(s.live, r.id)
		s.keepLocked(r)
		r.ended = s.o.Now()
		close(r.done)
		s.turnLocked()
		s.mu.Unlock()
		s.release(sess)
	}()
	return r, nil
}

// quiet reports whether the script can do nothing until a person answers: it
// is idle, and every open call of it waits for one.
func (r *run) quiet(b *approval.Broker) bool {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	return open > 0 && open == b.Waiting(r.id)
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

// soFar says in a few words what the run has done.
func (r *run) soFar() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d calls done, %d under way", r.settled, r.made-r.settled)
}

// host serves a run's script. It is a run, seen from its worker.
type host run

// Preview keeps what could be read from the script before it ran.
func (h *host) Preview(report analysis.Report) {
	if err := h.gate.Preview(context.Background(), report); err != nil {
		h.server.o.Logger.Error("recording a preview", "run", h.id, "err", err)
	}
}

// Idle is told when only answers can move the script on.
func (h *host) Idle(open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = open
}

// Call does what the script asks for.
func (h *host) Call(ctx context.Context, c sandbox.Call, settle func(sandbox.Reply)) {
	r := (*run)(h)
	r.count(1, 0)
	defer r.count(0, 1)
	reply, err := r.serve(ctx, c)
	if err != nil {
		reply = sandbox.Reply{Err: thrown(err)}
	}
	reply.Time = r.server.o.Now()
	settle(reply)
}

func (r *run) count(made, settled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made += made
	r.settled += settled
	if settled > 0 {
		r.open = 0 // the answer moves the script; it says when it is idle again
	}
}

// serve answers one call of the script. Tools are behind the gate; the rest
// concerns only what this session already has.
func (r *run) serve(ctx context.Context, c sandbox.Call) (sandbox.Reply, error) {
	switch c.Op {
	case sandbox.OpTool, sandbox.OpRaw:
		answer, err := r.server.o.Gate.Call(ctx, r.gate, gate.Call{Number: c.Number, Name: c.Name, Args: c.Args, Position: c.Position})
		if err != nil {
			return sandbox.Reply{}, r.explain(err)
		}
		r.server.observe(c.Name, answer)
		if c.Op == sandbox.OpRaw {
			return sandbox.Reply{Value: answer.Raw}, nil
		}
		return r.session.value(answer)
	case sandbox.OpResource, sandbox.OpPrompt:
		return r.read(ctx, c)
	case sandbox.OpRun:
		script, err := r.server.o.Gate.Saved(ctx, r.gate, gate.Call{Number: c.Number, Name: c.Name, Args: c.Args, Position: c.Position})
		if err != nil {
			return sandbox.Reply{}, err
		}
		return savedReply(script.Name, script.Source, false)
	case sandbox.OpRead:
		var args struct {
			Handle handleRef `json:"handle"`
			Path   string    `json:"path"`
		}
		if err := readArguments(c.Args, &args); err != nil {
			return sandbox.Reply{}, fmt.Errorf("codemode.read: %w", err)
		}
		value, err := r.session.handles.read(string(args.Handle), args.Path)
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
		if err := r.emit(c.Number, args.Handle); err != nil {
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
		more.Message = fmt.Sprintf("%s is not to be had now: server %s is %s", unknown.Name, st.Name, why)
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

// emit attaches media to the run's answer: a handle, or a content block as
// codemode.raw returns it.
func (r *run) emit(call int, what json.RawMessage) error {
	content, err := r.session.handles.content(what)
	if err != nil {
		return err
	}
	size, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("reading the content: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.media) >= maxMedia || r.emitted+len(size) > maxMediaBytes {
		return fmt.Errorf("an answer carries at most %d pieces of media and %d MB", maxMedia, maxMediaBytes>>20)
	}
	r.media = append(r.media, emitted{call, content})
	r.emitted += len(size)
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
