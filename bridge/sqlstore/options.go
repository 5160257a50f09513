package sqlstore

import (
	"log/slog"
	"time"
)

// Options say where a store is and how it is kept.
type Options struct {
	Path           string           // of the file; its folder is made, for its owner only, if there is none
	Key            string           // the file of its key; Path + ".key" when empty
	CheckpointFile string           // a second place, to which checkpoints are appended; none if empty
	AllDurable     bool             // treat every record as Durable
	ReadOnly       bool             // write nothing and make nothing; Record and Prune fail
	Clock          func() time.Time // of records without a time and of checkpoints; nil is time.Now
	Logger         *slog.Logger     // gets damage and checkpoints that cannot be written; nil means no log

	networkFS func(dir string) string // tests say what a folder is on
}

func (o *Options) setDefaults() {
	if o.Key == "" {
		o.Key = o.Path + ".key"
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.networkFS == nil {
		o.networkFS = networkFS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
