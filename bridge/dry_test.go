package bridge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/storetest"
)

// A forgetful store does not keep the answers to calls that were stopped, only the turns
// that came with them.
type forgetful struct{ storetest.Journaled }

func (f forgetful) Record(ctx context.Context, all ...ledger.Record) error {
	kept := slices.Clone(all)
	for i := range kept {
		if kept[i].Outcome != ledger.Unknown {
			continue
		}
		kept[i].Journal = slices.Clone(kept[i].Journal)
		for k := range kept[i].Journal {
			if e := &kept[i].Journal[k]; e.Kind == ledger.Replied {
				e.Kind, e.Call = ledger.Noted, 0
			}
		}
	}
	return f.Journaled.Record(ctx, kept...)
}

// A script that ended without all its answers is looked at again to its end, and
// one that was stopped to where it waited.
func TestReplaysGoAsFarAsTheRunDid(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued(), func(o *Options) {
		o.Gate = gate.New(o.Gate.View(), gate.Options{Caller: o.Upstreams.(*upstreams), Recorder: forgetful{f.records}})
		o.KeepJournals = time.Hour
	})
	var asked, first chan struct{} // first: what the other call waits for
	b.up.tools["b__echo"] = func(ctx context.Context, args json.RawMessage) (string, error) {
		if string(args) != `{"n":0}` {
			if first != nil {
				<-first
			}
			return text(string(args)), nil
		}
		close(asked)
		<-ctx.Done()
		return "", ctx.Err()
	}
	for _, tt := range []struct {
		code, want string
		stopped    bool
	}{
		{`codemode.b__echo({n: 0}).catch(() => {});
		  const kept = await codemode.b__echo({n: 1});
		  for (let i = 0; i < 1e6; i++);
		  return kept`, `"result":"{\"n\":1}"`, false},
		{`await new Promise(f => setTimeout(f, 1)); await codemode.b__echo({n: 1}); return await codemode.b__echo({n: 0})`,
			"call 3 (b__echo)", true}, // has no answer, or one that was not kept
	} {
		asked, first = make(chan struct{}), nil
		if !tt.stopped {
			first = asked // the script ends with the other call's answer
		}
		id, err := b.Start(t.Context(), "", tt.code, nil, "ci")
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		if tt.stopped {
			b.roster.stop(id, "ann")
		}
		waitUntil(t, func() bool { st, _ := b.Run(t.Context(), id); return st.Over() })
		res, err := b.Replay(t.Context(), id, func(replay.Step) {})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(res.StructuredContent.(json.RawMessage)); !strings.Contains(got, tt.want) {
			t.Errorf("it answers %s, want %s", got, tt.want)
		}
	}
}
