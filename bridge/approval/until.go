package approval

import "context"

// UntilSettled returns once a request of a run is settled, or another bridge has it, or ctx
// ends. The run is live here until done.
func UntilSettled(ctx context.Context, b *Broker, run, id string, done <-chan struct{}) {
	changed, end := b.Watch(run)
	defer end()
	var elsewhere <-chan struct{} // once the run is suspended, its requests change where no watcher of it is told
	for {
		if done == nil {
			elsewhere = b.Changed() // before looking: nothing is missed
		}
		found, err := b.Requests(ctx, Filter{ID: id})
		if err == nil && (len(found) == 0 || found[0].Verdict != nil || found[0].Bridge != "" && found[0].Bridge != b.o.Bridge) {
			return
		}
		select {
		case <-changed:
		case <-done:
			done = nil
		case <-elsewhere:
		case <-ctx.Done():
			return
		}
	}
}
