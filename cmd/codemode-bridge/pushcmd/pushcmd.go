// Package pushcmd has a bridge push its audit log as the configuration says.
package pushcmd

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/push"
	"codemode-bridge/cmd/codemode-bridge/telemetry"
)

// The names of sinks, as the configuration has them.
const (
	collector = "otlp"
	webhook   = "webhook"
)

// names are those of the sinks of a configuration.
func names(p config.Push) (all []string) {
	if !p.OTLP.URL.IsZero() {
		all = append(all, collector)
	}
	if !p.Webhook.URL.IsZero() {
		all = append(all, webhook)
	}
	return all
}

// An Opener opens what is known of the pushing of a store. Closed releases it.
type Opener func(ctx context.Context, place config.Audit) (from documents.Store, closed func(), err error)

// Keeping makes pruning leave the rows that were not pushed yet.
func Keeping(book ledger.Book, place config.Audit, open Opener) ledger.Book {
	return push.Keeping(book, names(place.Push), func(ctx context.Context) (documents.Store, func(), error) { return open(ctx, place) })
}

// A sink is one that can be tried and closed.
type sink interface {
	push.Sink
	Try(ctx context.Context) error
}

// sinks are those of a configuration. Closed releases them.
func sinks(p config.Push, version string) (all map[string]sink, closed func(), err error) {
	all, closed = map[string]sink{}, func() {}
	if !p.OTLP.URL.IsZero() {
		c, err := telemetry.NewCollector(p.OTLP.URL.Reveal(), p.OTLP.Protocol == config.OTLPGRPC, config.RevealMap(p.OTLP.Headers), version)
		if err != nil {
			return nil, closed, err
		}
		all[collector], closed = c, func() { _ = c.Close() }
	}
	if !p.Webhook.URL.IsZero() {
		all[webhook] = &push.Webhook{URL: p.Webhook.URL.Reveal(), Secret: []byte(p.Webhook.Secret.Reveal()), Version: version}
	}
	return all, closed, nil
}

// Options say what a bridge pushes.
type Options struct {
	Store   ledger.Store
	Place   config.Audit
	Open    Opener
	Bridge  string // its name among those with the same store
	Gone    func(bridge string) bool
	Version string
	Log     *slog.Logger
}

// Run pushes the records of a bridge's store until ctx ends, if the configuration says to whom.
func Run(ctx context.Context, o Options) {
	log, ok := o.Store.(push.Log)
	if !ok || len(names(o.Place.Push)) == 0 || o.Place.Path == "" {
		return // no record is kept, or nobody wants them
	}
	logger := o.Log.With("part", "push")
	all, closed, err := sinks(o.Place.Push, o.Version)
	defer closed()
	if err != nil {
		logger.Error("records are not pushed", "err", err)
		return
	}
	from, left, err := o.Open(ctx, o.Place)
	for ; err != nil; from, left, err = o.Open(ctx, o.Place) {
		logger.Warn("records are not pushed, and are kept until they are", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
	}
	defer left()
	to := map[string]push.Sink{}
	for name, one := range all {
		to[name] = one
	}
	push.New(push.Options{Log: log, State: from, Bridge: o.Bridge, Gone: o.Gone, Sinks: to, Logger: logger}).Run(ctx)
}

// Waiting returns, by sink, how many rows of a store it has not acknowledged; nil if that is not
// known, or nobody gets them.
func Waiting(ctx context.Context, store ledger.Store, place config.Audit, open Opener) map[string]int64 {
	log, ok := store.(push.Log)
	if !ok || len(names(place.Push)) == 0 || place.Path == "" {
		return nil
	}
	from, closed, err := open(ctx, place)
	if err != nil {
		return nil
	}
	defer closed()
	all, err := push.Waiting(ctx, log, from, names(place.Push))
	if err != nil {
		return nil
	}
	return all
}

// A Reach says whether something that the bridge sends records or spans to takes them.
type Reach struct {
	About, Text string
	Err         error  // nil: it does, as Text says
	Do          string // what to do about Err
}

// Reached tries whoever gets records or spans.
func Reached(ctx context.Context, place config.Audit, getenv func(string) string, version string) (found []Reach) {
	all, closed, err := sinks(place.Push, version)
	defer closed()
	if err != nil {
		found = append(found, Reach{About: "audit.push", Err: err, Do: "put its address right"})
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		trying, cancel := context.WithTimeout(ctx, 5*time.Second)
		found = append(found, Reach{About: "audit.push." + name, Text: "it answers", Err: all[name].Try(trying), Do: "records are kept here until it takes them; docs/deploy/push.md says what it gets"})
		cancel()
	}
	if wanted, err := telemetry.Try(ctx, getenv); wanted {
		found = append(found, Reach{About: "traces", Text: "the collector takes spans", Err: err, Do: "put OTEL_EXPORTER_OTLP_ENDPOINT and its like right, or unset them; until then runs are not traced"})
	}
	return found
}
