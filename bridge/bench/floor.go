package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"codemode-bridge/analysis"
	"codemode-bridge/sandbox"
)

// floorArg, as the first argument, makes this program the floor: a server with the same
// processes and pipes as the bridge, between the client, a worker and the upstream, that
// only passes on what comes: no policy, no schemas, no names, no records.
const floorArg = "floor"

// A message is what the floor reads of JSON-RPC.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct{ Arguments struct{ Code string } }
	Result struct{ Content []struct{ Text string } }
}

// serveFloor serves the tool eval on stdin and stdout until stdin ends, one call at a
// time.
func serveFloor(args []string) error {
	flags := flag.NewFlagSet(floorArg, flag.ExitOnError)
	worker := flags.String("worker", "", "the program codemode-worker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pool, err := sandbox.NewPool(sandbox.Options{Worker: *worker, Warm: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	session := pool.Session()
	defer session.Close()
	upstream, err := startEcho()
	if err != nil {
		return err
	}
	defer upstream.in.Close()

	lines := json.NewDecoder(os.Stdin)
	for {
		var m message
		if err := lines.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var result string
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}}`
		case "tools/call":
			done, err := session.Run(context.Background(), sandbox.Script{Source: m.Params.Arguments.Code, Names: floorNames}, upstream)
			if err != nil {
				return err
			}
			result = fmt.Sprintf(`{"content":[],"structuredContent":{"result":%s}}`, done.Value)
		default:
			continue // a notification
		}
		if _, err := fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result); err != nil {
			return err
		}
	}
}

var floorNames = &sandbox.Names{Revision: "1", Names: []string{"bench__noop", "bench__sleep", "bench__big"}, Servers: []string{"bench"}}

// An echo is the floor's upstream. As a sandbox.Host it allows everything.
type echo struct {
	in io.WriteCloser

	mu   sync.Mutex
	open map[string]func(sandbox.Reply) // by the call's number
}

// startEcho starts the upstream.
func startEcho() (*echo, error) {
	cmd := exec.Command(os.Args[0], upstreamArg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e := &echo{in: in, open: make(map[string]func(sandbox.Reply))}
	lines := bufio.NewReader(out)
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"1"}}}`+"\n"); err != nil {
		return nil, err
	}
	if _, err := lines.ReadBytes('\n'); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return nil, err
	}
	go e.read(lines)
	return e, nil
}

// read passes on the upstream's answers until it ends.
func (e *echo) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil || len(m.Result.Content) == 0 {
			continue
		}
		e.mu.Lock()
		answer := e.open[string(m.ID)]
		delete(e.open, string(m.ID))
		e.mu.Unlock()
		if answer != nil {
			answer(sandbox.Reply{Text: &m.Result.Content[0].Text})
		}
	}
}

// Call sends a call of the script on.
func (e *echo) Call(_ context.Context, c sandbox.Call, answer func(sandbox.Reply)) {
	e.mu.Lock()
	e.open[fmt.Sprint(c.Number)] = answer
	e.mu.Unlock()
	if _, err := fmt.Fprintf(e.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", c.Number, strings.TrimPrefix(c.Name, "bench__"), c.Args); err != nil {
		answer(sandbox.Reply{Err: &sandbox.ReplyError{Name: "Error", Message: err.Error()}})
	}
}

func (*echo) Preview(analysis.Report) {}
func (*echo) Idle(int)                {}

// floor measures the bridge without records beside the floor, which is the "direct" column of those rows; and the
// floor beside a direct call, which says what of a promise is left for a bridge. What a tool that
// writes costs at least is the floor and one sync of the disk.
func (m *machine) floor(ctx context.Context, t *table) (err error) {
	worker := filepath.Join(filepath.Dir(m.bridge), "codemode-worker"+filepath.Ext(m.bridge))
	floor, err := m.start(ctx, exec.CommandContext(ctx, os.Args[0], floorArg, "-worker", worker))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.Close()) }()
	off, err := m.startBridge(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, off.Close()) }()
	direct, err := m.startUpstream(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	disk, err := os.Create(filepath.Join(m.scratch, "synced"))
	if err != nil {
		return err
	}
	defer disk.Close()
	names := []string{"trivial eval", "1 call", "a call, of 100", "100 parallel calls of 10 ms", "1 MB reply, parsed"}
	for i, row := range m.callRows(ctx, direct) {
		took, err := alternate(max(row.rounds, 5), row.direct,
			func() error { return floor.eval(ctx, row.writes, row.want) },
			func() error { return off.eval(ctx, row.writes, row.want) },
			func() error { return syncs(disk, int(row.per)) })
		if err != nil {
			return fmt.Errorf("the floor of %s: %w", names[i], err)
		}
		for k := range took {
			took[k] /= row.per
		}
		if row.records {
			t.times("records off, beside the floor: "+names[i], took[1], took[2], target{ratio: 1.3})
		}
		if row.reads == "" { // nothing is written for it that a power cut may not take
			t.times("floor, beside direct: "+names[i], took[0], took[1], target{})
		} else {
			t.calls("floor, beside direct: "+names[i], took[0], took[1]+took[3], took[1], target{})
		}
	}
	return nil
}

// syncs writes two pages to a file and has the disk take them, n times: what a record costs at least that must survive a
// power cut.
func syncs(f *os.File, n int) error {
	pages := make([]byte, 8<<10)
	for range n {
		if _, err := f.WriteAt(pages, 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}
