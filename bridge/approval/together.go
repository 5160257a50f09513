package approval

import (
	"maps"
	"reflect"
	"slices"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Bounds on the calls of one request: people must see each place of the script, and
// the values of a loop.
const (
	MaxPlaces = 10      // places in the script, unless the person wants a list
	maxLooped = 1000    // calls
	maxTable  = 1 << 20 // bytes of arguments
)

// takes reports whether a call can be asked about in the same request: it is the same
// call, or was made at the same place of the script, and both ask for the same
// reasons; or neither needs more than a yes, and there is room, for so many places of
// the script.
func (r Request) takes(s Request, places int) bool {
	had, call := r.Items, s.Items[0]
	switch {
	case r.hasPlan(): // only what is planned belongs to it
		return false
	case r.Folder != s.Folder || r.Configuration != s.Configuration || had[0].Key.Session != call.Key.Session || had[0].Key.Profile != call.Key.Profile:
		return false
	case !r.hasRoom(had, call, places):
		return false
	case reflect.DeepEqual(r.Decision, s.Decision) && (had[0].sameLoop(call) || slices.ContainsFunc(had, func(i Item) bool { return i.Key == call.Key })):
		return true
	}
	return !r.alone() && !s.alone() && r.Decision.Fallback == s.Decision.Fallback
}

// alone reports whether a request needs more than a yes to what it shows, or shows
// more than calls.
func (r Request) alone() bool {
	d := r.Decision
	return d.Risk == profiles.Critical || d.RequireReason || r.NeedsApprover() || len(r.Difference) > 0
}

// hasRoom reports whether one more call fits.
func (r Request) hasRoom(had []Item, call Item, most int) bool {
	size := len(call.Shown.JSON)
	for _, i := range had {
		size += len(i.Shown.JSON)
	}
	return len(had) < maxLooped && size <= maxTable && len(places(append(had, call))) <= most
}

// places returns the first call of each place of the script. Calls of one place about
// which people are asked for other reasons have places of their own: a dialog has room
// for one call of each, and a yes is also for those that it only counts.
func places(all []Item) (first []Item) {
	for _, i := range all {
		if !slices.ContainsFunc(first, func(had Item) bool { return had.sameLoop(i) && had.SameReasons(i) }) {
			first = append(first, i)
		}
	}
	return first
}

// SameReasons reports whether people are asked about two calls for the same reasons.
func (i Item) SameReasons(j Item) bool {
	return i.Decision.Risk == j.Decision.Risk && slices.Equal(i.Decision.Reasons, j.Decision.Reasons)
}

// sameLoop reports whether two calls of the same tool were made at the same place in
// the script.
func (i Item) sameLoop(j Item) bool {
	a, b := i.Key, j.Key
	a.Args, b.Args = canon.Digest{}, canon.Digest{}
	return i.Position == j.Position && i.Position.Line > 0 && a == b
}

// strictest returns what both decisions need.
func strictest(a, b profiles.Decision) profiles.Decision {
	if reflect.DeepEqual(a, b) {
		return a
	}
	return profiles.Stricter(a, b)
}

// with returns the request with the call of another one.
func (r Request) with(s Request) Request {
	more := r
	more.Items = append(r.Calls(), s.Calls()...)
	slices.SortStableFunc(more.Items, func(x, y Item) int { return x.Call - y.Call })
	more.Decision = strictest(r.Decision, s.Decision)
	more.Server, more.Tool, more.Script = more.Items[0].Server, more.Items[0].Tool, more.Items[0].Script
	if s.Items[0].Call == more.Items[0].Call {
		more.ToolSays = s.ToolSays
	}
	more.Checks = slices.Clone(r.Checks)
	for _, check := range s.Checks {
		if !slices.Contains(more.Checks, check) {
			more.Checks = append(more.Checks, check)
		}
	}
	if len(s.Hides) > 0 {
		more.Hides = maps.Clone(s.Hides)
		maps.Copy(more.Hides, r.Hides)
	}
	return more
}
