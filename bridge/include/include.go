// Package include fetches documents of policy from https addresses, verifies them, and keeps the
// last good copy of each, for starts without a network.
//
// What is at an address is taken if it has the digest that the configuration pins, or is
// signed by the key that it names, with a serial that is not lower than the last one seen. Anything else is
// refused: [Store.Get] then returns the kept copy, verified again, with [Document.Problem]; without a copy it
// returns the error. A folder may be used by several processes.
package include

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/policydoc"
)

// Interval is how long what was last fetched counts as fresh.
const Interval = 5 * time.Minute

const (
	fetchTime = 15 * time.Second // for a document and its signature together
	lockWait  = 10 * time.Second
	maxKept   = 4 * policydoc.MaxDocument
	maxETag   = 200
)

// A Store fetches and keeps documents.
type Store struct {
	// Dir is the folder of the copies, made when the first one is kept.
	Dir string
	// Token returns the token that an entry names.
	Token func(ctx context.Context, inc policydoc.Include) (string, error)
	// Client, if not nil, is used in the place of one with the system's roots.
	Client *http.Client
	// Now is time.Now if nil.
	Now func() time.Time
}

// A Document is one that was verified.
type Document struct {
	Include  policydoc.Include
	Text     []byte
	Envelope policydoc.Envelope // the zero one if it is pinned by digest
	// Checked is when the address last said that it is the current one.
	Checked time.Time
	etag    string
	// Problem is why what is at the address was not taken now, and the kept copy is used; nil
	// if the document is fresh.
	Problem error
}

