package dialogs

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestOpen(t *testing.T) {
	d, conn, other := New(), new(mcp.ServerSession), new(mcp.ServerSession)
	begin := func(at Place, until time.Time) (context.Context, bool) {
		one := Dialog{Run: "r", Until: until}
		one.Ctx, one.Withdraw = context.WithCancel(t.Context())
		return one.Ctx, d.Begin(at, one)
	}
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	first, begun := begin(Place{conn, "a"}, late)
	if !begun {
		t.Fatal("a first dialog may not be opened")
	}
	if _, again := begin(Place{conn, "a"}, late); again {
		t.Error("a question is open twice at one client")
	}
	second, _ := begin(Place{conn, "b"}, early)
	elsewhere, begun := begin(Place{other, "a"}, early)
	if !begun {
		t.Error("a question is not opened at another client")
	}
	if got := d.Of(conn, "r"); !got.Equal(late) {
		t.Errorf("the last stays open until %v", got)
	}
	if got := d.Of(conn, "another"); !got.IsZero() {
		t.Errorf("another run's stays open until %v", got)
	}

	closed := d.Leave(conn)
	if first.Err() == nil || second.Err() == nil || elsewhere.Err() != nil {
		t.Error("leaving a connection withdraws the dialogs there, and no others")
	}
	if _, begun := begin(Place{conn, "c"}, late); begun {
		t.Error("a dialog is opened at a connection that is being closed")
	}
	d.End(Place{conn, "a"})
	d.End(Place{conn, "b"})
	closed()
	if _, begun := begin(Place{conn, "a"}, late); !begun {
		t.Error("a question whose dialog is over may not be asked again")
	}

	for _, at := range []Place{{conn, "a"}, {other, "a"}} {
		ctx, _ := d.Way(at)
		go func() { <-ctx.Done(); d.End(at) }()
	}
	d.Close() // withdraws both, and waits
	if elsewhere.Err() == nil {
		t.Error("a dialog outlives Close")
	}
	if _, begun := begin(Place{other, "b"}, late); begun {
		t.Error("a dialog is opened after Close")
	}
}

func TestWithdrawals(t *testing.T) {
	var w Withdrawals
	sent := w.Events(mcp.NewMemoryEventStore(nil))
	for _, data := range []string{`{"method":"notifications/progress"}`, `{"method":"notifications/cancelled"}`} {
		if err := sent.Open(t.Context(), "s", "stream"); err != nil {
			t.Fatal(err)
		}
		if err := sent.Append(t.Context(), "s", "stream", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	w.Wait(t.Context(), "s", 1)
	if w.Of("s") != 1 || w.Of("another") != 0 {
		t.Errorf("%d in the session, %d in another", w.Of("s"), w.Of("another"))
	}
	if err := sent.SessionClosed(t.Context(), "s"); err != nil || w.Of("s") != 0 {
		t.Errorf("after the session: %d, %v", w.Of("s"), err)
	}
}
