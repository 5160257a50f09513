package approval

import (
	"context"
	"crypto/rand"
	"strings"
	"time"
)

// A Store keeps requests, their verdicts, and grants. Several processes may
// share one, and its methods may be called concurrently. Once a method has
// returned without error, its change is seen by every later call of any process
// and, if the store is durable at all, survives a crash.
type Store interface {
	// Put stores a new request.
	Put(ctx context.Context, e StoredRequest) error
	// Update changes one request and returns the result. All other updates, in
	// whatever process, wait meanwhile: of two that settle a request, one sees the
	// other's verdict. An error of change is returned and leaves the request as it
	// was; change may be called more than once. ErrUnknown means that there is no
	// such request.
	Update(ctx context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error)
	// Requests returns the requests that pass a filter, the oldest first.
	Requests(ctx context.Context, f Filter) ([]StoredRequest, error)
	// Changed returns a channel that is closed after anyone next changes a request,
	// a grant or a pending configuration; if another process does, within 250 ms.
	Changed() <-chan struct{}

	// AddGrant stores a new grant.
	AddGrant(ctx context.Context, g Grant) error
	// Grants returns all grants, the oldest first.
	Grants(ctx context.Context) ([]Grant, error)
	// UpdateGrant changes one grant as Update changes a request. A grant with no
	// uses left is dropped.
	UpdateGrant(ctx context.Context, id string, change func(*Grant) error) error
	// DropGrants drops the grants for which drop returns true.
	DropGrants(ctx context.Context, drop func(Grant) bool) error

	// ChangePendingConfig replaces the pending configuration of a configuration
	// file; all other changes wait meanwhile. change gets the present one, or nil,
	// and returns the new one, or nil, without modifying its argument. An error
	// leaves everything as it was. ChangePendingConfig returns what change returned
	// last.
	ChangePendingConfig(ctx context.Context, file string, change func(*PendingConfig) (*PendingConfig, error)) (*PendingConfig, error)

	// Forget drops the requests that were settled or ran out before a time.
	Forget(ctx context.Context, before time.Time) error
}

// A Filter selects requests. Its zero value selects all.
type Filter struct {
	ID   string    // only this one
	Run  string    // only those of this run
	Open time.Time // only those that could still be answered at this time; zero means all
	// Newest, if above zero, limits the result to that many of the newest.
	Newest int
}

// Passes reports whether a request passes the filter, Newest aside.
func (f Filter) Passes(e *StoredRequest) bool {
	return (f.ID == "" || e.ID == f.ID) && (f.Run == "" || e.Run == f.Run) && (f.Open.IsZero() || e.Open(f.Open))
}

// background is the context of writes that belong to no single call: a call that
// is cancelled meanwhile must not let the store fall behind what is open here.
func background() context.Context { return context.Background() }

// newID makes the id of something stored, which begins with a letter for its kind:
// short, since people type it, and not guessable.
func newID(kind string) string { return kind + strings.ToLower(rand.Text()[:10]) }
