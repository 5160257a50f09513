package approvalview

import (
	"context"
	"time"

	"codemode-bridge/bridge/approval"

	tea "charm.land/bubbletea/v2"
)

// A desk does the screen's reading and settling.
type desk struct {
	ctx context.Context
	o   Options
}

// Messages of the screen.
type (
	entriesMsg struct {
		entries []approval.StoredRequest
		next    <-chan struct{} // closed after the next change; nil if another load waits for that
		err     error
	}
	settledMsg struct {
		id   string
		text string
		err  error
	}
	editedMsg struct {
		id   string
		args []byte
		err  error
	}
	secondMsg time.Time
)

// load reads the open requests.
func (d *desk) load() tea.Msg {
	all, err := d.o.Store.Requests(d.ctx, approval.Filter{Open: time.Now()})
	return entriesMsg{entries: all, err: err}
}

// wait reads the open requests after a change, or at once if changed is nil.
func (d *desk) wait(changed <-chan struct{}) tea.Cmd {
	return func() tea.Msg {
		if changed != nil {
			select {
			case <-changed:
			case <-d.ctx.Done():
			}
		}
		next := d.o.Store.Changed() // before looking: nothing is missed
		msg := d.load().(entriesMsg)
		msg.next = next
		return msg
	}
}

// settle settles a request with a verdict.
func (d *desk) settle(e approval.StoredRequest, v approval.Verdict) tea.Cmd {
	return func() tea.Msg {
		signed, now, err := d.o.Settle(d.ctx, e, v)
		if err != nil {
			return settledMsg{id: e.ID, err: err}
		}
		text := Answered(signed)
		if now.Verdict == nil {
			text += ", and still needed: " + now.Missing()
		}
		return settledMsg{id: e.ID, text: text}
	}
}