// kept is a copy in the folder.
type kept struct {
	Version  int             `json:"version"`
	Ref      string          `json:"ref"`
	Text     []byte          `json:"text"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Checked  time.Time       `json:"checked"`
	// ETag is what the address called the envelope, if it did.
	ETag string `json:"etag,omitempty"`
}

const keptVersion = 1

// An OlderError says that an address offers an older document than it did, or two under one
// serial.
type OlderError struct{ Seen, Offered int64 }

func (e *OlderError) Error() string {
	if e.Seen == e.Offered {
		return fmt.Sprintf("another document under the serial %d, which was seen already: sign it with a higher one", e.Seen)
	}
	return fmt.Sprintf("it has the serial %d, and %d was seen already: an older document is not taken", e.Offered, e.Seen)
}

// Get returns the document of an entry with a URL: the kept one while it is fresh, unless now
// is set, or what is at the address.
func (s *Store) Get(ctx context.Context, inc policydoc.Include, now bool) (Document, error) {
	have, err := s.Kept(inc)
	found := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the kept copy of %s cannot be used: %w", inc.URL, err)
	}
	if found && (inc.SHA256 != "" || !now && s.now().Sub(have.Checked) < Interval && !have.Checked.After(s.now())) {
		if err := s.valid(have); err == nil || inc.SHA256 != "" {
			return have, err
		}
		// It has expired since it was fetched: there may be a newer one.
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	fresh, fetchErr := s.fetch(ctx, inc, have, found)
	switch {
	case fetchErr == nil:
		return fresh, s.valid(fresh)
	case !found && err != nil && !errors.Is(err, fs.ErrNotExist):
		return Document{}, errors.Join(fetchErr, err)
	case !found:
		return Document{}, fmt.Errorf("%w; no copy of it is kept here, and nothing runs without it", fetchErr)
	}
	if have, err = s.Kept(inc); err != nil { // another process may have kept a newer one
		return Document{}, fmt.Errorf("the kept copy of %s cannot be used: %w", inc.URL, err)
	}
	have.Problem = fetchErr
	return have, s.valid(have)
}

func (s *Store) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// valid refuses a document outside of its time.
func (s *Store) valid(d Document) error {
	if err := d.Envelope.Valid(s.now()); err != nil {
		return fmt.Errorf("%s: %w", d.Include.URL, err)
	}
	return nil
}

// Kept returns the copy of an entry's document, verified. The error is fs.ErrNotExist if there is none.
func (s *Store) Kept(inc policydoc.Include) (Document, error) {
	text, err := atomicfile.Read(s.path(inc), maxKept)
	if err != nil {
		return Document{}, err
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil || k.Version != keptVersion || k.Ref != inc.Ref() {
		return Document{}, fmt.Errorf("%s is not one that this program wrote: remove it", s.path(inc))
	}
	d, err := verify(inc, k.Text, k.Envelope)
	if err != nil {
		return Document{}, fmt.Errorf("%s was changed: %w: remove it", s.path(inc), err)
	}
	d.Checked, d.etag = k.Checked, k.ETag
	return d, nil
}

func (s *Store) path(inc policydoc.Include) string {
	sum := sha256.Sum256([]byte(inc.Ref()))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:12])+".json")
}

// verify checks bytes against how the entry pins them.
func verify(inc policydoc.Include, text, envelope []byte) (Document, error) {
	d := Document{Include: inc, Text: text}
	switch {
	case len(text) > policydoc.MaxDocument:
		return d, errors.New("it is larger than 1 MB")
	case inc.SHA256 != "":
		if got := policydoc.Digest(text); got != inc.SHA256 {
			return d, fmt.Errorf("it has the sha256 %s, and the configuration pins %s", got, inc.SHA256)
		}
		return d, nil
	}
	e, err := policydoc.ParseEnvelope(envelope)
	if err != nil {
		return d, err
	}
	d.Envelope = e
	return d, e.Verify(text, inc.Key)
}

// fetch gets what is at the address, verifies it and keeps it. Of a signed document that is kept already,
// only the signature document is fetched.
func (s *Store) fetch(ctx context.Context, inc policydoc.Include, have Document, found bool) (Document, error) {
	var envelope []byte
	var etag string
	if inc.Key != "" {
		var err error
		if envelope, etag, err = s.read(ctx, inc, inc.URL+".sig", have.etag, policydoc.MaxEnvelope); err != nil {
			return Document{}, err
		}
		if envelope == nil { // as it was
			if envelope, err = json.Marshal(have.Envelope); err != nil {
				return Document{}, fmt.Errorf("keeping a document of policy: %w", err)
			}
			return s.keep(inc, have.Text, envelope, have.etag)
		}
		if e, err := policydoc.ParseEnvelope(envelope); err == nil && found && e.SHA256 == policydoc.Digest(have.Text) {
			return s.keep(inc, have.Text, envelope, etag)
		}
	}
	text, _, err := s.read(ctx, inc, inc.URL, "", policydoc.MaxDocument)
	if err != nil {
		return Document{}, err
	}
	return s.keep(inc, text, envelope, etag)
}

// keep verifies a document and, if it is not older than what is kept, keeps it.
func (s *Store) keep(inc policydoc.Include, text, envelope []byte, etag string) (Document, error) {
	d, err := verify(inc, text, envelope)
	if err == nil {
		err = s.valid(d)
	}
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", inc.URL, err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return Document{}, fmt.Errorf("keeping a document of policy: %w", err)
	}
	unlock, err := filelock.Wait(filepath.Join(s.Dir, "lock"), lockWait)
	if err != nil {
		return Document{}, fmt.Errorf("keeping a document of policy: %w", err)
	}
	defer unlock()
	if had, err := s.Kept(inc); err == nil && inc.Key != "" {
		if seen, offered := had.Envelope.Serial, d.Envelope.Serial; offered < seen || offered == seen && had.Envelope.SHA256 != d.Envelope.SHA256 {
			return Document{}, fmt.Errorf("%s: %w", inc.URL, &OlderError{seen, offered})
		}
	}
	d.Checked = s.now()
	data, err := json.Marshal(kept{keptVersion, inc.Ref(), text, envelope, d.Checked, etag})
	if err == nil {
		err = atomicfile.Write(s.path(inc), data)
	}
	if err != nil {
		return Document{}, fmt.Errorf("keeping a document of policy: %w", err)
	}
	return d, nil
}

// read gets one address, without following it elsewhere. If what is there is still called
// had, which is not empty then, it returns nil.
func (s *Store) read(ctx context.Context, inc policydoc.Include, address, had string, most int64) (text []byte, etag string, err error) {
	if err := policydoc.CheckURL(address); err != nil {
		return nil, "", fmt.Errorf("%s %w", address, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", fmt.Errorf("fetching %s: %w", address, err)
	}
	req.Header.Set("User-Agent", "codemode-bridge")
	if inc.Token != "" {
		if s.Token == nil {
			return nil, "", fmt.Errorf("fetching %s: nobody knows its token, %s", address, inc.Token)
		}
		token, err := s.Token(ctx, inc)
		if err != nil {
			return nil, "", fmt.Errorf("fetching %s: its token: %w", address, err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if had != "" {
		req.Header.Set("If-None-Match", had)
	}
	res, err := s.client().Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("fetching a document of policy: %w", err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && had != "":
		return nil, had, nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return nil, "", fmt.Errorf("fetching %s: it leads elsewhere (%s), which is not followed: write the address itself", address, res.Status)
	case res.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("fetching %s: the answer is %s", address, res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("fetching %s: %w", address, err)
	case int64(len(data)) > most:
		return nil, "", fmt.Errorf("fetching %s: it is larger than %d bytes", address, most)
	}
	if etag = res.Header.Get("ETag"); len(etag) > maxETag {
		etag = ""
	}
	return data, etag, nil
}

func (s *Store) client() *http.Client {
	client := http.Client{}
	if s.Client != nil {
		client = *s.Client
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableCompression, transport.DisableKeepAlives = true, true
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}
