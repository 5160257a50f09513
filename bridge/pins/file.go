package pins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

const (
	fileVersion = 1
	maxFile     = 64 << 20         // bytes
	maxKept     = 256 << 10        // bytes of one definition; of a larger one the digest is kept
	maxTools    = 20_000           // of one server, that were ever there
	patience    = 20 * time.Second // with a store, its lock included
)

// The file, see the package comment.
type (
	file struct {
		Version int             `json:"version"`
		Server  string          `json:"server"`
		Tools   map[string]*pin `json:"tools"`
	}
	// A pin has at least one of Accepted and Seen.
	pin struct {
		Accepted *snapshot  `json:"accepted,omitempty"`
		Seen     *snapshot  `json:"seen,omitempty"`
		Blocked  *blockNote `json:"blocked,omitempty"`
	}
	snapshot struct {
		Digest     string      `json:"digest"`
		At         time.Time   `json:"at"`
		By         string      `json:"by,omitempty"`
		Lock       string      `json:"lock,omitempty"` // identity of the server in the lock file by which it was accepted
		Definition *definition `json:"definition,omitempty"`
	}
	blockNote struct {
		At time.Time `json:"at"`
		By string    `json:"by"`
	}
	definition struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		ReadOnly    *bool           `json:"readOnlyHint,omitempty"`
		Destructive *bool           `json:"destructiveHint,omitempty"`
		Idempotent  *bool           `json:"idempotentHint,omitempty"`
		OpenWorld   *bool           `json:"openWorldHint,omitempty"`
	}
)

// A cachedFile is a server's file as it was last read or written.
type cachedFile struct {
	file *file
	text []byte // nil if there was none
}

