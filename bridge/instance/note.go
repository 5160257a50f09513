package instance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"

	"codemode-bridge/bridge/rpc"
)

// A note is a file in which an instance keeps which requests of a client it has not
// answered yet. The client's process has it open too, and reads it once the instance has
// gone, however it went: what was written to a file outlives who wrote it.
//
// The first byte is '1' while a message is being written to the client, else '0'. Lines
// follow, up to a NUL: "+7 [1]" for the seventh request, with its id, or for those of a
// batch, whose answers are one message; "-7" once it is answered. When all are answered
// the lines begin anew.
type note struct {
	file *os.File
	most int64 // where the lines are put together again

	mu      sync.Mutex
	open    []noted       // in the order in which they came
	last    int           // number of the last request
	end     int64         // where the NUL is
	settled chan struct{} // closed while nothing is open
}

type noted struct {
	number int
	key    string // of the first id
	line   string
}

// maxNote is how long a note gets beside what is open.
const maxNote = 1 << 20

func newNote(f *os.File) (*note, error) {
	n := &note{file: f, most: maxNote, end: 1, settled: make(chan struct{})}
	close(n.settled)
	if _, err := f.WriteAt([]byte("0\x00"), 0); err != nil {
		return nil, fmt.Errorf("writing which requests are open: %w", err)
	}
	return n, nil
}

// Asked and Answered make a note an [rpc.Watch].
func (n *note) Asked(ids []json.RawMessage) {
	text, err := json.Marshal(ids)
	if err != nil {
		return // cannot be: they were read
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.open) == 0 {
		n.settled = make(chan struct{})
	}
	n.last++
	request := noted{n.last, rpc.Message{ID: ids[0]}.Key(), fmt.Sprintf("+%d %s\n", n.last, text)}
	n.open = append(n.open, request)
	n.addLocked(request.line)
}

func (n *note) Answered(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.open, func(o noted) bool { return o.key == key })
	if i < 0 {
		return
	}
	number := n.open[i].number
	n.open = slices.Delete(n.open, i, i+1)
	switch {
	case len(n.open) == 0:
		close(n.settled)
		n.end = 1
		n.addLocked("")
	case n.end > n.most:
		n.end = 1
		var all bytes.Buffer
		for _, o := range n.open {
			all.WriteString(o.line)
		}
		n.addLocked(all.String())
	default:
		n.addLocked(fmt.Sprintf("-%d\n", number))
	}
}

// addLocked adds lines. An error costs only what is said of the requests should this
// process be killed.
func (n *note) addLocked(lines string) {
	_, _ = n.file.WriteAt([]byte(lines+"\x00"), n.end)
	n.end += int64(len(lines))
}

// writing notes whether a message is being written.
func (n *note) writing(now bool) {
	state := "0"
	if now {
		state = "1"
	}
	_, _ = n.file.WriteAt([]byte(state), 0) // as in addLocked
}

// allAnswered returns a channel that is closed when no request is open.
func (n *note) allAnswered() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.settled
}

// readNote returns the requests that are open by a note, those of a batch together, and
// whether half a message may have been written.
func readNote(f io.ReaderAt) (open [][]json.RawMessage, half bool, err error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return nil, false, fmt.Errorf("reading which requests are open: %w", err)
	}
	if len(text) == 0 {
		return nil, false, nil
	}
	half, text = text[0] == '1', text[1:]
	text, _, _ = bytes.Cut(text, []byte{0})
	type request struct {
		number int
		ids    []json.RawMessage
	}
	var all []request
	for line := range bytes.Lines(text) {
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		if !whole || len(line) == 0 {
			continue // it was killed when it wrote this
		}
		first, ids, _ := bytes.Cut(line[1:], []byte(" "))
		number, err := strconv.Atoi(string(first))
		if err != nil {
			continue
		}
		if line[0] == '-' {
			all = slices.DeleteFunc(all, func(r request) bool { return r.number == number })
			continue
		}
		r := request{number: number}
		if json.Unmarshal(ids, &r.ids) == nil && len(r.ids) > 0 {
			all = append(all, r)
		}
	}
	for _, r := range all {
		open = append(open, r.ids)
	}
	return open, half, nil
}
