package elicit

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Reporter tells the client of a request what upstream servers log and, if it asked
// to be told, about the run's progress: at once for what an upstream reports, and every
// few seconds that the run still goes on, since many clients give up on a call that is
// silent for a minute. It needs a goroutine only once there is something to tell:
// whoever waits at the run takes the first news, or the first tick, to begin. Its methods
// are for that goroutine.
type Reporter struct {
	ctx   context.Context
	req   *mcp.CallToolRequest
	run   *Client
	soFar func(context.Context) (string, error)
	token any

	told          float64
	ending, ended chan struct{} // nil: it has not begun
}

// ProgressEvery is how often a client hears of a run that has no news.
const ProgressEvery = 5 * time.Second

// NewReporter makes the reporter of a request that waits at a run. SoFar says what the
// run has done, once that may be told.
func NewReporter(ctx context.Context, req *mcp.CallToolRequest, run *Client, soFar func(context.Context) (string, error)) *Reporter {
	return &Reporter{ctx: ctx, req: req, run: run, soFar: soFar, token: req.Params.GetProgressToken()}
}

// News is where whoever waits at the run hears that there is something to tell; nil once
// the reporter hears it itself.
func (p *Reporter) News() <-chan News {
	if p.ending != nil {
		return nil
	}
	return p.run.News()
}

// Begin tells the first news and goes on by itself.
func (p *Reporter) Begin(first News) {
	p.ending, p.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.ended)
		tick := time.NewTicker(ProgressEvery)
		defer tick.Stop()
		for n := first; p.tell(n); {
			select {
			case <-p.ctx.Done():
				return
			case n = <-p.run.News():
			case <-tick.C:
				n = News{}
			case <-p.ending:
				p.rest()
				return
			}
		}
	}()
}

// tell tells one piece of news; of none, what the run has done so far. It reports
// whether there is any use in telling more.
func (p *Reporter) tell(n News) bool {
	var err error
	switch {
	case n.Log != nil:
		//lint:ignore SA1019 logging is deprecated by the newest protocol; servers use it
		err = p.req.Session.Log(p.ctx, n.Log) // as far as the client wants to hear of it
	case p.token != nil:
		if n.Text == "" {
			if n.Text, err = p.soFar(p.ctx); err != nil {
				return false
			}
		}
		p.told++ // progress must grow, whatever the news
		err = p.req.Session.NotifyProgress(p.ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: p.told, Message: n.Text})
	}
	return err == nil
}

// End ends the reporting, after passing on what has been reported by then.
func (p *Reporter) End() {
	if p.ending == nil {
		p.rest()
		return
	}
	close(p.ending)
	<-p.ended
}

// rest tells what is left of the news.
func (p *Reporter) rest() {
	for p.ctx.Err() == nil {
		select {
		case n := <-p.run.News():
			if !p.tell(n) {
				return
			}
		default:
			return
		}
	}
}
