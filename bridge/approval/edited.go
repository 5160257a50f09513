package approval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// Bounds on how much of the arguments a request holds, unless a rule sets others:
// as much as anybody would read.
const (
	shownBytes   = 128 << 10
	shownString  = 100_000
	shownMembers = 10_000
	shownDepth   = 32
)

// DisplayArgs returns the arguments of a call with decision d, for the person who
// is asked about it.
func DisplayArgs(d profiles.Decision, args canon.Args) canon.Shown {
	o := canon.DisplayOptions{Hidden: d.Hidden, MaxString: shownString, MaxArray: shownMembers, MaxObject: shownMembers, MaxDepth: shownDepth, MaxBytes: shownBytes}
	for _, bound := range []struct {
		field *int
		most  int
	}{{&o.MaxString, d.Display.MaxString}, {&o.MaxArray, d.Display.MaxArray}, {&o.MaxObject, d.Display.MaxObject}, {&o.MaxDepth, d.Display.MaxDepth}} {
		if bound.most != 0 {
			*bound.field = bound.most
		}
	}
	return canon.Display(args, o)
}

// EditedArgs are what others may see of the arguments that a person wrote in
// place of a call's own.
type EditedArgs struct {
	canon.Shown
	Digest canon.Digest `json:"digest"` // of the exact arguments
}

// EditedArgs returns what others may see of arguments that a person wrote in place
// of the request's: since policy has not decided on them yet, everything that any
// rule for the run hides is hidden. It is nil if there are none that can be
// parsed.
func (r Request) EditedArgs(raw json.RawMessage) *EditedArgs {
	if raw == nil {
		return nil
	}
	args, err := canon.Parse(raw)
	if err != nil {
		return nil
	}
	d := r.Decision
	d.Hidden = maps.Clone(r.Hides)
	if d.Hidden == nil {
		d.Hidden = map[string]string{}
	}
	maps.Copy(d.Hidden, r.Decision.Hidden)
	return &EditedArgs{DisplayArgs(d, args), args.Digest()}
}

// Editable reports whether a person who edits the arguments sees all that will
// be sent: there is one call, one person allows it, and none of its arguments
// are hidden, cut or escaped.
func (r Request) Editable() bool {
	if len(r.Items) != 1 || len(r.Decision.Quorums) > 0 {
		return false
	}
	args, err := canon.Parse(r.Items[0].Shown.JSON)
	return err == nil && args.Digest() == r.Items[0].Key.Args
}

// edited returns what is wrong with arguments that a person wrote: they cannot
// be parsed, or they contain a mark that stands for a hidden value, which would
// then be sent literally.
func (v Verdict) edited(r Request) error {
	if v.Args == nil {
		return nil
	}
	args, err := canon.Parse(v.Args)
	if err != nil {
		return fmt.Errorf("the edited arguments cannot be read: %w", err)
	}
	if !r.Editable() && holdsMark(args.Value()) {
		return fmt.Errorf("the edited arguments hold a mark such as [hidden], which would be sent as it stands: write the value that is meant")
	}
	return nil
}

func holdsMark(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "[hidden") || strings.Contains(v, "…")
	case []any:
		return slices.ContainsFunc(v, holdsMark)
	case map[string]any:
		for name, value := range v {
			if holdsMark(name) || holdsMark(value) {
				return true
			}
		}
	}
	return false
}
