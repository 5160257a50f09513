// Package handles keeps values that are too large for a conversation: the media in
// tools' answers, and large results. Model and script get a [Handle] instead, and a
// later script of the same session, or of the same principal ([Keeper]), reads the parts that it needs:
//
//	codemode.read("h3", "items[0:50].title")
//
// A path consists of keys, indices and slices, as in JavaScript; text can only be
// sliced. Reading walks the JSON text without decoding it, so the cost depends on
// the part that is read and not on the size of the whole.
//
// What a session keeps is bounded in bytes and in time, and the oldest values are
// dropped first. A suspended run takes along the values behind its handles ([Shelf],
// [Store.Restore]).
package handles

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on what a Store keeps.
const (
	maxBytes = 64 << 20
	lifetime = 10 * time.Minute
)

// A Store keeps what the handles of one session stand for. Its methods may be
// called by any number of goroutines.
type Store struct {
	now  func() time.Time
	salt string // what its handles end with, so that no other store has them; may be empty

	shared    Shared // where other bridges find its items; nil: nowhere
	principal string // whose it is; of a shared one

	mu    sync.Mutex
	items []*stored // oldest first
	bytes int
	last  int // number of the newest handle
}

// New makes an empty Store.
func New(now func() time.Time) *Store { return &Store{now: now} }

// An Item is what a handle stands for: a text or a JSON value.
type Item struct {
	Kind     string // such as image, resource or result
	MIMEType string // "" if it is not known
	URI      string // "" if it has none
	Text     string // read by slice, if JSON is nil
	Base64   bool   // Text encodes the content, which is bytes
	JSON     json.RawMessage
	Block    json.RawMessage // the content block that emit attaches; nil if there is none
}

// A Handle is what a script gets in place of an Item.
type Handle struct {
	Handle   string `json:"handle"`
	Kind     string `json:"kind"`
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Size     int    `json:"size"` // bytes of the content; of media, before base64
}

// size is the number of bytes of the content.
func (it Item) size() int {
	if !it.Base64 {
		return len(it.Text) + len(it.JSON)
	}
	text := strings.TrimRight(it.Text, "=\r\n")
	breaks := strings.Count(text, "\n") + strings.Count(text, "\r") // some servers write lines
	return base64.RawStdEncoding.DecodedLen(len(text) - breaks)
}

// A Kept is what a handle stands for, as a journal keeps it.
type Kept struct {
	ID    string          `json:"id"`
	Text  string          `json:"text,omitempty"`
	JSON  json.RawMessage `json:"json,omitempty"`
	Block json.RawMessage `json:"block,omitempty"`
}

type stored struct {
	Kept
	expires time.Time
	run     string // which alone may have it, until its call is recorded; then empty

	published bool // other bridges find it
}

func (s *stored) size() int { return len(s.Text) + len(s.JSON) + len(s.Block) }

// Put keeps an item and returns its handle.
func (s *Store) Put(it Item) Handle { return s.put(it, "") }

func (s *Store) put(it Item, run string) Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	kept := Kept{"h" + strconv.Itoa(s.last) + s.salt, it.Text, it.JSON, it.Block}
	s.addLocked(kept, run)
	s.dropLocked(1)
	return Handle{Handle: kept.ID, Kind: it.Kind, MIMEType: it.MIMEType, URI: it.URI, Size: it.size()}
}

func (s *Store) addLocked(k Kept, run string) {
	one := &stored{Kept: k, expires: s.now().Add(lifetime), run: run}
	s.items = append(s.items, one)
	s.bytes += one.size()
}

// dropLocked drops the oldest items: those that have expired, and those that there is no room for. So
// many stay in any case.
func (s *Store) dropLocked(stay int) {
	for len(s.items) > stay && (s.bytes > maxBytes || s.now().After(s.items[0].expires)) {
		s.bytes -= s.items[0].size()
		s.items[0] = nil
		s.items = s.items[1:]
	}
}

// Restore puts back items from a journal, under their old handles.
func (s *Store) Restore(items []Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range items {
		if slices.ContainsFunc(s.items, func(it *stored) bool { return it.ID == k.ID }) {
			continue // other sessions of a principal have it already
		}
		s.addLocked(k, "")
		if n, err := strconv.Atoi(strings.TrimPrefix(k.ID, "h")); err == nil {
			s.last = max(s.last, n)
		}
	}
}

// forget drops what a handle stands for.
func (s *Store) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = slices.DeleteFunc(s.items, func(it *stored) bool {
		if it.ID == id {
			s.bytes -= it.size()
		}
		return it.ID == id
	})
}

