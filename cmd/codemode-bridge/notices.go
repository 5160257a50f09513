package main

import (
	"os"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/notify"

	"golang.org/x/term"
)

// openNotices notifies the person at this machine of the requests of this process,
// until end is called: on the desktop if the configuration says so and, if watched, by
// the bell of the terminal.
func (p *parts) openNotices(watched bool) (end func()) {
	o := notify.Options{Desktop: p.config().Approvals.Desktop, At: p.desk.at("/"), Logger: p.log.With("part", "notices")}
	if watched && term.IsTerminal(int(os.Stderr.Fd())) {
		o.Bell = os.Stderr
	}
	if !o.Desktop && o.Bell == nil {
		return func() {}
	}
	n := notify.New(o)
	p.desk.notices.Store(n)
	return func() {
		p.desk.notices.Store(nil)
		n.Close()
	}
}

// sayAsked prints each request to standard error, so that a person who runs a script
// by hand sees what it waits for and where that is answered.
func sayAsked(con *console, p *parts) {
	say := func(r approval.Request) {
		con.Told("waiting for an approver: %s; answer in another terminal: %s", canon.Escape(strings.Join(r.Scripts(), ", ")), typed(con, "approvals approve "+r.ID))
	}
	p.desk.told.Store(&say)
}

// asked is called with each new request. A notice shows nothing of it but the tool.
func (d *desk) asked(r approval.Request) {
	if say := d.told.Load(); say != nil {
		(*say)(r)
	}
	if n := d.notices.Load(); n != nil {
		n.Asked(strings.Join(r.Scripts(), ", "))
	}
}
