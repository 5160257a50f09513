package storecmd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/upstream/tap"
)

// Bridges is the folder in which bridges of one machine that share a store know of each
// other.
func Bridges(place config.Audit) string { return place.Path + "-bridges" }

// Members are the bridges that share a store. Those of one machine know of each other by
// locks on files, all others by what the database says.
type Members struct {
	folder string
	view   *replica.View   // nil: the store is a file
	table  replica.Table   // of view
	keeper *replica.Keeper // nil: this process is none of them, or the store is a file
	file   *alive.Member   // nil: this process is none of them
}

// Join makes this process one of the bridges, until Leave.
func Join(ctx context.Context, place config.Audit, name, version string, log *slog.Logger) (*Members, error) {
	m := &Members{folder: Bridges(place)}
	var err error
	if m.file, err = alive.Join(m.folder, name); err != nil {
		return nil, err
	}
	if !InDatabase(place) {
		return m, nil
	}
	m.table, err = pgstore.NewReplicas(Database(place))
	if err == nil {
		machine, _ := os.Hostname() // for people
		m.keeper, err = replica.Join(ctx, m.table, replica.Replica{Name: name, Machine: machine, Version: version}, log)
	}
	if err != nil {
		return nil, errors.Join(err, m.Leave())
	}
	m.view = m.keeper.View
	return m, nil
}

// Others returns the bridges, for a process that is none of them.
func Others(place config.Audit) (*Members, error) {
	m := &Members{folder: Bridges(place)}
	if !InDatabase(place) {
		return m, nil
	}
	o := Database(place)
	o.ReadOnly = true
	table, err := pgstore.NewReplicas(o)
	if err != nil {
		return nil, err
	}
	m.table, m.view = table, replica.NewView(table)
	return m, nil
}

// Folder is where the bridges of this machine leave each other notes; empty if nobody
// shares the store.
func (m *Members) Folder() string {
	if m == nil {
		return ""
	}
	return m.folder
}

// Gone reports whether a bridge has ended. If that is unknown, it reports false.
func (m *Members) Gone(name string) bool {
	if m == nil || strings.HasPrefix(name, approval.Afar) {
		return false // the store is this process's memory, or the name a laptop's
	}
	if m.view != nil {
		if is := m.view.State(name); is != replica.Unlisted {
			return is == replica.Ended
		}
	}
	return alive.Gone(m.folder, name) // of an older release, or of a store that was a file
}

// List returns the bridges that share the database; none if the store is a file.
func (m *Members) List(ctx context.Context) ([]replica.Replica, error) {
	if m == nil || m.view == nil {
		return nil, nil
	}
	return m.view.List(ctx)
}

// Fence returns the context of a call that is about to be recorded and sent. The call is
// not sent once another bridge may have acquired its run.
func (m *Members) Fence(ctx context.Context) (context.Context, error) {
	if m == nil || m.keeper == nil {
		return ctx, nil
	}
	pass, err := m.keeper.Pass(ctx)
	if err != nil {
		return ctx, err
	}
	return tap.WithCheck(ctx, pass.Check), nil
}

// Watch has gone told of bridges that ended without a word, and back called before this
// one counts as alive again after it did not.
func (m *Members) Watch(gone func(names []string) error, back func(context.Context) error) {
	if m != nil && m.keeper != nil {
		m.keeper.Watch(gone, back)
	}
}

// At says where this bridge serves clients.
func (m *Members) At(address string) {
	if m != nil && m.keeper != nil {
		m.keeper.At(address)
	}
}

// WithOthers does something that needs to know which bridges have ended, in a process that
// is none of them.
func WithOthers(place config.Audit, do func(gone func(bridge string) bool) error) error {
	m, err := Others(place)
	if err != nil {
		return err
	}
	return errors.Join(do(m.Gone), m.Leave())
}

// Leave ends it: this process counts as ended if it was one of the bridges.
func (m *Members) Leave() error {
	if m == nil {
		return nil
	}
	var errs []error
	switch {
	case m.keeper != nil:
		errs = append(errs, m.keeper.Leave())
	case m.table != nil:
		errs = append(errs, m.table.Close())
	}
	if m.file != nil {
		errs = append(errs, m.file.Leave())
	}
	return errors.Join(errs...)
}
