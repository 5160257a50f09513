package gate

import (
	"encoding/json"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

// edit replaces the script's arguments by those that a person wrote. They are
// frozen and checked like any others, and then judged from the start.
func (c *call) edit(view *View, by []*profiles.Profile, v approval.Verdict) error {
	args, err := canon.Parse(v.Args)
	if err != nil {
		return denied(c, approval.Stale, "the edited arguments cannot be read: "+unread(err, by))
	}
	notes, wrong := view.check(c.tool, args, by)
	if wrong != nil {
		return denied(c, approval.Stale, "the edited arguments do not fit the tool: "+wrong.Error())
	}
	shown := c.args.Digest()
	hides := hiddenBy(by) // the new arguments are not decided on yet
	edited := &Edited{By: canon.Escape(v.Who()), From: c.told(c.args, hides), To: c.told(args, hides)}
	if before := c.edited; before != nil { // the call was asked about and edited before
		edited.From = before.From
		if before.By != edited.By {
			edited.By = before.By + " and " + edited.By
		}
	}
	c.args, c.shown, c.notes, c.edited, c.began = args, &shown, notes, edited, nil
	c.looked, c.found, c.named = "", provenance.Found{}, nil
	return nil
}

// told returns arguments of the call for a model, shortened where they are long.
// Hides is as in displayOptions.
func (c *call) told(args canon.Args, hides map[string]string) json.RawMessage {
	o := c.displayOptions(hides)
	o.MaxBytes, o.MaxString, o.MaxDepth = toldBytes, toldString, toldDepth
	return json.RawMessage(c.gate.conceal(string(canon.Display(args, o).JSON)))
}

// Bounds on arguments that are shown to a model.
const (
	toldBytes  = 1 << 10
	toldString = 200
	toldDepth  = 4
)
