package bridge

//lint:file-ignore SA1019 deprecated by the newest protocol, and used only with clients of older ones

import (
	"context"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/forms"
	"codemode-bridge/bridge/wording"
)

// summaryRead bounds the bytes of arguments that the client's model reads.
const summaryRead = 20_000

// say has the client's model say what long arguments are, keeps that for every
// channel, and returns the request with it.
func (a *attachment) say(ctx context.Context, q approval.Request) approval.Request {
	if q.Says != "" { // a request that was attached before has asked
		return q
	}
	says := a.summary(ctx, q)
	if says == "" {
		return q
	}
	q.Says = says
	if err := a.s.o.Gate.Broker().SetModelSummary(ctx, q.ID, q.Digest(), says); err != nil {
		a.s.o.Logger.Debug("a summary of long arguments came too late", "run", a.r.id, "err", err)
	}
	return q
}

// summary is what the client's model says of long arguments; empty unless the
// configuration wants that, the client has a session and can ask its model,
// and the model answers in time. It reads what the person may see and nothing
// else, and decides nothing: it is shown as a model's, beside the arguments.
func (a *attachment) summary(ctx context.Context, q approval.Request) string {
	caps := a.req.ClientCapabilities()
	if a.s.o.SummaryWait == 0 || caps == nil || caps.Sampling == nil || a.req.ProtocolVersion() >= statelessProtocol {
		return ""
	}
	d := wording.Describe(q, wording.DescribeOptions{})
	if !d.Long() {
		return ""
	}
	read := d.Plain()
	if len(read) > summaryRead {
		read = strings.ToValidUTF8(read[:summaryRead], "") + "\n(cut here)"
	}
	ctx, cancel := context.WithTimeout(ctx, a.s.o.SummaryWait)
	defer cancel()
	said, err := forms.Summary(ctx, a.req.Session, read)
	if err != nil {
		a.s.o.Logger.Debug("no summary of long arguments", "run", a.r.id, "err", err)
	}
	return said
}
