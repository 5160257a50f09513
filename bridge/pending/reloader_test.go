package pending

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
)

// A running bridge takes over what edits of its file say.
type running struct {
	files
	*start
	*Reloader
	taken chan approval.PendingConfig

	mu        sync.Mutex
	inForce   *config.Config
	meanwhile *config.Config // who may answer, while something is pending
}

// run starts a bridge with the file, and follows it until the test ends.
func run(t *testing.T) *running {
	t.Helper()
	f := newFiles(t, confirmedText())
	b := &running{files: f, start: f.app("config.json", ""), taken: make(chan approval.PendingConfig, 1)}
	b.inForce, _ = f.taken(b.start, nil)
	b.Reloader = NewReloader(Options{
		History: &b.History, Store: new(approval.Memory), Bridge: "b1", Gone: func(string) bool { return false }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		InForce: b.current,
		Take: func(_ context.Context, cfg *config.Config, confirmed approval.PendingConfig) error {
			b.mu.Lock()
			b.inForce = cfg
			b.mu.Unlock()
			b.taken <- confirmed
			return nil
		},
		Follow: func(cfg *config.Config) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.meanwhile = cfg
			return nil
		},
		Submitted: func(context.Context, *config.Config, *Change) {},
	})
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { b.Watch(ctx) })
	t.Cleanup(func() { stop(); watching.Wait() })
	return b
}

func (b *running) current() *config.Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inForce
}

// answers reports whether somebody may answer while something is pending.
func (b *running) answers(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return approverOf(b.meanwhile.Approvals, name) != nil
}

// edit writes the file and reloads it.
func (b *running) edit(edits ...turn) {
	b.Helper()
	b.write("config.json", confirmedText().with(edits...).String())
	cfg, err := b.load()
	if err == nil {
		err = b.Reload(b.Context(), cfg)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func TestReloadTakesOverWhatLoosensNothing(t *testing.T) {
	t.Parallel()
	b := run(t)
	b.edit(harmless["more is denied"])
	if by := (<-b.taken).By; by != "" || b.Change() != nil || b.Text() != "" {
		t.Errorf("taken over by %q, and %q waits", by, b.Text())
	}
}

// What loosens is taken over once it is confirmed, whoever confirms it.
func TestReloadWaitsForAnApprover(t *testing.T) {
	t.Parallel()
	b := run(t)
	before := b.current()
	b.edit(loosenings["nothing is denied"], set(people("ann:admin", "cyd"), "approvals", "approvers"))
	row, err := b.Pending(t.Context())
	if err != nil || row == nil || !row.NeedsReason {
		t.Fatalf("what waits is %+v, %v", row, err)
	}
	if !strings.Contains(b.Text(), row.Why[0]) {
		t.Fatalf("it says %q, without %q", b.Text(), row.Why[0])
	}
	if b.current() != before {
		t.Fatal("what waits is in force")
	}
	if b.answers("bob") {
		t.Error("whom the edit takes out may answer while it waits")
	}
	if err := b.Confirm(t.Context(), "another digest", approval.Confirmation{By: "ann", Text: "so be it"}); err == nil {
		t.Error("another text is confirmed")
	}
	if err := b.Confirm(t.Context(), row.Digest, approval.Confirmation{By: "ann", Text: "so be it"}); err != nil {
		t.Fatal(err)
	}
	if by := (<-b.taken).By; by != "ann" || b.Change() != nil {
		t.Errorf("taken over by %q, and %q waits", by, b.Text())
	}
}

// Who loses a right by what was rejected has it again; the next edit is looked at
// anew, and drops what waited.
func TestReloadOfWhatIsRejected(t *testing.T) {
	t.Parallel()
	b := run(t)
	edits := []turn{loosenings["nothing is denied"], set(people("ann:admin", "cyd"), "approvals", "approvers")}
	b.edit(edits...)
	if err := b.Reject(t.Context(), b.Change().Digest(), approval.Confirmation{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	b.look(t.Context())
	if !b.answers("bob") {
		t.Error("an edit that was rejected takes a right")
	}
	b.edit()
	if by := (<-b.taken).By; by != "" || b.Change() != nil {
		t.Errorf("taken over by %q, and %q waits", by, b.Text())
	}
	if row, err := b.Pending(t.Context()); row != nil || err != nil {
		t.Errorf("what waits is %+v, %v", row, err)
	}
	if err := b.Confirm(t.Context(), "any", approval.Confirmation{By: "ann"}); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("confirming nothing: %v", err)
	}
	b.edit(loosenings["another default profile"])
	b.Withdraw(t.Context())
	if row, err := approval.PendingConfigOf(t.Context(), b.o.Store, Key(b.current())); row != nil || err != nil {
		t.Errorf("a bridge that ended left %+v, %v", row, err)
	}
}
