package main

import (
	"context"
	"time"

	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/config"
)

// pageElsewhere returns the address of the page of another running bridge with that
// configuration, whose approvers can sign in there; "" if there is none. Folder is where
// the bridges with the same log know of each other.
func pageElsewhere(folder, configuration string) string {
	if folder == "" {
		return "" // nobody else has the requests
	}
	return alive.Told(folder, "page of "+configuration)
}

// announcePage tells the other bridges of this one's page. One is enough: it shows the
// requests of all of them.
func (p *parts) announcePage(pg *page) {
	if p.desk.members == nil {
		return
	}
	if err := alive.Tell(p.desk.members.Folder(), p.desk.id, "page of "+p.desk.conf.ID, pg.base); err != nil {
		p.log.Warn("other bridges do not know of the approval page here", "err", err)
	}
}

// pageEvery is how often a bridge without a page looks whether it should have one: an
// approver was added, or the bridge that had the page has ended.
const pageEvery = 2 * time.Second

// keepPage has an approval page at hand while there are approvers, until end is called:
// that of another bridge with the same log, or its own.
func (p *parts) keepPage(a *console) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	own, err := p.findPage(a)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pageEvery)
		defer tick.Stop()
		for warned := false; ; {
			if err != nil && !warned {
				warned = true
				p.log.Warn("there is no approval page here; approvals.listen names another address", "err", err)
			}
			select {
			case <-ctx.Done():
				if own != nil {
					own.Close()
				}
				return
			case <-tick.C:
			}
			if own == nil {
				own, err = p.findPage(a)
			}
		}
	}()
	return func() { stop(); <-done }
}

// findPage returns a page of this process's own, if it is to have one: approvers could
// sign in, and no other bridge has a page for them.
func (p *parts) findPage(a *console) (*page, error) {
	cfg := p.config()
	if !p.desk.approvers.Load().Any() || cfg.Approvals.Listen.Reveal() == config.ListenOff {
		p.desk.page.Store(nil)
		return nil, nil
	}
	if at := pageElsewhere(p.desk.members.Folder(), p.desk.conf.ID); at != "" {
		p.desk.page.Store(&at)
		return nil, nil
	}
	pg, err := p.openPage(a, cfg.Approvals.Listen.Reveal())
	if err != nil { // taken, as by the bridge of another configuration
		pg, err = p.openPage(a, "127.0.0.1:0")
	}
	if err != nil {
		p.desk.page.Store(nil)
		return nil, err
	}
	p.announcePage(pg)
	return pg, nil
}
