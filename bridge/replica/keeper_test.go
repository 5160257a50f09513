package replica_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/replica"
)

// skewed is how far the clock of the store is from those of the bridges here.
const skewed = 30 * time.Second

func table() *memstore.Replicas {
	return &memstore.Replicas{Clock: func() time.Time { return time.Now().Add(skewed) }}
}

func join(t *testing.T, in replica.Table, name string) *replica.Keeper {
	t.Helper()
	k, err := replica.Join(t.Context(), in, replica.Replica{Name: name}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// inBubble runs a test with the clock of package time for the one of the machine, which no
// bubble has.
func inBubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		defer replica.SetClock(time.Now())()
		test(t)
	})
}

// A bridge that cannot reach the store stops by itself before the store lets others take
// over, and others are told within ten seconds by the store's clock.
func TestCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := table()
		mine := &cut{Table: all}
		a, b := join(t, mine, "a"), join(t, all, "b")
		defer b.Leave()
		gone := make(chan []string, 10)
		b.Watch(func(names []string) error {
			gone <- names
			return nil
		}, nil)
		time.Sleep(20 * time.Second)
		pass, err := a.Pass(t.Context())
		if err != nil || pass.Check() != nil || len(gone) > 0 {
			t.Fatalf("while it renews: %v, %v, %d are gone", err, pass.Check(), len(gone))
		}
		cutAt := time.Now()
		mine.Break(errors.New("cut off"))
		for b.State("a") == replica.Alive {
			if pass.Check() != nil && time.Since(cutAt) < 2*time.Second {
				t.Fatalf("it gives up after %v", time.Since(cutAt))
			}
			time.Sleep(10 * time.Millisecond)
			if pass.Check() == nil && time.Since(cutAt) >= replica.Term {
				t.Fatal("it is certain when its term is over")
			}
		}
		if pass.Check() == nil {
			t.Error("another sees it ended, and it is certain that it is alive")
		}
		if names := <-gone; !slices.Equal(names, []string{"a"}) || time.Since(cutAt) > 10*time.Second {
			t.Errorf("gone are %q, after %v", names, time.Since(cutAt))
		}
		if _, err := a.Pass(t.Context()); !errors.Is(err, replica.ErrLapsed) {
			t.Errorf("a call is let through: %v", err)
		}
		mine.Break(nil)
		later, err := a.Pass(t.Context())
		if err != nil || later.Check() != nil {
			t.Errorf("after it has renewed: %v", err)
		}
		if pass.Check() == nil {
			t.Error("what was let through before the lapse may be sent")
		}
		if err := a.Leave(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if got := b.State("a"); got != replica.Unlisted {
			t.Errorf("after it left it is %d", got)
		}
	})
}

// A cut stands between one bridge and the table.
type cut struct {
	replica.Table
	mu  sync.Mutex
	err error
}

func (c *cut) Break(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *cut) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *cut) Renew(ctx context.Context, me replica.Replica, term time.Duration) (bool, error) {
	if err := c.broken(); err != nil {
		return false, err
	}
	return c.Table.Renew(ctx, me, term)
}

func (c *cut) List(ctx context.Context) ([]replica.Replica, error) {
	if err := c.broken(); err != nil {
		return nil, err
	}
	return c.Table.List(ctx)
}

// said keeps what is logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// After a lapse it is not certain before it has given up what others may have taken, which
// is tried until it works; a short fault is no lapse.
func TestReturn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		mine := &cut{Table: table()}
		var said said
		k, err := replica.Join(t.Context(), mine, replica.Replica{Name: "a"}, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer k.Leave()
		var tries atomic.Int32
		var works atomic.Bool
		k.Watch(nil, func(context.Context) error {
			if tries.Add(1); !works.Load() {
				return errors.New("not yet")
			}
			return nil
		})
		pass, err := k.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mine.Break(errors.New("a short fault"))
		time.Sleep(3 * time.Second)
		mine.Break(nil)
		time.Sleep(4 * time.Second)
		if pass.Check() != nil || tries.Load() != 0 {
			t.Fatalf("a short fault is a lapse: %v, %d", pass.Check(), tries.Load())
		}
		mine.Break(errors.New("a long fault"))
		time.Sleep(12 * time.Second)
		mine.Break(nil)
		time.Sleep(7 * time.Second)
		if _, err := k.Pass(t.Context()); !errors.Is(err, replica.ErrLapsed) || tries.Load() < 2 {
			t.Errorf("it is certain before it has looked, %d times: %v", tries.Load(), err)
		}
		works.Store(true)
		if _, err := k.Pass(t.Context()); err != nil {
			t.Error(err)
		}
		if n := tries.Load(); pass.Check() == nil {
			t.Error("what was let through before is sent")
		} else if time.Sleep(10 * time.Second); tries.Load() != n {
			t.Errorf("it looks again, %d times", tries.Load()-n)
		}
		if !strings.Contains(said.String(), "not alive for the others") {
			t.Errorf("it says %s", said.String())
		}
	})
}

// Who is not in the table has ended or never joined, which is known once a list has come
// that was asked for afterwards; while there is none, everybody is alive.
func TestView(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := table()
		mine := &cut{Table: all, err: errors.New("down")}
		v := replica.NewView(mine)
		is := func(name string, want replica.State) {
			t.Helper()
			if got := v.State(name); got != want {
				t.Errorf("%s is %d, want %d", name, got, want)
			}
		}
		is("a", replica.Unknown)
		mine.Break(nil)
		if _, err := all.Renew(t.Context(), replica.Replica{Name: "a"}, replica.Term); err != nil {
			t.Fatal(err)
		}
		is("a", replica.Unknown) // it is not asked for more than once a second
		time.Sleep(time.Second)
		is("a", replica.Alive)
		is("old", replica.Unlisted)
		if _, err := all.Renew(t.Context(), replica.Replica{Name: "b"}, replica.Term); err != nil {
			t.Fatal(err)
		}
		is("b", replica.Alive) // it has joined since the last list
		time.Sleep(replica.Term)
		is("a", replica.Ended)
		mine.Break(errors.New("down"))
		time.Sleep(2 * time.Second)
		is("a", replica.Ended)
		time.Sleep(2 * time.Second)
		is("a", replica.Unknown)
		is("old", replica.Unknown)
	})
}

// What cannot be taken over yet is tried again, and told once when it is.
func TestGoneIsToldAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := table()
		if _, err := all.Renew(t.Context(), replica.Replica{Name: "dead"}, 0); err != nil {
			t.Fatal(err)
		}
		k := join(t, all, "a")
		defer k.Leave()
		const fails = 3
		var told atomic.Int32
		k.Watch(func(names []string) error {
			if !slices.Equal(names, []string{"dead"}) {
				t.Errorf("told of %q", names)
			}
			if told.Add(1) <= fails {
				return errors.New("not now")
			}
			return nil
		}, nil)
		time.Sleep(20 * time.Second)
		if told.Load() != fails+1 {
			t.Errorf("told %d times", told.Load())
		}
	})
}

func TestJoinNeedsTheStore(t *testing.T) {
	all := table()
	all.Break(errors.New("down"))
	if _, err := replica.Join(t.Context(), all, replica.Replica{Name: "a"}, nil); err == nil {
		t.Error("it joined")
	}
	var nobody *replica.Keeper
	if pass, err := nobody.Pass(t.Context()); err != nil || pass.Check() != nil || nobody.Leave() != nil {
		t.Error("a bridge that shares nothing is kept from something")
	}
}
