package approval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
)

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

// checkEdit returns what is wrong with arguments that a person wrote: they cannot
// be parsed, or they contain a mark that stands for a hidden value, which would
// then be sent literally. It is nil if there are none.
func (r Request) checkEdit(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	args, err := canon.Parse(raw)
	if err != nil {
		return fmt.Errorf("the edited arguments cannot be read: %w", err)
	}
	if !r.Editable() && holdsMark(args.Value()) {
		return fmt.Errorf("the edited arguments hold a mark such as [hidden], which would be sent as it stands: write the value that is meant")
	}
	return nil
}

// holdsMark reports whether a mark of display form stands anywhere in a value.
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
