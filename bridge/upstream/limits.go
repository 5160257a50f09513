package upstream

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what is sent to one server, how long it may take and how much it may
// answer. The zero value of a field means the default that its comment names.
type Limits struct {
	Timeout        time.Duration // of one call, waiting for a connection included; 0: 60 s
	ConnectTimeout time.Duration // of connecting and of listing the tools; 0: 30 s
	Concurrency    int           // calls at a time; further ones wait; 0: 128
	Rate           Rate          // calls in a time; further ones wait for a while; zero: no limit
	MaxReply       int64         // bytes of one message of the server; 0: 16 MB
}

func (l Limits) timeout() time.Duration        { return orDefault(l.Timeout, time.Minute) }
func (l Limits) connectTimeout() time.Duration { return orDefault(l.ConnectTimeout, 30*time.Second) }
func (l Limits) concurrency() int              { return orDefault(l.Concurrency, 128) }
func (l Limits) maxReply() int64               { return orDefault(l.MaxReply, 16<<20) }

// A Rate is a number of calls in a time. They are spread evenly, except that a tenth of
// them, and at least one, may come at once.
type Rate struct {
	Calls int
	Per   time.Duration
}

func (r Rate) String() string {
	unit, ok := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[r.Per]
	if !ok {
		unit = r.Per.String()
	}
	return fmt.Sprintf("%d/%s", r.Calls, unit)
}

// limiter returns nil if there is no limit.
func (r Rate) limiter() *rate.Limiter {
	if r.Calls <= 0 || r.Per <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(r.Calls)/r.Per.Seconds()), max(1, r.Calls/10))
}

func orDefault[T int | int64 | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}
