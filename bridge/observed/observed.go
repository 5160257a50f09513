// Package observed learns from tools' answers what the tools do not declare:
// the types of what they answer. Most tools have no output schema; what a model
// is shown instead is the shape of past answers.
//
//	store := observed.Open(dir, observed.Options{})
//	store.Note(tool, observed.Answer{Text: `[{"number": 41, "title": "A bug"}]`})
//	store.Type(tool, 700) // text: JSON text of {number: number; title: string}[]
//
// A shape holds types and the names of fields, never a value. A key that does
// not read as a name that a programmer would give (see isName) is data, and
// makes its object a map: Record<string, T>. So do keys that are too many, or
// that no two objects share.
//
// Shapes only grow: an answer that looks different makes a field optional or
// adds a type to a union. The order and number of the answers make no
// difference. A tool whose definition has changed begins anew. Everything is
// bounded: how much of an answer is read, the depth and keys of a shape, the
// bytes of one tool's shapes (beyond which nothing is said of the tool) and of all.
//
// # On disk
//
// The shapes are kept as observed.json in the cache folder, readable by the
// owner only, and written a moment after they changed:
//
//	{"version": 1, "digest": "sha256:...", "tools": [{"server": "...", "name": "...", "digest": "sha256:...", "json": {"items": {"object": {"fields": {...}}}}}]}
//
// The outer digest is that of the bytes of "tools". A file that is damaged, or
// of another version, is ignored. What another bridge with the same
// folder wrote in the meantime is joined, not lost.
package observed

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Bounds on what a Store keeps.
const (
	maxTool  = 64 << 10 // bytes of one tool's shapes in the file
	maxAll   = 4 << 20  // bytes of all of them; the tools that answered longest ago make room
	maxTools = 4096
	maxFile  = 8 << 20
)

// A tool's first answers are all looked at, then only one of several: they
// have told what there is to tell.
const (
	firstAnswers = 32
	oneOf        = 8
)

// A Tool is whose answers are observed.
type Tool struct {
	Server string
	Name   string // the raw name
	Digest string // of the definition
}

// An Answer is what a tool answered without an error, as the script gets it.
type Answer struct {
	Text  string
	Value json.RawMessage // structured content; nil if the answer is the text
	Media bool            // the text comes with handles of media
}

// A Type is what past answers were like, in TypeScript.
type Type struct {
	// Answer is the type of what a call resolves to; "" if that is a string,
	// as it is for most.
	Answer string
	// Remark says what the types can't: that it was observed, and what the
	// text holds.
	Remark string
}

// Options say how a Store works. The zero value is useful.
type Options struct {
	Logger *slog.Logger  // nil means slog.Default()
	Delay  time.Duration // from a change to its being written; 0 means 2 s
}

// A Store keeps the shapes of tools' answers. Its methods may be called
// concurrently.
type Store struct {
	dir string
	o   Options

	saving sync.Mutex // held while the file is written; taken before mu

	mu     sync.Mutex
	tools  map[name]*entry
	clock  int64 // counts answers
	timer  *time.Timer
	closed bool
}

type name struct{ server, tool string }

// An entry is what is known of one tool.
type entry struct {
	digest  string
	seen    shapes
	answers int    // since the start
	last    int64  // the clock at the last of them
	text    string // seen, as it stands in the file
}