// key returns the name under which a file has a tool: files hold UTF-8 only.
func key(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

func newSnapshot(d catalog.Definition, by string, now time.Time) *snapshot {
	return &snapshot{Digest: d.Digest(), At: now.UTC(), By: by, Definition: keep(d)}
}

// keep returns a definition as the file holds it; nil if it cannot be held exactly
// or is too large.
func keep(d catalog.Definition) *definition {
	if len(d.Title)+len(d.Description)+len(d.Input)+len(d.Output) > maxKept {
		return nil
	}
	for _, text := range []string{d.Name, d.Title, d.Description} {
		if !utf8.ValidString(text) {
			return nil
		}
	}
	for _, raw := range []json.RawMessage{d.Input, d.Output} {
		if len(raw) > 0 && (!json.Valid(raw) || !utf8.Valid(raw) || string(bytes.TrimSpace(raw)) == "null") {
			return nil
		}
	}
	a := d.Annotations
	return &definition{d.Name, d.Title, d.Description, d.Input, d.Output, a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld}
}

// digest returns that of the definition; empty if there is none.
func (v *snapshot) digest() string {
	if v == nil {
		return ""
	}
	return v.Digest
}

// whole returns the definition; nil if it is not kept.
func (v *snapshot) whole() *catalog.Definition {
	if v == nil || v.Definition == nil {
		return nil
	}
	d := v.Definition
	return &catalog.Definition{Name: d.Name, Title: d.Title, Description: d.Description, Input: d.Input, Output: d.Output,
		Annotations: profiles.Annotations{ReadOnly: d.ReadOnly, Destructive: d.Destructive, Idempotent: d.Idempotent, OpenWorld: d.OpenWorld}}
}

// current returns what the server lists, as far as the file knows.
func (e *pin) current() *snapshot {
	if e.Seen != nil {
		return e.Seen
	}
	return e.Accepted
}

// rule returns the reaction to a tool whose definition is not the accepted one.
func (f *file) rule(name string, rules Rules, c terms) Reaction {
	state := New
	if f.Tools[name].Accepted != nil {
		state = Changed
	}
	return c.reaction(state, rules)
}

// wouldChange reports whether observe would change anything.
func (f *file) wouldChange(listed []catalog.Definition, rules Rules, c terms, mine sightings) bool {
	there := make(map[string]bool, len(listed))
	for _, d := range listed {
		name := key(d.Name)
		there[name] = true
		e, ok := f.Tools[name]
		switch allow := ok && f.rule(name, rules, c) == Allow; {
		case !ok && len(f.Tools) >= maxTools: // judge holds it
		case !ok:
			return true
		case e.current().Digest != d.Digest():
			if !mine.elsewhere(name, e.Accepted.digest(), e.Seen.digest(), d.Digest(), allow) {
				return true
			}
		case e.Seen != nil && e.Blocked == nil && allow:
			return true
		}
	}
	for name, e := range f.Tools {
		if e.Seen != nil && !there[name] && mine.went(name) {
			return true
		}
	}
	return false
}

// observe stores what is listed, and returns what changed.
func (f *file) observe(server string, listed []catalog.Definition, rules Rules, c terms, mine sightings, now time.Time) []Event {
	var events []Event
	first := len(f.Tools) == 0
	there := make(map[string]bool, len(listed))
	for _, d := range listed {
		name, digest := key(d.Name), d.Digest()
		there[name] = true
		e, known := f.Tools[name]
		if !known && len(f.Tools) >= maxTools {
			continue // judge holds it
		}
		if !known {
			e = &pin{Seen: newSnapshot(d, "", now)}
			f.Tools[name] = e
			if hold := f.rule(name, rules, c); !first || hold != Allow {
				events = append(events, Event{Server: server, Tool: d.Name, Kind: Appeared, To: digest, Reaction: hold})
			}
		} else if was := e.current().Digest; was != digest {
			if mine.elsewhere(name, e.Accepted.digest(), e.Seen.digest(), digest, f.rule(name, rules, c) == Allow) {
				continue
			}
			step := Event{Server: server, Tool: d.Name, Kind: Differs, From: was, To: digest, Reaction: f.rule(name, rules, c)}
			if e.Accepted != nil && e.Accepted.Digest == digest {
				e.Seen, step.Kind, step.Reaction = nil, Returned, Allow
			} else {
				e.Seen = newSnapshot(d, "", now)
			}
			events = append(events, step)
		}
		if e.Seen != nil && e.Blocked == nil && f.rule(name, rules, c) == Allow {
			e.Accepted, e.Seen = e.Seen, nil
		}
	}
	for name, e := range f.Tools {
		switch {
		case there[name] || e.Seen == nil || !mine.went(name):
		case e.Accepted == nil && e.Blocked == nil: // it came and went unaccepted
			delete(f.Tools, name)
		case e.Accepted != nil:
			e.Seen = nil
		}
	}
	if first && len(listed) > 0 {
		events = append([]Event{{Server: server, Kind: FirstContact, Tools: len(listed), Reaction: c.reaction(New, rules)}}, events...)
	}
	return events
}

// judge returns the standing of each tool.
func (f *file) judge(listed []catalog.Definition, rules Rules, c terms) map[string]Standing {
	all := make(map[string]Standing, len(listed))
	for _, d := range listed {
		all[d.Name] = f.judgeOne(d, rules, c)
	}
	return all
}

func (f *file) judgeOne(d catalog.Definition, rules Rules, c terms) Standing {
	name, digest := key(d.Name), d.Digest()
	e, known := f.Tools[name]
	if !known && len(f.Tools) >= maxTools {
		return Standing{State: New, Reaction: Quarantine, Why: fmt.Sprintf("its server has listed more than %d different tools", maxTools)}
	}
	state, why := f.state(name, digest, c)
	s := Standing{State: state, Reaction: c.reaction(state, rules), Why: why}
	if known {
		s.Was = e.Accepted.whole()
	}
	switch state {
	case Accepted:
		return Standing{State: Accepted, Reaction: Allow}
	case Blocked: // without a difference: nobody is asked about it
		return s
	}
	if known && e.Accepted != nil && e.Accepted.Digest == digest && s.Reaction != Allow {
		s.Difference = unlike(why)
		return s
	}
	return describeHold(s, d)
}

// unlike is the difference of a definition that is as it was accepted, but not as the lock
// file has it.
func unlike(why string) []Part { return []Part{{"definition", []string{"!" + why}}} }

// describeHold completes a standing, with the difference if the tool is held. An
// unknown Reaction counts as Quarantine.
func describeHold(s Standing, d catalog.Definition) Standing {
	switch s.Reaction {
	case Allow:
		s.State, s.Why, s.Was = Accepted, "", nil
		return s
	case Ask, Quarantine:
	default:
		s.Reaction = Quarantine
	}
	s.Difference = difference(s.Was, s.State != New, &d)
	return s
}

// words say who accepted a version, and when.
func (v *snapshot) words() string {
	if v.By == "" {
		return "it was first seen on " + day(v.At)
	}
	return canon.Escape(v.By) + " accepted it on " + day(v.At)
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (f *file) unreviewed(server, name string, c terms) UnreviewedTool {
	e := f.Tools[name]
	now := e.current()
	state, why := f.state(name, now.Digest, c)
	w := UnreviewedTool{Server: server, Tool: name, State: state, Since: now.At, Digest: now.Digest, Strict: c.strict}
	if e.Blocked != nil {
		w.BlockedBy, w.BlockedAt = e.Blocked.By, e.Blocked.At
	}
	if was := e.Accepted; was != nil {
		w.Was, w.AcceptedBy, w.AcceptedAt = was.Digest, was.By, was.At
	}
	is := now.whole()
	switch {
	case e.Accepted != nil && e.Seen == nil && w.State == Changed:
		w.Lock, w.Difference = why, unlike(why)
	case e.Accepted != nil && e.Seen == nil: // it is as accepted
	case is == nil:
		w.Difference = []Part{{What: "definition", Lines: []string{"!too large or odd to be shown: only its digest is kept"}}}
	default:
		w.Difference = difference(e.Accepted.whole(), e.Accepted != nil, is)
	}
	if is != nil {
		w.Notices = notices(*is)
	}
	return w
}

// documentName is the name of a server's file.
func documentName(server string) string { return "server-" + server + ".json" }

// readLocked returns a server's file, from memory if it has not changed. The caller
// must not modify it. The file of an unknown server is empty.
func (s *Store) readLocked(server string) (*file, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text, err := s.textLocked(ctx, s.documents.Read, server)
	s.failed = err != nil
	if err != nil {
		return nil, err
	}
	if known := s.loaded[server]; known != nil && (known.text == nil) == (text == nil) && bytes.Equal(known.text, text) {
		return known.file, nil
	}
	f, err := s.parse(server, text)
	if err != nil {
		return nil, err
	}
	s.loaded[server] = &cachedFile{f, text}
	return f, nil
}

// textLocked returns the text of a server's file, or the one that it begins with; nil if
// there is neither.
func (s *Store) textLocked(ctx context.Context, read func(context.Context, string) ([]byte, error), server string) ([]byte, error) {
	text, err := read(ctx, documentName(server))
	if errors.Is(err, fs.ErrNotExist) && s.beginnings != nil {
		text, err = s.beginnings.Read(ctx, documentName(server))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// parse reads a server's file; the caller may modify what it returns.
func (s *Store) parse(server string, text []byte) (*file, error) {
	f := &file{fileVersion, server, map[string]*pin{}}
	if text == nil {
		return f, nil
	}
	if err := f.parse(text, server); err != nil {
		return nil, fmt.Errorf("%s: %w (put it right, or remove it to begin anew)", filepath.Join(s.where, documentName(server)), err)
	}
	return f, nil
}

func (f *file) parse(raw []byte, server string) error {
	if len(raw) > maxFile {
		return fmt.Errorf("more than %d bytes", maxFile)
	}
	*f = file{}
	if err := canon.Decode(raw, f); err != nil {
		return fmt.Errorf("the file is damaged: %w", err)
	}
	switch {
	case f.Version != fileVersion:
		return fmt.Errorf("the file is of version %d, want %d", f.Version, fileVersion)
	case f.Server != server:
		return fmt.Errorf("the file is of server %q", f.Server)
	case f.Tools == nil:
		return errors.New("the file is damaged: it has no tools")
	}
	for name, e := range f.Tools {
		if e == nil || e.Accepted == nil && e.Seen == nil {
			return fmt.Errorf("the file is damaged: tool %q has no definition", name)
		}
		for _, v := range []*snapshot{e.Accepted, e.Seen} {
			if whole := v.whole(); whole != nil && whole.Digest() != v.Digest {
				return fmt.Errorf("the file is damaged: a definition of tool %q does not match its digest", name)
			}
		}
	}
	return nil
}

// changeLocked changes a server's file under the lock of all processes. If
// change fails, or the file can't be written, nothing is changed.
func (s *Store) changeLocked(server string, change func(*file) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var kept cachedFile
	err := s.documents.Change(ctx, documentName(server), func(old []byte) ([]byte, error) {
		text, err := s.textLocked(ctx, func(context.Context, string) ([]byte, error) {
			if old == nil {
				return nil, fs.ErrNotExist
			}
			return old, nil
		}, server)
		if err != nil {
			return nil, err
		}
		f, err := s.parse(server, text)
		if err != nil {
			return nil, err
		}
		if err := change(f); err != nil {
			return nil, err
		}
		if text, err = f.text(); err != nil {
			return nil, err
		}
		kept = cachedFile{f, text}
		return text, nil
	})
	if err == nil {
		s.loaded[server] = &kept
	}
	return err
}

// text returns a file as it is written.
func (f *file) text() ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(f)
	return text.Bytes(), err
}

// removeLocked drops a server's file. Where files begin with what this machine had, an
// empty one stays, so that it does not begin again with that.
func (s *Store) removeLocked(server string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	delete(s.loaded, server)
	delete(s.mine, server)
	return s.documents.Change(ctx, documentName(server), func([]byte) ([]byte, error) {
		if s.beginnings == nil {
			return nil, nil
		}
		return (&file{fileVersion, server, map[string]*pin{}}).text()
	})
}
