package tap

import (
	"bufio"
	"bytes"
	"io"
)

// maxOtherEvent bounds an event that is no message.
const maxOtherEvent = 8 << 10

// events is the body of an event stream as the SDK gets it: only messages that
// the tap lets through, and the ids and delays that resuming needs.
type events struct {
	body  io.ReadCloser
	lines *lineReader
	tap   *Tap
	id    []byte // of the request that the stream answers, nil for a standing stream
	// swallow is the id of an answer that ends the stream and is not passed
	// on, nil for none.
	swallow []byte
	out     []byte
	err     error
	done    bool // the answer has been read: the stream is over
}

func newEvents(body io.ReadCloser, t *Tap, id []byte) *events {
	// "data: " and the message
	lines := &lineReader{r: bufio.NewReaderSize(body, 64<<10), limit: t.limit + 6, cut: id != nil}
	return &events{body: body, lines: lines, tap: t, id: id}
}

func (s *events) Close() error { return s.body.Close() }

func (s *events) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.err == nil && s.done {
			s.err = io.EOF
		}
		if s.err != nil {
			return 0, s.err
		}
		s.next()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// next reads one event, up to and including the blank line that ends it.
func (s *events) next() {
	var name, id, retry string
	var data [][]byte
	var size int64
	var over *skeleton
	for {
		line, tooLong, err := s.lines.next()
		if err != nil {
			s.err = err
			return
		}
		if tooLong != nil {
			over, data = tooLong, nil
			if s.lines.cut {
				break
			}
			over.kept = bytes.TrimPrefix(over.kept, []byte("data:"))
			continue
		}
		if len(line) == 0 {
			break
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value[:min(len(value), MaxName)])
		case "id":
			id = string(value[:min(len(value), maxOtherEvent)])
		case "retry":
			retry = string(value[:min(len(value), MaxName)])
		case "data":
			if size += int64(len(value)); over != nil || size > s.tap.limit {
				if over == nil {
					over = new(skeleton)
					for _, part := range data {
						over.add(part)
					}
				}
				over.add(value)
				data = nil
				continue
			}
			data = append(data, value)
		}
	}
	message := bytes.Join(data, []byte("\n"))
	if len(data) == 1 {
		message = data[0]
	}
	var forward []byte
	switch {
	case over != nil && s.id != nil:
		// What is answered is known, whatever the event says; the rest of
		// the stream is not fetched.
		forward = s.tap.tooLarge(s.id)
		s.done = true
	case over != nil:
		forward = s.tap.tooLarge(over.id())
	case name != "" && name != "message":
		if len(message) <= maxOtherEvent {
			forward = message // such as the endpoint event of the old transport
		}
	case len(message) > 0:
		e, _ := parseEnvelope(message)
		answer := func(id []byte) bool { return id != nil && e.method == nil && bytes.Equal(e.id, id) }
		if s.done = answer(s.id) || answer(s.swallow); answer(s.swallow) {
			return
		}
		forward = s.tap.incoming(message, s.id)
	}
	if forward == nil {
		s.tap.waste(len(message))
	}
	if forward == nil && id == "" && retry == "" {
		return
	}
	// No field holds a line break: each is from a line of its own, and a
	// message is put on one line.
	for _, field := range [][2]string{{"event", name}, {"id", id}, {"retry", retry}} {
		if field[1] != "" && (field[0] != "event" || forward != nil) {
			s.out = append(s.out, field[0]+": "+field[1]+"\n"...)
		}
	}
	if forward != nil {
		s.out = append(s.out, "data: "...)
		s.out = append(s.out, bytes.ReplaceAll(forward, []byte("\n"), []byte(" "))...)
		s.out = append(s.out, '\n')
	}
	s.out = append(s.out, '\n')
}
