package running

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/google/go-cmp/cmp"
)

// A fake is a bridge; it answers with the states one after the other, the last for ever.
type fake struct {
	states []instance.State
	err    error
	hangs  bool
	asked  int
}

func (f *fake) State(ctx context.Context) (instance.State, error) {
	if f.hangs {
		<-ctx.Done()
		return instance.State{}, ctx.Err()
	}
	if f.err != nil {
		return instance.State{}, f.err
	}
	f.asked++
	return f.states[min(f.asked, len(f.states))-1], nil
}

// state is what a bridge says of servers; those whose names begin with "slow" are pending.
func state(t *testing.T, since int, version, configuration string, servers ...string) instance.State {
	t.Helper()
	told := Told{Configuration: configuration}
	for _, name := range servers {
		told.Servers = append(told.Servers, Server{Status: upstream.Status{Name: name}, Pending: len(name) > 4 && name[:4] == "slow"})
	}
	more, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	return instance.State{Status: instance.Status{PID: since, Since: time.Unix(int64(since), 0), Version: version}, More: more}
}

// TestAsk: the bridge with this configuration that has run for the longest is asked; one that
// hangs, has ended, or has another configuration or version is not, and the reason is said.
func TestAsk(t *testing.T) {
	one := func(s instance.State) *fake { return &fake{states: []instance.State{s}} }
	for name, row := range map[string]struct {
		sources []Source
		pid     int // 0: none can be asked
		why     string
		took    time.Duration
	}{
		"none runs":             {nil, 0, "", 0},
		"it has ended":          {[]Source{&fake{err: instance.ErrNoInstance}}, 0, "", 0},
		"the oldest":            {[]Source{one(state(t, 5, "1", "c")), one(state(t, 3, "1", "c")), one(state(t, 4, "1", "c"))}, 3, "", 0},
		"another configuration": {[]Source{one(state(t, 5, "1", "d"))}, 0, "the bridge that runs has another configuration in force (codemode-bridge status says more)", 0},
		"another version":       {[]Source{one(state(t, 5, "2", "c"))}, 0, "the bridge that runs is version 2, and this is 1", 0},
		"it says nothing":       {[]Source{one(instance.State{Status: instance.Status{Version: "1"}})}, 0, "the bridge that runs says nothing of its servers that this program understands", 0},
		"it refuses":            {[]Source{&fake{err: errors.New("at the other end of the socket is another user (7)")}}, 0, "the bridge that runs cannot be asked: at the other end of the socket is another user (7)", 0},
		"it hangs":              {[]Source{&fake{hangs: true}}, 0, "the bridge that runs does not answer", patience},
		"one of two hangs":      {[]Source{&fake{hangs: true}, one(state(t, 5, "1", "c"))}, 5, "", patience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				b, why := Asker{Sources: row.sources, Version: "1", Configuration: "c"}.Ask(t.Context(), nil)
				pid := 0
				if b != nil {
					pid = b.PID
				}
				if pid != row.pid || why != row.why || time.Since(began) != row.took {
					t.Errorf("after %v process %d, and %q", time.Since(began), pid, why)
				}
			})
		})
	}
}

// Servers that are connecting at the bridge are waited for, those alone that are asked for,
// and no longer than the bridge runs.
func TestAskWaits(t *testing.T) {
	slow := state(t, 1, "1", "c", "fast", "slow1", "slow2")
	half := state(t, 1, "1", "c", "fast", "slow1")
	done := state(t, 1, "1", "c", "fast")
	for name, row := range map[string]struct {
		names  []string
		states []instance.State
		asked  int
		why    string
	}{
		"all":      {nil, []instance.State{slow, slow, half, done}, 4, ""},
		"one":      {[]string{"slow2"}, []instance.State{slow, slow, half, done}, 3, ""},
		"no other": {[]string{"fast"}, []instance.State{slow, done}, 1, ""},
		"none":     {[]string{}, []instance.State{slow, done}, 1, ""},
		"an edit":  {nil, []instance.State{slow, state(t, 1, "1", "d")}, 2, "the bridge that runs has another configuration in force (codemode-bridge status says more)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{states: row.states}
				wait := func(names []string) *cli.Waiting { return (&cli.Console{Err: io.Discard}).Wait(names) }
				b, why := Asker{Sources: []Source{f}, Version: "1", Configuration: "c", Wait: wait}.Ask(t.Context(), row.names)
				if f.asked != row.asked || why != row.why || (b == nil) != (row.why != "") {
					t.Errorf("it was asked %d times, and %q", f.asked, why)
				}
			})
		})
	}
}

// TestAskEnds: who gives up waits no longer.
func TestAskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wait := func(names []string) *cli.Waiting { return (&cli.Console{Err: io.Discard}).Wait(names) }
		f := &fake{states: []instance.State{state(t, 1, "1", "c", "slow1")}}
		began := time.Now()
		if b, why := (Asker{Sources: []Source{f}, Version: "1", Configuration: "c", Wait: wait}).Ask(ctx, nil); b != nil || why != "" {
			t.Errorf("%+v, %q", b, why)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What is told arrives as it was: schemas byte by byte, also those that are not there. Of a
// login no link is told.
func TestWhatIsToldArrives(t *testing.T) {
	yes := true
	tools := []upstream.Tool{
		{Name: "a", Description: "<b>", Input: json.RawMessage(`{ "type" : "object", "x": "<" }`), Destructive: &yes},
		{Name: "b", Output: json.RawMessage(`{}`)},
	}
	told := Told{Servers: []Server{{Status: upstream.Status{Name: "s", Tools: 2}, Listed: true, Offers: offers(tools)}, {Status: upstream.Status{Name: "none"}}}}
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	var got Bridge
	if err := json.Unmarshal(text, &got.Told); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]upstream.Tool{"s": tools}, got.Tools()); diff != "" {
		t.Error(diff)
	}
	if names := fmt.Sprintf("%d, %s", len(got.States()), got.States()[0].Name); names != "2, s" {
		t.Errorf("states %s", names)
	}
	set := upstream.New(upstream.Options{})
	defer set.Close()
	set.Apply([]upstream.Spec{{Name: "off", Disabled: true}})
	cfg, err := config.Parse("config.json", []byte("{}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	of := Of(cfg, "/f", set)
	if of.Folder != "/f" || len(of.Servers) != 1 || of.Servers[0].State != upstream.Disabled || of.Servers[0].Pending || of.Servers[0].Listed {
		t.Errorf("told %+v", of)
	}
	const link = "https://login.example/?code=secret"
	waits := upstream.Status{Name: "s", Login: link, Err: "its program waits for a login: open " + link + " in a browser", Said: "visit: | " + link}
	if shown := withoutLink(waits); shown.Login == "" || !strings.Contains(shown.Why(), "waits for a login") || strings.Contains(fmt.Sprint(shown), "secret") {
		t.Errorf("the link is told, or not that there is one: %+v", shown)
	}
}
