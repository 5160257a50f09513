package approval

import (
	"encoding/json"
	"maps"

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

// withEdit returns the verdict with what others may see of its arguments, computed
// here and not taken from whoever sent the verdict.
func (v Verdict) withEdit(r Request) Verdict {
	v.EditedArgs, v.Edited = r.EditedArgs(v.Args), v.Args != nil
	return v
}

// An EditedCall describes a call that was allowed with arguments other than those
// that people were asked about.
type EditedCall struct {
	By     string       `json:"by"`
	Call   int          `json:"call"`
	Asked  canon.Digest `json:"asked_digest"` // of the arguments that were asked about
	Digest string       `json:"digest,omitempty"`
	// Args and Fields are the replacement arguments, in display form. Requests that
	// were answered by older releases have none.
	Args   json.RawMessage `json:"args,omitempty"`
	Fields []Field         `json:"fields,omitempty"`
	Hidden int             `json:"hidden,omitempty"`
	Cut    int             `json:"cut,omitempty"`
}

// EditedCall describes how whoever allowed the request's call edited it; nil if
// they did not.
func (e *StoredRequest) EditedCall() *EditedCall {
	if v := e.Verdict; v == nil || !v.Approve || !v.Edited && v.Args == nil || len(e.Items) == 0 {
		return nil
	}
	item := e.Items[0]
	edited := &EditedCall{By: canon.Escape(e.Verdict.Who()), Call: item.Call, Asked: item.Key.Args}
	edit := e.Verdict.EditedArgs
	if edit == nil {
		edit = e.Request.EditedArgs(e.Verdict.Args)
	}
	if edit != nil {
		item.Shown, item.Sources = edit.Shown, nil
		d := describeCall(item)
		edited.Digest, edited.Args = edit.Digest.String(), edit.JSON
		edited.Fields, edited.Hidden, edited.Cut = d.Fields, d.Hidden, d.Cut
	}
	return edited
}
