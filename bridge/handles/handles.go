package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on what a session keeps for later scripts.
const (
	handlesBytes = 64 << 20
	handlesFor   = 10 * time.Minute
)

// handles keeps what is too large, or of the wrong kind, to go through a
// model: media of tools' answers and large results. The oldest make room.
type handles struct {
	now func() time.Time

	mu    sync.Mutex
	items []*item // oldest first
	bytes int
	last  int // number of the newest handle
}

// An item is what a handle stands for: text or a JSON value, and the content
// block that emit attaches.
type item struct {
	id      string
	text    string          // read by slice, if json is nil
	json    json.RawMessage // read by path
	block   json.RawMessage // nil if it can't be emitted
	expires time.Time
}

func (i *item) size() int { return len(i.text) + len(i.json) + len(i.block) }

func newHandles(now func() time.Time) *handles { return &handles{now: now} }

func textItem(text string) item           { return item{text: text} }
func jsonItem(value json.RawMessage) item { return item{json: value} }

// A handle is what a script gets in place of the thing itself.
type handle struct {
	Handle   string `json:"handle"`
	Kind     string `json:"kind"`
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Size     int    `json:"size"` // characters of text, base64 or JSON
}

// put keeps an item and returns its handle.
func (h *handles) put(kind, mimeType, uri string, it item, block json.RawMessage) handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	it.id, it.block, it.expires = "h"+strconv.Itoa(h.last), block, h.now().Add(handlesFor)
	h.items = append(h.items, &it)
	h.bytes += it.size()
	for len(h.items) > 1 && (h.bytes > handlesBytes || h.now().After(h.items[0].expires)) {
		h.bytes -= h.items[0].size()
		h.items[0] = nil
		h.items = h.items[1:]
	}
	return handle{Handle: it.id, Kind: kind, MIMEType: mimeType, URI: uri, Size: len(it.text) + len(it.json)}
}

// A keptItem is an item as a journal keeps it.
type keptItem struct {
	ID    string          `json:"id"`
	Text  string          `json:"text,omitempty"`
	JSON  json.RawMessage `json:"json,omitempty"`
	Block json.RawMessage `json:"block,omitempty"`
}

// restore puts items back that a journal has kept, under their old handles.
func (h *handles) restore(items []keptItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range items {
		it := &item{id: k.ID, text: k.Text, json: k.JSON, block: k.Block, expires: h.now().Add(handlesFor)}
		h.items = append(h.items, it)
		h.bytes += it.size()
		if n, err := strconv.Atoi(strings.TrimPrefix(k.ID, "h")); err == nil {
			h.last = max(h.last, n)
		}
	}
}

// A shelf is where the handles of one answer are made: it remembers which.
type shelf struct {
	*handles
	made []keptItem
}

func (s *shelf) put(kind, mimeType, uri string, it item, block json.RawMessage) handle {
	made := s.handles.put(kind, mimeType, uri, it, block)
	s.made = append(s.made, keptItem{made.Handle, it.text, it.json, block})
	return made
}

// get finds an item that has not expired.
func (h *handles) get(id string) (*item, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range h.items {
		if it.id == id && !h.now().After(it.expires) {
			return it, nil
		}
	}
	return nil, fmt.Errorf("there is no handle %q; handles live for %v, in their own session", id, handlesFor)
}

// read returns the part of an item at a path, as JSON. An empty path is all
// of it; of a text a path can only be a slice, such as "[0:1000]".
func (h *handles) read(id, path string) (json.RawMessage, error) {
	it, err := h.get(id)
	if err != nil {
		return nil, err
	}
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if it.json != nil {
		return pick(it.json, steps, "")
	}
	switch {
	case len(steps) == 0:
		return marshal(it.text)
	case len(steps) == 1 && steps[0].slice:
		return marshal(part(it.text, steps[0]))
	}
	return nil, errors.New("the value is text: read a part of it with a slice such as [0:1000]")
}

