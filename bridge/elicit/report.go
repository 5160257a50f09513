package elicit

//lint:file-ignore SA1019 logging is deprecated by the newest protocol; servers use it

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Report tells the client of a request what upstream servers log and, if it asked to
// be told, about the run's progress: at once for what an upstream reports, and every few
// seconds that it still runs, since many clients give up on a call that is silent for
// a minute. SoFar says in a few words what the run has done; if it reports false, no more
// is told. What Report returns ends that, after passing on what has been reported by then.
func (c *Client) Report(ctx context.Context, req *mcp.CallToolRequest, soFar func() (text string, ok bool)) (end func()) {
	token := req.Params.GetProgressToken()
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		var told float64
		for {
			var n News
			select {
			case <-ctx.Done():
				return
			case n = <-c.News():
			case <-tick.C:
				var ok bool
				if n.Text, ok = soFar(); !ok {
					return
				}
			case <-ending:
				select {
				case n = <-c.News():
				default:
					return
				}
			}
			var err error
			switch {
			case n.Log != nil:
				err = req.Session.Log(ctx, n.Log) // as far as the client wants to hear of it
			case token != nil:
				told++ // progress must grow, whatever the news
				err = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: told, Message: n.Text})
			}
			if err != nil {
				return
			}
		}
	}()
	return func() { close(ending); <-ended }
}

// progressEvery is how often a client hears of a run that has no news.
const progressEvery = 5 * time.Second
