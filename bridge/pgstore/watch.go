package pgstore

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"codemode-bridge/bridge/stopwatch"
)

const (
	pollEvery   = 150 * time.Millisecond // between looks, where notifications do not come
	listenAgain = 5 * time.Second        // after a connection that listened was lost
	lookEvery   = 2 * time.Second        // between looks whether a notification was missed
)

// A watcher tells those who wait that the store has changed, whoever changed it.
type watcher struct {
	o       *Options
	pool    *pgxpool.Pool
	head    string // its name in heads
	channel string // of NOTIFY

	ctx  context.Context
	end  context.CancelFunc
	over sync.WaitGroup

	mu      sync.Mutex
	ch      chan struct{}
	started bool
}

func newWatcher(o *Options, pool *pgxpool.Pool, head string) *watcher {
	name := fnv.New64a()
	name.Write([]byte(o.schema))
	w := &watcher{o: o, pool: pool, head: head, channel: fmt.Sprintf("codemode_%x_%s", name.Sum64(), head), ch: make(chan struct{})}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// changed returns a channel that the next change closes. The first call starts a
// goroutine that watches for changes of other processes until close.
func (w *watcher) changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.started && w.ctx.Err() == nil {
		w.started = true
		w.over.Go(w.follow)
	}
	return w.ch
}

// now tells those who wait.
func (w *watcher) now() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ch)
	w.ch = make(chan struct{})
}

// close ends the goroutine, and tells those who wait.
func (w *watcher) close() {
	w.end()
	w.over.Wait()
	w.now()
}

// follow listens, and polls while it cannot. What changed while it was not listening is
// told when it listens again.
func (w *watcher) follow() {
	seen := int64(-1)
	for w.ctx.Err() == nil {
		deaf := w.listen(&seen)
		for until := time.Now().Add(listenAgain); w.ctx.Err() == nil && (deaf || time.Now().Before(until)); {
			if !w.poll(&seen) {
				deaf = false // the server is gone
			}
			stopwatch.Pause(w.ctx, pollEvery)
		}
	}
}

// poll looks for a change. It reports whether it could.
func (w *watcher) poll(seen *int64) bool {
	ctx, cancel := context.WithTimeout(w.ctx, w.o.Patience)
	defer cancel()
	n, err := w.number(ctx, w.pool)
	if err == nil {
		w.saw(seen, n)
	}
	return err == nil
}

// saw tells those who wait unless n was told before.
func (w *watcher) saw(seen *int64, n int64) {
	if n != *seen {
		*seen = n
		w.now()
	}
}

func (w *watcher) number(ctx context.Context, from querier) (n int64, err error) {
	err = from.QueryRow(ctx, "SELECT changes FROM heads WHERE name = $1", w.head).Scan(&n)
	return n, err
}

// listen tells what notifications say until the connection is lost, or a change came
// without one: then nobody delivers them, and deaf is true.
func (w *watcher) listen(seen *int64) (deaf bool) {
	conn, err := w.o.listener(w.ctx)
	if err != nil {
		return false
	}
	defer hangUp(conn)
	if _, err := conn.Exec(w.ctx, "LISTEN "+pgx.Identifier{w.channel}.Sanitize()); err != nil {
		return false
	}
	missed := int64(-1) // a number that no notification had named when it was read
	for {
		ctx, cancel := context.WithTimeout(w.ctx, w.o.Patience)
		n, err := w.number(ctx, conn)
		cancel()
		if err != nil {
			return false
		}
		if missed >= 0 && *seen < missed {
			w.saw(seen, n)
			return true
		}
		if missed = -1; *seen < 0 {
			w.saw(seen, n) // what happened before it listened
		} else if n > *seen {
			missed = n
		}
		for until := time.Now().Add(lookEvery); time.Until(until) > 0; {
			ctx, cancel := context.WithDeadline(w.ctx, until)
			said, err := conn.WaitForNotification(ctx)
			cancel()
			if err == nil {
				if n, err := strconv.ParseInt(said.Payload, 10, 64); err == nil {
					w.saw(seen, n)
				}
				continue
			}
			if w.ctx.Err() != nil || !pgconn.Timeout(err) || conn.IsClosed() {
				return false
			}
		}
	}
}

// listener makes a connection that may also be to a stand-by.
func (o *Options) listener(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	return pgx.ConnectConfig(ctx, o.config.Copy())
}
