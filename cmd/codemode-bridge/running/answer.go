package running

import (
	"context"
	"errors"
	"time"

	"codemode-bridge/bridge/instance"
)

// Answer lets commands ask a bridge that serves no windows, where windows of its
// configuration file would ask for theirs, until end is called. Where bridges are not
// shared it does nothing.
func Answer(f instance.Folders, file string, o instance.Options, b instance.Bridge) (end func(), err error) {
	at, err := instance.At(f, file, []string{"serve", o.Endpoint})
	if errors.Is(err, instance.ErrUnsupported) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	// One that has had this address may be about to end.
	owning, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l, err := at.Own(owning)
	if err != nil {
		return nil, err
	}
	return instance.Answer(l, o, b)
}
