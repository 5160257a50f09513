package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"codemode-bridge/bridge/stopwatch"
)

// How long a replica is alive after it said so, and how often it says so. It counts as
// ended term after the store took its word, and a view is about a second old: so another
// takes over within eight seconds, and does not while the replica is certain.
const (
	Term  = 6 * time.Second
	every = 2 * time.Second
	// certain is how long, from before it said so, a replica may act: the rest of the term
	// is for clocks that go at different speeds, and for what was let through to be sent.
	certain = Term - time.Second
	// waits is how long a call waits for a replica that is about to renew.
	waits = 3 * time.Second
)

// ErrLapsed refuses what a replica may not do now: another may be doing it.
var ErrLapsed = errors.New("this bridge could not tell the store in time that it is alive, so that another one may have taken over what it does; it goes on when it has")

// A Keeper keeps this process alive among the replicas, and knows whether it is. It
// judges by no clock that tells the time of day.
type Keeper struct {
	*View
	me      Replica
	log     *slog.Logger
	now     func() time.Duration
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	sure    time.Duration // it is certainly alive until then
	lapses  int           // how often it was not
	renewed chan struct{} // closed when it next is
	back    func(context.Context) error
	gone    func(names []string) error
	told    map[string]bool // who has ended, as gone was told
}

// Join makes a process known under a name that no other has, and keeps it alive until
// Leave.
func Join(ctx context.Context, t Table, me Replica, log *slog.Logger) (*Keeper, error) {
	k := newKeeper(t, me, log, elapsed)
	if err := k.renew(ctx); err != nil {
		return nil, err
	}
	k.start()
	return k, nil
}

func newKeeper(t Table, me Replica, log *slog.Logger, now func() time.Duration) *Keeper {
	return &Keeper{View: newView(t, now), me: me, log: log, now: now, sure: -1, lapses: -1, renewed: make(chan struct{}), told: make(map[string]bool),
		back: func(context.Context) error { return nil }}
}

// start renews and looks until Leave, in two goroutines: who takes over may wait for the
// store, and is alive meanwhile.
func (k *Keeper) start() {
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.running.Go(func() {
		for stopwatch.Pause(ctx, every) {
			if err := k.renew(ctx); err != nil && ctx.Err() == nil {
				k.log.Warn("this bridge cannot say that it is alive", "err", err)
			}
		}
	})
	k.running.Go(func() {
		for stopwatch.Pause(ctx, fresh) {
			k.notice()
		}
	})
}

// renew says that the process is alive. After a lapse it counts as alive again only when
// it has given up what others may have taken.
func (k *Keeper) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k.mu.Lock()
	me := k.me
	k.mu.Unlock()
	sent := k.now() // the store's clock is not further when it takes the word
	lapsed, err := k.table.Renew(ctx, me, Term)
	if err != nil {
		return err
	}
	k.mu.Lock()
	back, first := k.back, k.lapses < 0
	if lapsed {
		k.lapses++
		k.sure = -1
	} else if first {
		k.lapses = 0
	}
	missed := k.sure < 0
	k.mu.Unlock()
	if missed && !first {
		k.log.Warn("this bridge was not alive for the others, which may have taken over its runs", "bridge", me.Name)
		if err := back(ctx); err != nil {
			return fmt.Errorf("looking for what others have taken over meanwhile: %w", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sure = sent + certain
	close(k.renewed)
	k.renewed = make(chan struct{})
	return nil
}

// notice tells of the replicas that have ended since it last did.
func (k *Keeper) notice() {
	var ended []string
	for name, one := range k.look() {
		switch {
		case !one.Gone:
			delete(k.told, name)
		case !k.told[name] && name != k.me.Name:
			ended = append(ended, name)
		}
	}
	k.mu.Lock()
	gone := k.gone
	k.mu.Unlock()
	if len(ended) == 0 || gone == nil {
		return
	}
	if err := gone(ended); err != nil {
		k.log.Warn("taking over from bridges that have ended", "bridges", ended, "err", err) // it is tried again
		return
	}
	for _, name := range ended {
		k.told[name] = true
	}
}

// Watch sets what is told of replicas that have ended without leaving, again after an
// error; and what is done after a lapse, before the process counts as alive again: it
// gives up what others have acquired.
func (k *Keeper) Watch(gone func(names []string) error, back func(context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone, k.back = gone, back
}

// At says where the process serves clients.
func (k *Keeper) At(address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.me.Address = address
}

// A Pass lets one call through as long as the process has been alive ever since.
type Pass struct {
	k      *Keeper
	lapses int
}

// Pass waits a short time until the process is certain to be alive. The error is
// ErrLapsed, or that of ctx.
func (k *Keeper) Pass(ctx context.Context) (Pass, error) {
	if k == nil {
		return Pass{}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, waits, ErrLapsed)
	defer cancel()
	for {
		k.mu.Lock()
		sure, lapses, renewed := k.now() < k.sure, k.lapses, k.renewed
		k.mu.Unlock()
		if sure {
			return Pass{k, lapses}, nil
		}
		select {
		case <-renewed:
		case <-ctx.Done():
			return Pass{}, context.Cause(ctx)
		}
	}
}

// Check returns ErrLapsed unless the process is certain to be alive, and has been since
// the pass was given. Nobody else can have acquired what it had then.
func (p Pass) Check() error {
	if p.k == nil {
		return nil
	}
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	if p.k.now() >= p.k.sure || p.k.lapses != p.lapses {
		return ErrLapsed
	}
	return nil
}

// Leave ends the keeping: the process counts as ended. It is called once.
func (k *Keeper) Leave() error {
	if k == nil {
		return nil
	}
	k.stop()
	k.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(k.table.Leave(ctx, k.me.Name), k.table.Close())
}
