// Package policydoc signs and verifies documents of policy that a configuration includes.
//
// A document is pinned, by the SHA-256 of its bytes or by an Ed25519 key. With a key there is
// a second document beside it, at its address with ".sig" appended: an [Envelope], JSON of
// less than 4 KB,
//
//	{"version": 1, "key": "ed25519:...", "serial": 7, "sha256": "...",
//	 "notBefore": "2026-01-01T00:00:00Z", "expires": "2027-01-01T00:00:00Z",
//	 "signature": "..."}
//
// whose signature (base64) is over these lines, each ended by a line feed; an absent time is
// an empty line:
//
//	codemode-bridge policy v1
//	<key>
//	<serial, decimal>
//	<sha256, lower case hex>
//	<notBefore, RFC 3339 in UTC, whole seconds>
//	<expires>
//
// The serial may only rise: whoever reads documents remembers the last one of a key and an address, and
// refuses an older one, and the same one with other bytes. That is for the reader, as is fetching.
package policydoc

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxDocument bounds a document, and MaxEnvelope what is beside it.
	MaxDocument = 1 << 20
	MaxEnvelope = 4 << 10
	// MaxSerial is the largest serial: what every JSON reader keeps exactly.
	MaxSerial = 1<<53 - 1

	version   = 1
	domain    = "codemode-bridge policy v1"
	keyPrefix = "ed25519:"
	clockSkew = 5 * time.Minute
)

// An Include is one entry of the configuration's include: a file, or a document at an address
// that is pinned by digest or by key.
type Include struct {
	File   string `json:"file,omitempty"`
	URL    string `json:"url,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Key    string `json:"key,omitempty"`
	// Token names the bearer token that is sent to the address: a variable, a secret of the
	// keyring, or a file. It is read when the entry is, before anybody could have confirmed an
	// edit; so its name must begin with policy, and it is no other secret of this machine.
	Token string `json:"token,omitempty"`
}

var (
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	tokenForm  = regexp.MustCompile(`^\$\{(?:(?:(keyring):)?(POLICY_[A-Za-z0-9_.-]*)|(file):((?:[^{}]*[/\\])?policy[^{}/\\]*))\}$`)
)

// UnmarshalJSON reads a file's name, or an object, and checks it.
func (i *Include) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		if err := json.Unmarshal(text, &i.File); err != nil {
			return err
		}
	} else {
		type plain Include
		if err := decodeStrictly(text, (*plain)(i)); err != nil {
			return errors.New(`must be a file, or {"url": ..., "sha256": ...}, or {"url": ..., "key": ...}, with "token" if one is needed`)
		}
	}
	return i.Check()
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (i Include) MarshalJSON() ([]byte, error) {
	if i.URL == "" {
		return json.Marshal(i.File)
	}
	type plain Include
	return json.Marshal(plain(i))
}

// Check says what is wrong with an entry.
func (i Include) Check() error {
	switch {
	case i.URL == "" && (i.SHA256 != "" || i.Key != "" || i.Token != ""):
		return errors.New("has no url, which sha256, key and token belong to")
	case i.URL == "" && strings.TrimSpace(i.File) == "":
		return errors.New("is empty: name a file, or a url")
	case i.URL == "" && strings.Contains(i.File, "://"):
		return errors.New(`is an address and not a file: write {"url": "...", "key": "ed25519:..."}, or "sha256" instead of "key"`)
	case i.URL == "":
		return nil
	case i.File != "":
		return errors.New("is a file or a url, not both")
	case (i.SHA256 == "") == (i.Key == ""):
		return errors.New("needs exactly one of sha256 and key, which say what may be at its address")
	case i.SHA256 != "" && !digestForm.MatchString(i.SHA256):
		return errors.New("has a sha256 that is not 64 digits in lower case hex")
	case strings.HasPrefix(i.Token, "${exec:"):
		return errors.New(`has a token that is the output of a command, which an edit could have run before anybody has seen it: write "${keyring:POLICY_TOKEN}"`)
	case i.Token != "" && !tokenForm.MatchString(i.Token):
		return errors.New(`has a token that does not name one for policy: write "${POLICY_TOKEN}", "${keyring:POLICY_TOKEN}" or "${file:/path/policy-token}": the name begins with policy, so that nothing else is sent there`)
	}
	if i.Key != "" {
		if _, err := ParseKey(i.Key); err != nil {
			return fmt.Errorf("has a key that cannot be used: %w", err)
		}
	}
	return CheckURL(i.URL)
}

// CheckURL refuses addresses that are not https, except those of this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return errors.New("has a url that is no address")
	case u.User != nil || u.Fragment != "":
		return errors.New("has a url with a name, a password or a fragment")
	case u.Scheme == "https":
		return nil
	}
	if addr, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && addr.IsLoopback()) {
		return nil
	}
	return errors.New("has a url that is not https; http is for addresses of this machine alone")
}

// TokenSource says where the token is: in the variable of that name if kind is empty, or
// in the keyring or a file. Both are empty if there is none.
func (i Include) TokenSource() (kind, name string) {
	if m := tokenForm.FindStringSubmatch(i.Token); m != nil {
		return m[1] + m[3], m[2] + m[4]
	}
	return "", ""
}

// Ref names the entry and how it is pinned: two with the same Ref are the same document's.
func (i Include) Ref() string {
	switch {
	case i.URL == "":
		return i.File
	case i.Key != "":
		return i.URL + " signed by " + i.Key
	}
	return i.URL + " with sha256 " + i.SHA256
}

// An Envelope says who signed a document, and which.
type Envelope struct {
	Version   int        `json:"version"`
	Key       string     `json:"key"`
	Serial    int64      `json:"serial"`
	SHA256    string     `json:"sha256"`
	NotBefore *time.Time `json:"notBefore,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Signature string     `json:"signature"`
}