// content returns what emit attaches: the block behind a handle, or the
// content block that the script passed.
func (h *handles) content(what json.RawMessage) (mcp.Content, error) {
	var ref handleRef
	block := what
	if err := json.Unmarshal(what, &ref); err == nil {
		it, err := h.get(string(ref))
		if err != nil {
			return nil, err
		}
		if it.block == nil {
			return nil, fmt.Errorf("%s is data and no media; return it, or a part of it", ref)
		}
		block = it.block
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

// A handleRef is a handle as scripts pass it: the object, or its id.
type handleRef string

func (r *handleRef) UnmarshalJSON(b []byte) error {
	var id string
	if json.Unmarshal(b, &id) == nil {
		*r = handleRef(id)
		return nil
	}
	var object struct {
		Handle string `json:"handle"`
	}
	if err := json.Unmarshal(b, &object); err != nil || object.Handle == "" {
		return errors.New("it takes a handle")
	}
	*r = handleRef(object.Handle)
	return nil
}

// A step of a path: a key, an index, or a slice.
type step struct {
	key      string
	isKey    bool
	from, to int // of a slice; index: from only
	slice    bool
	open     bool // the slice has no end
}

// parsePath reads a path such as items[0:50].title, ["odd key"][3] or [-10:].
func parsePath(path string) ([]step, error) {
	var steps []step
	bad := func(at int, why string) error {
		return fmt.Errorf("path %q, character %d: %s", path, at+1, why)
	}
	for i := 0; i < len(path); {
		switch {
		case path[i] == '.' && i > 0 && i+1 < len(path) && path[i+1] != '[':
			i++
			fallthrough
		case i == 0 && path[i] != '[' && path[i] != '.':
			end := i + strings.IndexAny(path[i:], ".[")
			if end < i {
				end = len(path)
			}
			if end == i {
				return nil, bad(i, "a name is missing")
			}
			steps = append(steps, step{key: path[i:end], isKey: true})
			i = end
		case path[i] == '[' && i+1 < len(path) && path[i+1] == '"':
			quoted, err := strconv.QuotedPrefix(path[i+1:])
			if err != nil || !strings.HasPrefix(path[i+1+len(quoted):], "]") {
				return nil, bad(i, `a key in brackets is written ["like this"]`)
			}
			var key string
			if json.Unmarshal([]byte(quoted), &key) != nil {
				return nil, bad(i, "the key is no JSON string")
			}
			steps = append(steps, step{key: key, isKey: true})
			i += len(quoted) + 2
		case path[i] == '[':
			end := strings.IndexByte(path[i:], ']')
			if end < 0 {
				return nil, bad(i, "the bracket is not closed")
			}
			s, err := parseSlice(path[i+1 : i+end])
			if err != nil {
				return nil, bad(i, err.Error())
			}
			steps = append(steps, s)
			i += end + 1
		default:
			return nil, bad(i, `a path is written like items[0:50].title`)
		}
	}
	return steps, nil
}

// parseSlice reads what stands between brackets: 3, 0:50, :10, -10: or :.
func parseSlice(s string) (step, error) {
	from, to, slice := strings.Cut(s, ":")
	st := step{slice: slice}
	var err error
	if from = strings.TrimSpace(from); from != "" || !slice {
		if st.from, err = strconv.Atoi(from); err != nil {
			return st, errors.New("an index is a whole number, a slice two of them: [0:50]")
		}
	}
	if to = strings.TrimSpace(to); to == "" {
		st.open = true
	} else if st.to, err = strconv.Atoi(to); err != nil {
		return st, errors.New("a slice ends with a whole number: [0:50]")
	}
	return st, nil
}

// bounds are the slice's ends within n elements; negative ones count from the
// end, as in JavaScript.
func (st step) bounds(n int) (from, to int) {
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	from, to = clip(st.from), n
	if !st.open {
		to = max(from, clip(st.to))
	}
	return from, to
}

// marshal writes a value as JSON without escaping HTML.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