// A Shelf makes the handles of one answer, and remembers what they stand for. It
// is for one goroutine.
type Shelf struct {
	store *Store
	run   string
	Made  []Kept
}

// Shelf begins the handles of an answer to a run. Handles can be guessed, so no other run
// has them before [Store.Settle] says that the answer is recorded.
func (s *Store) Shelf(run string) *Shelf { return &Shelf{store: s, run: run} }

// Settle ends what a shelf began: other runs have what it made from now on; or nobody has, if
// the answer could not be recorded.
func (s *Store) Settle(made []Kept, recorded bool) {
	if len(made) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = slices.DeleteFunc(s.items, func(it *stored) bool {
		if it.run == "" || !slices.ContainsFunc(made, func(k Kept) bool { return k.ID == it.ID }) {
			return false
		}
		if it.run = ""; !recorded {
			s.bytes -= it.size()
		}
		return !recorded
	})
}

// Put keeps an item and returns its handle.
func (s *Shelf) Put(it Item) Handle {
	made := s.store.put(it, s.run)
	s.Made = append(s.Made, Kept{made.Handle, it.Text, it.JSON, it.Block})
	return made
}

// find returns an item that has not expired and that a run may have.
func (s *Store) find(run, id string) (*stored, error) {
	it, here := s.here(run, id)
	if here {
		if it == nil {
			return nil, noHandle(id)
		}
		return it, nil
	}
	it, err := s.fetch(id)
	switch {
	case errors.Is(err, ErrNoHandle):
		return nil, noHandle(id)
	case err != nil:
		return nil, fmt.Errorf("looking for handle %q, which another bridge may have: %w", id, err)
	}
	return it, nil
}

func noHandle(id string) error {
	return fmt.Errorf("there is no handle %q; handles live for %v, for whoever made them", id, lifetime)
}

// here reports whether an item is in memory, which is nil if the run may not have it, or
// not any more.
func (s *Store) here(run, id string) (one *stored, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		if it.ID != id {
			continue
		}
		if (it.run == "" || it.run == run) && !s.now().After(it.expires) {
			return it, true
		}
		here = true
	}
	return nil, here
}

// Read returns to a run the part of an item at a path, as JSON. An empty path is all of it;
// into a text a path can only be a slice, such as "[0:1000]".
func (s *Store) Read(run, id, path string) (json.RawMessage, error) {
	it, err := s.find(run, id)
	if err != nil {
		return nil, err
	}
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if it.JSON != nil {
		return pick(it.JSON, steps, "")
	}
	switch {
	case len(steps) == 0:
		return canon.JSON(it.Text)
	case len(steps) == 1 && steps[0].slice:
		return canon.JSON(part(it.Text, steps[0]))
	}
	return nil, errors.New("the value is text: read a part of it with a slice such as [0:1000]")
}

// Content returns what emit attaches to the answer of a run: the block behind a handle, or
// the content block that the script passed.
func (s *Store) Content(run string, what json.RawMessage) (mcp.Content, error) {
	var ref Ref
	block := what
	if err := json.Unmarshal(what, &ref); err == nil {
		it, err := s.find(run, string(ref))
		if err != nil {
			return nil, err
		}
		if it.Block == nil {
			return nil, fmt.Errorf("%s is data and no media; return it, or a part of it", ref)
		}
		block = it.Block
	}
	// The SDK has no exported decoder for one block: borrow a result's.
	var result mcp.CallToolResult
	wrapped := append(append([]byte(`{"content":[`), block...), "]}"...)
	if err := json.Unmarshal(wrapped, &result); err != nil || len(result.Content) != 1 {
		return nil, errMedia
	}
	switch c := result.Content[0].(type) {
	case *mcp.ImageContent, *mcp.AudioContent:
		return c, nil
	case *mcp.EmbeddedResource:
		if c.Resource != nil && (c.Resource.Text != "" || len(c.Resource.Blob) > 0) {
			return c, nil
		}
	}
	return nil, errMedia // texts and links would look like the bridge's own
}

// errMedia says what emit takes.
var errMedia = errors.New(`it takes a handle, or an image, audio or resource block such as {type: "image", data, mimeType}`)

// A Ref is a handle as scripts pass it: the object, or its id.
type Ref string

func (r *Ref) UnmarshalJSON(b []byte) error {
	var id string
	if json.Unmarshal(b, &id) == nil {
		*r = Ref(id)
		return nil
	}
	var object struct {
		Handle string `json:"handle"`
	}
	if err := json.Unmarshal(b, &object); err != nil || object.Handle == "" {
		return errors.New("it takes a handle")
	}
	*r = Ref(object.Handle)
	return nil
}