func (e *Envelope) signed() []byte {
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return whole(t).Format(time.RFC3339)
	}
	return []byte(strings.Join([]string{domain, e.Key, strconv.FormatInt(e.Serial, 10), e.SHA256, at(e.NotBefore), at(e.Expires), ""}, "\n"))
}

// GenerateKey makes a private key, as text: to be kept where documents are signed.
func GenerateKey(random io.Reader) (private, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(random)
	if err != nil {
		return "", "", fmt.Errorf("making a key: %w", err)
	}
	return "ed25519-private:" + base64.StdEncoding.EncodeToString(priv.Seed()), PublicText(pub), nil
}

// ParsePrivate reads a private key that GenerateKey made.
func ParsePrivate(text string) (ed25519.PrivateKey, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "ed25519-private:")
	seed, err := base64.StdEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("that is no private key of codemode-bridge policy keygen")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// PublicText writes a public key.
func PublicText(key ed25519.PublicKey) string {
	return keyPrefix + base64.StdEncoding.EncodeToString(key)
}

// ParseKey reads a public key.
func ParseKey(text string) (ed25519.PublicKey, error) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || len(key) != ed25519.PublicKeySize || PublicText(key) != text {
		return nil, errors.New(`a key is "ed25519:" and 44 characters of base64`)
	}
	return key, nil
}

// Validity is when a document may be used; the zero value is always.
type Validity struct{ NotBefore, Expires *time.Time }

// Sign makes the envelope of a document.
func Sign(document []byte, key ed25519.PrivateKey, serial int64, when Validity) (Envelope, error) {
	switch {
	case serial < 1 || serial > MaxSerial:
		return Envelope{}, fmt.Errorf("the serial %d is not from 1 to %d", serial, MaxSerial)
	case len(document) > MaxDocument:
		return Envelope{}, errors.New("the document is larger than 1 MB")
	case when.NotBefore != nil && when.Expires != nil && !when.NotBefore.Before(*when.Expires):
		return Envelope{}, errors.New("the document would expire before it may be used")
	}
	e := Envelope{Version: version, Key: PublicText(key.Public().(ed25519.PublicKey)), Serial: serial, SHA256: Digest(document), NotBefore: whole(when.NotBefore), Expires: whole(when.Expires)}
	e.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, e.signed()))
	return e, nil
}

func whole(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	seconds := t.UTC().Truncate(time.Second)
	return &seconds
}

// Digest is the SHA-256 of a document, in hex.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// ParseEnvelope reads an envelope; nothing of it is verified yet.
func ParseEnvelope(text []byte) (Envelope, error) {
	if len(text) > MaxEnvelope {
		return Envelope{}, errors.New("the signature document is larger than 4 KB")
	}
	var e Envelope
	if err := decodeStrictly(text, &e); err != nil {
		return Envelope{}, errors.New("the signature document is not one that codemode-bridge policy sign writes")
	}
	switch {
	case e.Version != version:
		return Envelope{}, fmt.Errorf("the signature document has version %d, and this program reads %d", e.Version, version)
	case e.Serial < 1 || e.Serial > MaxSerial:
		return Envelope{}, fmt.Errorf("the serial of the signature document is not from 1 to %d", MaxSerial)
	}
	return e, nil
}

// Verify checks the envelope of a document against the one key that is trusted.
func (e *Envelope) Verify(document []byte, key string) error {
	public, err := ParseKey(key)
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(e.Signature)
	switch {
	case e.Key != key:
		return errors.New("it is signed by another key than the one that the configuration names")
	case err != nil || !ed25519.Verify(public, e.signed(), signature):
		return errors.New("its signature is wrong")
	case e.SHA256 != Digest(document):
		return errors.New("its signature is for another document: one of the two was swapped, or is being replaced")
	}
	return nil
}

// Valid says whether a document that was verified may be used now.
func (e *Envelope) Valid(now time.Time) error {
	switch {
	case e.NotBefore != nil && now.Add(clockSkew).Before(*e.NotBefore):
		return fmt.Errorf("it may not be used before %s", e.NotBefore.UTC().Format(time.RFC3339))
	case e.Expires != nil && !now.Before(*e.Expires):
		return fmt.Errorf("it expired at %s", e.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// decodeStrictly reads one flat JSON object: no unknown key, none twice or in another case,
// nothing after it.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("it is no object")
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if strings.ContainsFunc(name, func(r rune) bool { return r > '~' }) { // some fold to letters of ours
			return errors.New("an unknown key")
		}
		if !ok || seen[strings.ToLower(name)] {
			return errors.New("a key is there twice")
		} else {
			seen[strings.ToLower(name)] = true
		}
		if value, err := d.Token(); err != nil {
			return err
		} else if _, nested := value.(json.Delim); nested {
			return errors.New("it is not flat")
		}
	}
	d = json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}