// Open reads what the last run kept in a folder. With dir "" nothing is read or
// written. Close must be called in the end.
func Open(dir string, o Options) *Store {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Delay == 0 {
		o.Delay = 2 * time.Second
	}
	s := &Store{dir: dir, o: o, tools: map[name]*entry{}}
	if dir == "" {
		return s
	}
	kept, err := load(dir)
	if err != nil {
		o.Logger.Debug("reading the observed types of the last run", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeLocked(kept)
	return s
}

// Note learns from an answer. It reads at most the first 32 KB of it and keeps
// none of it.
func (s *Store) Note(t Tool, a Answer) {
	key := name{t.Server, t.Name}
	s.mu.Lock()
	e := s.tools[key]
	if e == nil || e.digest != t.Digest {
		e = &entry{digest: t.Digest}
		s.tools[key] = e
	}
	s.clock++
	e.last = s.clock
	e.answers++
	skip := e.seen.Varied || e.answers > firstAnswers && e.answers%oneOf != 0
	s.mu.Unlock()
	if skip {
		return
	}
	seen := shapesOf(a)

	s.mu.Lock()
	defer s.mu.Unlock()
	if e = s.tools[key]; e == nil || e.digest != t.Digest {
		return // made room for others, or was defined anew, in the meantime
	}
	if s.learnLocked(e, seen) {
		s.writeSoonLocked()
	}
}

// learnLocked joins what was seen to what is known, and reports whether that
// is news.
func (s *Store) learnLocked(e *entry, seen shapes) bool {
	next := e.seen.join(seen)
	text := next.encode()
	if len(text) > maxTool {
		next = shapes{Varied: true}
		text = next.encode()
	}
	if text == e.text {
		return false
	}
	e.seen, e.text = next, text
	s.makeRoomLocked()
	return true
}

// makeRoomLocked forgets the tools that answered longest ago, until the rest
// is within bounds.
func (s *Store) makeRoomLocked() {
	all := 0
	for _, e := range s.tools {
		all += len(e.text)
	}
	for all > maxAll || len(s.tools) > maxTools {
		var oldest name
		var least *entry
		for key, e := range s.tools {
			if least == nil || e.last < least.last {
				oldest, least = key, e
			}
		}
		all -= len(least.text)
		delete(s.tools, oldest)
	}
}

// Type tells what the past answers of a tool were like, in about limit bytes;
// the zero Type says that nothing is known.
func (s *Store) Type(t Tool, limit int) Type {
	s.mu.Lock()
	var seen shapes
	if e := s.tools[name{t.Server, t.Name}]; e != nil && e.digest == t.Digest {
		seen = e.seen
	}
	s.mu.Unlock()
	return seen.text(limit)
}

// writeSoonLocked schedules a write of the file, one for all changes within the
// delay.
func (s *Store) writeSoonLocked() {
	if s.dir == "" || s.timer != nil || s.closed {
		return
	}
	s.timer = time.AfterFunc(s.o.Delay, s.write)
}

// write writes the file, together with what stands in it by now.
func (s *Store) write() {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.writeLocked()
}

// writeLocked needs saving, not mu.
func (s *Store) writeLocked() {
	kept, _ := load(s.dir) // a file that can't be read is ignored
	s.mu.Lock()
	s.timer = nil
	s.takeLocked(kept)
	tools := s.listLocked()
	s.mu.Unlock()
	if err := save(s.dir, tools); err != nil {
		s.o.Logger.Warn("keeping the observed types for the next start", "err", err)
	}
}

// Close writes what has not been written and returns when it is. Nothing is
// written after it.
func (s *Store) Close() {
	s.mu.Lock()
	owed := s.timer != nil
	if owed {
		s.timer.Stop()
	}
	s.closed = true
	s.mu.Unlock()
	s.saving.Lock() // a write that the timer began is over
	defer s.saving.Unlock()
	if owed {
		s.writeLocked()
	}
}

// shapes are what a tool's answers were like: text that is JSON, other text,
// structured content; and whether media came with it.
type shapes struct {
	Plain  bool   `json:"plain,omitempty"`
	JSON   *shape `json:"json,omitempty"`
	Value  *shape `json:"value,omitempty"`
	Media  bool   `json:"media,omitempty"`
	Varied bool   `json:"varied,omitempty"` // too much to keep; nothing else is known then
}

// shapesOf is what one answer was like.
func shapesOf(a Answer) shapes {
	seen := shapes{Media: a.Media}
	if a.Value != nil {
		seen.Value = look(a.Value)
		return seen
	}
	if seen.JSON = look(a.Text); seen.JSON == nil {
		seen.Plain = a.Text != "" || !a.Media
	}
	return seen
}

func (s shapes) join(t shapes) shapes {
	if s.Varied || t.Varied {
		return shapes{Varied: true}
	}
	return shapes{Plain: s.Plain || t.Plain, JSON: s.JSON.join(t.JSON), Value: s.Value.join(t.Value), Media: s.Media || t.Media}
}

// encode writes the shapes as JSON: the same text for the same shapes.
func (s shapes) encode() string {
	b, err := json.Marshal(s)
	if err != nil {
		return "" // a tree of flags and names can be written
	}
	return string(b)
}

// text says what was observed.
//
//	string                  /* observed: JSON text of {...} */
//	string                  /* observed: plain text */
//	{number: number}        /* observed */
//	{text: string; media: Handle[]}
func (s shapes) text(limit int) Type {
	var text []string
	if s.JSON != nil {
		text = append(text, "JSON text of "+s.JSON.text(limit))
	}
	if s.Plain {
		text = append(text, "plain text")
	}
	inText := strings.Join(text, ", or ")
	var kinds []string
	if s.Value != nil {
		kinds = append(kinds, s.Value.text(limit))
	}
	if s.Media {
		kinds = append(kinds, "{text: string; media: {handle: string; kind: string; mimeType?: string; size: number}[]}")
	}
	switch {
	case len(kinds) == 0 && inText == "":
		return Type{}
	case len(kinds) == 0:
		return Type{Remark: "observed: " + inText}
	}
	remark := "observed"
	if inText != "" {
		remark = "observed; the text: " + inText
		if !s.Media {
			kinds = append(kinds, "string")
		}
	}
	return Type{Answer: strings.Join(kinds, " | "), Remark: remark}
}
